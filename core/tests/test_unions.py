"""Unions: the member that fits best reads a value, the first in the hint where several do."""

from __future__ import annotations

import datetime as dt
import enum
import json
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import jsonschema
import pytest
from hypothesis import assume, event, given, strategies as st
from tests.support.strategies import TypeCase, type_cases

from portico._schema.validate import PlainSchemaValidator
from portico._types.compiled import Compiled, Mismatch
from portico._types.compiling import compile_type
from portico.errors import SchemaUnsupported
from portico_testkit.strategies import near


def same(one: Any, other: Any) -> bool:
    """Compare values with the types of all that is in them: 1 is not 1.0 here."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def there_and_back(compiled: Compiled, value: Any) -> Any:
    return compiled.structure(json.loads(json.dumps(compiled.unstructure(value), allow_nan=False)))


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Bit(enum.Enum):
    ON = True


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass(frozen=True)
class Circle:
    radius: float = 1.0


@dataclass(frozen=True)
class Square:
    side: float = 1.0


@dataclass(frozen=True)
class Round(Circle):
    """All that a circle has, and more: a circle's JSON is also this one's, the other way it is not."""

    label: str = ""


class Point(NamedTuple):
    x: int
    y: int = 0


class Place(TypedDict):
    x: int
    note: NotRequired[str]


class Named(TypedDict):
    name: str


@dataclass(frozen=True)
class Leaf:
    kind: Literal["leaf"] = "leaf"
    value: int = 0


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree
    kind: Literal["fork"] = "fork"


@dataclass(frozen=True)
class Chain:
    next: Chain | Leaf | None = None


Tree: typing.TypeAlias = Leaf | Fork

_TREES = st.recursive(st.builds(Leaf, value=st.integers()), lambda inner: st.builds(Fork, inner, inner), max_leaves=4)
_CASES = [
    TypeCase(Colour, st.sampled_from(Colour), "string"),
    TypeCase(Size, st.sampled_from(Size), "number"),
    TypeCase(Literal["red", "blue"], st.sampled_from(["red", "blue"]), "string"),
    TypeCase(Literal["2024-01-01", "soon"], st.sampled_from(["2024-01-01", "soon"]), "string"),
    TypeCase(Literal[1, 2], st.sampled_from([1, 2]), "number"),
    TypeCase(Circle, st.builds(Circle, st.sampled_from([1.0, 2.5])), "object"),
    TypeCase(Round, st.builds(Round, st.sampled_from([1.0, 2.5]), st.sampled_from(["", "a"])), "object"),
    TypeCase(Square, st.builds(Square, st.sampled_from([1.0, 2.5])), "object"),
    TypeCase(Point, st.builds(Point, st.integers(), st.integers()), "object"),
    TypeCase(Place, st.fixed_dictionaries({"x": st.integers()}, optional={"note": st.text(max_size=2)}), "object"),
    TypeCase(Named, st.fixed_dictionaries({"name": st.text(max_size=2)}), "object"),
    TypeCase(Tree, _TREES, "object"),
    TypeCase(Chain, st.builds(Chain, st.none() | st.builds(Leaf, value=st.integers())), "object"),
    TypeCase(dict[str, int], st.dictionaries(st.sampled_from(["x", "y", "radius"]), st.integers()), "object"),
    TypeCase(dict[str, float], st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1.0, 1.5])), "object"),
    TypeCase(dict[str, str], st.dictionaries(st.sampled_from(["name", "note"]), st.text(max_size=2)), "object"),
    TypeCase(list[int], st.lists(st.integers(0, 3), max_size=2), "array"),
    TypeCase(list[float], st.lists(st.sampled_from([1.0, 1.5]), max_size=2), "array"),
    TypeCase(list[str], st.lists(st.sampled_from(["", "2024-01-01", "a"]), max_size=2), "array"),
    TypeCase(list[dt.date], st.lists(st.dates(), max_size=2), "array"),
    TypeCase(list[Tree], st.lists(_TREES, max_size=2), "array"),
    TypeCase(tuple[int, ...], st.lists(st.integers(0, 3), max_size=2).map(tuple), "array"),
    TypeCase(tuple[int, int], st.tuples(st.integers(0, 3), st.integers(0, 3)), "array"),
    TypeCase(tuple[int, str], st.tuples(st.integers(0, 3), st.text(max_size=2)), "array"),
    TypeCase(set[int], st.sets(st.integers(0, 3), max_size=2), "array"),
    TypeCase(str, st.sampled_from(["", "2024-01-01", "15", "red", "08:00:00"]), "string"),
    TypeCase(int, st.integers(0, 3), "number"),
    TypeCase(float, st.sampled_from([0.0, 1.0, 1.5]), "number"),
    TypeCase(bool, st.booleans(), "boolean"),
    TypeCase(None, st.none(), "null"),
    TypeCase(dt.date, st.dates(), "string"),
    TypeCase(dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC)), "string"),
    TypeCase(dt.time, st.times(), "string"),
    TypeCase(UUID, st.uuids(), "string"),
    TypeCase(
        Decimal, st.decimals(0, 30000000, places=0) | st.decimals(allow_nan=False, allow_infinity=False), "string"
    ),
]


def cases(*, formats: bool = True) -> st.SearchStrategy[TypeCase]:
    chosen = [case for case in _CASES if formats or '"format"' not in json.dumps(compile_type(case.hint).schema)]
    return st.sampled_from(chosen) | type_cases(depth=1, formats=formats)


@given(st.data(), st.lists(cases(), min_size=2, max_size=4))
def test_what_any_union_writes_is_valid_and_read_as_a_value_that_stays(
    data: st.DataObject, drawn: list[TypeCase]
) -> None:
    hint: Any = typing.Union[tuple(case.hint for case in drawn)]  # noqa: UP007 - drawn
    try:
        compiled = compile_type(hint)
    except SchemaUnsupported:
        event("refused")
        assume(False)
    event("compiled")
    value = data.draw(st.one_of([case.values for case in drawn]))
    written = compiled.unstructure(value)
    assert PlainSchemaValidator().compile(compiled.schema)(written) == []
    assert jsonschema.Draft202012Validator(compiled.schema).is_valid(written)
    back = there_and_back(compiled, value)
    again = there_and_back(compiled, back)
    assert same(again, back), f"{hint}: {value!r} was written as {written!r}, came back as {back!r}, then as {again!r}"


@given(st.data(), st.lists(cases(formats=False), min_size=2, max_size=4))
def test_a_union_takes_just_what_its_schema_allows(data: st.DataObject, drawn: list[TypeCase]) -> None:
    try:
        compiled = compile_type(typing.Union[tuple(case.hint for case in drawn)])  # noqa: UP007 - drawn
    except SchemaUnsupported:
        assume(False)
    value = data.draw(near(compiled.unstructure(data.draw(st.one_of([case.values for case in drawn])))))
    try:
        compiled.structure(value)
        taken = True
    except Mismatch:
        taken = False
    assert taken == jsonschema.Draft202012Validator(compiled.schema).is_valid(value), f"{compiled.schema} and {value!r}"


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (dt.date | str, "2024-01-01", dt.date(2024, 1, 1)),
        (str | dt.date, "2024-01-01", dt.date(2024, 1, 1)),
        (str | Colour, "red", Colour.RED),
        (Literal["2024-01-01"] | dt.date, "2024-01-01", "2024-01-01"),
        (float | Literal[1], 1.0, 1),
        (Any | dt.date, "2024-01-01", dt.date(2024, 1, 1)),
        (list[str] | list[dt.date], ["2024-01-01"], [dt.date(2024, 1, 1)]),
        (dict[str, Any] | Circle, {"radius": 1.0}, Circle()),
        (set[int] | list[int], [1], {1}),
        (list[int] | set[int], {1}, [1]),
    ],
    ids=str,
)
def test_what_several_members_take_is_read_by_the_one_that_takes_less_or_else_the_first(
    hint: Any, value: Any, read: Any
) -> None:
    assert same(there_and_back(compile_type(hint), value), read)


@dataclass
class Cat:
    lives: int


@dataclass
class OtherCat:
    lives: int
    name: str | None = None


@dataclass
class Dog:
    """Has the same fields as a cat."""

    lives: int


@pytest.mark.parametrize(
    ("hint", "which"),
    [
        (Cat | Dog, "Cat and Dog"),
        (list[int] | tuple[int, ...], "list and tuple"),
        (None | Dog | list[Cat] | Annotated[Cat, "a cat"], "Dog and Cat"),
    ],
    ids=str,
)
def test_two_members_of_one_schema_are_refused(hint: Any, which: str) -> None:
    with pytest.raises(SchemaUnsupported, match=f"cannot hold {which}: .* give each a class"):
        compile_type(hint)
    with pytest.raises(SchemaUnsupported, match=which):
        compile_type(dict[str, list[hint]])


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (str | Literal["a"], ["a", "b"]),
        (int | Literal[1], [1, 2]),
        (Literal[1] | int | None, [1, None]),
        (bool | int, [True, 1, 0]),
        (int | float, [1, 1.0, 2**53 + 1]),
        (float | int, [1, 1.0, 2**53 + 1]),
        (float | Any, [1, 1.0, "a", [1.0]]),
        (int | Any, [1, 1.0, "a"]),
        (Any | str | None, ["a", None, 1]),
        (int | None, [1, None]),
        (dt.date | None, [dt.date(2024, 1, 1), None]),
        (dt.date | Literal["today", "never"], [dt.date(2024, 1, 1), "today"]),
        (Colour | Literal["blue"], [Colour.RED, "blue"]),
        (dt.date | dt.datetime, [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)]),
        (dt.datetime | dt.date, [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)]),
        (dt.time | dt.date | Decimal | UUID, [dt.time(15), Decimal("20240101"), UUID(int=1), Decimal("1" * 32)]),
        (list[dt.datetime] | list[dt.date], [[dt.date(2024, 1, 1)], [], [dt.datetime(2024, 1, 1)]]),
        (list[int] | list[Any], [[], [1], ["a"]]),
        (list[int] | list[str], [[], [1], ["a"]]),
        (list[int] | list[dt.date], [[], [dt.date(2024, 1, 1)]]),
        (list[str] | list[Literal["a"]], [[], ["a"], ["b"]]),
        (dict[str, int] | dict[str, str], [{}, {"a": 1}, {"a": "b"}]),
        (dict[str, int] | Named, [{"name": 1}, {"name": "a"}, {}]),
        (tuple[int, int] | tuple[int, int, int], [(1, 2), (1, 2, 3)]),
        (tuple[int, ...] | tuple[str, ...], [(), (1,), ("a",)]),
        (Sequence[int] | int, [[1], 1]),
        (Circle | Square, [Circle(), Square(), Circle(2.0)]),
        (Round | Circle, [Circle(), Round(), Circle(2.0), Round(2.0)]),
        (Circle | Round, [Circle(), Round(), Circle(2.0), Round(2.0)]),
        (OtherCat | Cat, [Cat(9), OtherCat(9), OtherCat(9, "Tom")]),
        (Tree | None, [Leaf(), Fork(Leaf(), Leaf(value=1)), None]),
        (Chain | Leaf, [Chain(Chain()), Chain(), Leaf()]),
        (list[Tree] | Tree, [[Leaf()], Leaf()]),
        (Place | Named, [{"x": 1}, {"x": 1, "note": "n"}, {"name": "n"}]),
        (Annotated[Circle, "the round one"] | Circle | None, [Circle(), None]),
    ],
    ids=str,
)
def test_every_value_of_members_that_json_tells_apart_comes_back(hint: Any, values: list[Any]) -> None:
    compiled = compile_type(hint)
    for value in values:
        back = there_and_back(compiled, value)
        assert same(back, value), f"{value!r} came back as {back!r}"


def test_the_schema_keeps_the_order_of_the_hint() -> None:
    assert compile_type(Round | int | None).schema["anyOf"][1:] == [{"type": "integer"}, {"type": "null"}]


def test_a_value_of_a_derived_class_is_written_by_its_own_member() -> None:
    assert compile_type(Circle | Round).unstructure(Round(2.0, "a")) == {"radius": 2.0, "label": "a"}


class Handle:
    def __init__(self, text: str) -> None:
        self.text = text


class HandleCodec:
    name = "handles"

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if hint == Annotated[int, {"even": True}]:
            number = inner(int)
            return Compiled({"type": "integer", "multipleOf": 2}, number.structure, number.unstructure)
        if hint is not Handle:
            return None
        text = inner(str)
        return Compiled(text.schema, lambda value: Handle(text.structure(value)), lambda handle: handle.text)


def test_a_codec_that_borrows_a_schema_does_not_read_alike() -> None:
    with pytest.raises(SchemaUnsupported, match="Handle and str"):
        compile_type(Handle | str, [HandleCodec()])
    compiled = compile_type(Handle | int | None, [HandleCodec()])
    assert compiled.structure("a").text == "a"
    assert compiled.structure(1) == 1


class Evens(TypedDict):
    x: Annotated[int, {"even": True}]


def test_a_hint_of_a_codec_need_not_have_a_hash() -> None:
    assert compile_type(Evens | Named, [HandleCodec()]).structure({"x": 2}) == {"x": 2}


class TaggedCodec:
    """Two classes told apart by a tag that may be left out when they are read."""

    name = "tagged"

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if not isinstance(hint, type) or hint.__name__ not in ("Ham", "Egg"):
            return None
        tag = inner(Literal[hint.__name__])
        schema = {"type": "object", "properties": {"tag": tag.schema}, "additionalProperties": False}
        return Compiled(
            {"$ref": "#/$defs/It", "$defs": {"It": schema}}, lambda value: hint(), lambda value: {"tag": hint.__name__}
        )


class Ham: ...


class Egg: ...


def test_a_tag_tells_the_classes_of_a_codec_apart() -> None:
    compiled = compile_type(Ham | Egg, [TaggedCodec()])
    assert isinstance(there_and_back(compiled, Egg()), Egg)
