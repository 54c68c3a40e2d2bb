"""The TemplateLanguage kit passes a correct language and catches broken ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from portico import Prompt, Trusted
from portico.errors import ArgumentsInvalid, FunctionNotFound, TemplateError
from portico.plugins import FunctionCall, TextForm
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.template_language import TemplateLanguageKit

BLOCK = re.compile(r"%(.*?)%", re.DOTALL)
CALL = re.compile(r"([\w-]+)\(([\w,=]*)\)")


class Percented:
    """``%a%`` is a variable, ``%Plugin-function(a,right=b)%`` a call with variables; calls run in turn."""

    def __init__(self, language, source, name):
        self.language = language
        self.source = source
        self.name = name
        self.parts = []
        end = 0
        for block in BLOCK.finditer(source):
            self.parts += [source[end : block.start()], block]
            end = block.end()
        self.parts.append(source[end:])
        for block in self.parts[1::2]:
            if not re.fullmatch(r"\w+", block[1]) and not CALL.fullmatch(block[1]):
                raise self.refuse("This is no variable and no call.", block)
        self.calls = self.told(self.parts[1::2])
        self.variables = self.needed(self.parts[1::2])
        language.compiled = self

    def needed(self, blocks):
        names = [name for block in blocks for name in self.names(block)]
        return tuple(dict.fromkeys(names))

    def names(self, block):
        called = CALL.fullmatch(block[1])
        return re.findall(r"(\w+)(?=,|$)", called[2]) if called else [block[1]]

    def told(self, blocks):
        places = FunctionCall.places(self.source)
        return tuple(self.call(places, block) for block in blocks if CALL.fullmatch(block[1]))

    def call(self, places, block):
        name, written = CALL.fullmatch(block[1]).groups()
        words = [word.partition("=") for word in filter(None, written.split(","))]
        named = [name for name, equals, _ in words if equals]
        return places.call(name, len(words) - len(named), named, at=block.start(1))

    def refuse(self, message, block):
        return Prompt.fault(message, self.source, block.start(1), len(block[1]), name=self.name)

    async def render(self, arguments, *, call):
        pieces = []
        for index, part in enumerate(self.parts):
            pieces.append((part, False) if index % 2 == 0 else await self.filled(part, arguments, call))
        return self.finished(pieces)

    def finished(self, pieces):
        own = [text for text, is_value in pieces if not is_value]
        markup = any("<message" in text or type(text) is Trusted for text in own)
        return Prompt(pieces) if markup else "".join(text for text, is_value in pieces)

    async def filled(self, block, arguments, call):
        called = CALL.fullmatch(block[1])
        value = await self.result(block, called, arguments, call) if called else self.variable(arguments, block)
        return self.piece(value, block)

    def variable(self, arguments, block):
        return arguments.get(block[1])

    def piece(self, value, block):
        if type(value) is Trusted:
            return (value, False)
        try:
            return (self.language.text_form(value), True)
        except ValueError as error:
            raise self.refuse(str(error), block) from error

    async def result(self, block, called, arguments, call):
        named, positional = {}, []
        for word in filter(None, called[2].split(",")):
            name, equals, variable = word.rpartition("=")
            if equals:
                named[name] = arguments.get(variable)
            else:
                positional.append(arguments.get(variable))
        return await self.awaited(block, lambda: call(called[1], named, positional))

    async def awaited(self, block, call):
        try:
            awaitable = call()
        except (FunctionNotFound, ArgumentsInvalid) as error:
            raise self.refuse(str(error), block) from error
        return await awaitable


class Percents:
    name = "percents"
    template = Percented

    def __init__(self):
        self.text_form = TextForm()

    def compile(self, source, *, name="prompt"):
        return self.template(self, source, name)


class TestPercents(TemplateLanguageKit):
    variables = "[%a%|%b%]"
    by_name = "(%Tools-join(left=a,right=b)%)"
    by_place = "(%Tools-join(a,right=b)%)"
    two_calls = "%Tools-first(text=a)% %Tools-second(text=b)%"
    unknown_function = "First.\n\n  %Tools-nope(text=a)%"
    malformed = ("%%", "One\n %a b%", "%f(%")
    message = '<message role="user">%a%%b%</message>'
    attribute = '<message role="%a%">Hello</message>'
    around = '<%a%age role="system">%b%<message role="user">Hello</message>'
    called_in_message = '<message role="user">%Tools-join(left=a,right=b)%</message>'
    reaching = ("%a.run%", "%a%", "%run(a)%", "%__class__%")

    @pytest.fixture
    def template_language(self) -> Percents:
        return Percents()


def language(kind: type[Percented | Percents]) -> Percents:
    """Make a language whose templates are of a kind, or one of a kind itself."""
    if issubclass(kind, Percents):
        return kind()
    made = Percents()
    made.template = kind
    return made


FAULTS = KnownFaults(TestPercents, lambda kind: {"template_language": lambda: language(kind)})


@FAULTS.caught_by("a_template_without_markup_gives_a_plain_string", "has no markup, and gave a Prompt")
class AlwaysAPrompt(Percented):
    def finished(self, pieces):
        return Prompt(pieces)


@FAULTS.caught_by("an_unknown_function_is_an_error_that_says_where", "no function 'Tools-nope'")
class LetsFunctionNotFoundOut(Percented):
    async def awaited(self, block, call):
        try:
            return await super().awaited(block, call)
        except TemplateError as error:
            if isinstance(error.__cause__, FunctionNotFound):
                raise error.__cause__ from None
            raise


# A rendering that is broken may leave calls behind that nobody awaits.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)


async def test_a_language_may_refuse_missing_variables_when_it_says_so() -> None:
    class Strict(Percented):
        def variable(self, arguments, block):
            if block[1] not in arguments:
                raise self.refuse("There is no such variable.", block)
            return arguments[block[1]]

    class Kit(TestPercents):
        missing_is_empty = False

    await Kit().test_a_missing_variable_is_empty_or_an_error(language(Strict))
    with pytest.raises(pytest.fail.Exception):
        await Kit().test_a_missing_variable_is_empty_or_an_error(Percents())


async def test_the_kit_wants_to_be_told_what_reaches_out_in_the_syntax_of_the_language() -> None:
    class Kit(TestPercents):
        reaching = ("{{a.run}}", "${a.run}")

    with pytest.raises(AssertionError, match="all of `reaching` is plain text in this language: write there"):
        await Kit().test_a_template_runs_no_code(Percents())
