"""Structs of msgspec are read and written as msgspec does, with every fault told."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from portico.errors import SchemaUnsupported
from portico.plugins import Mismatch, compile_type
from portico_basics.type_codecs.codecs import MsgspecTypeCodec

CODEC = MsgspecTypeCodec()
T = TypeVar("T")


def compiled(hint: Any) -> Any:
    return compile_type(hint, [CODEC])


def faults(hint: Any, value: Any) -> list[str]:
    with pytest.raises(Mismatch) as caught:
        compiled(hint).structure(value)
    return [str(fault) for fault in caught.value.faults]


class Leaf(Struct, tag="leaf", rename="camel"):
    the_value: int
    seen_at: dt.date | None = None


class Fork(Struct, tag="fork", omit_defaults=True, kw_only=True):
    note: str = ""
    left: Leaf | Fork
    right: Leaf | Fork
    weights: dict[str, float] = {}
    id: UUID = UUID(int=0)


class Row(Struct, array_like=True):
    name: str
    amount: Annotated[int, Meta(ge=0)]
    unit: str | None = None


def trees() -> st.SearchStrategy[Leaf | Fork]:
    leaves = st.builds(Leaf, st.integers(), st.none() | st.dates())
    weights = st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False), max_size=2)
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            Fork, note=st.text(max_size=3), left=inner, right=inner, weights=weights, id=st.uuids()
        ),
        max_leaves=5,
    )


@given(trees())
def test_a_struct_is_written_as_msgspec_itself_writes_it(value: Leaf | Fork) -> None:
    written = compiled(Leaf | Fork).unstructure(value)
    assert written == msgspec.to_builtins(value)
    assert compiled(Leaf | Fork).structure(written) == value == msgspec.convert(written, Leaf | Fork)


@given(st.builds(Row, st.text(), st.integers(0), st.none() | st.text()))
def test_a_struct_like_an_array_is_written_as_msgspec_itself_writes_it(value: Row) -> None:
    written = compiled(Row).unstructure(value)
    assert written == msgspec.to_builtins(value)
    assert compiled(Row).structure(written) == value


def test_the_first_fault_is_reported_with_its_place() -> None:
    assert faults(
        Leaf | Fork,
        {"type": "fork", "left": {"type": "leaf", "theValue": 1}, "right": {"type": "leaf", "theValue": "x"}},
    ) == ["$.right.theValue: expected int, got str"]
    assert faults(list[Row], [["a", -1], [5]]) == [
        "$[0][1]: expected int >= 0, got another value",
        "$[1]: expected array of at least length 2, got 1",
    ]
    assert faults(Leaf, {"type": "twig", "theValue": 1}) == ["$.type: expected a valid value, got Invalid value 'twig'"]


def test_what_is_unset_is_not_written_and_need_not_be_there() -> None:
    class Patch(Struct):
        name: str | UnsetType = UNSET
        age: int | UnsetType | None = UNSET

    made = compiled(Patch)
    assert made.schema["properties"]["name"] == {"type": "string"}
    for value, written in ((Patch(), {}), (Patch(age=None), {"age": None}), (Patch("a", 1), {"name": "a", "age": 1})):
        assert made.unstructure(value) == written == msgspec.to_builtins(value)
        assert made.structure(written) == value
    assert faults(Patch, {"name": None}) == ["$.name: expected str, got null"]


def test_a_limit_is_in_the_schema_and_checked() -> None:
    made = compiled(Annotated[int, Meta(ge=1, le=3)])
    assert made.schema == {"type": "integer", "minimum": 1, "maximum": 3}
    assert made.structure(3) == 3
    assert faults(Annotated[int, Meta(ge=1, le=3)], 4) == ["$: expected int <= 3, got another value"]


@pytest.mark.parametrize("kind", [Struct, complex], ids=str)
def test_what_has_no_form_at_all_is_refused(kind: Any) -> None:
    hint = kind if kind is Struct else msgspec.defstruct("Holder", [("inside", kind)])
    with pytest.raises(SchemaUnsupported):
        compiled(hint)


def test_what_a_struct_itself_refuses_is_a_fault_at_its_place() -> None:
    class Even(Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")

    assert faults(list[Even], [{"number": 3}]) == ["$[0]: expected a valid value, got odd"]


class Pair(Struct, Generic[T]):
    left: T
    right: list[T] = []


class Days(Pair[dt.date]):
    kind: Literal["days"] = "days"


def test_a_generic_struct_is_compiled_with_its_arguments() -> None:
    assert compiled(Pair[int]).structure({"left": 1, "right": [2]}) == Pair(1, [2])
    assert faults(Pair[int], {"left": 1, "right": ["y"]}) == ["$.right[0]: expected int, got str"]
    assert compiled(Days).structure({"left": "2026-02-01"}) == Days(dt.date(2026, 2, 1))


def test_a_struct_that_refuses_in_any_way_is_a_fault() -> None:
    class Town(Struct):
        name: str

        def __post_init__(self) -> None:
            self.name = {"oslo": "Oslo"}[self.name]

    assert faults(list[Town], [{"name": "rome"}]) == ["$[0]: expected a valid value, got KeyError: 'rome'"]
