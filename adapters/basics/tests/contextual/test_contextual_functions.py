"""A context provider offers, of its functions, those that the conversation is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from portico import (
    AgentTurn,
    ChatAgent,
    ChatCapabilities,
    Context,
    Function,
    FunctionPlugin,
    FunctionSpec,
    Kernel,
    Message,
    Thread,
    ToolCall,
    ToolChoice,
    ToolResult,
    function,
)
from portico.errors import FunctionNotFound
from portico_basics.contextual.provider import ContextualFunctionOptions, ContextualFunctionProvider
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.vector_store import DictVectorStore


def forecast(city: str) -> str:
    """Tell the weather of a city."""
    return "Sun"


def send_mail(letter: str) -> str:
    """Send a letter by mail."""
    return "Sent"


def play(singer: str) -> str:
    """Play songs of a singer."""
    return "La"


FUNCTIONS = (forecast, send_mail, play)


def said(*words: str) -> tuple[Message, ...]:
    return tuple(Message.of("assistant" if place % 2 else "user", each) for place, each in enumerate(words))


def provider(functions: Any = FUNCTIONS, *, max_functions: int = 1, **options: Any) -> ContextualFunctionProvider:
    return ContextualFunctionProvider(
        functions,
        DictVectorStore(),
        HashingEmbeddings(),
        max_functions=max_functions,
        options=ContextualFunctionOptions(**options),
    )


async def asked(given: ContextualFunctionProvider, *new: str | Message, earlier: Sequence[Message] = ()) -> Context:
    messages = tuple(Message.of("user", each) if isinstance(each, str) else each for each in new)
    return await given.before(AgentTurn("guide", Thread(), tuple(earlier), messages))


def names(context: Context) -> list[str]:
    return [each.full_name for each in context.functions]


async def seen(given_options: dict[str, Any], earlier: Sequence[Message], *new: str | Message) -> list[str]:
    texts: list[str] = []

    def text(messages: Sequence[Message]) -> str:
        texts.extend(message.text for message in messages)
        return "rain"

    await asked(provider(context_text=text, **given_options), *new, earlier=earlier)
    return texts


async def test_the_functions_that_the_turn_is_about_are_offered() -> None:
    context = await asked(provider(), "Send the letter by mail")
    assert names(context) == ["send_mail"]
    assert context.selection is not None
    assert context.selection.considered == 3
    assert context.selection.embedded == 3


async def test_two_messages_of_earlier_turns_come_before_all_new_ones() -> None:
    earlier = said("one", "two", "three", "four")
    assert await seen({}, earlier, "five", "six", "seven") == ["three", "four", "five", "six", "seven"]
    assert await seen({"recent_messages": 0}, earlier, "five") == ["five"]
    assert await seen({"recent_messages": 9}, earlier, "five") == ["one", "two", "three", "four", "five"]


async def test_messages_without_words_and_results_of_calls_do_not_count() -> None:
    result = Message("tool", (ToolResult("1", "forecast", "rain"),))
    talkative = Message.of("tool", "rain in words")
    earlier = (*said("one", "two"), result, talkative, Message.of("assistant", "  "), Message.of("system", "Be brief."))
    assert await seen({}, earlier, "", "three", result) == ["one", "two", "three"]


async def test_what_was_said_before_decides_where_the_new_message_says_little() -> None:
    earlier = said("Can you play songs of a singer?", "Yes: which singer?")
    assert names(await asked(provider(), "Ada, please", earlier=earlier)) == ["play"]


async def test_the_text_of_the_context_may_be_made_asynchronously_and_must_be_text() -> None:
    async def text(messages: Sequence[Message]) -> str:
        return "songs of a singer"

    assert names(await asked(provider(context_text=text), "Send the letter")) == ["play"]
    with pytest.raises(TypeError, match="context_text returned int"):
        await asked(provider(context_text=lambda messages: 3), "Send the letter")


async def test_recent_and_new_messages_come_apart_and_with_results_of_calls() -> None:
    seen: list[list[str]] = []

    async def users(recent: Sequence[Message], new: Sequence[Message]) -> str:
        seen[:] = [[message.role for message in some] for some in (recent, new)]
        return "\n".join(message.text for message in (*recent, *new) if message.role == "user")

    result = Message("tool", (ToolResult("1", "forecast", "songs"),))
    earlier = (*said("one", "two"), Message.of("user", "Send the letter"), result, Message.of("assistant", "Songs?"))
    given = provider(context_text=users)
    assert names(await asked(given, "by mail", result, earlier=earlier)) == ["send_mail"]
    assert seen == [["user", "tool", "assistant"], ["user", "tool"]]
    await asked(provider(context_text=users, recent_messages=0), "by mail", earlier=earlier)
    assert seen == [[], ["user"]]


async def test_the_text_of_a_function_may_be_the_caller_s() -> None:
    texts = {"forecast": "penguins", "send_mail": "lions", "play": "bears"}
    given = provider(function_text=lambda spec: texts[spec.name])
    assert names(await asked(given, "Are there lions?")) == ["send_mail"]


async def test_the_text_of_a_function_may_be_made_asynchronously_and_is_made_once() -> None:
    made: list[str] = []

    async def text(spec: FunctionSpec) -> str:
        made.append(spec.name)
        await asyncio.sleep(0)
        return {"forecast": "penguins", "send_mail": "lions", "play": "bears"}[spec.name]

    given = provider(list(FUNCTIONS[:2]), function_text=text)
    assert names(await asked(given, "Are there lions?")) == ["send_mail"]
    given.functions.append(play)  # type: ignore[union-attr]
    assert names(await asked(given, "Are there bears?")) == ["play"]
    assert made == ["forecast", "send_mail", "play"]


async def test_what_was_chosen_and_why_is_logged_without_the_whole_question(caplog: pytest.LogCaptureFixture) -> None:
    question = "Send the letter by mail" + " please" * 50 + " secret"
    await asked(provider(), question)
    with caplog.at_level("DEBUG", "portico_basics.contextual"):
        await asked(provider(), question)
    (record,) = caplog.records
    said = (
        "name='send_mail', reason='chosen', score=0.",
        "name='forecast', reason='beyond the limit'",
        "Send the letter",
    )
    assert all(words in record.getMessage() for words in said)
    assert "secret" not in record.getMessage()


async def test_the_name_of_a_plugin_means_all_of_its_functions() -> None:
    plugin = FunctionPlugin("Desk", tuple(Function.of(each, plugin="Desk") for each in (forecast, play)))
    given = provider([plugin, send_mail], always=("Desk",))
    assert names(await asked(given, "Send the letter by mail")) == ["Desk-forecast", "Desk-play", "send_mail"]
    assert (await offered(given, ToolChoice(exclude=("Desk",))))[0] == ["send_mail"]
    assert (await offered(given, ToolChoice(include=("Desk",))))[0] == ["Desk-forecast", "Desk-play"]


async def test_functions_come_go_and_change_while_the_provider_lives() -> None:
    given = provider(list(FUNCTIONS))
    assert names(await asked(given, "play songs")) == ["play"]
    assert isinstance(given.functions, list)
    given.functions.remove(play)
    assert "play" not in names(await asked(given, "play songs"))

    @function(name="play")
    def other(game: str) -> str:
        """Play chess, a game of kings."""
        return "Mate"

    given.functions.append(other)
    context = await asked(given, "a game of chess")
    assert names(context) == ["play"]
    assert context.selection is not None
    assert context.selection.embedded == 1
    given.functions = [forecast]
    assert names(await asked(given, "play songs")) == ["forecast"]


async def test_functions_may_be_asked_for_at_every_turn() -> None:
    present = [forecast, send_mail]

    async def later() -> Sequence[Any]:
        return present

    for source in (lambda: present, later):
        given = provider(source)
        assert names(await asked(given, "Send the letter by mail")) == ["send_mail"]
    present.append(play)
    assert names(await asked(given, "play songs")) == ["play"]


async def test_plugins_and_functions_are_taken_together() -> None:
    plugin = FunctionPlugin("Post", (Function.of(send_mail, plugin="Post"),))
    given = provider([plugin, Function.of(play), forecast])
    assert names(await asked(given, "Send the letter by mail")) == ["Post-send_mail"]
    assert names(await asked(provider(plugin), "anything")) == ["Post-send_mail"]
    with pytest.raises(TypeError, match="neither a function nor a plugin"):
        await asked(provider([3]), "anything")
    with pytest.raises(ValueError, match="two functions called 'play'"):
        await asked(provider([play, Function.of(play)]), "anything")


@dataclass
class Scale:
    """Multiply a number."""

    factor: float
    __name__ = "scale"

    def __call__(self, number: float) -> float:
        return self.factor * number


async def test_a_callable_is_made_a_function_once_without_a_hash_and_not_for_one_that_equals_it() -> None:
    one, equal = Scale(1), Scale(1.0)
    given = provider([one], always=["scale"])
    (first,) = (await asked(given, "What is new?")).functions
    (again,) = (await asked(given, "What is new?")).functions
    given.functions = [equal]
    (second,) = (await asked(given, "What is new?")).functions
    assert first is again
    assert isinstance(second, Function)
    assert second.callable is equal


async def test_those_that_are_always_offered_come_first_and_do_not_count() -> None:
    context = await asked(provider(always=("forecast",)), "Send the letter by mail")
    assert names(context) == ["forecast", "send_mail"]
    with pytest.raises(FunctionNotFound, match="Nearest: forecast"):
        await asked(provider(always=("forecst",)), "Send the letter by mail")


async def test_without_words_only_those_are_offered_that_always_are() -> None:
    assert names(await asked(provider(), "", " ")) == []
    assert names(await asked(provider(always=("play",)), "")) == ["play"]


async def test_a_negative_number_of_messages_is_refused() -> None:
    with pytest.raises(ValueError, match="recent_messages"):
        ContextualFunctionOptions(recent_messages=-1)


async def offered(given: ContextualFunctionProvider, choice: ToolChoice, **options: Any) -> tuple[list[str], list[str]]:
    """Return the functions that a turn about mail offers, and those of its selection."""
    script = (ToolCall("c1", "any"), "Done.") if choice.mode == "required" else ("Done.",)
    chat = ScriptedChat(*script, capabilities=ChatCapabilities(tools=True))
    agent = ChatAgent("guide", kernel=Kernel(), context_providers=[given], chat=chat, **options)
    reply = await agent.invoke("Send the letter by mail", tool_choice=choice)
    (selection,) = reply.selections
    return [tool.name for tool in chat.requests[0].offered], list(selection.names)


@pytest.mark.parametrize("mode", ["auto", "required"])
async def test_a_choice_may_name_every_function_that_the_provider_has(mode: Any) -> None:
    for name in ("forecast", "send_mail", "play"):
        only = ToolChoice(mode, include=(name,))
        assert await offered(provider(), only) == ([name], [name])
        # What is excluded gives its place to the next best.
        names, selected = await offered(provider(max_functions=2), ToolChoice(mode, exclude=(name,)))
        assert set(names) == set(selected)
        assert name not in names
    assert (await offered(provider(minimum_score=9.0), ToolChoice(mode, include=("play",))))[0] == ["play"]
    assert (await offered(provider(always=("play",)), ToolChoice(mode, exclude=("play",))))[0] == ["send_mail"]
    assert (await offered(provider(), ToolChoice(mode, ("play", "forecast"), ("play",))))[0] == ["forecast"]


async def test_a_choice_may_name_functions_of_the_provider_and_of_the_agent_together() -> None:
    @function
    def clock() -> str:
        """Tell the time."""
        return "Noon"

    only = ToolChoice(include=("play", "clock"))
    assert await offered(provider(), only, functions=[Function.of(clock)]) == (["play", "clock"], ["play"])
    without = ToolChoice(exclude=("clock", "forecast"))
    assert await offered(provider(), without, functions=[Function.of(clock)]) == (["send_mail"], ["send_mail"])


async def test_a_name_that_neither_provider_nor_agent_has_is_an_error() -> None:
    for choice in (ToolChoice(include=("plai",)), ToolChoice(exclude=("plai",))):
        with pytest.raises(FunctionNotFound, match="play"):
            await offered(provider(), choice)


async def test_after_a_result_other_functions_fit_and_those_called_stay() -> None:
    def order(number: int) -> str:
        """Look an order up by its number."""
        return "The customer waits for a letter by mail."

    able = ChatCapabilities(tools=True)
    for each_round, expected in ((True, [["order"], ["order", "send_mail"]] * 2), (False, [["order"]] * 4)):
        given = provider([*FUNCTIONS, order], each_round=each_round)
        call = ToolCall("1", "order", '{"number": 7}')
        chat = ScriptedChat(call, "Done.", call, "Done.", capabilities=able)
        thread = Thread(context_providers=[given])
        agent = ChatAgent("guide", kernel=Kernel(), chat=chat)
        replies = [await agent.invoke("Look up order number 7", thread, tool_choice="required") for _ in range(2)]
        assert [sorted(tool.name for tool in request.tools) for request in chat.requests] == expected
        assert [request.tool_choice.mode for request in chat.requests] == ["required", "auto"] * 2
        assert [len(reply.selections) for reply in replies] == [1 + each_round] * 2
        assert replies[0].selections[-1].names[0] == "order"


async def test_with_each_round_the_context_has_the_calls_and_results_of_the_turn() -> None:
    roles: list[list[str]] = []

    def text(recent: Sequence[Message], new: Sequence[Message]) -> str:
        roles.append([message.role for message in new])
        return "rain"

    chat = ScriptedChat(
        ToolCall("1", "forecast", '{"city": "Oslo"}'), "Sun.", capabilities=ChatCapabilities(tools=True)
    )
    given = provider(context_text=text, each_round=True, always=("forecast",))
    await ChatAgent("guide", kernel=Kernel(), context_providers=[given], chat=chat).invoke("Hello")
    assert roles == [["user"], ["user", "assistant", "tool"]]
