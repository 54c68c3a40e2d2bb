"""A kernel with a function selector offers the functions that the conversation is about, and no others."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import ChatCapabilities, ChatRequest, Message, Text, ToolCall, ToolChoice, ToolResult
from portico._functions.functions import Function, FunctionPlugin, function
from portico._kernel import Kernel
from portico._selection.offering import recent_texts
from portico._selection.selection import Considered, FunctionsOffered, Selection
from portico._tool_loop.values import ChosenFunctions, ToolFinished, ToolLoopLimits, Turn
from portico.errors import LimitExceeded, StoreError, UnsupportedOption
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.function_selector import WordSelector

TOOLS = ChatCapabilities(tools=True)
TOPICS = ("invoice", "weather", "train", "museum", "recipe", "song", "garden", "river", "planet", "island")


def plugin(name: str, *topics: str) -> FunctionPlugin:
    def made(topic: str) -> Function:
        @function(name=topic, description=f"Tell of the {topic}.")
        async def call() -> str:
            return f"{topic}!"

        return Function.of(call, plugin=name)

    return FunctionPlugin(name, tuple(map(made, topics)))


def kernel_of(selector: Any, *plugins: FunctionPlugin) -> Kernel:
    return Kernel(plugins=plugins or [plugin("World", *TOPICS)], function_selector=selector)


async def offered_of(kernel: Kernel, asked: Any = "Any invoice?", **options: Any) -> tuple[list[str], Turn[str]]:
    """Return the names of the tools that the model was told of, and the turn."""
    chat = ScriptedChat(*options.pop("script", ("Fine.",)), capabilities=TOOLS)
    options.setdefault("tool_choice", "auto")
    turn = await kernel.complete(asked, chat=chat, **options)
    return [tool.name for tool in chat.requests[0].tools], turn


async def test_what_the_conversation_is_about_is_offered_in_the_order_of_the_kernel():
    names, turn = await offered_of(kernel_of(WordSelector(2)), "The river, and the invoice?")
    assert names == ["World-invoice", "World-river"]
    assert turn.selection is not None
    assert set(turn.selection.names) == set(names)
    assert turn.selection.considered == len(TOPICS)
    assert {each.reason for each in turn.selection.left_out} == {"beyond the limit"}


async def test_where_all_may_be_offered_all_are_and_nothing_is_said():
    chat = ScriptedChat("Fine.", capabilities=TOOLS)
    kernel = kernel_of(WordSelector(len(TOPICS)))
    async with aclosing(kernel.stream("Any invoice?", chat=chat, tool_choice="auto")) as events:
        seen = [event async for event in events]
    assert len(chat.requests[0].tools) == len(TOPICS)
    assert not [event for event in seen if isinstance(event, FunctionsOffered)]
    assert seen[-1].selection is None


async def test_the_event_comes_first_and_has_the_selection_of_the_turn():
    chat = ScriptedChat("Fine.", capabilities=TOOLS)
    async with aclosing(kernel_of(WordSelector(3)).stream("Any song?", chat=chat, tool_choice="auto")) as events:
        seen = [event async for event in events]
    assert isinstance(seen[0], FunctionsOffered)
    assert seen[0].selection is seen[-1].selection
    assert "World-song" in seen[0].selection.names


async def test_a_turn_without_functions_asks_no_selector():
    selector = WordSelector(2)
    chat = ScriptedChat("Fine.")
    assert (await kernel_of(selector).complete("Any invoice?", chat=chat)).selection is None
    await offered_of(kernel_of(selector), tool_choice="none")
    await offered_of(kernel_of(selector), functions=[])
    assert selector.contexts == []


async def test_a_model_cannot_call_what_was_not_offered():
    kernel = kernel_of(WordSelector(1))
    script = (ToolCall("c1", "World-river"), ToolCall("c2", "World-invoice"), "Done.")
    chat = ScriptedChat(*script, capabilities=TOOLS)
    async with aclosing(kernel.stream("Any invoice?", chat=chat, tool_choice="auto")) as events:
        first, second = [event.result async for event in events if isinstance(event, ToolFinished)]
    assert first.error
    assert first.content == "The function 'World-river' is not offered in this turn. Nearest: World-invoice."
    assert second.content == "invoice!"


@pytest.mark.parametrize(
    "choice",
    [ToolChoice(include=("World-river", "World-island", "World-song")), ToolChoice("required", ("World-river",))],
)
async def test_what_the_choice_includes_is_offered_as_it_is(choice: ToolChoice):
    script = (ToolCall("c1", "World-river"), "Fine.")
    names, turn = await offered_of(kernel_of(WordSelector(1)), tool_choice=choice, script=script)
    assert choice.include is not None
    assert names == list(choice.include)
    assert turn.selection is None


async def test_what_the_choice_excludes_is_not_chosen():
    names, _ = await offered_of(kernel_of(WordSelector(1)), tool_choice=ToolChoice(exclude=("World-invoice",)))
    assert len(names) == 1
    assert "World-invoice" not in names


async def test_functions_named_one_by_one_are_offered_as_they_are_up_to_the_limit():
    named, selector = [f"World-{topic}" for topic in TOPICS[-3:]], WordSelector(3)
    assert (await offered_of(kernel_of(selector), functions=named))[0] == named
    assert selector.contexts == [], "nothing is to be chosen, so nothing is asked"


async def test_more_functions_named_one_by_one_than_the_limit_are_chosen_among():
    names, turn = await offered_of(kernel_of(WordSelector(2)), functions=[f"World-{topic}" for topic in TOPICS])
    assert len(names) == 2
    assert "World-invoice" in names
    assert turn.selection is not None


async def test_functions_named_beside_a_plugin_are_offered_besides_what_is_chosen_of_it():
    kernel = kernel_of(WordSelector(2), plugin("World", *TOPICS), plugin("Home", "door", "window"))
    names, turn = await offered_of(kernel, functions=["Home-door", "World"])
    assert names[0] == "Home-door"
    assert len(names) == 3
    assert "World-invoice" in names
    assert turn.selection is not None
    assert turn.selection.offered[0] == Considered("Home-door", "always")
    assert turn.selection.considered == 1 + len(TOPICS)


async def test_all_rounds_of_a_turn_offer_the_same():
    chat = ScriptedChat(ToolCall("c1", "World-invoice"), "The river is next.", capabilities=TOOLS)
    await kernel_of(WordSelector(2)).complete("Any invoice?", chat=chat, tool_choice="auto")
    first, second = chat.requests
    assert first.tools is second.tools


async def test_the_same_functions_are_the_same_tools_in_whatever_order_they_were_chosen():
    kernel = kernel_of(WordSelector(2))
    chat = ScriptedChat("Fine.", capabilities=TOOLS, repeat=True)
    for asked in ("river river invoice", "invoice then the river"):
        await kernel.complete(asked, chat=chat, tool_choice="auto")
    assert chat.requests[0].tools is chat.requests[1].tools


async def test_a_choice_of_nothing_asks_without_tools_and_must_call_is_refused():
    kernel = kernel_of(WordSelector(0))
    names, turn = await offered_of(kernel)
    assert names == []
    assert turn.selection is not None
    with pytest.raises(UnsupportedOption, match="'words' offers none of the 10 functions"):
        await offered_of(kernel, tool_choice="required")


async def test_a_form_of_the_answer_goes_with_a_selection():
    chat = ScriptedChat("3", capabilities=ChatCapabilities(tools=True, response_schema=True))
    turn = await kernel_of(WordSelector(2)).complete("Any song?", returns=int, chat=chat, functions=["World"])
    assert turn.value == 3
    assert len(chat.requests[0].tools) == 2


async def test_what_a_selector_raises_comes_through():
    class Broken:
        name = "broken"
        limit = 2

        async def select(self, functions: Any, context: Any, *, limit: int | None = None) -> Selection:
            raise StoreError("The store of functions cannot be read.")

    with pytest.raises(StoreError, match="store of functions"):
        await offered_of(kernel_of(Broken()))


async def test_a_selector_that_offers_what_it_was_not_given_is_named():
    class Inventive:
        name = "inventive"
        limit = 2

        async def select(self, functions: Any, context: Any, *, limit: int | None = None) -> Selection:
            return Selection((Considered("World-moon", "chosen"),), considered=len(functions))

    with pytest.raises(TypeError, match="'inventive' offered 'World-moon', which it was not given"):
        await offered_of(kernel_of(Inventive()))


async def test_choosing_is_within_the_time_of_the_turn():
    class Slow(WordSelector):
        async def select(self, functions: Any, context: Any, *, limit: int | None = None) -> Selection:
            import asyncio

            await asyncio.Event().wait()
            raise AssertionError("never set")

    with pytest.raises(LimitExceeded, match="seconds"):
        await offered_of(kernel_of(Slow(2)), limits=ToolLoopLimits(seconds=0))


async def test_the_selector_is_asked_with_two_messages_of_earlier_turns_and_all_new_ones():
    selector = WordSelector(2)
    said = [
        Message.of("system", "You know rivers."),
        Message.of("user", "First."),
        Message.of("assistant", "Second.", ToolCall("c1", "World-river")),
        Message("tool", (ToolResult("c1", "World-river", "river!"),)),
        Message.of("assistant", "Third."),
        Message.of("user", " "),
        Message.of("user", "Fourth."),
        Message.of("user", "Fifth."),
    ]
    await offered_of(kernel_of(selector), said)
    assert selector.contexts == [("Second.", "Third.", "Fourth.", "Fifth.")]
    await offered_of(kernel_of(selector), ChatRequest(tuple(said[:2])))
    assert selector.contexts[1] == ("First.",)


def test_instructions_are_the_context_where_there_is_nothing_else():
    assert recent_texts([Message.of("system", "Sum up."), Message("user", ())]) == ("Sum up.",)


MESSAGES = st.lists(
    st.builds(
        lambda role, text: Message(role, (Text(text),)),
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.text(max_size=3),
    ),
    max_size=12,
)


@given(MESSAGES, st.integers(0, 3))
def test_the_context_is_the_end_of_the_conversation_without_what_is_blank(messages: list[Message], earlier: int):
    texts = recent_texts(messages, earlier=earlier)
    spoken = [message for message in messages if message.role != "system" and message.text.strip()]
    if not spoken:
        assert texts == tuple(each.text for each in messages if each.text.strip())
        return
    assert texts == tuple(each.text for each in spoken[len(spoken) - len(texts) :])
    left = spoken[: len(spoken) - len(texts)]
    new = 0
    while new < len(spoken) and spoken[len(spoken) - 1 - new].role != "assistant":
        new += 1
    assert len(texts) == min(new + earlier, len(spoken))
    assert len(left) + len(texts) == len(spoken)


async def test_a_call_of_what_is_not_there_at_all_is_answered_with_what_is_offered():
    kernel = kernel_of(WordSelector(1), plugin("World", *TOPICS), plugin("Aviary", "owl"))
    script = (ToolCall("c1", "World-invoic"), ToolCall("c2", "quux"), ToolCall("c3", "Aviary-owl"), "Done.")
    chat = ScriptedChat(*script, capabilities=TOOLS)
    async with aclosing(kernel.stream("Any invoice?", chat=chat, tool_choice="auto")) as events:
        near, far, other = [event.result.content async for event in events if isinstance(event, ToolFinished)]
    assert near == "There is no function 'World-invoic'. Nearest: World-invoice."
    assert far == "There is no function 'quux'. There is one function: World-invoice."
    assert other == "The function 'Aviary-owl' is not offered in this turn. There is one function: World-invoice."


class EachRound(WordSelector):
    """Offers one function by the last text alone."""

    each_round = True

    async def select(self, functions: Any, context: Any, *, limit: int | None = None) -> Selection:
        return await super().select(functions, context[-1:], limit=limit)


@given(st.permutations(TOPICS), st.integers(1, 9), st.sampled_from(["auto", "required"]), st.integers(1, 3))
async def test_in_each_round_those_that_fit_the_results_are_offered_beside_those_called(
    topics: list[str], rounds: int, mode: Any, limit: int
) -> None:
    """Each function names the next one in its result, and the model calls that."""

    def made(place: int) -> Function:
        @function(name=topics[place])
        async def call() -> str:
            return f"See the {topics[(place + 1) % len(topics)]}."

        return Function.of(call, plugin="World")

    kernel = kernel_of(EachRound(limit), FunctionPlugin("World", tuple(map(made, range(len(topics))))))
    names = [f"World-{topic}" for topic in topics[:rounds]]
    script = [ToolCall(name, name) for name in names]
    chat = ScriptedChat(*script, "Done.", capabilities=TOOLS)
    async with aclosing(kernel.stream(f"The {topics[0]}?", chat=chat, tool_choice=mode)) as events:
        seen = [event async for event in events]
    for place, request in enumerate(chat.requests):
        offered, called = {tool.name for tool in request.tools}, set(names[:place])
        assert {*called, f"World-{topics[place]}"} <= offered
        assert len(offered - called) <= limit
        assert request.tool_choice.mode == ("auto" if place else mode)
    chosen = tuple(event.selection for event in seen if isinstance(event, FunctionsOffered))
    assert seen[-1].selections == chosen
    assert seen[-1].selection is chosen[-1]
    assert len(chosen) == sum(len(request.tools) < len(TOPICS) for request in chat.requests)


@pytest.mark.parametrize("selector", [None, WordSelector(1), EachRound(1)])
async def test_functions_that_were_chosen_for_a_turn_may_be_chosen_again(selector: Any) -> None:
    home, asked = list(plugin("Home", "door", "window")), []

    async def again(messages: Any, calls: Any) -> ChosenFunctions:
        asked.append(([message.role for message in messages], list(calls)))
        return ChosenFunctions((home[1],), selection=Selection((Considered("Home-window", "chosen"),)))

    chat = ScriptedChat(ToolCall("c1", "Home-door"), "Done.", capabilities=TOOLS)
    functions = ["World", ChosenFunctions((home[0],), again=again)]
    turn = await kernel_of(selector).complete("Any invoice?", chat=chat, functions=functions, tool_choice="required")
    first, second = ({tool.name for tool in request.tools if "Home" in tool.name} for request in chat.requests)
    assert (first, second) == ({"Home-door"}, {"Home-door", "Home-window"})
    assert asked == [(["assistant", "tool"], [("Home-door", "door!")])]
    assert "Home-window" in [name for selection in turn.selections for name in selection.names]


@pytest.mark.parametrize("schema", [True, False])
async def test_an_answer_of_a_form_keeps_its_form_when_other_functions_are_offered(schema: bool) -> None:
    able = ChatCapabilities(tools=True, response_schema=schema)
    chat = ScriptedChat(ToolCall("c1", "World-invoice"), "7", capabilities=able)
    turn = await kernel_of(EachRound(1)).complete("Any invoice?", chat=chat, tool_choice="required", returns=int)
    assert turn.value == 7
    first, second = chat.requests
    assert first.response_schema == second.response_schema
    assert [request.tool_choice.mode for request in chat.requests] == ["required", "auto"]
