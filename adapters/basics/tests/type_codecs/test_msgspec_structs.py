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


def test_every_fault_is_told_where_msgspec_tells_the_first() -> None:
    assert faults(
        Leaf | Fork,
        {"type": "fork", "left": {"type": "leaf", "theValue": "x"}, "right": {"type": "leaf"}, "weights": {"a": "b"}},
    ) == [
        "$.left.theValue: expected an integer, got 'x'",
        "$.right.theValue: expected a value, got nothing",
        "$.weights.a: expected a number, got 'b'",
    ]
    assert faults(list[Row], [["a", -1], [5], ["a", 1, None, 2]]) == [
        "$[0][1]: expected at least 0, got -1",
        "$[1]: expected an array of 2 to 3, got an array",
        "$[2]: expected an array of 2 to 3, got an array",
    ]


def test_a_tag_must_be_there_and_be_the_right_one() -> None:
    assert faults(Leaf, {"theValue": 1}) == ["$.type: expected 'leaf', got nothing"]
    assert faults(Leaf, {"type": "twig", "theValue": 1}) == ["$.type: expected 'leaf', got 'twig'"]

    class Numbered(Struct, tag=1, tag_field="kind"):
        pass

    assert compiled(Numbered).structure({"kind": 1}) == Numbered()
    assert faults(Numbered, {"kind": True}) == ["$.kind: expected 1, got True"]


def test_a_key_that_is_not_a_field_is_a_fault_also_where_msgspec_would_pass_it_over() -> None:
    assert faults(Leaf, {"type": "leaf", "theValue": 1, "the_value": 2}) == [
        "$.the_value: expected one of type, theValue, seenAt, got an unknown key"
    ]


def test_what_is_unset_is_not_written_and_need_not_be_there() -> None:
    class Patch(Struct):
        name: str | UnsetType = UNSET
        age: int | UnsetType | None = UNSET

    made = compiled(Patch)
    assert made.schema["properties"]["name"] == {"type": "string"}
    for value, written in ((Patch(), {}), (Patch(age=None), {"age": None}), (Patch("a", 1), {"name": "a", "age": 1})):
        assert made.unstructure(value) == written == msgspec.to_builtins(value)
        assert made.structure(written) == value
    assert faults(Patch, {"name": None}) == ["$.name: expected a string, got null"]

    class Listed(Struct, array_like=True):
        name: str | UnsetType = UNSET

    with pytest.raises(SchemaUnsupported, match="may be UNSET"):
        compiled(Listed)


def test_two_structs_without_tags_meet_in_a_union_which_msgspec_refuses() -> None:
    class Circle(Struct):
        radius: float

    class Square(Struct):
        side: float

    with pytest.raises(TypeError):
        msgspec.json.schema(Circle | Square)
    made = compiled(list[Circle | Square])
    value = [Circle(1.0), Square(2.0)]
    assert made.structure(made.unstructure(value)) == value


def test_a_text_in_annotated_is_the_description_which_msgspec_drops() -> None:
    class Noted(Struct):
        a: Annotated[int, "how many"]
        b: Annotated[int, Meta(ge=0), "how much"]
        c: Annotated[int, Meta(description="how far"), "not this"]

    shown = {name: member["description"] for name, member in compiled(Noted).schema["properties"].items()}
    assert shown == {"a": "how many", "b": "how much", "c": "how far"}


@pytest.mark.parametrize(
    ("meta", "kind", "good", "bad", "told"),
    [
        (Meta(ge=1, le=3), int, [1, 3], [0, 4], ["at least 1, got 0", "at most 3, got 4"]),
        (Meta(gt=1, lt=3), float, [1.5], [1, 3], ["more than 1, got 1", "less than 3, got 3"]),
        (Meta(multiple_of=5), int, [0, 10], [7], ["a multiple of 5, got 7"]),
        (Meta(multiple_of=0.1), float, [0.3, 0.7], [0.25], ["a multiple of 0.1, got 0.25"]),
        (Meta(pattern="^a"), str, ["ab"], ["b"], ["a text that matches '^a', got 'b'"]),
        (Meta(min_length=1), str, ["🙂"], [""], ["at least 1 character, got ''"]),
        (Meta(max_length=2), str, ["é🙂"], ["abc"], ["at most 2 characters, got 'abc'"]),
        (Meta(min_length=2), list[int], [[1, 2]], [[1]], ["at least 2 elements, got an array"]),
        (Meta(max_length=1), dict[str, int], [{}], [{"a": 1, "b": 2}], ["at most 1 key, got an object"]),
        (Meta(ge=0), int | None, [0, None], [-1], ["at least 0, got -1"]),
        (Meta(tz=True), dt.time, ["08:00:00Z"], ["08:00:00"], ["a time with its offset, got '08:00:00'"]),
        (Meta(tz=False), dt.time, ["08:00:00"], ["08:00:00Z"], ["a time without an offset, got '08:00:00Z'"]),
    ],
    ids=str,
)  # fmt: skip
def test_a_limit_is_in_the_schema_and_checked(meta: Meta, kind: Any, good: list, bad: list, told: list[str]) -> None:
    hint = Annotated[kind, meta]
    for value in good:
        assert compiled(hint).unstructure(compiled(hint).structure(value)) is not ...
    assert [faults(hint, value)[0] for value in bad] == [f"$: expected {text}" for text in told]
    if meta.tz is None:
        base = compile_type(kind).schema
        assert compiled(hint).schema != base, "the schema does not show the limit"


def test_what_only_msgspec_has_a_form_for_is_in_that_form_inside_of_a_struct() -> None:
    class Own(Struct):
        data: bytes
        lasts: dt.timedelta
        by_number: dict[int, bytes]

    made = compiled(Own)
    value = Own(b"\xff", dt.timedelta(days=1, seconds=5), {1: b"a"})
    written = made.unstructure(value)
    assert written == {"data": "/w==", "lasts": "P1DT5S", "by_number": {"1": "YQ=="}}
    assert made.structure(written) == value
    assert faults(Own, {"data": 5, "lasts": "x", "by_number": {"a": "YQ=="}}) == [
        "$.data: expected bytes, got int",
        "$.lasts: expected a valid value, got Invalid ISO8601 duration",
        "$.by_number: expected a key that is of int, got str",
    ]


@pytest.mark.parametrize("kind", [Struct, msgspec.Raw, complex, list[msgspec.Raw]], ids=str)
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

    assert faults(list[Even], [{"number": 3}]) == ["$[0]: expected a valid Even, got odd"]
    with pytest.raises(Mismatch, match="more of a Even"):
        compiled(Even).draft({})


class Pair(Struct, Generic[T]):
    left: T
    right: list[T] = []


class Days(Pair[dt.date]):
    kind: Literal["days"] = "days"


def test_a_generic_struct_is_compiled_with_its_arguments() -> None:
    assert compiled(Pair[int]).structure({"left": 1, "right": [2]}) == Pair(1, [2])
    assert faults(Pair[int], {"left": "x", "right": ["y"]}) == [
        "$.left: expected an integer, got 'x'",
        "$.right[0]: expected an integer, got 'y'",
    ]
    assert compiled(Days).structure({"left": "2026-02-01"}) == Days(dt.date(2026, 2, 1))


def test_a_draft_has_what_has_come() -> None:
    draft = compiled(Fork).draft
    made = draft({"note": "n", "left": {"type": "leaf", "theValue": 1}, "right": {"type": "leaf"}})
    assert (made.note, made.left, made.right) == ("n", Leaf(1), Leaf(None))
    assert compiled(Row).draft(["a"]) == Row("a", None)
    assert compiled(Row).draft([]) == Row(None, None)
    with pytest.raises(Mismatch):
        compiled(Leaf).draft({"type": "fork"})


def test_a_struct_that_refuses_in_any_way_is_a_fault() -> None:
    class Town(Struct):
        name: str

        def __post_init__(self) -> None:
            self.name = {"oslo": "Oslo"}[self.name]

    assert faults(list[Town], [{"name": "rome"}]) == ["$[0]: expected a valid Town, got KeyError: rome"]


def test_half_of_a_surrogate_pair_is_a_fault_where_msgspec_reads() -> None:
    class Own(Struct):
        data: bytes = b""
        lasts: dt.timedelta = dt.timedelta(0)

    assert faults(Own, {"data": "\udc80", "lasts": "\udc80"}) == [
        f"$.{name}: expected text of whole characters, got half of a surrogate pair" for name in ("data", "lasts")
    ]
