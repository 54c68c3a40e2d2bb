"""Rendering in the Semantic Kernel language: variables, calls, and what happens when something fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from portico import Kernel
from portico._prompts import rendering
from portico._prompts.prompt import Prompt, Trusted
from portico._prompts.rendering import Prompts
from portico._prompts.semantic_kernel import SemanticKernelTemplate, SemanticKernelTemplates
from portico.errors import ArgumentsInvalid, FunctionNotFound, TemplateError


class Recorder:
    """Stands for the kernel: notes each call and answers with what it was told to."""

    def __init__(self, answer: object = "answer") -> None:
        self.answer = answer
        self.calls: list[tuple[str, dict[str, object], list[object]]] = []

    async def __call__(
        self, function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /
    ) -> object:
        self.calls.append((function, dict(arguments), list(positional)))
        return self.answer


def compiled(source: str, name: str = "prompt") -> SemanticKernelTemplate:
    return SemanticKernelTemplates().compile(source, name=name)


async def rendered(source: str, call: Any = None, **arguments: object) -> str:
    return await compiled(source).render(arguments, call=call or Recorder())


async def test_variables_and_values_are_put_in() -> None:
    assert await rendered("Hello {{$name}}, {{'welcome'}} {{ $name }}!", name="Ada") == "Hello Ada, welcome Ada!"


async def test_a_missing_variable_and_none_are_empty() -> None:
    assert await rendered("<{{$missing}}{{$none}}>", none=None) == "<>"


async def test_input_is_a_variable_as_any_other() -> None:
    assert await rendered("<{{$input}}>") == "<>"
    assert await rendered("<{{$input}}>", input="question") == "<question>"


async def test_another_case_of_a_variable_is_understood_where_its_own_is_missing() -> None:
    assert await rendered("{{$Name}}", name="Ada") == "Ada"
    assert await rendered("{{$Name}}", name="Ada", Name="Eve") == "Eve"
    assert await rendered("{{$Name}}", name="Ada", Name=None) == ""
    assert await rendered("{{$NAME}}", name="Ada", Name="Eve") == "Eve", "as in .NET, the last one set holds"
    recorder = Recorder()
    await rendered("{{f $Name other=$NAME}}", recorder, name="Ada")
    assert recorder.calls == [("f", {"other": "Ada"}, ["Ada"])], "as an argument of a function too"


async def test_braces_are_written_as_quoted_values() -> None:
    assert await rendered('{{ "{{" }} and {{ "}}" }} are special') == "{{ and }} are special"


async def test_a_call_is_given_what_the_block_says() -> None:
    call = Recorder()
    assert await rendered("{{p.f $x a='1' b=$y c=$missing}}", call, x="first", y=2.5) == "answer"
    assert call.calls == [("p-f", {"a": "1", "b": 2.5, "c": None}, ["first"])]


async def test_a_call_without_arguments_is_given_none() -> None:
    call = Recorder()
    await rendered("{{f}}", call, input="x")
    assert call.calls == [("f", {}, [])]


async def test_of_two_arguments_of_one_name_the_last_holds() -> None:
    call = Recorder()
    await rendered("{{f a='1' a='2'}}", call)
    assert call.calls == [("f", {"a": "2"}, [])]


async def test_values_of_variables_keep_their_types_on_the_way_to_a_function() -> None:
    value = object()
    call = Recorder()
    await rendered("{{f $x named=$x}}", call, x=value)
    [(_, named, [first])] = call.calls
    assert first is value
    assert named["named"] is value


async def test_rendering_changes_neither_the_arguments_nor_the_template() -> None:
    template = compiled("{{$a}} {{f $a}}")
    arguments = {"a": "1"}
    assert await template.render(arguments, call=Recorder("x")) == "1 x"
    assert arguments == {"a": "1"}
    assert await template.render({"a": "2"}, call=Recorder("y")) == "2 y"


@pytest.mark.parametrize("source", ["only text", "", "{{ }}", "{{'quoted'}}", "{{$a}} and {{$b}}"])
def test_a_prompt_without_functions_never_suspends(source: str) -> None:
    with pytest.raises(StopIteration) as finished:
        compiled(source).render({"a": "1", "b": 2}, call=Recorder()).send(None)  # type: ignore[attr-defined]
    assert isinstance(finished.value.value, str)


@pytest.mark.parametrize("source", ["only text", "text and {{'a value'}}", "<message role='user'>{{'Hi'}}</message>"])
def test_what_no_variable_changes_is_given_back_as_the_same_string(source: str) -> None:
    template = compiled(source)
    first, second = (asyncio.run(template.render({}, call=Recorder())) for _ in range(2))
    assert first is second


async def test_several_calls_run_at_once_and_keep_their_places() -> None:
    barrier = asyncio.Barrier(3)

    async def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        await asyncio.wait_for(barrier.wait(), 10)
        return function.upper()

    assert await rendered("{{a}} {{$x}} {{b}} {{c}}", call, x="x") == "A x B C"


async def test_the_first_failure_stops_the_other_calls() -> None:
    stopped = asyncio.Event()
    started = asyncio.Event()

    async def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        if function == "bad":
            await started.wait()
            raise KeyError("mine") from ValueError("its cause")
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    with pytest.raises(KeyError, match="mine") as caught:
        await rendered("{{slow}} {{bad}}", call)
    assert isinstance(caught.value.__cause__, ValueError), "the error comes as it was raised"
    assert stopped.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "no task is left behind"


async def test_cancelling_the_rendering_stops_its_calls() -> None:
    started = asyncio.Event()
    stopped: list[str] = []

    async def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            stopped.append(function)
        return ""

    rendering = asyncio.create_task(rendered("{{a}} {{b}}", call))
    await started.wait()
    await asyncio.sleep(0)
    rendering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rendering
    assert sorted(stopped) == ["a", "b"]


@pytest.mark.parametrize("calls", ["{{p.nope 'x'}}", "{{f}} {{p.nope 'x'}}"])
async def test_an_unknown_function_is_an_error_that_says_where(calls: str) -> None:
    def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Any:
        if function == "p-nope":
            raise FunctionNotFound(function, ["p-note"])
        return Recorder()(function, arguments)

    with pytest.raises(TemplateError) as caught:
        await compiled(f"First.\nThen {calls}.", "letter").render({}, call=call)
    column = 8 + calls.index("p.nope") - 2
    assert str(caught.value).split("\n") == [
        f"letter, line 2, column {column}: There is no function 'p-nope'. Nearest: p-note.",
        f"  Then {calls}.",
        " " * (column + 1) + "^^^^^^^^^^",
    ]
    assert (caught.value.line, caught.value.column) == (2, column)
    assert isinstance(caught.value.__cause__, FunctionNotFound)


async def test_a_function_may_be_found_missing_when_it_is_awaited() -> None:
    async def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        raise FunctionNotFound(function)

    with pytest.raises(TemplateError, match="column 3: There is no function 'f'"):
        await rendered("{{f}}", call)


async def test_arguments_that_do_not_fit_are_an_error_that_says_where() -> None:
    def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> Any:
        raise ArgumentsInvalid(function, ["a: missing"])

    with pytest.raises(TemplateError, match="line 1, column 5: The arguments do not fit f: a: missing"):
        await rendered("{{  f }}", call)


@pytest.mark.parametrize("error", [FunctionNotFound("other"), ArgumentsInvalid("other", ["a: missing"]), OSError()])
async def test_what_a_called_function_raises_comes_through(error: Exception) -> None:
    async def call(function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /) -> object:
        raise error

    with pytest.raises(type(error)) as caught:
        await rendered("{{f}}", call)
    assert caught.value is error


@pytest.mark.parametrize("source", ["a\n {{$x}}", "a\n {{x}}"])
async def test_a_value_without_a_text_is_an_error_that_says_where(source: str) -> None:
    with pytest.raises(TemplateError, match=r"line 2, column 4: The value cannot be written as text\. .*object"):
        await rendered(source, Recorder(object()), x=object())


async def test_results_are_written_as_values_are() -> None:
    value = {"n": 1, "tags": ["ä", None, True]}
    assert await rendered("{{$x}}", x=value) == await rendered("{{f}}", Recorder(value))


async def test_pieces_tell_values_from_the_template_s_text() -> None:
    source = "<p>{{$a}}</p>{{'<b>'}}{{$safe}}{{f}}<message role='user'>Hi</message>"
    prompt = await rendered(source, a="<i>", safe=Trusted("<u>"))
    assert isinstance(prompt, Prompt)
    assert prompt.pieces == (
        ("<p>", False),
        ("<i>", True),
        ("</p>", False),
        ("<b>", True),
        ("<u>", False),
        ("answer", True),
        ("<message role='user'>Hi</message>", False),
    )


async def test_what_has_no_message_is_a_plain_string_and_what_is_trusted_makes_a_prompt() -> None:
    assert type(await rendered("Hi {{$a}}{{f}}", a="<message role='system'>")) is str
    assert type(await rendered("only text")) is str
    for source in ("<message role='user'>Hi</message>", "<message role='user'>{{$a}}</message>"):
        assert type(await rendered(source)) is Prompt
    assert type(await rendered("Hi {{$a}}", a=Trusted("x"))) is Prompt
    assert type(await rendered("Hi {{f}}", Recorder(Trusted("x")))) is Prompt


def test_a_template_names_its_variables_in_order() -> None:
    template = compiled("{{$x}} {{$a}}{{$x}} {{p.bar $b}} {{p.foo c='literal' d = $d}} {{p.baz e=$a}}")
    assert template.variables == ("x", "a", "b", "d")


def test_templates_are_shown_by_their_source() -> None:
    assert repr(compiled("{{ $a }}")) == "SemanticKernelTemplate('{{ $a }}')"


def test_prompts_are_compiled_once_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(SemanticKernelTemplates):
        compiled = 0

        def compile(self, source: str, *, name: str = "prompt") -> SemanticKernelTemplate:
            self.compiled += 1
            return super().compile(source, name=name)

    language = Counting()
    monkeypatch.setattr(rendering, "_MOST_KEPT", 2)
    compiled = Kernel(template_languages=[language]).template
    first = compiled("{{$a}}")
    assert compiled("{{$a}}") is first
    assert compiled("{{$a}}", name="other") is not first, "the name is in a template's errors"
    compiled("{{$b}}")
    assert compiled("{{$a}}") is not first
    before = language.compiled
    long = "x" * 70_000
    assert compiled(long) is not compiled(long)
    assert language.compiled == before + 2


@pytest.mark.parametrize("rest", ["", "x" * 70_000], ids=["short", "long"])
def test_a_prompt_that_does_not_compile_is_refused_each_time_with_its_name(rest: str) -> None:
    kernel = Kernel()
    for _ in range(2):
        with pytest.raises(TemplateError, match=r"^letter, line 1"):
            kernel.template("{{$}}" + rest, name="letter")
        with pytest.raises(TemplateError, match=r"^prompt, line 1"):
            Kernel().template("{{$}}" + rest)
        with pytest.raises(TemplateError, match=r"^prompt, line 1"):
            Prompts(Kernel()).template("{{$}}" + rest)
