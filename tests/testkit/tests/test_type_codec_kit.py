"""The TypeCodec kit passes a correct codec and catches broken ones."""

from __future__ import annotations

import threading
import typing
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from portico.plugins import Compiled, Fault, Mismatch
from portico_testkit import kit_failures
from portico_testkit.kit_failures import KnownFaults
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
                Mismatch.refuse("a value that is nested less deeply", value)

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
            Mismatch.refuse("an object", value)
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
                Mismatch.refuse("an object", value)
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
                Mismatch.refuse("a fraction such as 3/4", value)

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


@FAULTS.caught_by("json_that_does_not_fit_is_refused_with_its_places", r"told at \$\.nights\b(?!, )")
class TellsTheFirstOnly(RecordCodec):
    def read(self, hint, inner, value):
        try:
            return super().read(hint, inner, value)
        except Mismatch as error:
            raise Mismatch(error.faults[:1]) from None


@FAULTS.caught_by("json_and_value_share_nothing", "changing the JSON of .* changed the value")
class SharesWithTheValue(RecordCodec):
    def write(self, inner, value):
        return {
            name: vars(value)[name] if name == "names" else part for name, part in super().write(inner, value).items()
        }


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: kit_failures.Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
