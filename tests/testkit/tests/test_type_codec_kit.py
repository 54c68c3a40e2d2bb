"""The TypeCodec kit passes a correct codec and catches broken ones."""

from __future__ import annotations

import random
import threading
import typing
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from portico.errors import SchemaUnsupported
from portico.types.compiled import Compiled, Fault, Mismatch, refuse
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.type_codec import Chain, CodecCase, TypeCodecKit


class Record:
    """A class with fields that only the codec of this file knows; subclasses have them as annotations."""

    def __init__(self, *values: Any, **named: Any) -> None:
        for name, value in zip(fields(type(self)), values, strict=False):
            setattr(self, name, value)
        for name, value in named.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


def fields(kind: type[Record]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


class Stay(Record):
    nights: int
    names: list[str]
    more: Any


class Link(Record):
    name: str
    next: Link | None


class RecordCodec:
    """A correct codec; its methods are what the broken ones do wrong."""

    name = "record"

    def __init__(self) -> None:
        self.open = threading.local()

    def compile(self, hint: Any, inner: Callable[[object], Compiled]) -> Compiled | None:
        if not isinstance(hint, type) or not issubclass(hint, Record):
            return None
        waiting: dict[Any, list[Compiled]] = self.open.__dict__.setdefault("waiting", {})
        name = self.definition(hint)
        if hint in waiting:
            cell = waiting[hint]
            return Compiled(
                {"$ref": f"#/$defs/{name}"},
                lambda value: cell[0].structure(value),  # noqa: PLW0108 - the cell is filled later
                lambda value: cell[0].unstructure(value),  # noqa: PLW0108
            )
        cell = waiting[hint] = []
        try:
            cell.append(self.record(hint, {field: inner(kind) for field, kind in fields(hint).items()}))
        finally:
            del waiting[hint]
        recursive = hint is Link
        schema = {"$ref": f"#/$defs/{name}", "$defs": {name: cell[0].schema}} if recursive else cell[0].schema
        return replace(cell[0], schema=self.described(schema), structure=self.bounded(cell[0].structure))

    def definition(self, hint: Any) -> str:
        return f"Record{hint.__name__}"

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def bounded(self, structure: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def bounded(value: Any) -> Any:
            try:
                return structure(value)
            except RecursionError:
                refuse("a value that is nested less deeply", value)

        return bounded

    def record(self, hint: Any, inner: dict[str, Compiled]) -> Compiled:
        schema = {
            "type": "object",
            "properties": {name: compiled.schema for name, compiled in inner.items()},
            "required": list(inner),
            "additionalProperties": False,
        }

        def structure(value: Any) -> Any:
            return self.read(hint, inner, value)

        return Compiled(schema, structure, lambda value: self.write(inner, value), self.draft(hint, inner))

    def read(self, hint: Any, inner: dict[str, Compiled], value: Any) -> Any:
        if type(value) is not dict:
            refuse("an object", value)
        values, faults = {}, [Fault((key,), "a known key", "another") for key in value if key not in inner]
        for name, compiled in inner.items():
            if name not in value:
                faults.append(Fault((name,), "a value", "nothing"))
                continue
            try:
                values[name] = compiled.structure(value[name])
            except Mismatch as error:
                faults += error.under(name)
        if faults:
            raise Mismatch(faults)
        return hint(**values)

    def write(self, inner: dict[str, Compiled], value: Any) -> Any:
        return {name: compiled.unstructure(getattr(value, name)) for name, compiled in inner.items()}

    def draft(self, hint: Any, inner: dict[str, Compiled]) -> Callable[[Any], Any] | None:
        def draft(value: Any) -> Any:
            if type(value) is not dict:
                refuse("an object", value)
            shown = dict.fromkeys(inner)
            for name, compiled in inner.items():
                try:
                    shown[name] = (compiled.draft or compiled.structure)(value.get(name))
                except Mismatch:
                    continue
            return hint(**shown)

        return draft


class TestRecordCodec(TypeCodecKit):
    cases = (
        CodecCase(
            Stay,
            [Stay(2, ["a"], {"k": [1]}), Stay(0, [], None)],
            [
                ({"nights": "x", "names": ["a", 5], "more": 1}, ["$.nights", "$.names[1]"]),
                ({"nights": 1, "name": []}, ["$.names", "$.more", "$.name"]),
                (5, ["$"]),
            ],
        ),
    )
    chain = Chain(Link, Link("end", None), lambda inner: Link("a", inner))

    @pytest.fixture
    def type_codec(self) -> RecordCodec:
        return RecordCodec()

    @staticmethod
    def holding(hint: Any) -> tuple[Any, Callable[[Any], Any]]:
        made = type("Holder", (Record,), {"__annotations__": {"inside": hint}})
        return made, made


class FractionCodec:
    """The codec of the documentation: its types have no fields."""

    name = "fractions"

    def compile(self, hint: Any, inner: Callable[[object], Compiled]) -> Compiled | None:
        if hint is not Fraction:
            return None
        text = inner(str)

        def structure(value: Any) -> Fraction:
            try:
                return Fraction(text.structure(value))
            except (ValueError, ZeroDivisionError):
                refuse("a fraction such as 3/4", value)

        return Compiled({"type": "string"}, structure, str)


class TestFractionCodec(TypeCodecKit):
    cases = (CodecCase(Fraction, [Fraction(3, 4), Fraction(-2)], [(5, ["$"]), ("1/0", ["$"])]),)

    @pytest.fixture
    def type_codec(self) -> FractionCodec:
        return FractionCodec()


def fixtures(kind: type[RecordCodec]) -> dict[str, Callable[[], RecordCodec]]:
    return {"type_codec": kind}


FAULTS = KnownFaults(TestRecordCodec, fixtures, attributes=lambda kind: getattr(kind, "told", {}))


@FAULTS.caught_by("it_compiles_what_is_of_its_kind", r"compile\(list\[int\]\) returned NoneType")
class LeavesItsOwnKindToCore(RecordCodec):
    told: ClassVar = {"cases": (CodecCase(list[int], [[1]], [(["x", "y"], ["$[0]", "$[1]"])]),)}


@FAULTS.caught_by("types_of_core_hold_it", "not a Mismatch")
class Rooted(RecordCodec):
    """Tells its places from where it stands, wherever core puts it: one level too deep."""

    def read(self, hint, inner, value):
        if value == {"nights": "x", "names": ["a", 5], "more": 1}:
            raise TypeError("not a Mismatch")
        return super().read(hint, inner, value)


@FAULTS.caught_by("it_has_a_name_and_the_kit_was_told_enough", "its name is empty")
class Nameless(RecordCodec):
    name = " "


@FAULTS.caught_by("what_is_not_of_its_kind_is_left_to_others", "it compiled <class 'int'>")
class TakesEverything(RecordCodec):
    def compile(self, hint, inner):
        return super().compile(hint, inner) or (Compiled({}, str, str) if hint is int else None)


@FAULTS.caught_by("what_is_not_of_its_kind_is_left_to_others", "has no attribute '__module__'")
class FailsOnOthers(RecordCodec):
    def compile(self, hint, inner):
        return super().compile(hint, inner) if hint.__module__ else None


@FAULTS.caught_by("what_is_not_of_its_kind_is_left_to_others", r"a list has no hash.* it raised TypeError\(.unhashable")
class RemembersByHash(RecordCodec):
    def __init__(self):
        super().__init__()
        self.known = {}

    def compile(self, hint, inner):
        if hint not in self.known:
            self.known[hint] = super().compile(hint, inner)
        return self.known[hint]


@FAULTS.caught_by("what_is_not_of_its_kind_is_left_to_others", "somebody.else.Stay'> is not of its kind, and inner was")
class GoesByNames(RecordCodec):
    def compile(self, hint, inner):
        return super().compile(Stay if getattr(hint, "__name__", "") == "Stay" else hint, inner)


@FAULTS.caught_by(
    "the_schema_allows_no_json_of_a_kind_that_is_refused", "allows None, which is refused: give it a `type`"
)
class AllowsEverything(RecordCodec):
    def described(self, schema):
        return {key: value for key, value in schema.items() if key not in ("type", "required")}


@FAULTS.caught_by("what_is_not_of_its_kind_is_left_to_others", "inner was asked for <class 'int'>")
class LooksInside(RecordCodec):
    def compile(self, hint, inner):
        if typing.get_origin(hint) is list:
            inner(typing.get_args(hint)[0])
        return super().compile(hint, inner)


@FAULTS.caught_by("the_schema_is_json_and_valid", "changes when it is sent as JSON")
class SchemaIsNoJson(RecordCodec):
    def described(self, schema):
        return {**schema, "examples": (1, 2)}


@FAULTS.caught_by("the_schema_is_json_and_valid", "5 is not of type 'string'")
class SchemaIsInvalid(RecordCodec):
    def described(self, schema):
        return {**schema, "title": 5}


@FAULTS.caught_by("the_schema_is_json_and_valid", "refers to .*Elsewhere.*, which it does not define")
class ReferenceLeadsNowhere(RecordCodec):
    def described(self, schema):
        return {**schema, "anyOf": [{"$ref": "#/$defs/Elsewhere"}]}


@FAULTS.caught_by("a_value_comes_back_from_json_as_it_was", "not valid under the schema of its type")
class SchemaRefusesItsValues(RecordCodec):
    def described(self, schema):
        return {**schema, "maxProperties": 1}


@FAULTS.caught_by("the_same_type_always_has_the_same_schema", "has another schema each time")
class SchemaOfTheMoment(RecordCodec):
    def described(self, schema):
        return {**schema, "title": str(random.random())}


@FAULTS.caught_by("a_value_comes_back_from_json_as_it_was", "came back as Stay.*'more': None")
class LosesAField(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        if "more" in inner:
            made.more = None
        return made


@FAULTS.caught_by("a_value_comes_back_from_json_as_it_was", "which is no JSON")
class WritesTuples(RecordCodec):
    def write(self, inner, value):
        return {
            name: tuple(part) if isinstance(part, list) else part for name, part in super().write(inner, value).items()
        }


@FAULTS.caught_by("a_value_comes_back_from_json_as_it_was", "came back as Copy")
class GivesAnotherType(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        return type("Copy", (hint,), {"__eq__": lambda one, other: True, "__hash__": Record.__hash__})(**vars(made))


@FAULTS.caught_by("json_that_does_not_fit_is_refused_with_its_places", r"told at \$\.nights\b(?!, )")
class TellsTheFirstOnly(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch(error.faults[:1]) from None


@FAULTS.caught_by("json_that_does_not_fit_is_refused_with_its_places", r"told at \$(?!\.)")
class LosesThePlace(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch([Fault((), fault.expected, fault.got) for fault in error.faults]) from None


@FAULTS.caught_by("a_fault_says_what_was_expected_and_what_came", "does not say what was expected")
class SaysNothing(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch([Fault(fault.path, "", "\n") for fault in error.faults]) from None


@FAULTS.caught_by("json_that_does_not_fit_is_refused_with_its_places", " took {'nights': 'x'")
class RefusesWithoutFaults(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch:
            raise Mismatch([]) from None


@FAULTS.caught_by(
    "json_that_does_not_fit_is_refused_with_its_places", r"\$\.name, and faults are told at \$\.\w+, \$\.\w+\b(?!,)"
)
class IgnoresUnknownKeys(RecordCodec):
    def read(self, hint, inner, value):
        known = {key: part for key, part in value.items() if key in inner} if type(value) is dict else value
        return super().read(hint, inner, known)


@FAULTS.caught_by(
    "whatever_json_comes_it_is_taken_or_refused_and_nothing_else", "structure raised TypeError.*, not a Mismatch"
)
class RaisesTypeErrors(RecordCodec):
    def read(self, hint, inner, value):
        return super().read(hint, inner, {**value})


@FAULTS.caught_by(
    "whatever_json_comes_it_is_taken_or_refused_and_nothing_else", "structure raised IndexError.*, not a Mismatch"
)
class RaisesOnOddKeys(RecordCodec):
    def read(self, hint, inner, value):
        for key in value if type(value) is dict else ():
            key[0].lower()
        return super().read(hint, inner, value)


@FAULTS.caught_by("json_that_nearly_fits_is_taken_whole_or_refused")
class Guesses(RecordCodec):
    """Takes what lacks a key, and makes what it could not write."""

    def read(self, hint, inner, value):
        if type(value) is dict and value and set(value) < set(inner):
            return hint(**{**dict.fromkeys(inner), **value})
        return super().read(hint, inner, value)


@FAULTS.caught_by("types_of_core_are_held_by_it", "inside was read from 'x'")
class IgnoresInner(RecordCodec):
    def record(self, hint, inner):
        return super().record(hint, {name: Compiled({}, lambda value: value, lambda value: value) for name in inner})


@FAULTS.caught_by("types_of_other_codecs_are_held_by_it_or_refused", "Coin in a type of the codec's: .* came back as")
class FindsForeignTypesTooLate(RecordCodec):
    def compile(self, hint, inner):
        def lenient(part: Any) -> Compiled:
            return Compiled({}, lambda value: value, str) if part.__name__ == "Coin" else inner(part)

        return super().compile(hint, lenient)


@FAULTS.caught_by("a_type_that_contains_itself_has_an_end")
class UnrollsChains(RecordCodec):
    """Writes a type that contains itself as if it were three levels deep."""

    def described(self, schema):
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        return schema if not name else {"type": "object"}


@FAULTS.caught_by("a_type_that_contains_itself_has_an_end", "maximum recursion depth exceeded")
class CompilesWithoutEnd(RecordCodec):
    def compile(self, hint, inner):
        self.open = threading.local()  # forgets what it is compiling
        return super().compile(hint, inner)


@FAULTS.caught_by("a_draft_of_the_whole_is_the_value", "'drafted': True")
class DraftsDiffer(RecordCodec):
    def draft(self, hint, inner):
        def draft(value):
            made = super(DraftsDiffer, self).draft(hint, inner)(value)
            made.drafted = True
            return made

        return draft


@FAULTS.caught_by("a_draft_of_a_part_is_shown_or_refused", "raised KeyError")
class DraftsNeedAll(RecordCodec):
    def draft(self, hint, inner):
        return lambda value: hint(**{name: compiled.structure(value[name]) for name, compiled in inner.items()})


@FAULTS.caught_by("a_draft_of_a_part_is_shown_or_refused", "a draft of a part changed that of the whole")
class DraftsRemember(RecordCodec):
    def draft(self, hint, inner):
        last = {}

        def draft(value):
            made = super(DraftsRemember, self).draft(hint, inner)(value)
            shown = {**vars(made), **last}
            last.update(vars(made))
            return hint(**shown)

        return draft


@FAULTS.caught_by("threads_may_compile_at_once", "two threads compiling at once have other schemas")
class SharedBetweenThreads(RecordCodec):
    """Has one place for what is being compiled, and takes a moment to compile it."""

    class Shared:
        pass

    def __init__(self):
        self.open = self.Shared()

    def record(self, hint, inner):
        threading.Event().wait(0.002)
        return super().record(hint, inner)


@FAULTS.caught_by("it_keeps_nothing_of_the_values", "was read it is still held")
class KeepsInputs(RecordCodec):
    def read(self, hint, inner, value):
        self.last = value
        return super().read(hint, inner, value)


@FAULTS.caught_by("it_keeps_nothing_of_the_values", "the value read from .* is still held")
class KeepsValues(RecordCodec):
    def read(self, hint, inner, value):
        self.last = super().read(hint, inner, value)
        return self.last


@FAULTS.caught_by("json_and_value_share_nothing", "was read from changed the value")
class SharesWithTheJson(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        if "more" in inner:
            made.more = value["more"]
        return made


@FAULTS.caught_by("json_and_value_share_nothing", "changing the JSON of .* changed the value")
class SharesWithTheValue(RecordCodec):
    def write(self, inner, value):
        return {
            name: vars(value)[name] if name == "names" else part for name, part in super().write(inner, value).items()
        }


class TestTheTypeCodecKit(KitOfAKit):
    faults = FAULTS
    correct = (RecordCodec,)


async def failures(kit: type[TypeCodecKit], kind: type[RecordCodec], *tests: str) -> list[str]:
    return list(await KnownFaults(kit, fixtures).failures_of(kind, *tests))


async def test_a_codec_that_stops_at_the_first_fault_may_say_so() -> None:
    class OneAtATime(TestRecordCodec):
        all_faults = False

    assert await failures(OneAtATime, TellsTheFirstOnly) == []
    assert await failures(OneAtATime, LosesThePlace)


async def test_a_codec_whose_types_cannot_hold_others_must_say_so_when_it_compiles() -> None:
    class Alone(TestRecordCodec):
        takes_foreign = False

    class Refusing(RecordCodec):
        def compile(self, hint: Any, inner: Callable[[object], Compiled]) -> Compiled | None:
            if isinstance(hint, type) and issubclass(hint, Record):
                for kind in fields(hint).values():
                    if getattr(kind, "__name__", "") == "Coin":
                        raise SchemaUnsupported("A Coin cannot be held.")
            return super().compile(hint, inner)

    name = "test_types_of_other_codecs_are_held_by_it_or_refused"
    assert await failures(Alone, Refusing, name) == []
    assert await failures(Alone, RecordCodec, name) == [name]


async def test_the_kit_says_what_it_was_not_told() -> None:
    class Told(TypeCodecKit):
        pass

    assert await failures(Told, RecordCodec, "test_it_has_a_name_and_the_kit_was_told_enough")
    for name in ("test_a_type_that_contains_itself_has_an_end", "test_types_of_core_are_held_by_it"):
        with pytest.raises(pytest.skip.Exception):
            getattr(Told(), name)(RecordCodec())
