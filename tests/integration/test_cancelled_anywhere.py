"""Whatever is under way may be cancelled at any wait: nothing is left, nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.cancelling import cancelled_everywhere
from tests.support.loopback import Loopback, Visit

import portico_host
from portico import ChatAgent, Kernel, Message, Thread, function
from portico.errors import RunError
from portico.plans import From, Plan, Step, Value
from portico.ports import TextSearch
from portico.search import TextSearchOptions


class Service(Loopback):
    """Asks for one call with effects, then says its result, whole or streamed."""

    def __init__(self) -> None:
        super().__init__()
        self.will(self.reply)

    async def reply(self, visit: Visit) -> None:
        """Answer one request."""
        self.visits.clear()
        last = visit.json["messages"][-1]
        if last["role"] == "tool" or not visit.json.get("tools"):
            message: dict[str, Any] = {"content": "It is done."}
        else:
            called = {"name": "pay", "arguments": json.dumps({"amount": 5})}
            message = {
                "content": None,
                "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": called}],
            }
        finish = "tool_calls" if "tool_calls" in message else "stop"
        head = {"id": "r", "created": 0, "model": "m"}
        if visit.json.get("stream"):
            delta = {"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None}
            end = {"index": 0, "delta": {}, "finish_reason": finish}
            pieces = [{**head, "object": "chat.completion.chunk", "choices": [each]} for each in (delta, end)]
            events = b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in pieces)
            await visit.send(self.streamed(events + b"data: [DONE]\n\n"))
        else:
            choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
            await visit.send(self.whole({**head, "object": "chat.completion", "choices": [choice]}))


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Serve on loopback."""
    made = Service()
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def opened(service: Service, folder: Path, paid: Counter[int] | None = None) -> AsyncIterator[Kernel]:
    """Open a kernel with that service, a journal, a folder to search, and a function with effects."""
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "ports.md").write_text("# Ports\n\nPorts are protocols.\n\n# Plans\n\nPlans are data.\n")
    overrides = {
        "chat": {"use": "openai", "openai": {"base_url": f"http://127.0.0.1:{service.port}/v1", "model": "m"}},
        "planner": {"use": "function_calling"},
        "runs": {"use": "sqlite", "sqlite": {"path": str(folder / "runs.sqlite3")}},
        "search": {"handbook": {"use": "documents", "path": str(docs), "index": str(folder / "index")}},
    }
    counted = Counter[int]() if paid is None else paid

    @function(effects=True)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        counted[amount] += 1
        return f"paid {amount}"

    async with portico_host.open(overrides=overrides) as kernel:
        kernel.add_function(pay)
        yield kernel


async def test_a_chat_call(service: Service, tmp_path: Path) -> None:
    async with opened(service, tmp_path) as kernel:

        async def check(place: int) -> None:
            assert (await kernel.invoke_prompt("Hello.")) == "It is done."

        async def streamed() -> None:
            async with aclosing(kernel.stream([Message.of("user", "Hello.")])) as pieces:
                async for _ in pieces:
                    pass

        await kernel.invoke_prompt("Hello.")  # the connection and what is made once
        assert await cancelled_everywhere(lambda: kernel.invoke_prompt("Hello."), check) >= 1
        assert await cancelled_everywhere(streamed, check) >= 1


async def test_a_turn_of_an_agent(service: Service, tmp_path: Path) -> None:
    paid: Counter[int] = Counter()
    async with opened(service, tmp_path, paid) as kernel:
        agent, thread = ChatAgent("clerk", kernel=kernel, functions=["pay"]), Thread()
        await agent.invoke("Pay.", Thread())

        async def check(place: int) -> None:
            # A turn that did not end leaves no half of it behind.
            roles = [message.role for message in thread.messages]
            assert roles in ([], ["user", "assistant", "tool", "assistant"]), place

        assert await cancelled_everywhere(lambda: agent.invoke("Pay.", thread), check) >= 3


async def test_a_run_and_its_resumption(service: Service, tmp_path: Path) -> None:
    paid: Counter[int] = Counter()
    async with opened(service, tmp_path, paid) as kernel:
        assert kernel.run_store is not None
        known: set[str] = set()

        async def check(place: int) -> None:
            """Resume what was stopped to its end: at most one payment of a run, whatever a person must decide."""
            assert kernel.run_store is not None
            new = set(await kernel.run_store.runs()) - known
            known.update(new)
            for run in new:
                paid.clear()
                entries = await kernel.run_store.read(run)
                if not entries:
                    with pytest.raises(RunError, match="before its first entry"):
                        await kernel.resume(run)
                    continue
                if entries[-1]["type"] == "outcome":
                    continue
                begun = [each for each in entries if each["type"] == "step-started"]
                done = [each for each in entries if each["type"] == "step-finished"]
                uncertain = [each["step"] for each in begun[len(done) :]]
                resumed = await kernel.resume(run, results=dict.fromkeys(uncertain, "paid 5"))
                assert resumed.outcome.text == "It is done.", place
                assert paid.total() == (0 if begun else 1), f"cancelled at {place}: {entries}"

        await kernel.run_goal("Pay five.")
        known.update(await kernel.run_store.runs())
        assert await cancelled_everywhere(lambda: kernel.run_goal("Pay five."), check) > 15


async def test_a_plan(service: Service, tmp_path: Path) -> None:
    async with opened(service, tmp_path) as kernel:
        steps = [Step(f"s{number}", "pay", {"amount": Value(number)}) for number in (1, 2)]
        plan = Plan("Pay", tuple(steps), result=From("s2"))

        async def check(place: int) -> None:
            assert (await kernel.run_plan(plan)).outcome.text == "paid 2"

        await kernel.run_plan(plan)
        assert await cancelled_everywhere(lambda: kernel.run_plan(plan), check) > 3


async def test_a_search_and_an_update(service: Service, tmp_path: Path) -> None:
    async with opened(service, tmp_path) as kernel:
        search: Any = kernel.service(TextSearch, "handbook")
        await search.search("ports", TextSearchOptions(top=1))
        number = 0

        async def update() -> None:
            nonlocal number
            number += 1
            (tmp_path / "docs" / "new.md").write_text(f"# New\n\nNumber {number} is protocols.\n")
            await search.index.update()

        async def check(place: int) -> None:
            found = [each async for each in await search.search("Ports are protocols", TextSearchOptions(top=1))]
            assert "protocols" in found[0], place

        assert await cancelled_everywhere(lambda: search.search("ports", TextSearchOptions(top=1)), check) > 2
        assert await cancelled_everywhere(update, check) > 2
        report = await search.index.update()
        assert report.documents == 2


async def test_opening_and_closing(service: Service, tmp_path: Path) -> None:
    async def once() -> None:
        async with opened(service, tmp_path) as kernel:
            await kernel.run_goal("Pay five.")

    async def check(place: int) -> None:
        if place % 10 == 0:
            await once()

    await once()
    assert await cancelled_everywhere(once, check) > 15


async def test_work_that_continues_when_it_is_cancelled_is_found() -> None:
    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(10)

    async def check(place: int) -> None:
        pass

    with pytest.raises(AssertionError, match="goes on"):
        await cancelled_everywhere(stubborn, check)
