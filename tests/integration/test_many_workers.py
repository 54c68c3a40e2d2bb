"""Runs on many workers that are killed, cut off and begun again, with a PostgreSQL that restarts meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.integration.ten_steps import PAID
from tests.support.packages import write_metadata
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.tcp_proxy import TcpProxy

from portico.plugins import RunState, Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and socket files")

PLUGIN = Path(__file__).with_name("ten_steps.py")
STEPS = {f"s{number}" for number in range(1, 11)}
LEASE_SECONDS = 6.0
WORKER_TIMEOUT = 4.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@dataclass
class Hall:
    """A folder with a configuration, in which workers are started and killed."""

    folder: Path
    uri: str
    environment: Mapping[str, str]
    seconds: float = 0.05
    concurrency: int = 8
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        library = self.folder / "library"
        write_metadata(library, "portico-ten-steps", {"portico": {"ten-steps": "ten_steps"}})
        shutil.copy(PLUGIN, library)
        (self.folder / "log").mkdir()
        self.configure("portico.toml", self.uri)

    def configure(self, name: str, uri: str) -> None:
        """Write a configuration with that database."""
        (self.folder / name).write_text(
            f"""
            [planner]
            use = "ten-steps"
            [functions.steps]
            use = "ten-steps"
            log = "log"
            seconds = {self.seconds}
            [runs]
            use = "postgres"
            [runs.postgres]
            uri = {json.dumps(uri)}
            lease_seconds = {LEASE_SECONDS}
            connect_timeout = 5.0
            [runner]
            use = "dbos"
            [runner.dbos]
            uri = {json.dumps(uri)}
            worker_timeout = {WORKER_TIMEOUT}
            concurrency = {self.concurrency}
            """
        )

    def command(self, *arguments: str, config: str = "portico.toml") -> subprocess.Popen[bytes]:
        """Start the command line."""
        output = (self.folder / "output.txt").open("ab")
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "portico_cli", *arguments, "--config", config],
                cwd=self.folder,
                env={**self.environment, "PYTHONPATH": str(self.folder / "library")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        finally:
            output.close()

    def submit(self, goals: Sequence[str]) -> None:
        """Submit goals and wait until they are in the queue."""
        (self.folder / "goals.txt").write_text("\n".join(goals) + "\n")
        assert self.command("submit", "--file", "goals.txt").wait(120) == 0, self.said()

    def worker(self, config: str = "portico.toml") -> subprocess.Popen[bytes]:
        """Start a worker."""
        process = self.command("worker", "--json", config=config)
        self.processes.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a worker as the system does that has no memory left."""
        process.kill()
        process.wait(30)
        self.processes.remove(process)

    def end(self) -> None:
        """Ask all workers to end, and make those that do not."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)

    def said(self) -> str:
        """Return the end of what all of them printed."""
        file = self.folder / "output.txt"
        return file.read_text("utf-8", "replace")[-4_000:] if file.exists() else ""

    def store(self) -> PostgresRunStore:
        """Return the journal, straight from the server."""
        return PostgresRunStore(PostgresRunSettings(uri=Secret(self.uri)))

    def runs(self) -> dict[str, list[Mapping[str, Any]]]:
        """Return every run's entries, by its name."""

        async def read() -> dict[str, list[Mapping[str, Any]]]:
            store = self.store()
            try:
                return {run: await store.read(run) for run in await store.runs()}
            finally:
                await store.aclose()

        return asyncio.run(read())

    def ended(self) -> Counter[str]:
        """Return how many runs are in which state."""
        return Counter(RunState.of(entries).state for entries in self.runs().values())


@contextmanager
def hall(folder: Path, uri: str, environment: Mapping[str, str], **settings: Any) -> Iterator[Hall]:
    made = Hall(folder, uri, environment, **settings)
    try:
        yield made
    finally:
        made.end()


def wait_for_the_first_call(workers: Hall) -> None:
    """Wait until a worker has begun a step."""
    until = time.monotonic() + 60.0
    while not (workers.folder / "log" / "calls").exists():
        assert time.monotonic() < until, workers.said()
        assert all(process.poll() is None for process in workers.processes), workers.said()
        time.sleep(0.05)


def wait_for_all(workers: Hall, goals: int, seconds: float) -> Counter[str]:
    """Wait until every goal has a run that ended or is held."""
    until = time.monotonic() + seconds
    while True:
        states = workers.ended()
        if sum(states[state] for state in ("done", "held", "uncertain", "failed", "infeasible")) == goals:
            return states
        assert time.monotonic() < until, f"{states} after {seconds:g} s\n{workers.said()}"
        time.sleep(1.0)


def faults(workers: Hall, goals: Sequence[str]) -> list[str]:
    """Return what must not be: a step that ran after it had finished, effects twice, a journal with a hole."""
    begun: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in (workers.folder / "log" / "calls").read_text().splitlines():
        what, goal, step, at = line.split()
        if what == "begins":
            begun[goal, step].append(float(at))
    runs = workers.runs()
    found = [f"{len(runs)} runs for {len(goals)} goals"] if len(runs) != len(goals) else []
    seen: Counter[str] = Counter()
    for run, entries in runs.items():
        state = RunState.of(entries)
        seen[state.goal] += 1
        found += [f"{run}: {fault}" for fault in of_one_run(state, entries, begun)]
    found += [f"{goal} has {seen[goal]} runs" for goal in goals if seen[goal] != 1]
    return found


def of_one_run(
    state: RunState, entries: Sequence[Mapping[str, Any]], begun: Mapping[tuple[str, str], list[float]]
) -> list[str]:
    found: list[str] = []
    if entries[0]["type"] != "pursuit" or entries[-1]["type"] != "outcome":
        found.append(f"begins with {entries[0]['type']} and ends with {entries[-1]['type']}")
    if state.state not in {"done", "uncertain"}:
        found.append(f"is {state.state}: {state.reason}")
    finished = Counter(entry["step"] for entry in entries if entry["type"] == "step-finished")
    started = Counter(entry["step"] for entry in entries if entry["type"] == "step-started")
    found += [f"{step} finished {count} times" for step, count in finished.items() if count > 1]
    found += [f"{step} finished and did not start" for step in finished if not started[step]]
    if state.state == "done" and set(finished) != STEPS:
        found.append(f"lacks {sorted(STEPS - set(finished))}")
    for step in STEPS:
        calls = begun.get((state.goal, step), [])
        if step in PAID and len(calls) > 1:
            found.append(f"{step}, which has effects, ran {len(calls)} times")
        ends = [datetime.fromisoformat(e["at"]).timestamp() for e in entries if is_end(e, step)]
        if ends and any(call > ends[0] for call in calls):
            found.append(f"{step} ran again after it had finished")
        if step in finished and not calls:
            found.append(f"{step} finished and never ran")
    return found


def is_end(entry: Mapping[str, Any], step: str) -> bool:
    return bool(entry["type"] == "step-finished" and entry["step"] == step)


def kill_now_and_then(
    workers: Hall, chance: random.Random, goals: int, *, most: int, every: float, restart: Any
) -> tuple[int, int]:
    """Kill a worker every few seconds and start another, ``most`` of them, and restart the server when half is done.

    Returns how many workers were killed, and how often the server was restarted.
    """
    kills = restarts = 0
    wait_for_the_first_call(workers)
    until = time.monotonic() + 1_200.0
    while time.monotonic() < until:
        time.sleep(every * chance.uniform(0.5, 1.5))
        states = workers.ended()
        over = sum(states.values()) - states["running"] - states["interrupted"]
        if over >= goals:
            break
        if not restarts and over >= goals // 2:
            restart()
            restarts += 1
        if kills < most:
            workers.kill(chance.choice(workers.processes))
            kills += 1
            workers.worker()
    return kills, restarts


def soak(workers: Hall, server: PostgresServer, *, goals: int, count: int, most: int, every: float) -> dict[str, Any]:
    names = [f"goal-{number}" for number in range(goals)]
    workers.submit(names)
    for _ in range(count):
        workers.worker()
    began = time.monotonic()
    kills, restarts = kill_now_and_then(
        workers, random.Random(7), goals, most=most, every=every, restart=server.restart
    )
    states = wait_for_all(workers, goals, 120.0)
    took = time.monotonic() - began
    assert faults(workers, names) == []
    return {"goals": goals, "kills": kills, "restarts": restarts, "states": dict(states), "seconds": round(took, 1)}


def test_workers_that_are_killed_finish_every_run_and_do_nothing_twice(
    tmp_path: Path, server: PostgresServer, outer_environment: dict[str, str]
) -> None:
    with hall(tmp_path, server.uri, outer_environment, seconds=0.5) as workers:
        # The eight steps one after the other take four seconds: the first kill is before any run can end.
        report = soak(workers, server, goals=12, count=2, most=4, every=2.5)
    assert report["kills"] >= 1, report


@pytest.mark.slow
def test_two_hundred_runs_survive_workers_that_are_killed_all_the_time_and_a_restart_of_the_server(
    tmp_path: Path, server: PostgresServer, outer_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with hall(tmp_path, server.uri, outer_environment, seconds=0.5) as workers:
        report = soak(workers, server, goals=200, count=3, most=1_000, every=4.0)
    with capsys.disabled():
        print(f"\n{json.dumps(report)}")
    assert report["kills"] >= report["seconds"] / 8, report
    assert report["restarts"] == 1, report


def test_a_worker_that_is_cut_off_for_ten_seconds_loses_its_leases_and_does_nothing_twice(
    tmp_path: Path, server: PostgresServer, outer_environment: dict[str, str]
) -> None:
    names = [f"goal-{number}" for number in range(6)]
    with (
        TcpProxy(server.address) as proxy,
        hall(tmp_path, server.uri, outer_environment, seconds=1.0, concurrency=6) as workers,
    ):
        workers.configure("through-proxy.toml", server.uri_at(proxy.port))
        workers.submit(names)
        cut_off = workers.worker("through-proxy.toml")
        wait_for_the_first_call(workers)
        time.sleep(1.5)
        proxy.stall()
        workers.worker()
        time.sleep(10.0)
        proxy.go_on()
        wait_for_all(workers, len(names), 120.0)
        assert cut_off.poll() is None, f"the worker that was cut off died\n{workers.said()}"
        assert faults(workers, names) == []
        owners = {worker for entries in workers.runs().values() for worker in took_over(entries)}
        assert owners, "no lease passed on"


def took_over(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the entries that say that another process went on."""
    return [str(entry["at"]) for entry in entries if entry["type"] == "resumed"]
