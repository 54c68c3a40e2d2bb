"""How a template's calls reach the functions of a kernel."""

from __future__ import annotations

import contextvars
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest

from portico import Kernel, Middleware, function
from portico._functions.functions import Function, FunctionPlugin
from portico._prompts.calling import FunctionCall
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico.errors import ArgumentsInvalid, FunctionFailed, FunctionNotFound, TemplateError


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Passage:
    value: str
    found: dt.date


class Plugin:
    """Functions of several kinds."""

    @function
    def echo(self, input: str) -> str:
        return f"F({input})"

    @function
    def city(self, place: str, unit: str = "C") -> str:
        return f"{place} in {unit}"

    @function
    def now(self) -> str:
        return "now"

    @function
    def typed(self, input: str, age: int, when: dt.date, colour: Colour = Colour.RED) -> str:
        assert type(age) is int
        assert type(when) is dt.date
        assert type(colour) is Colour
        return f"{input} {age} {when.year} {colour.name}"

    @function
    def untyped(self, value) -> str:  # type: ignore[no-untyped-def]
        return repr(value)

    @function
    def optional(self, value: str | None, count: int = 2) -> str:
        return f"{value!r} {count}"

    @function
    def listed(self, names: list[str], loud: bool = False) -> str:
        return f"{names} {loud}"

    @function
    def passages(self) -> list[Passage]:
        return [Passage("text", dt.date(2026, 3, 1))]


@pytest.fixture
def kernel() -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(Plugin(), "p")
    return kernel


async def rendered(kernel: Kernel, source: str, **variables: object) -> str:
    template = SemanticKernelTemplates().compile(source)
    return await template.render(variables, call=FunctionCall.caller(kernel, variables))


async def refused(kernel: Kernel, source: str, **variables: object) -> str:
    with pytest.raises(TemplateError) as caught:
        await rendered(kernel, source, **variables)
    return str(caught.value)


async def test_a_value_by_place_goes_to_the_first_parameter(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.city 'Oslo'}}") == "Oslo in C"
    assert await rendered(kernel, "{{p.city $where unit='F'}}", where="Rome") == "Rome in F"


async def test_functions_are_found_by_plugin_and_name_by_name_alone_and_in_another_case(kernel: Kernel) -> None:
    kernel.add_function(Plugin().city)
    assert await rendered(kernel, "{{p.now}} {{now}} {{P.Now}}") == "now now now"
    assert await rendered(kernel, "{{city 'Oslo'}}") == "Oslo in C"


async def test_a_name_that_several_functions_have_is_refused(kernel: Kernel) -> None:
    kernel.add_plugin(Plugin(), "q")
    assert "p-now, q-now" in await refused(kernel, "{{now}}")


async def test_a_function_that_is_not_there_is_refused_with_the_nearest(kernel: Kernel) -> None:
    assert "There is no function 'p-ecko'. Nearest: p-echo" in await refused(kernel, "{{p.ecko}}")


async def test_a_call_without_arguments_takes_the_input(kernel: Kernel) -> None:
    assert await rendered(kernel, "foo-{{p.echo}}-baz", input="INPUT-BAR") == "foo-F(INPUT-BAR)-baz"
    assert await rendered(kernel, "{{p.city}}", input="Oslo") == "Oslo in C"
    assert await rendered(kernel, "{{p.now}}", input="Oslo") == "now"


async def test_a_required_parameter_takes_the_variable_of_its_name(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.city}}", place="Oslo", input="Rome", unit="F") == "Oslo in C"
    assert await rendered(kernel, "{{p.typed age='42' when='2023-08-25'}}", input="Mario") == "Mario 42 2023 RED"


async def test_what_is_missing_is_said(kernel: Kernel) -> None:
    assert "do not fit p-echo: input: missing" in await refused(kernel, "{{p.echo}}")
    assert "place: missing" in await refused(kernel, "{{p.city unit='F'}}", input="Oslo")
    assert "age: missing; when: missing" in await refused(kernel, "{{p.typed 'x'}}")
    assert "age: missing" in await refused(kernel, "{{p.typed 'x' age=$nothing when='2026-01-01'}}")


async def test_text_is_read_as_what_the_parameter_takes(kernel: Kernel) -> None:
    template = "{{p.typed $input age='42' when=$date colour='red'}}"
    assert await rendered(kernel, template, input="Mario", date="2023-08-25") == "Mario 42 2023 RED"
    assert await rendered(kernel, "{{p.listed '[\"a\", \"b\"]' loud='True'}}") == "['a', 'b'] True"
    assert await rendered(kernel, "{{p.listed '[]' loud='false'}}") == "[] False"
    assert await rendered(kernel, "{{p.listed '[\"A\"]' loud='False'}}") == "['A'] False"
    assert await rendered(kernel, "{{p.untyped '42'}}") == "'42'"


async def test_text_that_is_not_of_the_parameter_s_type_is_refused(kernel: Kernel) -> None:
    message = await refused(kernel, "{{p.typed 'x' age='old' when='soon' colour='blue'}}")
    assert "age: expected an integer, got 'old'" in message
    assert "when: expected a date" in message
    assert "colour: expected one of 'red', got 'blue'" in message
    assert "age: expected an integer, got '\"1\"'" in await refused(kernel, "{{p.typed 'x' age='\"1\"'}}")
    assert "names[0]: expected a string" in await refused(kernel, "{{p.listed '[1]'}}")


async def test_other_values_go_to_a_function_as_they_are(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.untyped $value}}", value=Passage) == repr(Passage)
    assert await rendered(kernel, "{{p.typed 'x' age=$age when=$when}}", age=7, when=dt.date(2026, 1, 1))


async def test_a_missing_variable_is_none_or_the_default_or_empty(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.untyped $missing}}") == "None"
    assert await rendered(kernel, "{{p.optional $missing count=$missing}}") == "None 2"
    assert await rendered(kernel, "{{p.echo $missing}}") == "F()"


async def test_names_of_parameters_are_understood_in_another_case(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.city Place='Oslo' UNIT='F'}}") == "Oslo in F"


async def test_an_unknown_name_is_refused_with_the_known_ones(kernel: Kernel) -> None:
    assert "size: unknown; the parameters are place, unit" in await refused(kernel, "{{p.city 'Oslo' size='1'}}")
    assert "it takes no arguments, not 1" in await refused(kernel, "{{p.now 'x'}}")
    assert "size: unknown; the parameters are none" in await refused(kernel, "{{p.now size='x'}}")


async def test_a_parameter_is_not_given_by_place_and_by_name(kernel: Kernel) -> None:
    assert "place: given twice" in await refused(kernel, "{{p.city 'Oslo' place='Rome'}}")
    assert "place: given twice" in await refused(kernel, "{{p.city 'Oslo' Place='Rome'}}")


async def test_positional_arguments_fill_the_parameters_in_order(kernel: Kernel) -> None:
    call = FunctionCall.caller(kernel)
    assert await call("p-city", {}, ["Oslo", "F"]) == "Oslo in F"
    with pytest.raises(ArgumentsInvalid, match="at most 2 arguments, not 3"):
        call("p-city", {}, ["Oslo", "F", "x"])


async def test_the_call_itself_refuses_what_does_not_fit_before_anything_is_awaited(kernel: Kernel) -> None:
    call = FunctionCall.caller(kernel)
    with pytest.raises(FunctionNotFound):
        call("p-nope", {})
    with pytest.raises(ArgumentsInvalid):
        call("p-city", {})


async def test_results_are_written_by_the_function_s_type(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{p.passages}}") == '[{"value": "text", "found": "2026-03-01"}]'
    assert await FunctionCall.caller(kernel)("p-passages", {}) == [{"value": "text", "found": "2026-03-01"}]


def returning(hint: object, value: object) -> Callable[[], object]:
    def give() -> object:
        return value

    give.__annotations__["return"] = hint
    return give


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (str, "as it is", "as it is"),
        (str, None, ""),
        (None, None, ""),
        (int, 3, "3"),
        (float, 2.5, "2.5"),
        (bool, True, "True"),
        (dt.date, dt.date(2026, 1, 2), "2026-01-02"),
        (Colour, Colour.RED, "red"),
        (Annotated[list[int], "numbers"], [1, 2], "[1, 2]"),
        (dict[str, Any], {"a": {"b": None}}, '{"a": {"b": null}}'),
        (Any, Passage("é", dt.date(2026, 1, 2)), '{"value": "é", "found": "2026-01-02"}'),
        (Any, Path("a/b"), str(Path("a/b"))),
    ],
    ids=str,
)
async def test_each_kind_of_result_has_its_text(hint: object, value: object, text: str) -> None:
    kernel = Kernel()
    kernel.add_function(returning(hint, value))
    assert await rendered(kernel, "{{give}}") == text


async def test_a_result_that_is_not_of_the_function_s_type_is_the_function_s_failure() -> None:
    kernel = Kernel()
    kernel.add_function(returning(Passage, {"value": "text"}))
    with pytest.raises(FunctionFailed, match="give failed: AttributeError"):
        await rendered(kernel, "{{give}}")


async def test_what_a_function_raises_comes_through(kernel: Kernel) -> None:
    @function
    def bad() -> str:
        raise OSError("mine")

    kernel.add_function(bad)
    with pytest.raises(OSError, match="mine"):
        await rendered(kernel, "{{bad}} {{p.now}}")


async def test_filters_of_functions_run_around_the_calls_of_a_template() -> None:
    async def loud(context: Any, proceed: Any) -> Any:
        return (await proceed()).upper()

    kernel = Kernel(plugins=[FunctionPlugin.of(Plugin(), "p")], middleware=Middleware(function=[loud]))
    assert await rendered(kernel, "{{p.city 'Oslo'}}") == "OSLO IN C"


async def test_functions_of_each_kind_are_called() -> None:
    where = contextvars.ContextVar("where", default="nowhere")
    kernel = Kernel()

    @function
    async def waiting(text: str) -> str:
        return f"{text} {where.get()}"

    @function(blocking=True)
    def blocking(text: str) -> str:
        return f"{text} {where.get()}"

    kernel.add_function(waiting)
    kernel.add_function(blocking)
    where.set("here")
    assert await rendered(kernel, "{{waiting 'a'}}, {{blocking 'b'}}") == "a here, b here"


async def test_where_calls_are_of_json_what_has_no_json_form_is_told(kernel: Kernel) -> None:
    async def carry_out(function: Function, arguments: dict[str, Any]) -> object:
        return f"{function.full_name} {arguments}"

    call = FunctionCall.caller(kernel, {"input": ("a", 1)}, call_json=carry_out)
    assert await call("p-untyped", {}) == "p-untyped {'value': ['a', 1]}"
    assert await call("p.typed", {"age": "7", "when": "2026-01-02"}, ["x"]) == (
        "p-typed {'input': 'x', 'age': 7, 'when': '2026-01-02'}"
    )
    for value, why in ((Passage, "not JSON serializable"), (float("nan"), "not JSON compliant")):
        with pytest.raises(ArgumentsInvalid, match=f"p-untyped: value: the value has no JSON form: .*{why}"):
            call("p-untyped", {"value": value})
