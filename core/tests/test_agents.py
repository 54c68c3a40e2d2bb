"""An agent: what it sends, what it offers, what comes of a turn."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from portico._agents.agent import AgentReply, ChatAgent
from portico._agents.thread import AgentTurn, Thread
from portico._chat.messages import (
    ChatCapabilities,
    ChatDelta,
    ChatRequest,
    Image,
    Message,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from portico._functions.functions import Function, FunctionPlugin, function
from portico._functions.middleware import Middleware
from portico._kernel import Kernel
from portico._prompts.functions import prompt_function
from portico._prompts.prompt import Prompt
from portico._selection.selection import Considered, FunctionsOffered, Selection
from portico._tool_loop.values import ToolFinished, ToolLoopLimits, ToolStarted
from portico.errors import FunctionNotFound, LimitExceeded, TemplateError, UnsupportedOption
from portico_testkit.fakes.chat_service import ScriptedChat

EVERYTHING = ChatCapabilities(tools=True, sampling=frozenset({"temperature", "max_tokens"}))


class Clock:
    """Time."""

    @function
    async def now(self, city: str = "Oslo") -> str:
        """Tell the time."""
        return f"Noon in {city}"

    @function
    async def stop(self) -> None:
        raise RuntimeError("it cannot be stopped")


@function
def shout(text: str) -> str:
    return text.upper()


def kernel_with_functions(**options: Any) -> Kernel:
    kernel = Kernel(plugins=[FunctionPlugin.of(Clock())], **options)
    kernel.add_function(shout)
    return kernel


def scripted(*script: Any, **options: Any) -> ScriptedChat:
    return ScriptedChat(*script, capabilities=EVERYTHING, **options)


def roles(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


def tools(chat: ScriptedChat, request: int = -1) -> list[str]:
    return [tool.name for tool in chat.requests[request].offered]


async def test_a_turn_sends_instructions_history_and_what_is_new() -> None:
    chat = scripted("Good day!", "Fine.")
    agent = ChatAgent("host", instructions="Be kind.", kernel=Kernel(), chat=chat)
    first = await agent.invoke("Hello")
    second = await agent.invoke("How are you?", first.thread)
    assert roles(chat.requests[0]) == [("system", "Be kind."), ("user", "Hello")]
    assert roles(chat.requests[1]) == [
        ("system", "Be kind."),
        ("user", "Hello"),
        ("assistant", "Good day!"),
        ("user", "How are you?"),
    ]
    assert second.thread is first.thread
    assert [message.role for message in second.thread.messages] == ["user", "assistant"] * 2
    assert [turn.agent for turn in second.thread.turns] == ["host", "host"]


async def test_without_a_thread_each_turn_begins_a_new_one() -> None:
    agent = ChatAgent("host", kernel=Kernel(), chat=scripted("1", "2"))
    first, second = await agent.invoke("a"), await agent.invoke("b")
    assert first.thread is not second.thread
    assert first.thread.id != second.thread.id
    assert [len(reply.thread.messages) for reply in (first, second)] == [2, 2]


async def test_calls_and_results_are_kept_and_sent_again() -> None:
    chat = scripted([Text("Let me see."), ToolCall("1", "Clock-now")], "Noon.", "Bye.", usage=Usage(10, 5))
    agent = ChatAgent("clock", kernel=kernel_with_functions(), chat=chat)
    reply = await agent.invoke("What time is it?")
    assert (reply.text, reply.value, reply.agent, reply.usage) == ("Noon.", "Noon.", "clock", Usage(20, 10))
    assert [message.role for message in reply.messages] == ["assistant", "tool", "assistant"]
    assert reply.turn.rounds == 2
    assert reply.reply.service == "scripted"
    assert reply.thread.turns[0].usage == Usage(20, 10)
    await agent.invoke("Thanks", reply.thread)
    sent = chat.requests[-1].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2].content == (ToolResult("1", "Clock-now", "Noon in Oslo"),)


async def test_what_functions_raised_is_in_the_reply_and_not_in_the_thread() -> None:
    agent = ChatAgent("clock", kernel=kernel_with_functions(), chat=scripted(ToolCall("1", "Clock-stop"), "No."))
    reply = await agent.invoke("Stop it")
    (told,), (kept,) = reply.messages[1].content, reply.thread.messages[2].content
    assert isinstance(told, ToolResult)
    assert isinstance(kept, ToolResult)
    assert isinstance(told.cause, RuntimeError)
    assert kept.cause is None
    assert told == kept


@pytest.mark.parametrize(
    "new",
    [
        "Hello",
        Message.of("user", "Hello"),
        [Message.of("user", "Hello")],
        Prompt([("<message role='user'>", False), ("Hello", True), ("</message>", False)]),
    ],
    ids=["words", "message", "messages", "prompt"],
)
async def test_what_is_new_may_be_words_messages_or_a_prompt(new: Any) -> None:
    chat = scripted("Hi")
    await ChatAgent("host", kernel=Kernel(), chat=chat).invoke(new)
    assert roles(chat.requests[0]) == [("user", "Hello")]


async def test_without_anything_new_the_agent_goes_on_with_the_thread() -> None:
    chat = scripted("More.")
    thread = Thread(messages=[Message.of("user", "Hello"), Message.of("assistant", "Hi")])
    await ChatAgent("host", kernel=Kernel(), chat=chat).invoke((), thread)
    assert [message.text for message in thread.messages] == ["Hello", "Hi", "More."]
    with pytest.raises(ValueError, match="nothing to answer"):
        await ChatAgent("host", kernel=Kernel(), chat=chat).invoke(())


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ([Message("assistant", (ToolCall("9", "Clock-now"),))], "the call '9' has no result"),
        ([Message("tool", (ToolResult("9", "Clock-now", "Noon"),))], "there is no call before the result of '9'"),
    ],
)
async def test_new_messages_that_no_service_takes_are_refused(new: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        await ChatAgent("host", kernel=Kernel(), chat=scripted()).invoke(new)


async def test_a_form_of_the_answer_is_asked_for_and_read() -> None:
    @dataclass
    class Town:
        name: str
        people: int

    agent = ChatAgent("atlas", kernel=Kernel(), chat=scripted('{"name": "Oslo", "people": 700000}'))
    reply = await agent.invoke("The capital?", returns=Town)
    assert reply.value == Town("Oslo", 700_000)
    assert reply.thread.messages[-1].text.startswith("{")


class TestStreaming:
    async def test_the_events_are_those_of_the_kernel_and_the_reply_comes_last(self) -> None:
        chat = scripted(ToolCall("1", "Clock-now"), "It is noon.")
        agent = ChatAgent("clock", kernel=kernel_with_functions(), chat=chat)
        async with aclosing(agent.stream("What time is it?")) as stream:
            events = [event async for event in stream]
        kinds = [type(event) for event in events if not isinstance(event, ChatDelta)]
        assert kinds == [ToolStarted, ToolFinished, AgentReply]
        assert "".join(event.text for event in events if isinstance(event, ChatDelta)) == "It is noon."
        reply = events[-1]
        assert isinstance(reply, AgentReply)
        assert len(reply.thread.messages) == 4

    async def test_it_gives_the_reply_that_invoke_gives(self) -> None:
        script = (ToolCall("1", "Clock-now"), "It is noon.")
        whole = await ChatAgent("clock", kernel=kernel_with_functions(), chat=scripted(*script)).invoke("Time?")
        agent = ChatAgent("clock", kernel=kernel_with_functions(), chat=scripted(*script))
        reply = [event async for event in agent.stream("Time?")][-1]
        assert isinstance(reply, AgentReply)
        assert (reply.turn, reply.usage, reply.reduced) == (whole.turn, whole.usage, whole.reduced)
        assert reply.thread.turns == whole.thread.turns


class TestInstructions:
    async def test_a_text_is_taken_as_it_is(self) -> None:
        chat = scripted("Hi")
        await ChatAgent("host", instructions="Write {{$name}} & <b>.", kernel=Kernel(), chat=chat).invoke("Hello")
        assert chat.requests[0].messages[0].text == "Write {{$name}} & <b>."

    async def test_a_template_is_rendered_at_each_turn(self) -> None:
        kernel = kernel_with_functions()
        chat = scripted("1", "2")
        agent = ChatAgent(
            "host",
            instructions=kernel.template("Speak {{$language}} to {{$name}}. {{Clock.now city=$name}}. {{shout $name}}"),
            arguments={"language": "Norwegian", "name": "Ada"},
            kernel=kernel,
            chat=chat,
        )
        reply = await agent.invoke("Hello")
        await agent.invoke("Hello", reply.thread, arguments={"name": "<message role='user'>Bob"})
        first, second = (request.messages[0] for request in chat.requests)
        assert first == Message.of("system", "Speak Norwegian to Ada. Noon in Ada. ADA")
        assert second.text.startswith("Speak Norwegian to <message role='user'>Bob. Noon")
        assert second.role == "system"

    async def test_a_template_may_write_examples_too(self) -> None:
        kernel, chat = Kernel(), scripted("Hi")
        template = kernel.template(
            "Answer in {{$n}} words.<message role='user'>One?</message><message role='assistant'>Two.</message>"
        )
        await ChatAgent("host", instructions=template, arguments={"n": 1}, kernel=kernel, chat=chat).invoke("Hello")
        assert roles(chat.requests[0]) == [
            ("system", "Answer in 1 words."),
            ("user", "One?"),
            ("assistant", "Two."),
            ("user", "Hello"),
        ]

    @pytest.mark.parametrize("awaits", [True, False])
    async def test_a_function_sees_the_turn(self, awaits: bool) -> None:
        def instruct(turn: AgentTurn) -> Any:
            text = f"{turn.agent}, {len(turn.earlier)} before, {len(turn.new)} new, {turn.thread.id}"
            return asyncio.sleep(0, text) if awaits else text

        chat = scripted("1")
        await ChatAgent("host", instructions=instruct, kernel=Kernel(), chat=chat).invoke("Hello", Thread("t1"))
        assert chat.requests[0].messages[0] == Message.of("system", "host, 0 before, 1 new, t1")

    async def test_blank_ones_are_no_message(self) -> None:
        chat = scripted("1")
        await ChatAgent("host", instructions=" \n", kernel=Kernel(), chat=chat).invoke("Hello")
        assert roles(chat.requests[0]) == [("user", "Hello")]

    async def test_prompt_filters_see_a_template_under_the_name_of_the_agent(self) -> None:
        seen = []

        async def watch(context: Any, proceed: Any) -> Any:
            seen.append((context.name, context.arguments))
            return await proceed()

        kernel = Kernel(middleware=Middleware(prompt=[watch]))
        template = kernel.template("Speak {{$language}}.")
        await ChatAgent("host", instructions=template, kernel=kernel, chat=scripted("1")).invoke(
            "Hello", arguments={"language": "Greek"}
        )
        assert seen == [("host", {"language": "Greek"})]

    async def test_arguments_without_a_template_are_refused(self) -> None:
        with pytest.raises(TypeError, match=r"make one with Kernel\.template"):
            ChatAgent("host", instructions="Hi {{$a}}", arguments={"a": 1}, kernel=Kernel())
        with pytest.raises(TypeError, match=r"instructions of the agent 'host' are none"):
            await ChatAgent("host", instructions="Hi", kernel=Kernel(), chat=scripted()).invoke("x", arguments={"a": 1})

    async def test_what_fails_in_them_leaves_the_thread_as_it_was(self) -> None:
        kernel, thread = Kernel(), Thread(messages=[Message.of("user", "Hello")])
        template = kernel.template("<message role='{{$role}}'>Hi</message>")
        agent = ChatAgent("host", instructions=template, kernel=kernel, chat=scripted())
        with pytest.raises(TemplateError, match=r"host.*It is one of"):
            await agent.invoke("x", thread, arguments={"role": "king"})
        with pytest.raises(TypeError, match="not as a text"):
            await ChatAgent("host", instructions=lambda turn: 5, kernel=kernel, chat=scripted()).invoke("x", thread)  # type: ignore[arg-type,return-value]
        assert len(thread.messages) == 1


class TestFunctions:
    async def test_those_of_the_kernel_are_offered(self) -> None:
        chat = scripted("1")
        await ChatAgent("host", kernel=kernel_with_functions(), chat=chat).invoke("x")
        assert tools(chat) == ["Clock-now", "Clock-stop", "shout"]

    async def test_those_that_come_later_are_offered_later(self) -> None:
        chat, kernel = scripted("1", "2"), kernel_with_functions()
        agent = ChatAgent("host", kernel=kernel, chat=chat)
        await agent.invoke("x")

        @function
        def late() -> None: ...

        kernel.add_function(late)
        await agent.invoke("x")
        assert (len(tools(chat, 0)), len(tools(chat, 1))) == (3, 4)

    @pytest.mark.parametrize(
        ("chosen", "names"),
        [
            ((), []),
            (["Clock"], ["Clock-now", "Clock-stop"]),
            (["shout", "Clock.now"], ["shout", "Clock-now"]),
            (FunctionPlugin.of(Clock(), "Watch"), ["Watch-now", "Watch-stop"]),
        ],
    )
    async def test_an_agent_may_have_its_own_choice(self, chosen: Any, names: list[str]) -> None:
        chat = scripted("1")
        await ChatAgent("host", kernel=kernel_with_functions(), functions=chosen, chat=chat).invoke("x")
        assert tools(chat) == names

    async def test_a_turn_may_have_another_choice(self) -> None:
        chat = scripted("1", "2")
        agent = ChatAgent("host", kernel=kernel_with_functions(), functions=["Clock"], chat=chat)
        await agent.invoke("x", functions=["shout"])
        await agent.invoke("x", tool_choice=ToolChoice(exclude=("Clock.stop",)))
        assert (tools(chat, 0), tools(chat, 1)) == (["shout"], ["Clock-now"])

    async def test_one_that_is_not_there_is_an_error_and_the_thread_stays(self) -> None:
        thread = Thread()
        with pytest.raises(FunctionNotFound, match="Nearest: Clock-now"):
            await ChatAgent("host", kernel=kernel_with_functions(), functions=["Clock-nov"], chat=scripted()).invoke(
                "x", thread
            )
        assert thread.turns == ()

    @pytest.mark.parametrize("chosen", ["Clock", Function.of(shout)])
    def test_one_alone_is_refused_with_how_to_write_it(self, chosen: Any) -> None:
        with pytest.raises(TypeError, match=r"write functions=\["):
            ChatAgent("host", kernel=Kernel(), functions=chosen)

    async def test_a_service_that_calls_none_is_told_of_where_nobody_chose(self) -> None:
        chat = ScriptedChat("1", "2")
        kernel = kernel_with_functions()
        with pytest.raises(UnsupportedOption, match=r"'host' offers the functions of its kernel.*functions=\(\)"):
            await ChatAgent("host", kernel=kernel, chat=chat).invoke("x")
        await ChatAgent("host", kernel=kernel, functions=(), chat=chat).invoke("x")
        await ChatAgent("host", kernel=Kernel(), chat=chat).invoke("x")

    async def test_the_selector_of_the_kernel_chooses_among_them(self) -> None:
        class One:
            """Offers the first."""

            name = "one"

            async def select(self, functions: Any, context: Any, *, limit: Any = None) -> Selection:
                assert context == ("x",)
                return Selection((Considered(functions[0].name, "chosen"),), considered=len(functions))

        kernel = kernel_with_functions(function_selector=One())
        chat = scripted("1", "2")
        agent = ChatAgent("host", kernel=kernel, chat=chat)
        events = [event async for event in agent.stream("x")]
        assert isinstance(events[0], FunctionsOffered)
        assert isinstance(events[-1], AgentReply)
        assert [selection.names for selection in events[-1].selections] == [("Clock-now",)]
        assert tools(chat) == ["Clock-now"]


class TestSettings:
    async def test_those_of_the_agent_are_of_each_turn_and_those_of_a_turn_go_before(self) -> None:
        chat = scripted("1", "2")
        agent = ChatAgent("host", kernel=Kernel(), chat=chat, temperature=0.5, max_tokens=10)
        await agent.invoke("x")
        await agent.invoke("x", temperature=0.0)
        asked = [(request.temperature, request.max_tokens) for request in chat.requests]
        assert asked == [(0.5, 10), (0.0, 10)]

    async def test_limits_are_those_of_the_tool_loop(self) -> None:
        chat = scripted(ToolCall("1", "Clock-now"), repeat=True)
        agent = ChatAgent("host", kernel=kernel_with_functions(), chat=chat, limits=ToolLoopLimits(rounds=3))
        thread = Thread()
        with pytest.raises(LimitExceeded, match="3 rounds") as raised:
            await agent.invoke("x", thread)
        assert thread.turns == ()
        with pytest.raises(LimitExceeded, match="1 rounds"):
            await agent.invoke("x", thread, limits=ToolLoopLimits(rounds=1))
        thread.add(Message.of("user", "x"), *raised.value.messages)  # type: ignore[arg-type]
        assert len(thread.messages) == 7
        results = [part for message in thread.messages for part in message.content if isinstance(part, ToolResult)]
        assert [result.cause for result in results] == [None] * 3

    async def test_tool_call_filters_see_its_calls(self) -> None:
        seen = []

        async def watch(context: Any, proceed: Any) -> Any:
            seen.append(context.call.name)
            return await proceed()

        kernel = kernel_with_functions(middleware=Middleware(tool_call=[watch]))
        await ChatAgent("host", kernel=kernel, chat=scripted(ToolCall("1", "Clock-now"), "Noon")).invoke("x")
        assert seen == ["Clock-now"]

    async def test_another_service_may_be_asked_in_a_turn(self) -> None:
        own, other = scripted("own"), scripted("other")
        agent = ChatAgent("host", kernel=Kernel(), chat=own)
        assert (await agent.invoke("x", chat=other)).text == "other"
        assert (await agent.invoke("x")).text == "own"

    def test_one_that_there_is_not_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(TypeError, match="'temprature' is not a setting of the agent 'host'; 'temperature' is"):
            ChatAgent("host", kernel=Kernel(), temprature=0.5)  # type: ignore[call-arg]

    async def test_one_of_a_turn_that_there_is_not_is_refused_at_once(self) -> None:
        agent = ChatAgent("host", kernel=Kernel(), chat=scripted())
        with pytest.raises(TypeError, match="'tool_choise' is not an option of an agent's turn; 'tool_choice' is"):
            agent.stream("x", tool_choise="none")  # type: ignore[call-overload]
        for nothing in (None, 5, b"Hello", ["Hello"]):
            with pytest.raises(TypeError):
                agent.stream(nothing)  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["", " ", 5, None])
    def test_it_has_a_name(self, name: Any) -> None:
        with pytest.raises(ValueError, match="has a name"):
            ChatAgent(name, kernel=Kernel())


class TestSeveralAgentsOnOneThread:
    async def test_each_sees_who_said_what(self) -> None:
        chat = scripted("I write.", "I correct.", "I write again.")
        writer, critic = (ChatAgent(name, kernel=Kernel(), chat=chat) for name in ("writer", "critic"))
        thread = Thread()
        await writer.invoke("A poem", thread)
        await critic.invoke((), thread)
        await writer.invoke("Once more", thread)
        seen = [[(message.name, message.text) for message in request.messages] for request in chat.requests]
        assert seen[1] == [(None, "A poem"), ("writer", "I write.")]
        assert seen[2] == [(None, "A poem"), (None, "I write."), ("critic", "I correct."), (None, "Once more")]
        assert [turn.agent for turn in thread.turns] == ["writer", "critic", "writer"]
        assert {message.name for message in thread.messages} == {None}

    async def test_one_may_be_asked_to_go_on_before_the_other_has_answered(self) -> None:
        chat, thread = scripted("I write.", "I correct."), Thread()
        writer, critic = (ChatAgent(name, kernel=Kernel(), chat=chat) for name in ("writer", "critic"))
        await asyncio.gather(writer.invoke("A poem", thread), critic.invoke((), thread))
        assert [message.text for message in thread.messages] == ["A poem", "I write.", "I correct."]

    async def test_an_agent_keeps_nothing_of_its_turns(self) -> None:
        agent = ChatAgent("host", kernel=Kernel(), chat=scripted("1", "2", "3"))
        before = {name: repr(value) for name, value in vars(agent).items()}
        await asyncio.gather(*(agent.invoke(f"{number}") for number in range(3)))
        assert {name: repr(value) for name, value in vars(agent).items()} == before


class TestAsAFunction:
    async def test_another_agent_may_call_it(self) -> None:
        guide = ChatAgent(
            "City guide", description="Knows Oslo.", kernel=Kernel(), chat=scripted("Take the tram.", "Walk.")
        )
        kernel = Kernel()
        kernel.add_function(guide.as_function())
        call = ToolCall("1", "City_guide", '{"message": "How do I get to the park?"}')
        chat = scripted(call, "By tram.", call, "On foot.")
        reply = await ChatAgent("host", kernel=kernel, chat=chat).invoke("The park?")
        (tool,) = chat.requests[0].tools
        assert (tool.name, tool.description) == ("City_guide", "Knows Oslo.")
        assert reply.messages[1].content == (ToolResult("1", "City_guide", "Take the tram."),)
        # Each call is a conversation of its own.
        await ChatAgent("host", kernel=kernel, chat=chat).invoke("The park?")
        assert [len(request.messages) for request in guide.chat.requests] == [1, 1]  # type: ignore[union-attr]

    async def test_what_it_costs_is_in_the_usage_of_the_turn_that_called_it(self) -> None:
        inner = ChatAgent("inner", kernel=Kernel(), chat=scripted("3", repeat=True, usage=Usage(100, 10)))
        kernel = Kernel()
        kernel.add_function(inner.as_function())
        call = ToolCall("1", "inner", '{"message": "x"}')
        middle = ChatAgent("middle", kernel=kernel, chat=scripted(call, "2", repeat=True, usage=Usage(10, 1)))
        outer_kernel = Kernel()
        outer_kernel.add_function(middle.as_function())
        outer = ToolCall("1", "middle", '{"message": "x"}')
        agent = ChatAgent("outer", kernel=outer_kernel, chat=scripted(outer, "1", repeat=True, usage=Usage(1)))
        reply = await agent.invoke("x")
        assert reply.usage == Usage(1 * 2 + 10 * 2 + 100, 1 * 2 + 10)
        assert reply.turn.usage == Usage(2), "the turn of the tool loop has its own rounds"
        assert reply.thread.turns[0].usage == reply.usage

    async def test_with_a_thread_it_remembers(self) -> None:
        chat, thread = scripted("1", "2"), Thread()
        ask = ChatAgent("guide", kernel=Kernel(), chat=chat).as_function(thread=thread, plugin="City", name="ask")
        kernel = Kernel()
        kernel.add_plugin(FunctionPlugin("City", (ask,)))
        await asyncio.gather(kernel.invoke("City-ask", message="a"), kernel.invoke("City-ask", message="b"))
        assert [len(request.messages) for request in chat.requests] == [1, 3]

    async def test_it_answers_in_the_form_asked_for(self) -> None:
        ask = ChatAgent("atlas", kernel=Kernel(), chat=scripted("[1, 2]")).as_function(returns=list[int])
        assert ask.spec.returns == {"type": "array", "items": {"type": "integer"}}
        assert await Kernel().invoke(ask, message="Two numbers") == [1, 2]

    async def test_an_agent_that_calls_itself_comes_to_an_end(self) -> None:
        kernel = Kernel()
        agent = ChatAgent("loop", kernel=kernel, chat=scripted(_calling_itself, repeat=True))
        kernel.add_function(agent.as_function())
        reply = await agent.invoke("x")
        results = [part for message in reply.messages for part in message.content if isinstance(part, ToolResult)]
        assert len(results) == 1

    async def test_agents_and_prompts_count_together(self) -> None:
        kernel = Kernel()
        chat = scripted("never")
        agent = ChatAgent("agent", instructions=kernel.template("{{prompt}}"), kernel=kernel, chat=chat)
        kernel.add_function(agent.as_function())
        kernel.add_function(prompt_function("prompt", "{{agent message='x'}}", chat=chat))
        with pytest.raises(LimitExceeded, match="at most 16 deep"):
            await kernel.invoke("agent", message="x")

    def test_a_name_that_makes_no_name_of_a_function_asks_for_one(self) -> None:
        agent = ChatAgent("导游", kernel=Kernel())
        with pytest.raises(ValueError, match="is not a name"):
            agent.as_function()
        assert agent.as_function("guide").full_name == "guide"

    def test_options_are_checked_at_once(self) -> None:
        with pytest.raises(TypeError, match="'limts' is not"):
            ChatAgent("guide", kernel=Kernel()).as_function(limts=None)  # type: ignore[call-arg]


def _calling_itself(request: ChatRequest) -> Any:
    results = any(message.role == "tool" for message in request.messages)
    return "Done." if results else ToolCall("1", "loop", '{"message": "again"}')


def test_the_budget_counts_pictures_too() -> None:
    thread = Thread(budget=900)
    agent = ChatAgent("host", kernel=Kernel(), chat=scripted("Nice."))
    with pytest.raises(LimitExceeded, match=r"new messages take about 1,004 tokens.* is 900"):
        asyncio.run(agent.invoke(Message("user", (Image(b"123"),)), thread))
    assert thread.turns == ()
