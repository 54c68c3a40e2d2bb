"""The TypeCodec kit passes a correct codec and catches broken ones."""

from __future__ import annotations

import inspect
import random
import threading
import typing
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from portico.errors import SchemaUnsupported
from portico.types.compiled import Compiled, Fault, Mismatch, refuse
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


class Nameless(RecordCodec):
    name = " "


class TakesEverything(RecordCodec):
    def compile(self, hint, inner):
        return super().compile(hint, inner) or (Compiled({}, str, str) if hint is int else None)


class FailsOnOthers(RecordCodec):
    def compile(self, hint, inner):
        return super().compile(hint, inner) if hint.__module__ else None


class LooksInside(RecordCodec):
    def compile(self, hint, inner):
        if typing.get_origin(hint) is list:
            inner(typing.get_args(hint)[0])
        return super().compile(hint, inner)


class SchemaIsNoJson(RecordCodec):
    def described(self, schema):
        return {**schema, "examples": (1, 2)}


class SchemaIsInvalid(RecordCodec):
    def described(self, schema):
        return {**schema, "title": 5}


class ReferenceLeadsNowhere(RecordCodec):
    def described(self, schema):
        return {**schema, "anyOf": [{"$ref": "#/$defs/Elsewhere"}]}


class SchemaRefusesItsValues(RecordCodec):
    def described(self, schema):
        return {**schema, "maxProperties": 1}


class SchemaOfTheMoment(RecordCodec):
    def described(self, schema):
        return {**schema, "title": str(random.random())}


class LosesAField(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        if "more" in inner:
            made.more = None
        return made


class WritesTuples(RecordCodec):
    def write(self, inner, value):
        return {
            name: tuple(part) if isinstance(part, list) else part for name, part in super().write(inner, value).items()
        }


class GivesAnotherType(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        return type("Copy", (hint,), {"__eq__": lambda one, other: True, "__hash__": Record.__hash__})(**vars(made))


class TellsTheFirstOnly(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch(error.faults[:1]) from None


class LosesThePlace(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch([Fault((), fault.expected, fault.got) for fault in error.faults]) from None


class SaysNothing(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch([Fault(fault.path, "", "\n") for fault in error.faults]) from None


class RefusesWithoutFaults(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch:
            raise Mismatch([]) from None


class IgnoresUnknownKeys(RecordCodec):
    def read(self, hint, inner, value):
        known = {key: part for key, part in value.items() if key in inner} if type(value) is dict else value
        return super().read(hint, inner, known)


class RaisesTypeErrors(RecordCodec):
    def read(self, hint, inner, value):
        return super().read(hint, inner, {**value})


class RaisesOnOddKeys(RecordCodec):
    def read(self, hint, inner, value):
        for key in value if type(value) is dict else ():
            key[0].lower()
        return super().read(hint, inner, value)


class Guesses(RecordCodec):
    """Takes what lacks a key, and makes what it could not write."""

    def read(self, hint, inner, value):
        if type(value) is dict and value and set(value) < set(inner):
            return hint(**{**dict.fromkeys(inner), **value})
        return super().read(hint, inner, value)


class IgnoresInner(RecordCodec):
    def record(self, hint, inner):
        return super().record(hint, {name: Compiled({}, lambda value: value, lambda value: value) for name in inner})


class FindsForeignTypesTooLate(RecordCodec):
    def compile(self, hint, inner):
        def lenient(part: Any) -> Compiled:
            return Compiled({}, lambda value: value, str) if part.__name__ == "Coin" else inner(part)

        return super().compile(hint, lenient)


class UnrollsChains(RecordCodec):
    """Writes a type that contains itself as if it were three levels deep."""

    def described(self, schema):
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        return schema if not name else {"type": "object"}


class DraftsDiffer(RecordCodec):
    def draft(self, hint, inner):
        def draft(value):
            made = super(DraftsDiffer, self).draft(hint, inner)(value)
            made.drafted = True
            return made

        return draft


class DraftsNeedAll(RecordCodec):
    def draft(self, hint, inner):
        return lambda value: hint(**{name: compiled.structure(value[name]) for name, compiled in inner.items()})


class DraftsRemember(RecordCodec):
    def draft(self, hint, inner):
        last = {}

        def draft(value):
            made = super(DraftsRemember, self).draft(hint, inner)(value)
            shown = {**vars(made), **last}
            last.update(vars(made))
            return hint(**shown)

        return draft


class SharedBetweenThreads(RecordCodec):
    """Has one place for what is being compiled, and takes a moment to compile it."""

    class Shared:
        pass

    def __init__(self):
        self.open = self.Shared()

    def record(self, hint, inner):
        threading.Event().wait(0.002)
        return super().record(hint, inner)


class KeepsInputs(RecordCodec):
    def read(self, hint, inner, value):
        self.last = value
        return super().read(hint, inner, value)


class KeepsValues(RecordCodec):
    def read(self, hint, inner, value):
        self.last = super().read(hint, inner, value)
        return self.last


class SharesWithTheJson(RecordCodec):
    def read(self, hint, inner, value):
        made = super().read(hint, inner, value)
        if "more" in inner:
            made.more = value["more"]
        return made


class SharesWithTheValue(RecordCodec):
    def write(self, inner, value):
        return {
            name: vars(value)[name] if name == "names" else part for name, part in super().write(inner, value).items()
        }


BROKEN = {
    Nameless: "test_it_has_a_name_and_the_kit_was_told_enough",
    TakesEverything: "test_what_is_not_of_its_kind_is_left_to_others",
    FailsOnOthers: "test_what_is_not_of_its_kind_is_left_to_others",
    LooksInside: "test_what_is_not_of_its_kind_is_left_to_others",
    SchemaIsNoJson: "test_the_schema_is_json_and_valid",
    SchemaIsInvalid: "test_the_schema_is_json_and_valid",
    ReferenceLeadsNowhere: "test_the_schema_is_json_and_valid",
    SchemaRefusesItsValues: "test_a_value_comes_back_from_json_as_it_was",
    LosesAField: "test_a_value_comes_back_from_json_as_it_was",
    WritesTuples: "test_a_value_comes_back_from_json_as_it_was",
    GivesAnotherType: "test_a_value_comes_back_from_json_as_it_was",
    SchemaOfTheMoment: "test_the_same_type_always_has_the_same_schema",
    TellsTheFirstOnly: "test_json_that_does_not_fit_is_refused_with_its_places",
    LosesThePlace: "test_json_that_does_not_fit_is_refused_with_its_places",
    RefusesWithoutFaults: "test_json_that_does_not_fit_is_refused_with_its_places",
    SaysNothing: "test_a_fault_says_what_was_expected_and_what_came",
    RaisesTypeErrors: "test_whatever_json_comes_it_is_taken_or_refused_and_nothing_else",
    RaisesOnOddKeys: "test_whatever_json_comes_it_is_taken_or_refused_and_nothing_else",
    IgnoresUnknownKeys: "test_json_that_does_not_fit_is_refused_with_its_places",
    Guesses: "test_json_that_nearly_fits_is_taken_whole_or_refused",
    IgnoresInner: "test_types_of_core_are_held_by_it",
    FindsForeignTypesTooLate: "test_types_of_other_codecs_are_held_by_it_or_refused",
    UnrollsChains: "test_a_type_that_contains_itself_has_an_end",
    DraftsDiffer: "test_a_draft_of_the_whole_is_the_value",
    DraftsNeedAll: "test_a_draft_of_a_part_is_shown_or_refused",
    DraftsRemember: "test_a_draft_of_a_part_is_shown_or_refused",
    SharedBetweenThreads: "test_threads_may_compile_at_once",
    KeepsInputs: "test_it_keeps_nothing_of_the_values",
    KeepsValues: "test_it_keeps_nothing_of_the_values",
    SharesWithTheJson: "test_json_and_value_share_nothing",
    SharesWithTheValue: "test_json_and_value_share_nothing",
}


def failures(kit: type[TypeCodecKit], make: Callable[[], RecordCodec], tests: list[str] | None = None) -> list[str]:
    found = []
    for name in tests or [name for name in sorted(dir(kit)) if name.startswith("test_")]:
        try:
            getattr(kit(), name)(make())
        except (Exception, pytest.fail.Exception):
            found.append(name)
    return found


@pytest.mark.parametrize(("variant", "test"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", None))
def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[RecordCodec], test: str) -> None:
    assert failures(TestRecordCodec, variant, [test]) == [test], f"{test} finds nothing wrong with {variant.__name__}"


def test_every_variant_is_tried_and_every_test_of_the_kit_catches_one() -> None:
    assert set(BROKEN) == set(RecordCodec.__subclasses__())
    caught = set(BROKEN.values()) | {"test_it_compiles_what_is_of_its_kind", "test_types_of_core_hold_it"}
    assert caught == {name for name, _ in inspect.getmembers(TypeCodecKit) if name.startswith("test_")}


def test_a_codec_that_leaves_its_own_kind_to_core_is_caught() -> None:
    class Idle(TestRecordCodec):
        cases = (CodecCase(list[int], [[1]], [(["x", "y"], ["$[0]", "$[1]"])]),)

    name = "test_it_compiles_what_is_of_its_kind"
    assert failures(Idle, RecordCodec, [name]) == [name]


def test_a_codec_whose_faults_have_places_of_their_own_inside_of_others_is_caught() -> None:
    class Rooted(RecordCodec):
        """Tells its places from where it stands, wherever core puts it: one level too deep."""

        def read(self, hint: Any, inner: dict[str, Compiled], value: Any) -> Any:
            if value == {"nights": "x", "names": ["a", 5], "more": 1}:
                raise TypeError("not a Mismatch")
            return super().read(hint, inner, value)

    assert "test_types_of_core_hold_it" in failures(TestRecordCodec, Rooted)


def test_a_codec_that_stops_at_the_first_fault_may_say_so() -> None:
    class OneAtATime(TestRecordCodec):
        all_faults = False

    assert failures(OneAtATime, TellsTheFirstOnly) == []
    assert failures(OneAtATime, LosesThePlace)


def test_a_codec_whose_types_cannot_hold_others_must_say_so_when_it_compiles() -> None:
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
    assert failures(Alone, Refusing, [name]) == []
    assert failures(Alone, RecordCodec, [name]) == [name]


def test_the_kit_says_what_it_was_not_told() -> None:
    class Told(TypeCodecKit):
        pass

    assert failures(Told, RecordCodec, ["test_it_has_a_name_and_the_kit_was_told_enough"])
    for name in ("test_a_type_that_contains_itself_has_an_end", "test_types_of_core_are_held_by_it"):
        with pytest.raises(pytest.skip.Exception):
            getattr(Told(), name)(RecordCodec())
