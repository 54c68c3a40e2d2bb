"""Drafts: values of what has come of a JSON value; a whole one gives the whole value."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import type_cases

from portico._tool_loop.partial_json import NOTHING, PartialJson
from portico._types.compiled import Compiled, Mismatch, may_become
from portico._types.compiling import compile_type
from portico_testkit.strategies import json_values


def draft(hint: Any, value: Any) -> Any:
    compiled = compile_type(hint)
    assert compiled.draft is not None
    return compiled.draft(value)


@st.composite
def prefixes(draw: st.DrawFn, value: Any) -> Any:
    """Draw what may have come of a JSON value: fewer keys, fewer elements, the last of them unfinished."""
    if isinstance(value, dict):
        kept = list(value)[: draw(st.integers(0, len(value)))]
        return {key: draw(prefixes(value[key])) if key == kept[-1] else value[key] for key in kept}
    if isinstance(value, list):
        kept = value[: draw(st.integers(0, len(value)))]
        return [*kept[:-1], draw(prefixes(kept[-1]))] if kept else []
    return value


@given(st.data())
def test_of_the_whole_value_the_draft_is_the_value(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    written = compiled.unstructure(data.draw(case.values))
    assert (compiled.draft or compiled.structure)(written) == compiled.structure(written)


@given(st.data())
def test_of_any_beginning_there_is_a_draft_of_the_same_class_or_nothing_yet(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    compiled = compile_type(case.hint)
    value = data.draw(case.values)
    beginning = data.draw(prefixes(compiled.unstructure(value)))
    before = copy.deepcopy(beginning)
    try:
        made = (compiled.draft or compiled.structure)(beginning)
    except Mismatch:
        return
    assert type(made) is type(value), f"{case.hint}: {beginning!r} of {value!r} became {made!r}"
    assert beginning == before


@given(st.data())
def test_nothing_but_a_mismatch_comes_of_any_json_value(data: st.DataObject) -> None:
    compiled = compile_type(data.draw(type_cases()).hint)
    if compiled.draft is not None:
        with contextlib.suppress(Mismatch):
            compiled.draft(data.draw(json_values()))


class Inner(TypedDict):
    at: dt.date
    note: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Leaf:
    value: int
    kind: Literal["leaf"] = "leaf"


@dataclass
class Fork:
    left: Leaf | Fork
    right: Leaf | Fork
    kind: Literal["fork"] = "fork"


@dataclass
class Step:
    explanation: str
    output: str


@dataclass
class Reasoning:
    steps: list[Step]
    answer: str


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (Reasoning, {}, Reasoning(None, None)),  # type: ignore[arg-type]
        (Reasoning, {"steps": [{"explanation": "Fir"}]}, Reasoning([Step("Fir", None)], None)),  # type: ignore[arg-type]
        (Node, {"name": "a", "children": [{"name": "b", "children": [{}]}]}, Node("a", [Node("b", [Node(None)])])),  # type: ignore[arg-type]
        (Inner, {"at": "2024-0"}, {}),
        (Inner, {"at": "2024-01-01", "no": 1}, {"at": dt.date(2024, 1, 1)}),
        (Pair, {"right": "x"}, Pair(None, "x")),  # type: ignore[arg-type]
        (Pair, {"left": 1}, Pair(1)),
        (list[dt.date], ["2024-01-01", "2024-0"], [dt.date(2024, 1, 1)]),
        (tuple[dt.date, ...], ["2024-01-01", "2024-0"], (dt.date(2024, 1, 1),)),
        (frozenset[str], ["a", "a"], frozenset("a")),
        (tuple[int, str], [], (None, None)),
        (tuple[int, str], [1], (1, None)),
        (dict[str, int], {"a": 1, "b": "x"}, {"a": 1}),
        (dict[str, Inner], {"a": {}}, {"a": {}}),
        (Leaf | Fork, {"kind": "fork", "left": {"value": 1}}, Fork(Leaf(1), None)),  # type: ignore[arg-type]
        (Leaf | Fork, {"value": 1}, Leaf(1)),
        (Leaf | None, None, None),
        (Leaf | None, {}, Leaf(None)),  # type: ignore[arg-type]
        (list[int] | list[str], [], []),
        (list[Leaf] | Leaf, [{}], [Leaf(None)]),  # type: ignore[arg-type]
        (Annotated[Pair, "two"], {}, Pair(None)),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_what_has_come_is_there_and_the_rest_is_not(hint: Any, value: Any, made: Any) -> None:
    assert draft(hint, value) == made


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Leaf | Fork, {}),
        (Leaf | Fork, {"kind": ""}),
        (Leaf | Fork, {"kind": "spoon"}),
        (Pair, [1]),
        (list[int], {}),
        (tuple[int, str], [1, "a", 2]),
        (dict[str, int], None),
    ],
    ids=str,
)
def test_where_it_is_too_early_to_say_there_is_nothing_to_show(hint: Any, value: Any) -> None:
    with pytest.raises(Mismatch):
        draft(hint, value)


def test_a_class_that_cannot_be_made_yet_is_not_shown() -> None:
    @dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise KeyError("odd")

    with pytest.raises(Mismatch):
        draft(Even, {})
    assert draft(list[Even], [{"number": 2}, {"number": 3}, {}]) == [Even(2)]


class Handle:
    def __init__(self, text: str) -> None:
        self.text = text


class HandleCodec:
    name = "handles"

    def __init__(self, *, drafting: bool) -> None:
        self.drafting = drafting

    def compile(self, hint: object, inner: Any) -> Compiled | None:
        if hint is not Handle:
            return None

        def structure(value: Any) -> Handle:
            if not isinstance(value, str) or not value.startswith("@"):
                raise Mismatch([])
            return Handle(value)

        def broken(value: Any) -> Handle:
            raise LookupError("a bug in a codec")

        return Compiled({"type": "string"}, structure, lambda handle: handle.text, broken if self.drafting else None)


def test_a_codec_without_drafts_shows_whole_values() -> None:
    compiled = compile_type(list[Handle], [HandleCodec(drafting=False)])
    assert compiled.draft is not None
    assert [handle.text for handle in compiled.draft(["@a", "b"])] == ["@a"]


def test_what_goes_wrong_in_a_draft_of_a_codec_is_a_mismatch() -> None:
    compiled = compile_type(list[Handle], [HandleCodec(drafting=True)])
    assert compiled.draft is not None
    with pytest.raises(Mismatch, match="a bug in a codec"):
        compiled.draft(["@a"])


def test_a_draft_of_a_value_nested_without_end_is_a_mismatch() -> None:
    value: Any = {"name": "end"}
    for _ in range(100_000):
        value = {"name": "n", "parent": value}
    with pytest.raises(Mismatch):
        draft(Node, value)


def test_a_deep_beginning_takes_no_time_that_doubles_with_each_level() -> None:
    value: Any = {"kind": "fork"}
    for _ in range(60):
        value = {"kind": "fork", "left": value}
    made = draft(Leaf | Fork, value)
    for _ in range(60):
        made = made.left
    assert made == Fork(None, None)  # type: ignore[arg-type]


def test_while_a_reply_streams_its_drafts_grow_to_the_whole() -> None:
    whole = {
        "steps": [{"explanation": "First", "output": "8x = -30"}, {"explanation": "Then", "output": "x"}],
        "answer": "x",
    }
    reader, seen = PartialJson(), []
    for letter in json.dumps(whole):
        value = reader.feed(letter)
        if value is not NOTHING:
            seen.append(draft(Reasoning, value))
    assert seen[-1] == compile_type(Reasoning).structure(whole)
    steps = [len(made.steps or []) for made in seen]
    assert steps == sorted(steps)


@given(st.data())
def test_what_may_become_valid_is_never_denied(data: st.DataObject) -> None:
    case = data.draw(type_cases())
    schema = compile_type(case.hint).schema
    beginning = data.draw(prefixes(compile_type(case.hint).unstructure(data.draw(case.values))))
    assert may_become(schema, beginning, schema.get("$defs", {}))
