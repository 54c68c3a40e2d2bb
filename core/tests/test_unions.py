"""Unions: whatever compiles gives every value back as it was; what cannot be told apart is refused, with advice."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
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
def test_whatever_union_compiles_gives_every_value_back_as_it_was(data: st.DataObject, drawn: list[TypeCase]) -> None:
    hint = typing.Union[tuple(case.hint for case in drawn)]  # noqa: UP007 - drawn
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
    assert same(back, value), f"{hint}: {value!r} was written as {written!r} and came back as {back!r}"


@given(
    st.data(),
    st.lists(st.sampled_from(_CASES), min_size=2, max_size=3, unique=True),
    st.sampled_from(["list", "dict", "field"]),
)
def test_so_it_is_inside_of_other_types(data: st.DataObject, drawn: list[TypeCase], where: str) -> None:
    hint: Any = typing.Union[tuple(case.hint for case in drawn)]  # noqa: UP007 - drawn
    values = st.one_of([case.values for case in drawn])
    if where == "list":
        hint, values = list[hint], st.lists(values, max_size=3)
    elif where == "dict":
        hint, values = dict[str, hint], st.dictionaries(st.sampled_from("ab"), values)
    else:
        hint = types.new_class("Holder", (), {}, lambda body: body.update(__annotations__={"held": hint}))
        hint = dataclass(hint)
        values = st.builds(hint, values)
    try:
        compiled = compile_type(hint)
    except SchemaUnsupported:
        assume(False)
    value = data.draw(values)
    assert same(there_and_back(compiled, value), value)


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
    "hint",
    [
        dt.date | str,
        str | dt.date,
        NewType("Day", dt.date) | str,  # type: ignore[operator]
        Colour | str,
        Colour | Literal["red"],
        Literal["2024-01-01"] | dt.date,
        Size | int,
        float | Literal[1],
        Size | float,
        Any | dt.date,
        list[dt.date] | list[str],
        list[int] | list[float],
        list[int] | tuple[int, ...],
        list[str] | tuple[int, ...],
        set[int] | list[int],
        tuple[int, int] | tuple[int, dt.date] | list[Any],
        dict[str, Any] | Circle,
        dict[str, float] | Circle,
        dict[str, dt.date] | dict[str, str],
        Point | dict[str, int],
        Literal["a", Colour.RED] | str,
        Annotated[str, "a name"] | UUID,
    ],
    ids=str,
)
def test_members_that_json_does_not_tell_apart_are_refused(hint: Any) -> None:
    with pytest.raises(SchemaUnsupported, match="A union cannot hold"):
        compile_type(hint)


@dataclass
class Cat:
    lives: int


@dataclass
class OtherCat:
    lives: int
    name: str | None = None


@pytest.mark.parametrize(
    ("hint", "which"),
    [
        (dt.date | str, "date and str"),
        (dt.date | Colour | Literal["2024-01-01"], "date and Literal['2024-01-01']"),
        (list[int] | tuple[int, ...], "list[int] and tuple[int, ...]"),
        (Size | int, "Size and int"),
        (bool | Literal[Bit.ON], "bool and Literal[<Bit.ON: True>]"),
        (dict[str, dt.date] | dict[str, str], "dict[str, datetime.date] and dict[str, str]"),
        (Cat | Place | dict[str, int], "Cat and dict[str, int]"),
    ],
    ids=str,
)
def test_a_refusal_says_which_two_and_what_to_do(hint: Any, which: str) -> None:
    with pytest.raises(SchemaUnsupported, match=f"cannot hold {re.escape(which)}: .* give each a class"):
        compile_type(hint)


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
        (list[int] | list[Any], [[], [1], [1.0], ["a"]]),
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
        (Point | Place, [Point(1), {"x": 1}, Point(1, 2)]),
        (Place | Named, [{"x": 1}, {"x": 1, "note": "n"}, {"name": "n"}]),
        (Annotated[Circle, "the round one"] | Circle | None, [Circle(), None]),
    ],
    ids=str,
)
def test_members_that_json_tells_apart_or_that_read_alike_may_stand_together(hint: Any, values: list[Any]) -> None:
    compiled = compile_type(hint)
    for value in values:
        back = there_and_back(compiled, value)
        assert same(back, value), f"{value!r} came back as {back!r}"


def test_the_schema_keeps_the_order_of_the_hint() -> None:
    assert compile_type(Round | int | None).schema["anyOf"][1:] == [{"type": "integer"}, {"type": "null"}]


def test_a_value_of_a_derived_class_is_written_by_its_own_member() -> None:
    assert compile_type(Circle | Round).unstructure(Round(2.0, "a")) == {"radius": 2.0, "label": "a"}


def test_a_union_that_is_nowhere_in_the_open_is_found() -> None:
    @dataclass
    class Deep:
        inner: list[dict[str, dt.date | str]]

    with pytest.raises(SchemaUnsupported, match="date and str"):
        compile_type(Deep)


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


class Odds(TypedDict):
    x: float


def test_a_hint_of_a_codec_need_not_have_a_hash() -> None:
    assert compile_type(Evens | Named, [HandleCodec()]).structure({"x": 2}) == {"x": 2}
    with pytest.raises(SchemaUnsupported, match="Evens and Odds"):
        compile_type(Evens | Odds, [HandleCodec()])


@dataclass
class TaggedCodec:
    """Two classes told apart by a tag that may be left out when they are read."""

    whole: bool
    name: str = "tagged"

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if not isinstance(hint, type) or hint.__name__ not in ("Ham", "Egg"):
            return None
        tag = inner(Literal[hint.__name__])  # type: ignore[valid-type, misc]
        schema = {"type": "object", "properties": {"tag": tag.schema}, "additionalProperties": False}
        return Compiled(
            {"$ref": "#/$defs/It", "$defs": {"It": schema}},
            lambda value: (
                hint() if value.get("tag", hint.__name__) == hint.__name__ else Mismatch.refuse("another", value)
            ),
            lambda value: {"tag": hint.__name__},
            whole=self.whole,
        )


class Ham: ...


class Egg: ...


def test_a_codec_may_say_that_its_classes_are_always_written_whole() -> None:
    compiled = compile_type(Ham | Egg, [TaggedCodec(whole=True)])
    assert isinstance(there_and_back(compiled, Egg()), Egg)
    with pytest.raises(SchemaUnsupported, match="Ham and Egg"):
        compile_type(Ham | Egg, [TaggedCodec(whole=False)])
