"""An agent in conversation with a real, small model: turns, a thread that is saved in between, a summary."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from portico import AgentReply, ChatAgent, Kernel, SummarizeHistory, Thread, function
from portico_llamacpp.chat import LlamaCppChat


def agent_of(chat: LlamaCppChat, **options: Any) -> ChatAgent:
    return ChatAgent(
        "host", kernel=options.pop("kernel", None) or Kernel(), chat=chat, max_tokens=40, temperature=0, **options
    )


async def test_a_conversation_goes_on_where_it_was_saved(local_chat: LlamaCppChat) -> None:
    agent = agent_of(local_chat, instructions="You are a helpful assistant. Answer in one sentence.")
    first = await agent.invoke("My name is Ada and I like the colour green.")
    thread = Thread.from_json(json.loads(json.dumps(first.thread.to_json())))
    reply = await agent.invoke("Which colour do I like?", thread)
    assert len(thread.turns) == 2
    assert reply.text
    # The second question was read with the first turn before it; what came of that is the model's wisdom.
    assert reply.usage.input_tokens > first.usage.input_tokens


async def test_an_answer_has_the_form_asked_for_on_a_thread_too(local_chat: LlamaCppChat) -> None:
    @dataclass
    class Guest:
        name: str
        nights: int

    agent = agent_of(local_chat, instructions="You read what guests of a hotel write.")
    thread = Thread()
    async with aclosing(agent.stream("I am Ada, for three nights.", thread, returns=Guest)) as events:
        last = [event async for event in events][-1]
    assert isinstance(last, AgentReply)
    assert last.value.name == "Ada"
    assert thread.messages[-1].text == last.text


async def test_a_function_is_called_and_the_call_stays_in_the_thread(local_chat: LlamaCppChat) -> None:
    kernel = Kernel()

    @function
    async def free_rooms() -> int:
        """Count the rooms of the hotel that are free today."""
        return 3

    kernel.add_function(free_rooms)
    agent = agent_of(local_chat, kernel=kernel, instructions="You are the host of a hotel.")
    reply = await agent.invoke("How many rooms are free?", tool_choice="required")
    assert [message.role for message in reply.thread.messages][:3] == ["user", "assistant", "tool"]
    assert reply.messages[1].content[0].content == "3"  # type: ignore[union-attr]
    again = await agent.invoke("Thank you.", reply.thread, functions=())
    assert len(again.thread.turns) == 2


async def test_a_long_conversation_is_summed_up(local_chat: LlamaCppChat) -> None:
    agent = agent_of(local_chat, instructions="You are a helpful assistant.")
    thread = Thread(budget=250, reducer=SummarizeHistory(words=30, max_tokens=60))
    for words in ("I am Ada. " + "The sun shines over the sea today. " * 12, "I have a cat called Tom.", "What now?"):
        reply = await agent.invoke(words, thread)
    assert reply.reduced.turns >= 1
    assert reply.reduced.messages[0].text.startswith("What was said before, in short:\n")
    assert len(thread.turns) == 3


async def test_turns_at_once_and_one_that_is_cancelled(local_chat: LlamaCppChat) -> None:
    agent, thread = agent_of(local_chat, instructions="Answer in one word."), Thread()
    tasks = [asyncio.ensure_future(agent.invoke(f"Is {number} a number?", thread)) for number in (1, 2, 3)]
    await asyncio.sleep(0.05)
    tasks[1].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done[1], asyncio.CancelledError)
    assert [turn.messages[0].text for turn in thread.turns] == ["Is 1 a number?", "Is 3 a number?"]
    assert not thread.busy
