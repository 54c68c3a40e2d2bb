"""A day of `portico serve` in ten minutes: `python -m tests.endurance.served_day [--minutes N]`.

People and programs ask, watch, leave in the middle, agree, refuse, edit, cancel, resume, chat, and send nonsense, as
fast as the server lets them, against the real command with a journal in SQLite. No answer may be an error of the
server, every run must come to an end or wait for a person, and memory, open files and threads may not grow. Exits 1
where a bar is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from tests.endurance.levels import Levels, judge
from tests.support.desks import environment_of, install_workshop, plan, read_events, step

TOKEN = "a-token-of-a-long-day-0123456789"
VISITORS = 12
GROWTH = 1.15
"""How much larger the server may be in the last quarter than in the second."""
ENDED = ("done", "infeasible", "failed", "interrupted", "cancelled")


@dataclass
class Visitor:
    """Does what one of those does who use the server; what it did is counted."""

    http: httpx.AsyncClient
    chance: random.Random
    did: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send a request, again where the server asks for patience, and note an error of the server."""
        while True:
            response = await self.http.request(method, path, json=body, **options)
            if response.status_code == 429:
                await asyncio.sleep(float(response.headers["retry-after"]))
                continue
            if response.status_code >= 500:
                self.wrong.append(f"{method} {path}: {response.status_code} {response.text}"[:300])
            return response

    async def start(self, *plans: Any, **goal: Any) -> str:
        response = await self.request("POST", "/api/runs", {"goal": json.dumps({"plans": plans, **goal})})
        return str(response.json()["run"])

    async def watch(self, path: str, until: Callable[[str, Any], bool]) -> None:
        """Watch a run or a conversation until something, or leave in the middle."""
        leaves = self.chance.random() < 0.3
        async with asyncio.timeout(60), self.http.stream("GET", f"/api{path}/events") as response:
            async for event, data in read_events(response.aiter_lines()):
                if leaves or until(event, data):
                    return

    async def follow(self, run: str) -> str:
        """Watch a run until it has come to an end or waits for a person; return its state."""

        def rests(event: str, data: Any) -> bool:
            return event == "snapshot" and data["state"] in (*ENDED, "held") and not data["here"]

        await self.watch(f"/runs/{run}", rests)
        while True:
            found = (await self.request("GET", f"/api/runs/{run}")).json()
            if found["state"] in (*ENDED, "held") and not found["here"]:
                return str(found["state"])
            await asyncio.sleep(0.1)

    async def ask(self) -> None:
        run = await self.start(plan(step("s1", "tools-shout", text="hey"), result="s1"))
        await self.follow(run)
        for path in (f"/api/runs/{run}", f"/api/runs/{run}/steps/s1", f"/api/runs/{run}/trace", "/api/runs?limit=20"):
            await self.request("GET", path)

    async def decide(self) -> None:
        sends = [plan(step("s1", "tools-send", text=text), result="s1") for text in ("one", "two")]
        run = await self.start(*sends)
        if await self.follow(run) != "held":
            return
        match self.chance.randrange(4):
            case 0:
                await self.request("POST", f"/api/runs/{run}/approve")
            case 1:
                await self.request("POST", f"/api/runs/{run}/refuse", {"reason": "Say it otherwise."})
                await self.follow(run)
                await self.request("POST", f"/api/runs/{run}/approve")
            case 2:
                edited = {"version": 2, "goal": "", **plan(step("s1", "tools-send", text="edited"), result="s1")}
                await self.request("POST", "/api/plans/check", {"plan": edited, "run": run})
                await self.request("POST", f"/api/runs/{run}/approve", {"plan": edited})
            case _:
                return  # it waits for another day
        await self.follow(run)

    async def cancel(self) -> None:
        steps = [step(f"s{number}", "tools-sleep", milliseconds=200) for number in range(1, 4)]
        run = await self.start(plan(*steps, result="s3"))
        await asyncio.sleep(self.chance.random() * 0.5)
        await self.request("POST", f"/api/runs/{run}/cancel")
        await self.request("POST", f"/api/runs/{run}/resume")
        await self.follow(run)

    async def chat(self) -> None:
        chat = (await self.request("POST", "/api/chats")).json()["chat"]
        for said in ("hello", 'call tools-shout {"text": "hey"}', "fail", "bye"):
            await self.request("POST", f"/api/chats/{chat}/messages", {"text": said})
            await self.watch(f"/chats/{chat}", lambda event, data: event == "snapshot" and not data["busy"])
            while (await self.request("GET", f"/api/chats/{chat}")).json()["busy"]:
                await asyncio.sleep(0.1)
        if self.chance.random() < 0.7:
            await self.request("DELETE", f"/api/chats/{chat}")

    async def complete(self) -> None:
        goal = json.dumps({"answer": "a b c d e f", "pause": 0.02})
        for stream in (False, True):
            model = self.chance.choice(["portico", "portico-agent"])
            body = {"model": model, "messages": [{"role": "user", "content": goal}], "stream": stream}
            await self.request("POST", "/v1/chat/completions", body)

    async def talk_nonsense(self) -> None:
        for method, path, options in (
            ("GET", "/api/runs/none", {}),
            ("POST", "/api/runs", {"content": b"{"}),
            ("POST", "/api/runs", {"content": b"x" * 1_200_000}),
            ("GET", "/nothing", {"headers": {"authorization": "Bearer wrong"}}),
            ("GET", "/api/about", {"headers": {"host": "elsewhere.example"}}),
            ("DELETE", "/api/runs", {}),
        ):
            response = await self.request(method, path, **options)
            if response.status_code < 400:
                self.wrong.append(f"{method} {path} was accepted")

    async def spend_the_day(self, until: float) -> None:
        """Do one thing after another."""
        things: dict[str, Callable[[], Awaitable[None]]] = {
            "questions": self.ask,
            "plans": self.decide,
            "cancelled": self.cancel,
            "conversations": self.chat,
            "completions": self.complete,
            "nonsense": self.talk_nonsense,
        }
        while time.monotonic() < until:
            [name] = self.chance.choices([*things], [4, 3, 1, 1, 2, 1])
            try:
                await things[name]()
                self.did[name] += 1
            except (httpx.HTTPError, TimeoutError, LookupError, ValueError) as error:
                self.wrong.append(f"{name}: {type(error).__name__}: {error}"[:300])


async def spend(url: str, process: psutil.Process, seconds: float) -> dict[str, bool]:
    """Let all visitors spend the day, print what the server holds meanwhile, and return the bars."""
    levels = Levels(process, process.num_threads)
    # A server closes connections that rest: a client that keeps them would see that as an error of the server.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60, limits=limits) as http:
        visitors = [Visitor(http, random.Random(seed)) for seed in range(VISITORS)]
        await visitors[0].ask()
        before = levels.take(0)
        levels.seen.clear()
        began = time.monotonic()
        at_work = [asyncio.create_task(each.spend_the_day(began + seconds)) for each in visitors]
        while not all(each.done() for each in at_work):
            await asyncio.wait(at_work, timeout=seconds / 20)
            level = levels.take(sum(each.did.total() for each in visitors))
            print(
                f"{time.monotonic() - began:6.0f} s  {level.done:6} things done  {level.megabytes:6.1f} MB  "
                f"{level.files:4} files  {level.tasks:3} threads",
                flush=True,
            )
        runs: Counter[str] = Counter()
        query = {"limit": "200"}
        while True:
            found = (await visitors[0].request("GET", "/api/runs", params=query)).json()
            runs.update(each["state"] for each in found["runs"])
            if not found["more"]:
                break
            query["before"] = found["next"]
    await asyncio.sleep(1)
    after = levels.take(levels.seen[-1].done)
    sizes = [each.megabytes for each in levels.seen]
    quarter = max(len(sizes) // 4, 1)
    early, late = sum(sizes[quarter : 2 * quarter]) / quarter, sum(sizes[-quarter:]) / quarter
    did = sum((each.did for each in visitors), Counter[str]())
    wrong = [each for visitor in visitors for each in visitor.wrong]
    print(f"done: {dict(did.most_common())}")
    print(f"{runs.total()} runs: {dict(runs.most_common())}")
    print("growth with 1,000 things: " + ", ".join(f"{name} {each:+.2f}" for name, each in levels.slopes().items()))
    print(f"memory {early:.1f} MB, later {late:.1f} MB; open files {before.files} before, {after.files} after")
    for each in wrong[:10]:
        print(each)
    return {
        f"no error of the server, nothing lost ({len(wrong)})": not wrong,
        "every run ended or waits for a person": not runs.keys() - {*ENDED, "held"},
        "memory does not grow": late < early * GROWTH,
        "no open file is left": after.files <= before.files + 4,
        "no thread is left": after.tasks <= before.tasks + 4,
    }


def main() -> int:
    """Start the server, spend the day, and stop it."""
    parser = argparse.ArgumentParser(description="A day of `portico serve` in ten minutes.")
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        install_workshop(folder)
        for name in ("on", "hold-after"):
            (folder / name).touch()
        command = [sys.executable, "-m", "portico_cli", "serve", "--no-browser", "--port", "0"]
        environment = {**environment_of(folder), "PORTICO_SERVE_TOKEN": TOKEN}
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().partition("/?token=")[0]
            try:
                bars = asyncio.run(spend(url, psutil.Process(process.pid), given.minutes * 60))
            finally:
                process.terminate()
            bars["it ends when it is asked to"] = process.wait(30) == 0
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main())
