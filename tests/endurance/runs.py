"""Runs against a service that fails: `python -m tests.endurance.runs [--runs N]`.

10,000 runs, 64 at once, each of two requests and a call, journalled in SQLite. The service is a process on loopback
that answers 12% of the requests with a reset, 429, something malformed, or not at all. Each run must have its answer or
a clear error, here and in the journal; each call that a run has was made once; and nothing may grow. Exits 1 where a
bar is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.endurance.levels import Levels, judge
from tests.support.loopback import Loopback, Visit

import portico_host
from portico import Kernel, function
from portico.errors import PorticoError
from portico.plans import Answer

AT_ONCE = 64
FAULTS = {"reset": 0.03, "429": 0.03, "malformed": 0.03, "hang": 0.03}
TIMEOUT = 3.0
GROWTH = 1.0
"""Megabytes that a thousand runs may leave: the bound is for noise, a leak of a kilobyte a run is as much."""


class FaultyService(Loopback):
    """Asks for one call, then answers with its result; fails now and then."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.faults: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self.will(self.reply)

    async def reply(self, visit: Visit) -> None:
        """Answer one request."""
        self.visits.clear()
        [fault] = self._chance.choices([*FAULTS, ""], [*FAULTS.values(), 1 - sum(FAULTS.values())])
        self.faults[fault or "none"] += 1
        match fault:
            case "reset":
                await visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{")
                await visit.reset()
            case "429":
                body = {"error": {"message": "Slow down.", "type": "requests"}}
                await visit.send(self.whole(body, status="429 Too Many Requests", retry_after_ms="20"))
            case "malformed":
                await visit.send(self.whole(b'{"choices": [{"message": '))
            case "hang":
                await visit.until_gone()
            case _:
                await visit.send(self.whole(self._body(visit.json["messages"])))

    @staticmethod
    def _body(messages: list[dict[str, Any]]) -> dict[str, Any]:
        last = messages[-1]
        if last["role"] == "tool":
            message: dict[str, Any] = {"content": f"It is {last['content']}."}
        else:
            number = int(last["content"].split()[-1])
            called = {"name": "double", "arguments": json.dumps({"number": number})}
            message = {"content": None, "tool_calls": [{"id": f"c{number}", "type": "function", "function": called}]}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


async def serve(seed: int) -> None:
    """Serve until SIGTERM; the port, and in the end the faults, are printed."""
    service, ended = FaultyService(seed), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await service.start()
    print(service.port, flush=True)
    await ended.wait()
    await service.stop()
    print(json.dumps(service.faults), flush=True)


async def soak(port: int, folder: Path, count: int) -> dict[str, bool]:
    """Do all runs, print what became of them, and return the bars."""
    overrides = {
        "planner": {"use": "function_calling"},
        "chat": {
            "use": "openai",
            "openai": {"base_url": f"http://127.0.0.1:{port}/v1", "model": "m", "timeout": TIMEOUT, "max_retries": 1},
        },
        "runs": {"use": "sqlite", "sqlite": {"path": str(folder / "runs.sqlite3"), "keep": count}},
    }
    calls: Counter[int] = Counter()
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    levels = Levels()

    @function
    def double(number: int) -> int:
        """Double a number."""
        calls[number] += 1
        return number * 2

    async def run(kernel: Kernel, number: int) -> None:
        goal = f"Double this number: {number}"
        try:
            outcome = (await kernel.run_goal(goal)).outcome
        except PorticoError as error:
            ends[type(error).__name__] += 1
        except Exception as error:
            wrong.append(f"{number}: {type(error).__name__}: {error}"[:200])
        else:
            ends[type(outcome).__name__] += 1
            if not isinstance(outcome, Answer) or outcome.text != f"It is {number * 2}.":
                wrong.append(f"{number}: {outcome}"[:200])

    numbers = iter(range(count))

    async def work(kernel: Kernel) -> None:
        for number in numbers:
            await run(kernel, number)
            done = ends.total() + len(wrong)
            if done % max(count // 40, 1) == 0 and done < count - AT_ONCE:
                level = levels.take(done)
                print(
                    f"{time.monotonic() - began:6.0f} s  {done:6} runs  {level.megabytes:6.1f} MB  "
                    f"{level.files:4} files  {level.tasks:4} tasks",
                    flush=True,
                )

    began = time.monotonic()
    before = levels.take(0)
    levels.seen.clear()
    async with portico_host.open(overrides=overrides) as kernel:
        kernel.add_function(double)
        await asyncio.gather(*(work(kernel) for _ in range(AT_ONCE)))
        assert kernel.run_store is not None
        names = await kernel.run_store.runs()
        journalled: Counter[str] = Counter()
        for name in names:
            journalled[(await kernel.run_store.read(name))[-1]["type"]] += 1
    slopes = levels.slopes()
    await asyncio.sleep(0.2)
    after = levels.take(count)
    print(f"{count} runs in {time.monotonic() - began:.0f} s: {dict(ends.most_common())}")
    print(f"last entries of {len(names)} journals: {dict(journalled.most_common())}")
    print("growth with 1,000 runs: " + ", ".join(f"{name} {each:+.3f}" for name, each in slopes.items()))
    print(f"open files {before.files} before, {after.files} after; tasks {before.tasks} before, {after.tasks} after")
    for each in wrong[:10]:
        print(each)
    return {
        f"all {count} runs are accounted for": ends.total() == count and not wrong,
        "each has its journal": len(names) == count,
        "no run made its call twice": all(each == 1 for each in calls.values()),
        "a fault here and there leaves most runs their answer": ends["Answer"] > 0.8 * count,
        "memory does not grow": slopes["megabytes"] < GROWTH,
        # At one moment there are ten tasks more or fewer than at another: by chance alone a slope is off by one.
        "open files and tasks do not grow": abs(slopes["files"]) < 5 and abs(slopes["tasks"]) < 5,
        "no open file is left": after.files <= before.files + 1,
        "no task is left": after.tasks <= before.tasks,
    }


def main() -> int:
    """Start the service, run, and stop it."""
    parser = argparse.ArgumentParser(description="Runs against a service that fails.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.seed))
        return 0
    command = [sys.executable, "-m", "tests.endurance.runs", "--serve", "--seed", str(given.seed)]
    with tempfile.TemporaryDirectory() as made, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        os.chdir(made)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            bars = asyncio.run(soak(port, Path(made), given.runs))
        finally:
            process.terminate()
        print("the service: " + process.stdout.readline().strip())
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main())
