"""What of a template's call each parameter of a function is given."""

from __future__ import annotations

import enum
from typing import Literal

import pytest

from portico import Kernel, Prompt, Trusted, function
from portico._prompts.calling import FunctionCall
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico.errors import TemplateError


class Word(enum.StrEnum):
    YES = "yes"


@function
def kind(value) -> str:  # type: ignore[no-untyped-def]
    return f"{type(value).__name__} {value!r}"


@function
def cry(*, loud: bool = False, text: str) -> str:
    return text.upper() if loud else text


@function
def route(start: str, end: str) -> str:
    return f"{start}-{end}"


@function
def repeated(times: int, text: str) -> str:
    return text * times


@function
def greeting(tone: Literal["", "warm"]) -> str:
    return f"Hello{tone}"


@function
def farewell(tone: Literal["cool", "warm"]) -> str:
    return f"Bye {tone}"


@function
def share(n: int, N: int) -> str:  # noqa: N803 - such parameters there are
    return f"{n} of {N}"


@pytest.fixture
def kernel() -> Kernel:
    kernel = Kernel()
    for each in (kind, cry, route, repeated, greeting, farewell, share):
        kernel.add_function(each)
    return kernel


async def rendered(kernel: Kernel, source: str, **variables: object) -> str:
    return (
        await SemanticKernelTemplates().compile(source).render(variables, call=FunctionCall.caller(kernel, variables))
    )


async def refused(kernel: Kernel, source: str, **variables: object) -> str:
    with pytest.raises(TemplateError) as caught:
        await rendered(kernel, source, **variables)
    return str(caught.value).partition("\n")[0].partition("The arguments do not fit ")[2]


async def test_a_required_parameter_behind_an_optional_one_gets_its_value(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{cry text='ho'}}, {{cry text=$t loud='true'}}", t="hey") == "ho, HEY"


async def test_the_input_is_no_value_for_a_second_parameter(kernel: Kernel) -> None:
    assert await refused(kernel, "{{route}}", input="Oslo") == "route: end: missing."
    assert await refused(kernel, "{{repeated}}", input="ho") == (
        "repeated: times: expected an integer, got 'ho'; text: missing."
    ), "not where it does not fit the first one either"


@pytest.mark.parametrize("value", [Trusted("<b>"), Prompt([("<", False), ("b>", True)])], ids=["own", "prompt"])
async def test_text_that_a_prompt_takes_as_markup_is_a_plain_string_to_a_function(
    kernel: Kernel, value: object
) -> None:
    assert await rendered(kernel, "{{kind $value}}", value=value) == "str '<b>'"


async def test_other_kinds_of_strings_go_to_a_function_as_they_are(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{kind $value}}", value=Word.YES) == "Word <Word.YES: 'yes'>"


async def test_a_missing_variable_is_empty_text_for_a_parameter_that_takes_just_that(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{greeting $missing}}") == "Hello"
    assert await refused(kernel, "{{farewell $missing}}") == "farewell: tone: missing."


async def test_of_parameters_that_differ_in_case_only_the_one_that_is_written_is_meant(kernel: Kernel) -> None:
    assert await rendered(kernel, "{{share n='1' N='2'}}") == "1 of 2"
    assert await rendered(kernel, "{{share N='1' n='2'}}") == "2 of 1"
