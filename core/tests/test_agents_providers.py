"""Context providers: what they add to a turn, and that they are told how it ended."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._agents.agent import ChatAgent
from portico._agents.reducing import SummarizeHistory
from portico._agents.thread import AgentTurn, Context, Thread
from portico._chat.messages import ChatCapabilities, Message, Source, Text, ToolCall, ToolResult
from portico._functions.functions import Function, FunctionPlugin, function
from portico._kernel import Kernel
from portico._selection.selection import Considered, Selection
from portico._tool_loop.values import Turn
from portico.errors import ServiceUnavailable
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.function_selector import WordSelector

TOOLS = ChatCapabilities(tools=True)


class Providing:
    """Add what it is told to add, or raise it, and note what it sees."""

    def __init__(self, before: Any = None, after: Any = None, *, waits: int = 0, name: str = "") -> None:
        self.added = before
        self.raised = after
        self.waits = waits
        self.turns: list[AgentTurn] = []
        self.outcomes: list[Turn[Any] | BaseException] = []
        if name:
            self.name = name

    async def before(self, turn: AgentTurn) -> Any:
        self.turns.append(turn)
        for _ in range(self.waits):
            await asyncio.sleep(0)
        if isinstance(self.added, BaseException):
            raise self.added
        return self.added

    async def after(self, turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
        assert turn is self.turns[-1]
        self.outcomes.append(outcome)
        if self.raised is not None:
            raise self.raised


def adding(**context: Any) -> Providing:
    return Providing(Context(**context))


def agent_with(*providers: Any, chat: Any = None, **options: Any) -> ChatAgent:
    kernel = options.pop("kernel", None) or Kernel()
    chat = chat or ScriptedChat("Yes.", capabilities=TOOLS, repeat=True)
    return ChatAgent("host", kernel=kernel, chat=chat, context_providers=providers, **options)


def asked(agent: ChatAgent, request: int = -1) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in agent.chat.requests[request].messages]  # type: ignore[union-attr]


def named(name: str, plugin: str | None = None) -> Function:
    @function(name=name)
    async def call() -> str:
        return f"{plugin} {name}"

    return Function.of(call, plugin=plugin)


async def test_a_provider_sees_the_turn_and_what_came_of_it() -> None:
    provider = Providing()
    agent = agent_with(provider, chat=ScriptedChat("1", "2"))
    reply = await agent.invoke("Hello")
    earlier = reply.thread.messages
    await agent.invoke("Again", reply.thread)
    assert provider.turns[1] == AgentTurn("host", reply.thread, earlier, (Message.of("user", "Again"),))
    assert [outcome.value for outcome in provider.outcomes if isinstance(outcome, Turn)] == ["1", "2"]
    assert not any(isinstance(outcome, BaseException) for outcome in provider.outcomes)


async def test_what_they_add_is_sent_in_their_order_and_not_kept() -> None:
    agent = agent_with(
        Providing(Context(instructions="One.", messages=(Message.of("user", "note 1"),)), waits=5),
        Providing(None),
        adding(instructions="Two.", messages=(Message.of("user", "note 2"), Message.of("assistant", "noted"))),
        instructions="Be kind.",
    )
    thread = Thread(messages=[Message.of("user", "Hello"), Message.of("assistant", "Hi")])
    thread.context_providers = (adding(instructions="Of the thread.", messages=(Message.of("user", "note 3"),)),)
    await agent.invoke("And now?", thread)
    assert asked(agent) == [
        ("system", "Be kind.\n\nOne.\n\nTwo.\n\nOf the thread."),
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("user", "note 1\n\nnote 2"),
        ("assistant", "noted"),
        ("user", "note 3\n\nAnd now?"),
    ]
    assert [message.text for message in thread.messages] == ["Hello", "Hi", "And now?", "Yes."]


async def test_instructions_of_providers_alone_are_a_message_of_the_system() -> None:
    agent = agent_with(adding(instructions="Be kind."))
    await agent.invoke("Hello")
    assert asked(agent) == [("system", "Be kind."), ("user", "Hello")]


async def test_sources_are_shown_to_a_service_that_takes_none_as_data() -> None:
    agent = agent_with(adding(messages=(Message("user", (Text("Sources:"), Source(1, "<b>", "Ports"))),)))
    await agent.invoke("Hello")
    assert '<source number="1" name="Ports">\n&lt;b&gt;' in asked(agent)[0][1]


async def test_sources_come_in_one_message_with_the_question_that_they_are_for() -> None:
    source, question = Source(1, "Ports are protocols."), Message("user", (Text("What are ports?"),), "Ada")
    chat = ScriptedChat("Protocols [1].", capabilities=ChatCapabilities(sources=True))
    reply = await agent_with(adding(messages=(Message("user", (source,)),)), chat=chat).invoke(question)
    assert chat.requests[0].messages == (Message("user", (source, Text("What are ports?")), "Ada"),)
    assert reply.thread.messages[0] == question


said_by = st.lists(
    st.builds(Message.of, st.sampled_from(["user", "assistant"]), st.text("ab ", min_size=1, max_size=3)), max_size=4
)


@given(st.lists(said_by, max_size=3), st.booleans())
def test_the_user_never_speaks_twice_in_a_row_and_nothing_is_lost(contexts: list[list[Message]], longer: bool) -> None:
    thread = Thread(
        messages=[Message.of("user", "Hello " * 40), Message.of("assistant", "Hi")] * 3,
        budget=None if longer else 120,
        reducer=SummarizeHistory(ScriptedChat("They met.", repeat=True)),
    )
    agent = agent_with(*(adding(messages=tuple(messages)) for messages in contexts))
    asyncio.run(agent.invoke("And now?", thread))
    sent = asked(agent)
    assert all(not (one[0] == other[0] == "user") for one, other in pairwise(sent)), sent
    added = [message.text for messages in contexts for message in messages]
    words = "".join(text for _, text in sent).replace("\n", "")
    assert words.endswith("".join([*added, "And now?"]))


async def test_their_functions_are_offered_besides_and_can_be_called() -> None:
    chat = ScriptedChat(ToolCall("1", "Extra-go"), "Gone.", "Bye.", capabilities=TOOLS)
    kernel = Kernel(plugins=[FunctionPlugin("Own", (named("go", "Own"),))])
    provider = adding(functions=(named("go", "Extra"),))
    reply = await agent_with(provider, chat=chat, kernel=kernel).invoke("Go")
    assert [tool.name for tool in chat.requests[0].tools] == ["Own-go", "Extra-go"]
    assert reply.messages[1].content == (ToolResult("1", "Extra-go", "Extra go"),)
    assert list(kernel.functions) == ["Own-go"]
    provider.added = None
    await agent_with(provider, chat=chat, kernel=kernel).invoke("Go", reply.thread)
    assert [tool.name for tool in chat.requests[-1].tools] == ["Own-go"]


async def test_their_functions_are_the_only_ones_where_the_agent_has_none() -> None:
    agent = agent_with(adding(functions=(named("extra"),)), functions=())
    await agent.invoke("Go")
    assert [tool.name for tool in agent.chat.requests[0].tools] == ["extra"]  # type: ignore[union-attr]


async def test_what_a_provider_chose_is_not_chosen_from_again_by_the_selector_of_the_kernel() -> None:
    topics = ("rain", "snow", "wind")
    kernel = Kernel(plugins=[FunctionPlugin("Own", tuple(map(named, topics)))], function_selector=WordSelector(1))
    provider = adding(functions=tuple(named(name, "Extra") for name in ("a", "b", "c")))
    agent = agent_with(provider, kernel=kernel)
    reply = await agent.invoke("Will there be snow?")
    offered = [tool.name for tool in agent.chat.requests[0].tools]  # type: ignore[union-attr]
    assert offered == ["snow", "Extra-a", "Extra-b", "Extra-c"]
    (selection,) = reply.selections
    assert sorted(selection.names) == sorted(offered), "a selection is what was offered"
    assert selection.considered == 6
    # Nor where there is nothing else.
    await agent.invoke("Will there be snow?", functions=())
    assert [tool.name for tool in agent.chat.requests[1].tools] == offered[1:]  # type: ignore[union-attr]


@pytest.mark.parametrize(("own", "first", "second"), [(None, "x", None), (["x"], "x", None), ((), "x", "x")])
async def test_two_functions_of_one_name_are_an_error(own: Any, first: str, second: str | None) -> None:
    kernel = Kernel()
    kernel.add_function(named("x"))
    providers = [Providing(Context(functions=(named(first),)), name="notes")]
    providers += [Providing(Context(functions=(named(second),)))] if second else []
    thread = Thread()
    with pytest.raises(ValueError, match="two functions are called 'x'") as raised:
        await agent_with(*providers, kernel=kernel, functions=own).invoke("Go", thread)
    assert thread.turns == ()
    assert [outcome for provider in providers for outcome in provider.outcomes] == [raised.value] * len(providers)


async def test_one_function_from_two_sides_is_offered_once() -> None:
    kernel, extra = Kernel(), named("extra")
    own = kernel.add_function(named("own"))
    agent = agent_with(adding(functions=(own, extra)), adding(functions=(extra,)), kernel=kernel)
    await agent.invoke("Go")
    assert [tool.name for tool in agent.chat.requests[0].tools] == ["own", "extra"]  # type: ignore[union-attr]


async def test_how_functions_were_chosen_is_in_the_reply() -> None:
    first, second = (Selection((Considered(name, "chosen"),), considered=9) for name in "ab")
    reply = await agent_with(adding(selection=first), Providing(None), adding(selection=second)).invoke("Go")
    assert reply.selections == (first, second)


async def test_one_that_is_attached_to_the_agent_and_the_thread_is_asked_once() -> None:
    provider = adding(instructions="Once.")
    agent = agent_with(provider, provider)
    await agent.invoke("Hello", Thread(context_providers=[provider]))
    assert asked(agent)[0] == ("system", "Once.")
    assert (len(provider.turns), len(provider.outcomes)) == (1, 1)


async def test_what_one_raises_before_ends_the_turn_and_all_are_told() -> None:
    error = ServiceUnavailable("the memory is away")
    slow, quick, broken = Providing(waits=50), Providing(), Providing(error, waits=2)
    thread = Thread()
    agent = agent_with(slow, quick, broken)
    with pytest.raises(ServiceUnavailable) as raised:
        await agent.invoke("Hello", thread)
    assert raised.value is error
    assert thread.turns == ()
    assert [each.outcomes[0] for each in (slow, quick, broken)] == [error] * 3
    assert agent.chat.requests == []  # type: ignore[union-attr]


async def test_what_one_raises_after_ends_the_turn_and_the_thread_stays() -> None:
    error = ServiceUnavailable("the memory is full")
    first, broken, last = Providing(), Providing(after=error), Providing()
    thread = Thread()
    with pytest.raises(ServiceUnavailable) as raised:
        await agent_with(first, broken, last).invoke("Hello", thread)
    assert raised.value is error
    assert thread.turns == ()
    assert all(isinstance(each.outcomes[0], Turn) for each in (first, broken, last))


async def test_what_one_raises_after_a_turn_that_was_stopped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    broken = Providing(after=RuntimeError("the memory is full"), name="memory")
    stream = agent_with(broken).stream("Hello")
    await anext(stream)
    with caplog.at_level(logging.WARNING):
        await stream.aclose()
    (record,) = caplog.records
    assert "the memory is full" in record.getMessage()
    assert record.exc_info is not None


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ("Be kind.", "gave 'Be kind.' before the turn, and not a Context or None"),
        (Context(messages=(Message("assistant", (ToolCall("7", "x"),)),)), "the call '7' has no result"),
    ],
)
async def test_what_cannot_be_added_is_told_with_whose_it_is(added: Any, words: str) -> None:
    provider = Providing(added, name="notes")
    with pytest.raises((TypeError, ValueError)) as raised:
        await agent_with(provider).invoke("Hello")
    assert str(raised.value).startswith("the context provider Providing")
    assert words in str(raised.value)
    assert len(provider.outcomes) == 1


async def test_providers_are_added_to_a_thread_and_its_branches_have_them() -> None:
    agent = agent_with()
    thread = Thread()
    thread.context_providers.append(adding(instructions="Of the thread."))
    branch = thread.branch()
    branch.context_providers.append(adding(instructions="Of the branch."))
    await agent.invoke("Hello", thread)
    assert asked(agent)[0] == ("system", "Of the thread.")
    await agent.invoke("Hello", branch)
    assert asked(agent)[0] == ("system", "Of the thread.\n\nOf the branch.")
