"""HandlebarsTemplates does what every TemplateLanguage must."""

import pytest

from portico_templates.handlebars.config import HandlebarsSettings
from portico_templates.handlebars.language import HandlebarsTemplates, factory
from portico_testkit.template_cases import REACHING
from portico_testkit.template_language import TemplateLanguageKit


class NoServices:
    def get(self, port, name=None):
        raise AssertionError("the language asked for a service")

    def names(self, port):
        return ()


class TestHandlebarsTemplates(TemplateLanguageKit):
    variables = "[{{a}}|{{b}}]"
    by_name = "({{Tools-join left=a right=b}})"
    by_place = "({{Tools-join a right=b}})"
    two_calls = "{{Tools-first text=a}}{{Tools-second text=b}}"
    unknown_function = "Dear friend,\n\n  {{Tools-nope text=a}}\n"
    malformed = (
        "{{#if a}}",
        "{{/if}}",
        "{{#if a}}{{/each}}",
        "{{else}}",
        "{{a",
        "{{a b=}}",
        "{{a 'b}}",
        "{{a (b}}",
        "{{a/../b}}",
        "{{{a}}",
        "{{! a",
        "{{{{a}}}} b",
        "{{#if}}{{/if}}",
        "{{#each a b}}{{/each}}",
        "{{if a}}",
        "{{* a}}",
        "{{> a b c}}",
        "{{#message}}{{/message}}",
        "{{#a as |b}}{{/a}}",
    )
    message = '<message role="user">{{a}}{{b}}</message>'
    attribute = '<message role="{{a}}">Hello</message>'
    around = '<{{a}}age role="system">{{b}}<message role="user">Hello</message>'
    called_in_message = '<message role="user">{{Tools-join left=a right=b}}</message>'
    reaching = (
        *REACHING,
        "{{#with a}}{{run}}{{/with}}",
        "{{#each a}}{{this}}{{/each}}",
        "{{#a}}{{run}}{{__dict__}}{{/a}}",
        "{{lookup a 'run'}}{{lookup (lookup a '__class__') '__init__'}}",
        "{{a.[__class__]}}{{a.[run]}}",
        "{{constructor.constructor 'return 1'}}",
        "{{json a}}",
        "{{get 'a' '__class__'}}{{get 'a.run'}}",
    )

    @pytest.fixture
    def template_language(self) -> HandlebarsTemplates:
        return HandlebarsTemplates()


class TestBlocksOfMessages(TestHandlebarsTemplates):
    """The same with messages written as blocks, made as the host makes it."""

    message = '{{#message role="user"}}{{a}}{{b}}{{/message}}'
    attribute = "{{#message role=a}}Hello{{/message}}"
    called_in_message = '{{#message role="user"}}{{Tools-join left=a right=b}}{{/message}}'

    @pytest.fixture
    def template_language(self) -> HandlebarsTemplates:
        return factory(HandlebarsSettings(), NoServices())
