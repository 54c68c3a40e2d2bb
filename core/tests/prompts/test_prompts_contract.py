"""Core's own template language does what every one must."""

import pytest

from portico._prompts.semantic_kernel import SemanticKernelTemplates
from portico_testkit.template_language import TemplateLanguageKit


class TestSemanticKernelTemplates(TemplateLanguageKit):
    variables = "[{{$a}}|{{$b}}]"
    by_name = "({{Tools.join left=$a right=$b}})"
    by_place = "({{Tools.join $a right=$b}})"
    two_calls = "{{Tools.first text=$a}} {{Tools.second text=$b}}"
    unknown_function = "First.\n\n  {{Tools.nope text=$a}}"
    malformed = ("{{$}}", "One\n {{f a b='c'}}", "{{a.b.c}}", "{{#if a}}")
    message = '<message role="user">{{$a}}{{$b}}</message>'
    attribute = '<message role="{{$a}}">Hello</message>'
    around = '<{{$a}}age role="system">{{$b}}<message role="user">Hello</message>'
    called_in_message = '<message role="user">{{Tools.join left=$a right=$b}}</message>'

    @pytest.fixture
    def template_language(self) -> SemanticKernelTemplates:
        return SemanticKernelTemplates()
