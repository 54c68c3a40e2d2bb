"""The TemplateLanguage kit passes core's language and catches broken ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from portico import Prompt
from portico.plugins import SemanticKernelTemplates
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.template_cases import REACHING
from portico_testkit.template_language import TemplateLanguageKit


class SemanticKernel(TemplateLanguageKit):
    variables = "[{{$a}}|{{$b}}]"
    by_name = "({{Tools.join left=$a right=$b}})"
    by_place = "({{Tools.join $a right=$b}})"
    two_calls = "{{Tools.first text=$a}} {{Tools.second text=$b}}"
    unknown_function = "First.\n\n  {{Tools.nope text=$a}}"
    malformed = ("{{$}}", "One\n {{a b c=}}")
    message = '<message role="user">{{$a}}{{$b}}</message>'
    attribute = '<message role="{{$a}}">Hello</message>'
    around = '<{{$a}}age role="system">{{$b}}<message role="user">Hello</message>'
    called_in_message = '<message role="user">{{Tools.join left=$a right=$b}}</message>'
    reaching: ClassVar[tuple[str, ...]] = (*REACHING, "{{$a.run}}", "{{$__class__}}")

    @pytest.fixture
    def template_language(self) -> Any:
        return SemanticKernelTemplates()


class Language:
    """Core's language, with templates that a variant breaks."""

    name = "broken"

    def compile(self, source: str, *, name: str = "prompt") -> Any:
        self.template = SemanticKernelTemplates().compile(source, name=name)
        return self

    async def render(self, arguments: Mapping[str, object], *, call: Any) -> Any:
        return await self.template.render(arguments, call=call)


FAULTS = KnownFaults(SemanticKernel, lambda kind: {"template_language": kind})


@FAULTS.caught_by("a_template_without_markup_gives_a_plain_string", "has no markup, and gave a Prompt")
class AlwaysAPrompt(Language):
    async def render(self, arguments: Mapping[str, object], *, call: Any) -> Any:
        return Prompt([(str(await super().render(arguments, call=call)), False)])


@FAULTS.caught_by("a_value_never_opens_or_ends_a_message", "gave|rendered prompt")
class WritesValuesIntoTheTemplate(Language):
    async def render(self, arguments: Mapping[str, object], *, call: Any) -> Any:
        source = SemanticKernel.message
        for name, value in arguments.items():
            source = source.replace(f"{{{{${name}}}}}", str(value))
        return await SemanticKernelTemplates().compile(source).render({}, call=call)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
