"""What an error of a prompt in the Semantic Kernel language keeps: the prompt's name, and what caused it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence

import pytest

from portico._ports.template_language import CallFunction
from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico.errors import ArgumentsInvalid, FunctionNotFound, TemplateError


def raising(error: Exception, *, when_awaited: bool) -> CallFunction:
    async def wait() -> object:
        raise error

    def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Awaitable[object]:
        if when_awaited:
            return wait()
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "when_awaited"),
    [(FunctionNotFound("f"), False), (FunctionNotFound("f"), True), (ArgumentsInvalid("f", ["a: missing"]), False)],
)
async def test_what_refuses_a_call_is_the_cause_of_the_error(error: Exception, when_awaited: bool) -> None:
    template = SemanticKernelTemplates().compile("{{f}}")
    with pytest.raises(TemplateError) as caught:
        await template.render({}, call=raising(error, when_awaited=when_awaited))
    assert caught.value.__cause__ is error


async def test_what_keeps_a_value_from_being_written_is_the_cause_of_the_error() -> None:
    template = SemanticKernelTemplates().compile("{{$x}}")
    with pytest.raises(TemplateError) as caught:
        await template.render({"x": object()}, call=raising(OSError(), when_awaited=False))
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_prompt_without_a_name_is_called_prompt() -> None:
    with pytest.raises(TemplateError, match=r"^prompt, line 1"):
        SemanticKernelTemplates().compile("{{$}}")
    template = SemanticKernelTemplates().compile("{{$x}}")
    assert template.name == "prompt"
    with pytest.raises(TemplateError, match=r"^prompt, line 1"):
        await template.render({"x": object()}, call=raising(OSError(), when_awaited=False))
