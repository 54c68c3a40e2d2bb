"""The TemplateLanguage kit passes a correct language and catches broken ones."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from dataclasses import replace

import pytest

from portico.errors import ArgumentsInvalid, FunctionNotFound, TemplateError
from portico.prompts.faults import fault
from portico.prompts.prompt import Piece, Prompt, Trusted
from portico.prompts.text_form import TextForm
from portico.prompts.written_calls import CallPlaces
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
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
        places = CallPlaces(self.source)
        return tuple(self.call(places, block) for block in blocks if CALL.fullmatch(block[1]))

    def call(self, places, block):
        name, written = CALL.fullmatch(block[1]).groups()
        words = [word.partition("=") for word in filter(None, written.split(","))]
        named = [name for name, equals, _ in words if equals]
        return places.call(name, len(words) - len(named), named, at=block.start(1))

    def refuse(self, message, block):
        return fault(message, self.source, block.start(1), len(block[1]), name=self.name)

    async def render(self, arguments, *, call):
        pieces = []
        for index, part in enumerate(self.parts):
            pieces.append(Piece(part, False) if index % 2 == 0 else await self.filled(part, arguments, call))
        return self.finished(pieces)

    def finished(self, pieces):
        own = [piece for piece in pieces if not piece.is_value]
        markup = any("<message" in piece.text or type(piece.text) is Trusted for piece in own)
        return Prompt(pieces) if markup else "".join(piece.text for piece in pieces)

    async def filled(self, block, arguments, call):
        called = CALL.fullmatch(block[1])
        value = await self.result(block, called, arguments, call) if called else self.variable(arguments, block)
        return self.piece(value, block)

    def variable(self, arguments, block):
        return arguments.get(block[1])

    def piece(self, value, block):
        if type(value) is Trusted:
            return Piece(value, False)
        try:
            return Piece(self.language.text_form(value), True)
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


@FAULTS.caught_by("the_name_is_filled", "its name is empty")
class Nameless(Percents):
    name = " "


@FAULTS.caught_by("a_template_without_markup_gives_a_plain_string", "has no markup, and gave a Prompt")
class AlwaysAPrompt(Percented):
    def finished(self, pieces):
        return Prompt(pieces)


@FAULTS.caught_by("values_are_written_alike", "None was written")
class WritesItsOwnWay(Percented):
    def piece(self, value, block):
        return super().piece(value if type(value) is Trusted else str(value), block)


@FAULTS.caught_by("a_missing_variable_is_empty_or_an_error")
class SaysUndefined(Percented):
    def variable(self, arguments, block):
        return arguments.get(block[1], "undefined")


@FAULTS.caught_by("rendering_leaves_arguments_and_template_alone", "the arguments were changed")
class ChangesTheArguments(Percented):
    async def render(self, arguments, *, call):
        prompt = await super().render(arguments, call=call)
        arguments["b"] = "changed"
        return prompt


@FAULTS.caught_by("one_template_renders_many_times_at_once", "rendering 0 gave")
class SharesItsPieces(Percented):
    async def render(self, arguments, *, call):
        self.arguments = arguments
        return await super().render(arguments, call=call)

    async def filled(self, block, arguments, call):
        await asyncio.sleep(0)
        return await super().filled(block, self.arguments, call)


@FAULTS.caught_by("a_function_is_called_by_name_and_by_place")
class WritesArguments(Percented):
    async def result(self, block, called, arguments, call):
        texts = {name: TextForm()(value) if type(value) is int else value for name, value in arguments.items()}
        return await super().result(block, called, texts, call)


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", r"tells \[\]")
class TellsNoCalls(Percented):
    def told(self, blocks):
        return ()


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", "calls nothing, and tells")
class TellsVariables(Percented):
    def told(self, blocks):
        places = CallPlaces(self.source)
        return tuple(places.call(block[1], 0, (), at=block.start(1)) for block in blocks)


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", r"tells \[\('Tools-second'")
class TellsCallsBackwards(Percented):
    def told(self, blocks):
        return super().told(blocks[::-1])


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", r"tells \[\('Tools-join', 2, \[\]\)\]")
class TellsNoNames(Percented):
    def call(self, places, block):
        told = super().call(places, block)
        return replace(told, positional=told.positional + len(told.named), named=())


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", "column=1.* is said to stand at")
class MisplacesCalls(Percented):
    def call(self, places, block):
        return replace(super().call(places, block), column=1)


@FAULTS.caught_by("a_template_tells_the_calls_that_are_written_in_it", "line=2.* is said to stand at")
class CountsLinesFromNought(Percented):
    def call(self, places, block):
        told = super().call(places, block)
        return replace(told, line=told.line - 1)


@FAULTS.caught_by("a_template_tells_the_variables_that_it_needs", r"needs \['a', 'b'\], and tells \[\]")
class TellsNoVariables(Percented):
    def needed(self, blocks):
        return ()


@FAULTS.caught_by("a_template_tells_the_variables_that_it_needs", r"and tells \['a', 'b', 'more'\]")
class TellsMoreVariables(Percented):
    def needed(self, blocks):
        return (*super().needed(blocks), "more") if blocks else ()


@FAULTS.caught_by("a_template_tells_the_variables_that_it_needs", "Tools-join.* and tells")
class TellsFunctionsForVariables(Percented):
    def names(self, block):
        return [block[1]]


@FAULTS.caught_by("results_are_written_as_values_are", "the result .* was written")
class WritesResultsItsOwnWay(Percented):
    async def result(self, block, called, arguments, call):
        result = await super().result(block, called, arguments, call)
        return result if type(result) is Trusted else repr(result) if isinstance(result, list) else result


@FAULTS.caught_by("an_unknown_function_is_an_error_that_says_where", "no function 'Tools-nope'")
class LetsFunctionNotFoundOut(Percented):
    async def awaited(self, block, call):
        try:
            return await super().awaited(block, call)
        except TemplateError as error:
            if isinstance(error.__cause__, FunctionNotFound):
                raise error.__cause__ from None
            raise


@FAULTS.caught_by("arguments_that_do_not_fit_are_an_error_that_says_where", "do not fit Tools-join")
class LetsArgumentsInvalidOut(Percented):
    async def awaited(self, block, call):
        try:
            return await super().awaited(block, call)
        except TemplateError as error:
            if isinstance(error.__cause__, ArgumentsInvalid):
                raise error.__cause__ from None
            raise


@FAULTS.caught_by("what_a_function_raises_comes_through", "prompt, line 1, column 3")
class WrapsFailures(Percented):
    async def awaited(self, block, call):
        try:
            return await super().awaited(block, call)
        except OSError as error:
            raise self.refuse(str(error), block) from error


@FAULTS.caught_by("a_failure_stops_the_other_calls", "'Tools-first'.* goes on")
class LeavesCallsBehind(Percented):
    async def render(self, arguments, *, call):
        calls = [block for block in self.parts[1::2] if CALL.fullmatch(block[1])]
        if len(calls) < 2:
            return await super().render(arguments, call=call)
        kept = [asyncio.ensure_future(self.filled(block, arguments, call)) for block in calls]
        return "".join(piece.text for piece in await asyncio.gather(*map(asyncio.shield, kept)))


@FAULTS.caught_by("cancelling_a_rendering_stops_its_calls", "a call goes on after the rendering was cancelled")
class Uncancelled(Percented):
    async def awaited(self, block, call):
        return await asyncio.shield(super().awaited(block, call))


@FAULTS.caught_by("a_malformed_template_is_refused_with_its_place", "the error of '%%' has no line")
class CompilesAnything(Percented):
    def refuse(self, message, block):
        return TemplateError(message) if message.startswith("This is") else super().refuse(message, block)


@FAULTS.caught_by("whatever_is_nested_it_is_a_template_or_a_portico_error", "maximum recursion depth exceeded")
class RunsOutOfDepth(Percented):
    def __init__(self, language, source, name):
        super().__init__(language, source, name)
        self.deep(source.count("<message") // 1_000 * sys.getrecursionlimit())

    def deep(self, levels):
        return self.deep(levels - 1) if levels else None


@FAULTS.caught_by("a_template_runs_no_code", "ran a method of a value")
class CallsMethods(Percented):
    def variable(self, arguments, block):
        value = arguments.get(block[1])
        return value.run() if hasattr(value, "run") else value


@FAULTS.caught_by("a_value_is_not_read_as_a_template", "the value '%b%' was read as a template")
class RendersValues(Percented):
    async def filled(self, block, arguments, call):
        piece = await super().filled(block, arguments, call)
        return Piece(BLOCK.sub(lambda found: str(arguments.get(found[1])), piece.text), piece.is_value)


@FAULTS.caught_by("a_value_is_not_read_as_a_template", "ran a method of another value")
class EvaluatesWhatComesOut(Percented):
    """Has a syntax of its own beside the templates', which is looked for where values are already."""

    async def render(self, arguments, *, call):
        prompt = await super().render(arguments, call=call)
        if isinstance(prompt, Prompt):
            return prompt
        return re.sub(r"%\{(.*?)\}", lambda found: str(eval(found[1], {}, dict(arguments))), prompt)


@FAULTS.caught_by("a_template_runs_no_code", "'%b.run\\(\\)%' ran a method of a value")
class EvaluatesExpressions(Percents):
    """Its own syntax reaches further than the kit was told."""

    def compile(self, source, *, name="prompt"):
        expression = re.fullmatch(r"%(.*\W.*)%", source)
        return Evaluated(expression[1]) if expression and not CALL.fullmatch(expression[1]) else super().compile(source)


class Evaluated:
    def __init__(self, expression):
        self.expression = expression

    async def render(self, arguments, *, call):
        return str(eval(self.expression, {}, dict(arguments)))


@FAULTS.caught_by("a_value_never_opens_or_ends_a_message")
class ForgetsWhatIsAValue(Percented):
    def piece(self, value, block):
        piece = super().piece(value, block)
        return piece if CALL.fullmatch(block[1]) or "role=" in self.parts[0][-6:] else Piece(piece.text, False)


@FAULTS.caught_by("a_result_never_opens_or_ends_a_message")
class TrustsResults(Percented):
    async def filled(self, block, arguments, call):
        piece = await super().filled(block, arguments, call)
        return Piece(piece.text, False) if CALL.fullmatch(block[1]) else piece


@FAULTS.caught_by("a_value_never_opens_or_ends_a_message", "&amp;lt;message")
class EncodesValues(Percented):
    def piece(self, value, block):
        piece = super().piece(value, block)
        return Piece(piece.text.replace("&", "&amp;"), True) if "role=" in self.source else piece


@FAULTS.caught_by("a_value_in_an_attribute_is_the_whole_of_it", "DID NOT RAISE")
class RolesAreMarkup(Percented):
    def piece(self, value, block):
        piece = super().piece(value, block)
        return Piece(piece.text, False) if self.parts[0].endswith('role="') else piece


@FAULTS.caught_by("what_is_trusted_is_the_template_s_own")
class TrustsNothing(Percented):
    def piece(self, value, block):
        return super().piece(str(value) if type(value) is Trusted else value, block)


@FAULTS.caught_by("a_prompt_as_a_value_is_a_value", "cannot stand inside another one")
class TrustsPrompts(Percented):
    def piece(self, value, block):
        return Piece(str(value), False) if type(value) is Prompt else super().piece(value, block)


@FAULTS.caught_by("a_rendering_leaves_the_event_loop_free", "waits by time.sleep in render")
class BlocksTheLoop(Percented):
    async def render(self, arguments, *, call):
        time.sleep(0.001)
        return await super().render(arguments, call=call)


# A rendering that is broken may leave calls behind that nobody awaits.
@pytest.mark.filterwarnings("ignore")
class TestTheTemplateLanguageKit(KitOfAKit):
    faults = FAULTS
    correct = (Percented,)


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


async def test_a_language_may_tell_no_calls_and_no_variables() -> None:
    made = Percents()
    made.compile = lambda source, name="prompt": object()
    with pytest.raises(pytest.skip.Exception, match="do not tell their calls"):
        await TestPercents().test_a_template_tells_the_calls_that_are_written_in_it(made)
    with pytest.raises(pytest.skip.Exception, match="do not tell their variables"):
        TestPercents().test_a_template_tells_the_variables_that_it_needs(made)


async def test_the_kit_wants_to_be_told_what_reaches_out_in_the_syntax_of_the_language() -> None:
    class Kit(TestPercents):
        reaching = ("{{a.run}}", "${a.run}")

    with pytest.raises(AssertionError, match="all of `reaching` is plain text in this language: write there"):
        await Kit().test_a_template_runs_no_code(Percents())
