"""Functions are made from whatever can be called, with what its hints and docstring say."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import type_cases

from portico._functions.functions import Function, FunctionPlugin, function
from portico._functions.middleware import run_together
from portico._kernel import Kernel
from portico._schema.validate import PlainSchemaValidator
from portico.errors import ArgumentsInvalid, SchemaUnsupported
from portico_testkit.strategies import json_values


@function(name="Book", effects=True, tags=("table",))
async def book(guests: int, when: dt.date, note: Annotated[str | None, "Wishes"] = None) -> list[dt.date]:
    """Book a table.

    Args:
        guests: How many come.

    Returns:
        The day, once for each.
    """
    return [when] * guests


def test_a_function_stays_callable_and_carries_its_manual() -> None:
    made = Function.of(book, plugin="Tables")
    assert made.callable is book
    assert (made.name, made.full_name, made.is_async, made.effects) == ("Book", "Tables-Book", True, True)
    spec = made.spec
    assert spec is made.spec
    assert (spec.name, spec.description, spec.tags) == ("Tables-Book", "Book a table.", {"table"})
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "description": "How many come."},
            "when": {"type": "string", "format": "date"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Wishes", "default": None},
        },
        "required": ["guests", "when"],
        "additionalProperties": False,
    }
    assert spec.returns == {
        "type": "array",
        "items": {"type": "string", "format": "date"},
        "description": "The day, once for each.",
    }


class Sums:
    """Sums of numbers.

    More on them.
    """

    start = 10

    @property
    def broken(self) -> int:
        raise RuntimeError("a property is not to be read when functions are collected")

    @function
    def add(self, number: int) -> int:
        return self.start + number

    @function
    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    @staticmethod
    @function
    def halve(number: int) -> float:
        return number / 2

    @function
    @classmethod
    async def from_start(cls, number: int) -> int:
        return cls.start - number

    def unmarked(self) -> None: ...


class MoreSums(Sums):
    start = 100

    @function
    def square(self, number: int) -> int:
        return number**2


@pytest.mark.parametrize("group", [MoreSums, MoreSums()])
async def test_a_class_or_an_object_is_a_plugin_of_its_marked_methods(group: object) -> None:
    plugin = FunctionPlugin.of(group)
    assert [member.full_name for member in plugin] == [
        f"MoreSums-{name}" for name in ("add", "double", "halve", "from_start", "square")
    ]
    kernel = Kernel(plugins=[plugin])
    results = [await kernel.invoke_json(member.full_name, {"number": 4}) for member in plugin]
    assert results == [104, 8, 2.0, 96, 16]


def test_a_module_is_a_plugin() -> None:
    module = types.ModuleType("acme.tables", "Tables at Acme.")
    module.book, module.other = book, 5  # type: ignore[attr-defined]
    plugin = FunctionPlugin.of(module)
    assert (plugin.name, plugin.description) == ("tables", "Tables at Acme.")
    assert [member.full_name for member in plugin] == ["tables-Book"]


def test_a_group_without_marked_functions_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="mark them"):
        FunctionPlugin.of(types.SimpleNamespace(run=lambda: None), "Empty")


def test_two_functions_of_one_name_are_a_mistake() -> None:
    made = Function.of(book, plugin="T")
    with pytest.raises(ValueError, match="two functions"):
        FunctionPlugin("T", (made, made))


@pytest.mark.parametrize("name", ["", "a b", "a-b", "a.b", "a\n", "é", "f()"])
def test_a_name_is_letters_digits_and_underscores(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        Function.of(_named(name))
    with pytest.raises(ValueError, match="is not a name"):
        Function.of(book, plugin=name)


def _named(name: str) -> Callable[[], None]:
    def run() -> None: ...

    run.__name__ = name
    return run


class Greeter:
    def __init__(self, word: str) -> None:
        self.word = word

    async def __call__(self, name: str) -> str:
        """Greet somebody."""
        return f"{self.word} {name}"


def add(left: int, right: int = 1, *, times: int = 1) -> int:
    """Add numbers."""
    return (left + right) * times


def logged(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wrapped)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("callable", "arguments", "result", "name"),
    [
        (add, {"left": 1, "times": 3}, 6, "add"),
        (functools.partial(add, times=2), {"left": 1}, 4, "add"),
        (functools.partial(functools.partial(add, right=5), left=1), {}, 6, "add"),
        (Greeter("Hello"), {"name": "Ada"}, "Hello Ada", "Greeter"),
        (Greeter("Hello").__call__, {"name": "Ada"}, "Hello Ada", "__call__"),
        (logged(add), {"left": 1}, 2, "add"),
        (logged(Greeter.__call__.__get__(Greeter("Hello"))), {"name": "Ada"}, "Hello Ada", "__call__"),
        (functools.partial(Greeter("Hello")), {"name": "Ada"}, "Hello Ada", "Greeter"),
        (functools.lru_cache(add), {"left": 1}, 2, "add"),
    ],
    ids=[
        "a function",
        "a part of it",
        "a part of a part",
        "an object",
        "a bound method",
        "a wrapper",
        "a wrapped method",
        "a part of an object",
        "a cache",
    ],
)
async def test_whatever_can_be_called_is_a_function(
    callable: Any, arguments: dict[str, Any], result: Any, name: str
) -> None:
    made = Function.of(callable)
    assert made.name == name
    assert made.description in ("Add numbers.", "Greet somebody.")
    kernel = Kernel()
    kernel.add_function(made)
    assert await kernel.invoke_json(made, arguments) == result
    with pytest.raises(ArgumentsInvalid):
        await kernel.invoke_json(made, {key: [None] for key in arguments} or {"unknown": 1})


async def three(first: int, second: int = 2, third: int = 3) -> list[int]:
    return [first, second, third]


async def last_by_name(first: int, *, third: int = 3, second: int = 2) -> list[int]:
    return [first, second, third]


@functools.wraps(three)
async def turned(third: int, second: int, first: int) -> list[int]:
    return [first, second, third]


class Three:
    async def __call__(self, third: int, first: int, second: int) -> list[int]:
        return [first, second, third]


@pytest.mark.parametrize("callable", [three, last_by_name, turned, Three(), Three().__call__, functools.partial(three)])
async def test_each_argument_goes_to_the_parameter_of_its_name(callable: Callable[..., Any]) -> None:
    made, given, kernel = Function.of(callable), {"second": 5, "third": 6, "first": 4}, Kernel()
    assert await kernel.invoke(made, **given) == await kernel.invoke_json(made, given) == [4, 5, 6]
    made.callable = turned
    assert await kernel.invoke(made, **given) == [4, 5, 6]


def only_by_position(number: int, /) -> None: ...
def any_number(*numbers: int) -> None: ...
def any_name(**names: int) -> None: ...


@pytest.mark.parametrize("callable", [only_by_position, any_number, any_name, functools.partial(any_name), Sums])
def test_what_cannot_be_called_by_name_is_a_mistake(callable: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        Function.of(callable)


def test_a_hint_without_json_form_is_refused() -> None:
    def run(data: bytes) -> None: ...

    with pytest.raises(SchemaUnsupported, match="bytes"):
        Function.of(run)


@dataclass
class Guest:
    """Somebody who comes.

    Attributes:
        name: As on the card.
    """

    name: str
    diet: Annotated[str, "What to cook"] = "any"


def invite(
    guest: Guest,
    host: Annotated[Guest, "Who pays"],
    others: list[Guest] = [],  # noqa: B006
    *,
    until: dt.date = dt.date.max,
) -> Guest:
    """Invite somebody.

    Args:
        guest: Who is to come.
        host: Overruled by the note.
    """
    return guest


def test_the_nearest_words_describe_a_parameter_and_its_default_is_told() -> None:
    """A note at the hint comes before the function's docstring, that before the docstring of the class."""
    spec = Function.of(invite).spec
    properties = spec.parameters["properties"]
    assert properties["guest"]["description"] == "Who is to come."
    assert properties["host"]["description"] == "Who pays"
    assert properties["others"]["items"]["description"] == "Somebody who comes."
    assert properties["guest"]["properties"] == {
        "name": {"type": "string", "description": "As on the card."},
        "diet": {"type": "string", "description": "What to cook", "default": "any"},
    }
    assert properties["others"]["default"] == []
    assert properties["until"]["default"] == "9999-12-31"
    assert spec.returns["description"] == "Somebody who comes."


NOT_GIVEN: Any = object()


@pytest.mark.parametrize(
    "default", [NOT_GIVEN, float("nan"), "x", None, ...], ids=["an object", "nan", "text", "None", "Ellipsis"]
)
def test_a_default_that_is_no_value_of_the_type_is_not_told(default: Any) -> None:
    def run(number=default): ...  # type: ignore[no-untyped-def]

    run.__annotations__ = {"number": int}
    spec = Function.of(run).spec
    assert spec.parameters == {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": [],
        "additionalProperties": False,
    }


def returning(returns: Any, doc: str) -> Any:
    def run() -> Any: ...

    run.__annotations__, run.__doc__ = {"return": returns}, doc
    return Function.of(run).spec.returns


def test_what_comes_out_is_described_by_the_note_or_by_the_docstring() -> None:
    doc = "Do it.\n\nReturns:\n    int: How many."
    assert returning(int, doc) == {"type": "integer", "description": "How many."}
    assert returning(Annotated[int, "a number"], doc) == {"type": "integer", "description": "a number"}
    assert returning(int, "Do it.") == {"type": "integer"}
    assert returning(None, "Do it.") == {"type": "null"}


def test_every_argument_fault_is_told_at_once() -> None:
    def plan(days: list[int], place: str, until: dt.date | None = None) -> None: ...

    with pytest.raises(ArgumentsInvalid) as caught:
        Function.of(plan, plugin="Trips").structure_arguments({"days": [1, "x"], "until": "later", "pace": 1})
    assert caught.value.faults == (
        "days[1]: expected an integer, got 'x'",
        "place: missing",
        "until: expected a date (ISO 8601) or null, got 'later'",
        "pace: unknown; the parameters are days, place, until",
    )
    assert "Trips-plan" in str(caught.value)


def test_arguments_of_a_model_are_taken_where_nothing_is_lost_and_else_every_fault_is_told_as_it_came() -> None:
    def plan(days: list[int], place: str, until: dt.date | None = None) -> None: ...

    made = Function.of(plan)
    arguments = {"days": "[1, 2]", "place": 7, "until": "null"}
    with pytest.raises(ArgumentsInvalid):
        made.structure_arguments(arguments)
    assert made.structure_arguments(arguments, lenient=True) == {"days": [1, 2], "place": "7", "until": None}
    with pytest.raises(ArgumentsInvalid) as caught:
        made.structure_arguments({"days": ["1", "05"], "until": "true", "pace": "1"}, lenient=True)
    assert caught.value.faults == (
        "days[0]: expected an integer, got '1'",
        "days[1]: expected an integer, got '05'",
        "place: missing",
        "until: expected a date (ISO 8601) or null, got 'true'",
        "pace: unknown; the parameters are days, place, until",
    )


@pytest.mark.parametrize("named", [True, False])
async def test_a_kernel_reads_leniently_only_where_it_is_asked_to(named: bool) -> None:
    kernel = Kernel()
    made = kernel.add_function(add)
    function = made.full_name if named else made
    assert await kernel.invoke_json(function, {"left": "1"}, lenient=True) == 2
    with pytest.raises(ArgumentsInvalid, match="expected an integer, got '1'"):
        await kernel.invoke_json(function, {"left": "1"})


def test_an_argument_nested_without_end_is_a_fault() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ArgumentsInvalid, match="nested too deeply"):
        Function.of(taking_anything).structure_arguments({"value": value})


def taking_anything(value: Any) -> Any:
    return value


@given(st.data())
def test_arguments_are_taken_just_when_the_manual_allows_them(data: st.DataObject) -> None:
    case = data.draw(type_cases(formats=False))

    def run(first, second=None): ...  # type: ignore[no-untyped-def]

    run.__annotations__ = {"first": case.hint, "second": int | None}
    made = Function.of(run)
    arguments = data.draw(
        st.fixed_dictionaries({}, optional={"first": json_values(3), "second": json_values(2), "third": json_values(1)})
    )
    try:
        made.structure_arguments(arguments)
        taken = True
    except ArgumentsInvalid:
        taken = False
    assert taken == (PlainSchemaValidator().compile(made.spec.parameters)(arguments) == [])


def test_hints_may_name_what_the_function_around_defines():
    @dataclass
    class Inner:
        city: str

    @dataclass
    class Local:
        inner: Inner

    def look(place: Local) -> Local:
        return place

    parameters = Function.of(look).spec.parameters["properties"]
    assert parameters["place"]["properties"]["inner"]["properties"] == {"city": {"type": "string"}}


def test_a_hint_whose_name_is_known_nowhere_is_named():
    def look(place: Nowhere) -> str:  # noqa: F821
        return ""

    with pytest.raises(SchemaUnsupported, match=r"look.*'Nowhere'"):
        Function.of(look)


async def test_of_works_that_run_together_the_first_error_ends_the_others_and_keeps_its_cause() -> None:
    ended: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError("this one") from ValueError("why")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("the other")

    for works in ((fail(), wait()), (wait(), fail())):
        with pytest.raises(LookupError) as caught:
            await run_together(works)
        assert isinstance(caught.value.__cause__, ValueError)
    assert ended == ["the other"] * 2
