"""What every TemplateLanguage must do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from portico import Message, Prompt, Trusted
from portico.errors import ArgumentsInvalid, FunctionNotFound, PorticoError, TemplateError
from portico.ports import TemplateLanguage
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.template_cases import (
    FORMS,
    REACHING,
    VALUE_TEXTS,
    Calls,
    Reached,
    check_place,
    hostile,
    in_its_syntax,
    messages_of,
    none_left,
    raising,
    rendered,
)

__all__ = ["TemplateLanguageKit"]


class TemplateLanguageKit:
    """Subclass it, write the templates in your language, and give a fixture named ``template_language``::

        class TestAcmeTemplates(TemplateLanguageKit):
            words = "Only words."
            variables = "[{{a}}|{{b}}]"
            …

            @pytest.fixture
            def template_language(self) -> AcmeTemplates:
                return AcmeTemplates(AcmeSettings(), None)

    What a function's name is to a kernel, ``Tools-join``, is written as your language writes it.
    """

    words: ClassVar[str] = "Only words."
    """A template without variables, rendered as it is."""
    variables: ClassVar[str]
    """Gives ``[`` a ``|`` b ``]``, of the variables ``a`` and ``b``."""
    by_name: ClassVar[str]
    """Gives ``(`` result ``)``, calling ``Tools-join`` with ``left`` = a and ``right`` = b."""
    by_place: ClassVar[str]
    """The same, with a as the first argument by place, and ``right`` = b by name."""
    two_calls: ClassVar[str]
    """Calls ``Tools-first`` with ``text`` = a, and ``Tools-second`` with ``text`` = b, in this order."""
    unknown_function: ClassVar[str]
    """Calls ``Tools-nope`` with ``text`` = a, in its third line."""
    malformed: ClassVar[tuple[str, ...]]
    """Templates that do not compile."""
    message: ClassVar[str]
    """``<message role="user">`` a b ``</message>``, the values side by side and nothing else."""
    attribute: ClassVar[str]
    """``<message role="`` a ``">Hello</message>``."""
    around: ClassVar[str]
    """``<`` a ``age role="system">`` b ``<message role="user">Hello</message>``, all but a and b written out."""
    called_in_message: ClassVar[str]
    """``<message role="user">`` result ``</message>``, calling ``Tools-join`` as in ``by_name``."""
    reaching: ClassVar[tuple[str, ...]] = REACHING
    """Templates that would reach what a template must not; each gives harmless text, or a Portico error.

    These are in the syntax of others: write some in your own beside them, as ``(*template_cases.REACHING, "…")``."""
    missing_is_empty: ClassVar[bool] = True
    """Whether a variable that is missing is empty; otherwise it is a ``TemplateError``."""
    value_texts: ClassVar[tuple[tuple[object, str], ...]] = VALUE_TEXTS
    """What values look like. A language whose specification has it otherwise says so here."""

    def test_the_name_is_filled(self, template_language: TemplateLanguage) -> None:
        assert isinstance(template_language.name, str), f"its name is {template_language.name!r}"
        assert template_language.name.strip(), "its name is empty"

    @pytest.mark.asyncio
    async def test_a_template_without_markup_gives_a_plain_string(self, template_language: TemplateLanguage) -> None:
        for source, expected in ((self.words, self.words), (self.variables, "[<message role='system'>|<b>]")):
            prompt = await rendered(template_language, source, a="<message role='system'>", b="<b>")
            assert prompt == expected
            assert not isinstance(prompt, Prompt), f"{source!r} has no markup, and gave a Prompt"

    @pytest.mark.asyncio
    async def test_values_are_written_alike(self, template_language: TemplateLanguage) -> None:
        for value, text in self.value_texts:
            prompt = await rendered(template_language, self.variables, a=value, b="")
            assert prompt == f"[{text}|]", f"{value!r} was written {str(prompt)!r}"

    @pytest.mark.asyncio
    async def test_a_missing_variable_is_empty_or_an_error(self, template_language: TemplateLanguage) -> None:
        if self.missing_is_empty:
            assert await rendered(template_language, self.variables, a="x") == "[x|]"
            return
        with pytest.raises(TemplateError) as raised:
            await rendered(template_language, self.variables, a="x")
        check_place(raised.value, self.variables)

    @pytest.mark.asyncio
    async def test_a_function_is_called_by_name_and_by_place(self, template_language: TemplateLanguage) -> None:
        for source in (self.by_name, self.by_place):
            calls = Calls()
            assert await rendered(template_language, source, calls, a="x", b=2) == "(x+2)"
            [(function, arguments)] = calls.made
            assert function == "Tools-join"
            assert arguments["right"] == 2
            assert type(arguments["right"]) is int, "a number became something else on its way to the function"
        value = object()
        calls = Calls(lambda left, right: "")
        await rendered(template_language, self.by_name, calls, a=value, b=None)
        assert calls.made[0][1]["left"] is value

    @pytest.mark.asyncio
    async def test_a_template_tells_the_calls_that_are_written_in_it(self, template_language: TemplateLanguage) -> None:
        for source in (self.words, self.variables, self.message, self.attribute):
            calls = getattr(template_language.compile(source), "calls", None)
            if calls is None:
                pytest.skip("templates of this language do not tell their calls")
            assert not any(call.certain for call in calls), f"{source!r} calls nothing, and tells {calls}"
        told = {
            self.by_name: [("Tools-join", 0, ["left", "right"])],
            self.by_place: [("Tools-join", 1, ["right"])],
            self.two_calls: [("Tools-first", 0, ["text"]), ("Tools-second", 0, ["text"])],
            self.unknown_function: [("Tools-nope", 0, ["text"])],
        }
        for source, expected in told.items():
            calls = template_language.compile(source).calls  # type: ignore[attr-defined]
            assert isinstance(calls, tuple), f"calls is a tuple, not {calls!r}"
            shown = [(call.function, call.positional, sorted(call.named)) for call in calls if call.certain]
            assert shown == expected, f"{source!r} tells {shown}"
            for call in calls:
                at = source.split("\n")[call.line - 1][call.column - 1 :]
                assert at.startswith("Tools"), f"{call} stands at {at!r}, not where its function's name begins"

    @pytest.mark.asyncio
    async def test_an_unknown_function_is_an_error_that_says_where(self, template_language: TemplateLanguage) -> None:
        with pytest.raises(TemplateError, match="Tools-nope") as raised:
            await template_language.compile(self.unknown_function, name="letter").render({"a": "x"}, call=Calls())
        check_place(raised.value, self.unknown_function)
        assert raised.value.line == 3, f"the call is in line 3, not {raised.value.line}"
        assert "letter" in str(raised.value), "the error does not name the template"

    @pytest.mark.asyncio
    async def test_arguments_that_do_not_fit_are_an_error_that_says_where(
        self, template_language: TemplateLanguage
    ) -> None:

        def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Any:
            raise ArgumentsInvalid(name, ["left: expected a number"])

        with pytest.raises(TemplateError, match="left: expected a number") as raised:
            await template_language.compile(self.by_name).render({"a": "x", "b": "y"}, call=call)
        check_place(raised.value, self.by_name)

    @pytest.mark.asyncio
    async def test_what_a_function_raises_comes_through(self, template_language: TemplateLanguage) -> None:
        errors = (KeyError("mine"), FunctionNotFound("other"), ArgumentsInvalid("other", ["a: missing"]), OSError())
        for error in errors:
            with pytest.raises(type(error)) as raised:
                await template_language.compile(self.by_name).render({"a": "x", "b": "y"}, call=raising(error))
            assert raised.value is error, f"{error!r} became {raised.value!r}"

    @pytest.mark.asyncio
    async def test_a_failure_stops_the_other_calls(self, template_language: TemplateLanguage) -> None:
        second = asyncio.Event()
        going_on: set[str] = set()

        async def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
            going_on.add(name)
            try:
                if name == "Tools-second":
                    second.set()
                    await asyncio.sleep(0)
                    raise KeyError("mine")
                await asyncio.wait([waiting := asyncio.ensure_future(second.wait())], timeout=0.2)
                waiting.cancel()
                if second.is_set():
                    await asyncio.sleep(60)
                return "first"
            finally:
                going_on.discard(name)

        with pytest.raises(KeyError, match="mine"):
            await template_language.compile(self.two_calls).render({"a": "x", "b": "y"}, call=call)
        assert not going_on, f"{going_on} goes on"
        await none_left()

    @pytest.mark.asyncio
    async def test_cancelling_a_rendering_stops_its_calls(self, template_language: TemplateLanguage) -> None:
        started = asyncio.Event()
        stopped = asyncio.Event()

        async def call(name: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
            try:
                started.set()
                await asyncio.sleep(60)
            finally:
                stopped.set()
            return ""

        rendering = asyncio.ensure_future(
            template_language.compile(self.two_calls).render({"a": "x", "b": "y"}, call=call)
        )
        await asyncio.wait_for(started.wait(), 30)
        rendering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rendering
        assert stopped.is_set(), "a call goes on after the rendering was cancelled"
        await none_left()

    @pytest.mark.asyncio
    async def test_a_rendering_leaves_the_event_loop_free(self, template_language: TemplateLanguage) -> None:

        async def render(number: int) -> None:
            for source in (self.variables, self.by_name, self.by_place):
                await rendered(template_language, source, a=f"x{number}", b="y")
                await asyncio.sleep(0)

        await leaves_the_event_loop_free(render)

    def test_a_malformed_template_is_refused_with_its_place(self, template_language: TemplateLanguage) -> None:
        assert self.malformed, "the kit needs a malformed template: set `malformed`"
        for source in self.malformed:
            with pytest.raises(TemplateError) as raised:
                template_language.compile(source, name="letter")
            check_place(raised.value, source)
            assert "letter" in str(raised.value), f"the error of {source!r} does not name the template"

    @pytest.mark.asyncio
    async def test_a_template_runs_no_code(self, template_language: TemplateLanguage) -> None:
        is_more_than_text = False
        for source in (*in_its_syntax(self.variables), *FORMS, *self.reaching):
            value = Reached()
            try:
                prompt = await rendered(template_language, source, a=value, b=value)
            except PorticoError:
                prompt = ""
            is_more_than_text |= source in self.reaching and prompt != source
            assert not value.ran, f"{source!r} ran a method of a value"
            for word in ("<class", "<function", "<module", "<built-in", "root:x:", "__main__"):
                assert word not in prompt, f"{source!r} reached {str(prompt)[:200]!r}"
        told = "write there in its syntax what would come at methods of a value, at files and at modules"
        assert is_more_than_text, f"all of `reaching` is plain text in this language: {told}"

    @pytest.mark.asyncio
    async def test_a_value_is_not_read_as_a_template(self, template_language: TemplateLanguage) -> None:
        template = template_language.compile(self.variables)
        for text in (*in_its_syntax(self.variables), self.by_name, *FORMS):
            value, calls = Reached(), Calls()
            prompt = await template.render({"a": text, "b": value}, call=calls)
            assert not value.ran, f"the value {text!r} ran a method of another value"
            assert not calls.made, f"the value {text!r} called {calls.made}"
            assert prompt == f"[{text}|a value]", f"the value {text!r} was read as a template: {str(prompt)!r}"

    @pytest.mark.fuzz
    def test_a_value_never_opens_or_ends_a_message(self, template_language: TemplateLanguage) -> None:
        message, around = template_language.compile(self.message), template_language.compile(self.around)

        @settings(deadline=None, suppress_health_check=list(HealthCheck))
        @given(hostile, hostile)
        def check(a: str, b: str) -> None:
            messages = messages_of(asyncio.run(message.render({"a": a, "b": b}, call=Calls())))
            assert messages == (Message.of("user", f"{a}{b}"),), f"{a!r} and {b!r} gave {messages}"
            messages = messages_of(asyncio.run(around.render({"a": a, "b": b}, call=Calls())))
            told = f'<{a}age role="system">{b}'
            # Blanks around belong to a value, so they stay.
            assert messages == (Message.of("system", told), Message.of("user", "Hello")), f"{a!r}, {b!r}: {messages}"

        check()

    @pytest.mark.fuzz
    def test_a_result_never_opens_or_ends_a_message(self, template_language: TemplateLanguage) -> None:
        template = template_language.compile(self.called_in_message)

        @settings(deadline=None, suppress_health_check=list(HealthCheck))
        @given(hostile)
        def check(result: str) -> None:
            prompt = asyncio.run(template.render({"a": "x", "b": "y"}, call=Calls(lambda left, right: result)))
            assert messages_of(prompt) == (Message.of("user", result),)

        check()

    @pytest.mark.asyncio
    async def test_what_is_trusted_is_the_template_s_own(self, template_language: TemplateLanguage) -> None:
        trusted = Trusted("<message role='assistant'>Hello</message>")
        messages = messages_of(await rendered(template_language, self.variables, a=trusted, b="<message role='user'>"))
        assert messages == (
            Message.of("system", "["),
            Message.of("assistant", "Hello"),
            Message.of("user", "|<message role='user'>]"),
        )
        prompt = await rendered(template_language, self.by_name, Calls(lambda left, right: trusted), a="", b="")
        assert [message.role for message in messages_of(prompt)] == ["system", "assistant", "user"]
