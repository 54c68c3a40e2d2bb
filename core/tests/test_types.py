"""Types: what is written is valid and comes back; what the schema allows is taken, and nothing else."""

from __future__ import annotations

import collections.abc
import datetime as dt
import enum
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict
from uuid import UUID

import pytest
from hypothesis import example, given, strategies as st
from tests.support.strategies import type_cases

from portico._schema.validate import PlainSchemaValidator
from portico._types.compiled import Compiled, Mismatch
from portico._types.compiling import compile_type
from portico.errors import SchemaUnsupported
from portico_testkit.strategies import json_values, near


def valid(schema: Any, value: Any) -> bool:
    return PlainSchemaValidator().compile(schema)(value) == []


def accepts(compiled: Compiled, value: Any) -> bool:
    try:
        compiled.structure(value)
    except Mismatch:
        return False
    return True


def faults(hint: Any, value: Any) -> list[str]:
    with pytest.raises(Mismatch) as caught:
        compile_type(hint).structure(value)
    return [str(fault) for fault in caught.value.faults]


@given(st.data())
def test_a_value_comes_back_from_json_as_it_was(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    value = data.draw(case.values)
    compiled = compile_type(case.hint)
    written = json.loads(json.dumps(compiled.unstructure(value), allow_nan=False))
    back = compiled.structure(written)
    assert (type(back), back) == (type(value), value), f"{case.hint}: {value!r} was written as {written!r}"


@given(st.data())
def test_what_a_value_is_written_as_satisfies_the_schema(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    written = compiled.unstructure(data.draw(case.values))
    assert PlainSchemaValidator().compile(compiled.schema)(written) == [], f"{compiled.schema} refuses {written!r}"


@given(st.data())
def test_structure_takes_just_what_the_schema_allows(data: st.DataObject) -> None:
    """Formats aside, which JSON Schema leaves open: see the exceptions below."""
    case = data.draw(type_cases(formats=False))
    compiled = compile_type(case.hint)
    value = data.draw(near(compiled.unstructure(data.draw(case.values))))
    assert accepts(compiled, value) == valid(compiled.schema, value), f"{compiled.schema} and {value!r}"


@pytest.mark.parametrize(
    ("hint", "value"),
    [(dt.date, "tomorrow"), (UUID, "not one"), (Decimal, "many"), (float, 10**400), (set[float], [2**53, 2**53 + 1])],
)
def test_the_schema_is_wider_than_the_type_only_for_formats_and_what_floats_cannot_hold(hint: Any, value: Any) -> None:
    compiled = compile_type(hint)
    assert valid(compiled.schema, value)
    assert not accepts(compiled, value)


@given(json_values())
def test_any_takes_every_json_value_and_gives_a_copy(value: Any) -> None:
    compiled = compile_type(Any)
    assert compiled.structure(value) == compiled.unstructure(value) == value
    if isinstance(value, list | dict):
        assert compiled.structure(value) is not value


def test_any_is_written_by_what_the_value_is() -> None:
    @dataclass
    class Place:
        since: dt.date
        tags: tuple[str, ...]

    written = compile_type(Any).unstructure({"places": [Place(dt.date(2024, 2, 1), ("a",))]})
    assert written == {"places": [{"since": "2024-02-01", "tags": ["a"]}]}
    with pytest.raises(SchemaUnsupported):
        compile_type(Any).unstructure([object()])
    with pytest.raises(SchemaUnsupported, match="keys"):
        compile_type(Any).unstructure({1: "a"})


class Mood(enum.Enum):
    GOOD = "good"
    BAD = 0


class Inner(TypedDict):
    at: int


class Loose(TypedDict, total=False):
    name: Required[str]
    count: int
    inner: NotRequired[Inner]


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass(frozen=True)
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Leaf:
    kind: Literal["leaf"]
    value: int


@dataclass
class Fork:
    kind: Literal["fork"]
    left: Leaf | Fork
    right: Leaf | Fork


UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    ("hint", "value", "written"),
    [
        (float, 2.0, 2.0),
        (Mood, Mood.BAD, 0),
        (Literal[Mood.GOOD], Mood.GOOD, "good"),  # type: ignore[valid-type]
        (Literal["a", None], None, None),
        (UserId, 3, 3),
        (Loose, {"name": "n", "inner": {"at": 1}}, {"name": "n", "inner": {"at": 1}}),
        (Pair, Pair(1), {"left": 1, "right": "r"}),
        (Node, Node("a", [Node("b")]), None),
        (collections.abc.Sequence[int], [1], [1]),
        (collections.abc.Collection[int], [1], [1]),
        (collections.abc.Mapping[str, dt.date], {"a": dt.date(2024, 1, 1)}, {"a": "2024-01-01"}),
        (list, [1, "a"], [1, "a"]),
        (dict, {"a": [1]}, {"a": [1]}),
        (tuple, (1, "a"), [1, "a"]),
        (dt.time, dt.time(8, 30), "08:30:00"),
        (Decimal, Decimal("1.10"), "1.10"),
        (Leaf | Fork, Fork("fork", Leaf("leaf", 1), Leaf("leaf", 2)), None),
    ],
    ids=str,
)
def test_each_kind_has_its_json_form(hint: Any, value: Any, written: Any) -> None:
    compiled = compile_type(hint)
    if written is not None or value is None:
        assert compiled.unstructure(value) == written
    assert compiled.structure(compiled.unstructure(value)) == value


@pytest.mark.parametrize(
    ("hint", "value", "written"),
    [
        (list[int] | list[dt.date], [dt.date(2024, 1, 1)], ["2024-01-01"]),
        (dt.date | dt.datetime, dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC), "2024-01-01T08:00:00+00:00"),
        (collections.abc.Sequence[str] | str, "abc", "abc"),
        (NewType("Day", dt.date) | int, dt.date(2024, 1, 1), "2024-01-01"),  # type: ignore[operator]
        (dict[str, int] | dict[str, dt.date], {"a": dt.date(2024, 1, 1)}, {"a": "2024-01-01"}),
        (tuple[int, int] | tuple[int, int, dt.date], (1, 2, dt.date(2024, 1, 1)), [1, 2, "2024-01-01"]),
        (Inner | Loose, {"name": "n"}, {"name": "n"}),
    ],
    ids=str,
)
def test_a_union_writes_a_value_by_the_member_that_it_is_of(hint: Any, value: Any, written: Any) -> None:
    assert compile_type(hint).unstructure(value) == written


def test_literals_are_told_apart_as_json_does() -> None:
    structure = compile_type(Literal[1, True, "1"]).structure
    assert [(type(value), value) for value in map(structure, [1, True, "1", 1.0])] == [
        (int, 1), (bool, True), (str, "1"), (int, 1)
    ]  # fmt: skip
    for other in (0, False, "true", None, [1]):
        with pytest.raises(Mismatch):
            structure(other)


def test_only_integers_are_integers() -> None:
    structure = compile_type(int).structure
    assert structure(2.0) == 2
    assert type(structure(2.0)) is int
    for other in (2.5, True, "2", float("inf"), float("nan"), None):
        with pytest.raises(Mismatch):
            structure(other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), True, "1", None, [1]])
def test_what_json_has_no_number_for_is_no_float(value: Any) -> None:
    assert faults(float, value)


def test_every_fault_is_told_at_once_with_its_place() -> None:
    @dataclass
    class Order:
        lines: list[tuple[int, str]]
        to: Pair
        notes: dict[str, bool]
        when: dt.date

    told = faults(
        Order, {"lines": [[1, "a"], ["x", 2], [3]], "to": {"right": 5, "up": 1}, "notes": {"a b": 1}, "whenn": 0}
    )
    assert told == [
        "$.lines[1][0]: expected an integer, got 'x'",
        "$.lines[1][1]: expected a string, got 2",
        "$.lines[2]: expected an array of 2, got an array",
        "$.to.left: expected a value, got nothing",
        "$.to.right: expected a string, got 5",
        "$.to.up: expected one of left, right, got an unknown key",
        "$.notes.a b: expected true or false, got 1",
        "$.when: expected a value, got nothing",
        "$.whenn: expected one of lines, to, notes, when, got an unknown key",
    ]


def test_a_union_says_what_it_would_have_taken() -> None:
    assert faults(int | list[str], "a") == ["$: expected an integer or an array, got 'a'"]
    assert faults(int | list[str], [1]) == ["$[0]: expected a string, got 1"]


def test_a_tagged_union_tells_only_the_faults_of_the_member_that_was_meant() -> None:
    told = faults(Leaf | Fork, {"kind": "fork", "left": {"kind": "leaf", "value": "x"}, "right": {"kind": "leaf"}})
    assert told == ["$.left.value: expected an integer, got 'x'", "$.right.value: expected a value, got nothing"]


def test_a_deep_value_of_a_tagged_union_takes_no_time_that_doubles_with_each_level() -> None:
    value: dict[str, Any] = {"kind": "leaf", "value": "wrong"}
    for _ in range(60):
        value = {"kind": "fork", "left": value, "right": {"kind": "leaf", "value": 1}}
    told = faults(Leaf | Fork, value)
    assert len(told) == 1
    assert told[0].endswith("expected an integer, got 'wrong'")
    assert not valid(compile_type(Leaf | Fork).schema, value)


@dataclass
class Left:
    inner: Left | Right | int
    left: int = 0


@dataclass
class Right:
    inner: Left | Right | int
    right: int = 0


def test_alternatives_that_fit_alike_are_tried_once_on_each_level() -> None:
    compiled = compile_type(Left | Right)
    value: Any = "wrong"
    for _ in range(60):
        value = {"inner": value}
    assert len(faults(Left | Right, value)) <= 2
    assert not valid(compiled.schema, value)
    value = {"inner": 1, "right": 1}
    for _ in range(60):
        value = {"inner": value, "right": 1}
    assert isinstance(compiled.structure(value), Right)
    assert valid(compiled.schema, value)


def test_a_value_nested_without_end_is_a_fault_of_a_recursive_type() -> None:
    value: Any = {"name": "end"}
    for _ in range(100_000):
        value = {"name": "n", "parent": value}
    assert faults(Node, value) == ["$: expected a value that is nested less deeply, got an object"]


def test_structuring_in_many_threads_does_not_mix() -> None:
    structure = compile_type(Left | Right).structure

    def some(number: int) -> Any:
        value: Any = number
        for _ in range(20):
            value = {"inner": value, "right": number}
        return structure(value)

    with ThreadPoolExecutor(8) as pool:
        for number, made in enumerate(pool.map(some, range(200))):
            assert made.right == number
            assert made.inner.right == number


def test_sets_take_no_element_twice_and_none_that_python_cannot_hold() -> None:
    assert faults(set[int], [1, 1]) == ["$: expected an array whose elements are all different, got an array"]
    assert faults(set[Any], [[1]]) == ["$: expected an array of strings, numbers, bools or null, got an array"]


def test_what_a_class_itself_refuses_is_a_fault_at_its_place() -> None:
    @dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")
            if self.number < 0:
                raise TypeError("negative")

    assert faults(list[Even], [{"number": 2}, {"number": 3}, {"number": -2}]) == [
        "$[1]: expected a valid Even, got odd",
        "$[2]: expected a valid Even, got negative",
    ]


def test_a_recursive_class_is_a_definition_that_refers_to_itself() -> None:
    schema = compile_type(list[Node]).schema
    assert schema["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Node"},
        "default": [],
    }


@given(json_values(20))
@example({"name": "a", "children": [{"name": "b", "children": [{"name": 1}]}]})
def test_a_recursive_class_and_its_schema_agree(value: Any) -> None:
    compiled = compile_type(Node)
    assert accepts(compiled, value) == valid(compiled.schema, value)


class LazyAlias:
    """Stands for what the statement ``type Tree = date | int | list[Tree]`` of Python 3.12 makes."""

    __name__ = "Tree"

    @property
    def __value__(self) -> Any:
        return dt.date | int | list[self]  # type: ignore[valid-type]


TREE: Any = LazyAlias()


def test_an_alias_is_what_it_stands_for_and_may_contain_itself() -> None:
    alias = pytest.importorskip("typing_extensions").TypeAliasType
    assert compile_type(alias("Name", str) | None).structure("a") == "a"
    tree = compile_type(dict[str, TREE])
    assert tree.schema["$defs"] == {
        "Tree": {
            "anyOf": [
                {"type": "string", "format": "date"},
                {"type": "integer"},
                {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            ]
        }
    }
    value = {"a": [1, [dt.date(2024, 1, 1), []]], "b": 2}
    assert tree.unstructure(value) == {"a": [1, ["2024-01-01", []]], "b": 2}
    assert tree.structure(tree.unstructure(value)) == value
    assert tree.draft is not None
    assert tree.draft({"a": [1, ["2024-0"]]}) == {"a": [1, []]}
    assert faults(dict[str, TREE], {"a": [[True]]}) == [
        "$.a[0][0]: expected an integer or an array or a date (ISO 8601), got True"
    ]


def test_a_typed_dict_with_postponed_annotations_knows_its_required_keys() -> None:
    schema = compile_type(Loose).schema
    assert schema["required"] == ["name"]
    assert compile_type(Inner).schema["required"] == ["at"]


def test_a_typed_dict_is_a_copy() -> None:
    given = {"at": 1}
    assert compile_type(Inner).structure(given) is not given


def test_annotated_carries_its_first_text_as_description() -> None:
    assert compile_type(Annotated[int, 5, "how many", "more"]).schema == {"type": "integer", "description": "how many"}


def test_fields_with_defaults_may_be_left_out() -> None:
    assert compile_type(Node).structure({"name": "a"}) == Node("a")
    assert compile_type(Pair).structure({"left": 1}) == Pair(1, "r")


@pytest.mark.parametrize(
    "hint", [bytes, complex, object.__init__, dict[int, str], type, collections.abc.Callable[[], None], list[bytes]]
)
def test_what_json_cannot_hold_is_refused_when_it_is_compiled(hint: Any) -> None:
    with pytest.raises(SchemaUnsupported):
        compile_type(hint)


def test_an_enumeration_of_other_than_json_values_is_refused() -> None:
    class Shape(enum.Enum):
        SQUARE = (1, 1)

    with pytest.raises(SchemaUnsupported, match="not a JSON value"):
        compile_type(Shape)
    with pytest.raises(SchemaUnsupported, match="no members"):
        compile_type(enum.Enum)


def test_a_dataclass_that_cannot_be_made_from_its_fields_is_refused_when_compiled() -> None:
    @dataclass
    class Derived:
        size: InitVar[int]
        double: int = field(init=False, default=0)

    with pytest.raises(SchemaUnsupported, match="size"):
        compile_type(Derived)


def test_an_error_shows_no_more_than_a_line_of_what_came() -> None:
    for value in ("x" * 10**6, 10**5000, -(10**5000)):
        assert len(faults(bool, value)[0]) < 130


class Wrapped:
    def __init__(self, value: object) -> None:
        self.value = value


class WrappingCodec:
    name = "wrapping"

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if hint is not Wrapped:
            return None
        within = inner(dt.date)
        return Compiled(
            {"type": "object", "properties": {"value": within.schema}},
            self.structure(within),
            lambda wrapped: {"value": within.unstructure(wrapped.value)},
        )

    def structure(self, within: Compiled) -> Any:
        def structure(value: Any) -> Wrapped:
            if not isinstance(value, dict):
                raise Mismatch([])
            return Wrapped(within.structure(value["value"]))

        return structure


def test_a_codec_takes_over_its_types_inside_of_others_too() -> None:
    compiled = compile_type(dict[str, Wrapped | None], [WrappingCodec()])
    read = compiled.structure({"a": {"value": "2024-01-01"}, "b": None})
    assert read["a"].value == dt.date(2024, 1, 1)
    assert compiled.unstructure(read) == {"a": {"value": "2024-01-01"}, "b": None}
