"""Turns on one thread: one after the other, whole or not at all, and whoever was asked before is told after."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._agents.agent import AgentReply, ChatAgent
from portico._agents.reducing import SummarizeHistory
from portico._agents.thread import AgentTurn, Context, Thread
from portico._chat.messages import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Message, ToolCall
from portico._functions.functions import function
from portico._kernel import Kernel
from portico._tool_loop.values import Turn
from portico.errors import ThreadBusy
from portico_testkit.fakes.chat_service import ScriptedChat

TOOLS = ChatCapabilities(tools=True)


def last_words(request: ChatRequest) -> str:
    return f"You said: {request.messages[-1].text}"


def agent_of(chat: Any, **options: Any) -> ChatAgent:
    return ChatAgent("echo", kernel=options.pop("kernel", None) or Kernel(), chat=chat, **options)


def echo(**options: Any) -> ChatAgent:
    return agent_of(ScriptedChat(last_words, repeat=True), **options)


class Gate(ScriptedChat):
    """Answer when the gate is opened."""

    def __init__(self, *script: Any, **options: Any) -> None:
        super().__init__(*(script or (last_words,)), repeat=True, **options)
        self.open = asyncio.Event()

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        await self.open.wait()
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        async for delta in super().stream(request):
            await self.open.wait()
            yield delta


async def passes(times: int = 20) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def test_turns_at_once_are_taken_in_the_order_in_which_they_were_asked_for() -> None:
    agent, thread = echo(), Thread()
    asked = [f"question {number}" for number in range(20)]
    replies = await asyncio.gather(*(agent.invoke(words, thread) for words in asked))
    assert [reply.text for reply in replies] == [f"You said: {words}" for words in asked]
    assert [turn.messages[0].text for turn in thread.turns] == asked
    assert [len(turn.messages) for turn in thread.turns] == [2] * len(asked)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=2, max_size=6))
def test_turns_are_never_interleaved_whatever_is_cancelled_in_between(plan: list[tuple[bool, int]]) -> None:
    async def run() -> None:
        chat = ScriptedChat(last_words, repeat=True, piece=3)
        agent, thread = agent_of(chat), Thread()

        async def streamed(words: str) -> str:
            async with aclosing(agent.stream(words, thread)) as events:
                return [event async for event in events][-1].text  # type: ignore[union-attr]

        async def whole(words: str) -> str:
            return (await agent.invoke(words, thread)).text

        tasks = [
            asyncio.ensure_future((streamed if stream else whole)(f"q{number}"))
            for number, (stream, _) in enumerate(plan)
        ]
        for step in range(13):
            await asyncio.sleep(0)
            for task, (_, when) in zip(tasks[1:], plan[1:], strict=True):
                if when == step and when < 10:
                    task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        answered = [number for number, each in enumerate(done) if isinstance(each, str)]
        assert [turn.messages[0].text for turn in thread.turns] == [f"q{number}" for number in answered]
        assert [turn.messages[1].text for turn in thread.turns] == [done[number] for number in answered]
        # Each question was asked with nothing but whole turns before it.
        for request in chat.requests:
            roles = [message.role for message in request.messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        assert not thread.busy

    asyncio.run(run())


async def test_who_was_cancelled_while_it_waited_leaves_the_others_their_turn() -> None:
    chat = Gate()
    agent, thread = agent_of(chat), Thread()
    tasks = [asyncio.ensure_future(agent.invoke(f"q{number}", thread)) for number in range(4)]
    await passes()
    tasks[1].cancel()
    tasks[2].cancel()
    chat.open.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [turn.messages[0].text for turn in thread.turns] == ["q0", "q3"]


async def test_a_thread_may_refuse_a_second_turn_at_once() -> None:
    chat = Gate()
    agent, thread = agent_of(chat), Thread("t1", when_busy="refuse")
    first = asyncio.ensure_future(agent.invoke("first", thread))
    await passes()
    assert thread.busy
    with pytest.raises(ThreadBusy, match="thread 't1' is busy with another turn"):
        await agent.invoke("second", thread)
    with pytest.raises(ThreadBusy, match="busy"):
        thread.add(Message.of("user", "in between"))
    chat.open.set()
    await first
    assert (await agent.invoke("third", thread)).text == "You said: third"
    assert len(thread.turns) == 2


async def test_threads_do_not_wait_for_each_other() -> None:
    chat = Gate()
    agent = agent_of(chat)
    held = asyncio.ensure_future(agent.invoke("held", Thread()))
    await passes()
    chat.open.set()
    await asyncio.gather(held, *(agent.invoke("free", Thread()) for _ in range(3)))


def test_a_turn_on_another_event_loop_is_refused_while_one_is_under_way() -> None:
    thread = Thread()
    loop = asyncio.new_event_loop()
    events = echo().stream("first", thread)
    loop.run_until_complete(anext(events))
    with pytest.raises(ThreadBusy, match="another event loop"):
        asyncio.run(echo().invoke("second", thread))
    loop.run_until_complete(events.aclose())
    loop.close()
    assert asyncio.run(echo().invoke("third", thread)).text == "You said: third"
    assert asyncio.run(echo().invoke("fourth", thread)).text == "You said: fourth", "one loop after another is fine"


@pytest.mark.parametrize("hooked", [True, False])
def test_a_stream_that_is_left_on_a_closed_loop_gives_the_thread_back(hooked: bool) -> None:
    thread = Thread()
    loop = asyncio.new_event_loop()
    events = echo().stream("left", thread)

    async def first(stream: Any) -> None:
        await anext(stream)

    # An event loop closes the streams that were begun while it ran, and knows nothing of others.
    loop.run_until_complete(first(events) if hooked else anext(events))
    assert thread.busy
    loop.close()
    del events
    gc.collect()
    assert not thread.busy
    assert thread.turns == ()
    assert asyncio.run(echo().invoke("next", thread)).text == "You said: next"


@dataclass
class Watch:
    """A context provider that waits a little, and notes what it sees."""

    waits: int = 1
    fails: str = ""
    seen: list[tuple[str, Any]] = field(default_factory=list)

    async def before(self, turn: AgentTurn) -> Context:
        self.seen.append(("before", turn))
        await passes(self.waits)
        if self.fails == "before":
            raise RuntimeError("the provider has no key")
        return Context(instructions="Be kind.")

    async def after(self, turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
        self.seen.append(("after", outcome))
        assert self.seen[-2] == ("before", turn)
        await passes(self.waits)
        if self.fails == "after":
            raise RuntimeError("the provider cannot write")

    @property
    def outcomes(self) -> list[Turn[Any] | BaseException]:
        return [what for when, what in self.seen if when == "after"]


class Slow:
    """Functions that take their time."""

    @function
    async def look(self, what: str) -> str:
        await passes(3)
        return what


CALLS = [ToolCall("1", "Slow-look", '{"what": "a"}'), ToolCall("2", "Slow-look", '{"what": "b"}')]


def slow_agent(providers: list[Watch]) -> ChatAgent:
    chat = ScriptedChat("Noted.", CALLS, CALLS[0], "It is a and b.", capabilities=TOOLS)
    kernel = Kernel()
    kernel.add_plugin(Slow())
    return agent_of(chat, kernel=kernel, context_providers=providers)


def state(thread: Thread) -> str:
    return json.dumps(thread.to_json())


def fresh() -> Thread:
    said = [Message.of(role, f"{role} says something about it") for role in ("user", "assistant") * 3]
    return Thread("t1", messages=said, budget=50, reducer=SummarizeHistory(words=5))


@given(st.integers(0, 70), st.booleans(), st.integers(0, 3), st.integers(0, 3))
def test_a_turn_that_is_cancelled_at_any_moment_leaves_the_thread_as_it_was(
    moment: int, streamed: bool, agents: int, again: int
) -> None:
    async def run() -> None:
        mine, theirs = [Watch(waits) for waits in range(agents)], Watch(2)
        thread = fresh()
        thread.context_providers = (theirs,)
        before = state(thread)
        agent = slow_agent(mine)

        async def take() -> Any:
            if not streamed:
                return await agent.invoke("What is it?", thread)
            async with aclosing(agent.stream("What is it?", thread)) as events:
                return [event async for event in events][-1]

        task = asyncio.ensure_future(take())
        await passes(moment)
        task.cancel()
        for _ in range(again):  # whoever cancels may lose patience
            await asyncio.sleep(0)
            task.cancel()
        (reply,) = await asyncio.gather(task, return_exceptions=True)
        for watch in (*mine, theirs):
            started = [when for when, _ in watch.seen]
            assert started in ([], ["before", "after"]), f"a provider saw {started}"
        if isinstance(reply, AgentReply):
            assert reply.text == "It is a and b."
            assert thread.turns[-1].messages[-1].text == "It is a and b."
            assert all(watch.outcomes[0] is reply.turn for watch in (*mine, theirs))
        else:
            assert isinstance(reply, asyncio.CancelledError)
            assert state(thread) == before
        assert not thread.busy
        thread.budget = None
        assert (await echo().invoke("And now?", thread)).text == "You said: And now?"
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"

    asyncio.run(run())


@given(st.integers(0, 25), st.integers(0, 2), st.sampled_from(["closed", "dropped"]))
def test_a_stream_that_nobody_reads_to_its_end_leaves_the_thread_as_it_was(
    events: int, providers: int, how: str
) -> None:
    async def run() -> None:
        watches = [Watch(waits) for waits in range(providers)]
        thread = fresh()
        before = state(thread)
        stream = slow_agent(watches).stream("What is it?", thread)
        last: Any = None
        for _ in range(events):
            last = await anext(stream, last)
        if how == "closed":
            await stream.aclose()
        del stream
        thread.budget = None
        # The next turn waits until the event loop has closed what was dropped.
        reply = await echo(kernel=Kernel()).invoke("Next?", thread)
        if isinstance(last, AgentReply):
            assert [turn.messages[0].text for turn in thread.turns[-2:]] == ["What is it?", "Next?"]
        else:
            assert state(Thread.from_json(before_turns(before, thread))) == before
        assert reply.thread is thread
        for watch in watches:
            assert [when for when, _ in watch.seen] in ([], ["before", "after"])
            if watch.seen and not isinstance(last, AgentReply):
                assert isinstance(watch.outcomes[0], asyncio.CancelledError)
        await passes()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"

    def before_turns(before: str, thread: Thread) -> dict[str, Any]:
        document = thread.to_json()
        document["turns"].pop()
        if "reduced" not in json.loads(before):
            document.pop("reduced", None)
        return document

    asyncio.run(run())


@given(st.integers(0, 25), st.booleans())
def test_whatever_fails_leaves_the_thread_as_it_was(moment: int, streamed: bool) -> None:
    class Broken(ScriptedChat):
        """Fails at a moment of its own."""

        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            async for delta in super().stream(request):
                self.left -= 1
                if self.left < 0:
                    raise ConnectionError("the line is dead")
                yield delta

        async def complete(self, request: ChatRequest) -> ChatReply:
            return [delta async for delta in self.stream(request)][-1].reply  # type: ignore[return-value]

    async def run() -> None:
        watch, thread = Watch(), fresh()
        before = state(thread)
        agent = slow_agent([watch])
        agent.chat = Broken("Noted.", CALLS, CALLS[0], "It is a and b.", capabilities=TOOLS, piece=2)
        agent.chat.left = moment  # type: ignore[union-attr]
        with pytest.raises(ConnectionError) as raised:
            if streamed:
                async for _ in agent.stream("What is it?", thread):
                    pass
            else:
                await agent.invoke("What is it?", thread)
        assert state(thread) == before
        assert watch.outcomes == [raised.value]
        assert not thread.busy

    asyncio.run(run())


async def test_an_agent_that_is_called_from_inside_of_its_own_turn_is_refused_and_not_waited_for() -> None:
    kernel, thread = Kernel(), Thread("t1")
    agent = agent_of(ScriptedChat(ToolCall("1", "again"), "Well then.", capabilities=TOOLS), kernel=kernel)

    @function
    async def again() -> str:
        return (await agent.invoke("Me too", thread)).text

    kernel.add_function(again)
    reply = await agent.invoke("Go", thread)
    (result,) = reply.messages[1].content
    assert "its own thread" in result.content  # type: ignore[union-attr]
    assert isinstance(result.cause, ThreadBusy)  # type: ignore[union-attr]
    assert reply.text == "Well then."
    assert len(thread.turns) == 1


async def test_a_task_that_has_left_its_own_stream_open_is_told_so() -> None:
    agent, thread = echo(), Thread("t1")
    events = agent.stream("first", thread)
    await anext(events)
    with pytest.raises(ThreadBusy, match="aclosing"):
        await agent.invoke("second", thread)
    await events.aclose()
    assert (await agent.invoke("third", thread)).text == "You said: third"


async def test_another_task_waits_for_a_stream_to_be_read_to_its_end() -> None:
    agent, thread = echo(), Thread("t1")
    events = agent.stream("first", thread)
    await anext(events)
    second = asyncio.ensure_future(agent.invoke("second", thread))
    await passes()
    assert not second.done()
    assert [event async for event in events][-1].text == "You said: first"  # type: ignore[union-attr]
    assert (await second).text == "You said: second"


@pytest.mark.parametrize("when_busy", ["wait", "refuse"])
async def test_a_stream_that_is_broken_off_does_not_hold_up_the_same_task(when_busy: Any) -> None:
    agent, thread = echo(), Thread(when_busy=when_busy)
    for number in range(5):
        async for _ in agent.stream(f"dropped {number}", thread):
            break
    assert (await agent.invoke("last", thread)).text == "You said: last"
    assert len(thread.turns) == 1


@pytest.mark.parametrize("when_busy", ["wait", "refuse"])
async def test_a_stream_that_is_broken_off_inside_of_others_does_not_either(when_busy: Any) -> None:
    agent, thread = echo(), Thread(when_busy=when_busy)

    async def around(events: AsyncIterator[Any], depth: int) -> AsyncIterator[Any]:
        async for event in around(events, depth - 1) if depth else events:
            yield event

    async for _ in around(agent.stream("dropped", thread), 5):
        break
    assert (await agent.invoke("last", thread)).text == "You said: last"


async def test_a_stream_left_open_is_refused_on_a_thread_that_refuses() -> None:
    agent, thread = echo(), Thread(when_busy="refuse")
    events = agent.stream("first", thread)
    await anext(events)
    with pytest.raises(ThreadBusy):
        await agent.invoke("second", thread)
    await events.aclose()


async def test_the_thread_has_the_turn_and_is_free_when_the_reply_comes() -> None:
    agent, thread = echo(), Thread()
    async for event in agent.stream("first", thread):
        if isinstance(event, AgentReply):
            assert not thread.busy
            assert len(thread.turns) == 1
            await agent.invoke("second", thread)
        else:
            assert thread.busy
            assert thread.turns == ()
    assert len(thread.turns) == 2


async def test_what_is_called_while_a_stream_is_read_is_no_part_of_its_turn() -> None:
    agent, thread = echo(), Thread()
    waiting: list[asyncio.Future[AgentReply[str]]] = []
    async for _ in agent.stream("first", thread):
        if not waiting:
            waiting.append(asyncio.ensure_future(agent.invoke("second", thread)))
            await passes()
    assert (await waiting[0]).text == "You said: second"
