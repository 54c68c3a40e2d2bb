"""`kill -9` during a ten-step run with the real journal, and what resuming makes of it in a new process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.forking import Forking, forking, is_running

from portico.plugins import RunState
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")

WORKER = Path(__file__).with_name("running_worker.py")
KILLS = 12
ITEMS = 100
KILLS_OF_A_SOAK = 400
PATIENCE = 30.0
EARLY = 0.15
EACH_ONCE = Counter(["s2", "s4", "s6", "s8", "s9"])
"""How many of the kills come at any moment, also before the first step."""


@pytest.fixture
def process() -> Iterator[Forking]:
    with forking(WORKER) as started:
        yield started


def start(process: Forking, base: Path, **task: Any) -> int:
    return process.start({"base": str(base), **task})


def finish(base: Path, pid: int) -> dict[str, Any]:
    """Wait for a process and return what it reports."""
    end = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < end, f"the process {pid} did not end within {PATIENCE:g} s"
        time.sleep(0.002)
    return report_of(base, pid)


def report_of(base: Path, pid: int) -> dict[str, Any]:
    """Return what a process that has ended reports."""
    return json.loads((base / f"report-{pid}").read_text())


def kill(pid: int) -> bool:
    """Kill a process and wait until it is gone; False when it had ended by itself."""
    alive = is_running(pid)
    if alive:
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            time.sleep(0.002)
    return alive


def kill_somewhen(pid: int, base: Path, chance: random.Random, whole: float, *, early: bool) -> bool:
    """Kill a process at a random moment: of all its time where ``early`` says so, else of what it does."""
    calls = lines(base / "calls")
    while not early and is_running(pid) and lines(base / "calls") == calls:
        time.sleep(0.001)
    time.sleep(chance.uniform(0.0, whole))
    return kill(pid)


def lines(file: Path) -> Counter[str]:
    return Counter(file.read_text().split()) if file.exists() else Counter()


def journal(base: Path) -> tuple[str | None, RunState | None]:
    """Read the journal as another process does."""

    async def read() -> tuple[str | None, RunState | None]:
        store = SqliteRunStore(SqliteSettings(path=base / "runs.sqlite3"))
        try:
            runs = await store.runs()
            entries = await store.read(runs[0]) if runs else []
            return (runs[0], RunState.of(entries)) if entries else (None, None)
        finally:
            await store.aclose()

    return asyncio.run(read())


def settle(process: Forking, base: Path, run: str) -> dict[str, Any]:
    """Resume until the end; where a step is uncertain, look at the world as a person would, and say what happened."""
    given: dict[str, Any] = {}
    for _ in range(10):
        _, before = journal(base)
        calls, effects = lines(base / "calls"), lines(base / "effects")
        report = finish(base, start(process, base, run=run, **given))
        check_resumed(base, before, calls, effects, given)
        if not report.get("uncertain"):
            return report
        _, state = journal(base)
        assert state.uncertain, "an uncertain outcome names its steps"
        assert lines(base / "effects") == effects, "nothing with effects happens before the question is answered"
        given = answers_to(base, state)
    raise AssertionError("ten times resumed, and still no end")


def answers_to(base: Path, state: RunState) -> dict[str, Any]:
    """Look at the world as a person would, and say what happened of the steps that are uncertain."""
    effects = lines(base / "effects")
    return {
        "retry": [step for step in state.uncertain if not effects[step]],
        "results": {step: f"{step}({','.join(before_of(state, step))})" for step in state.uncertain if effects[step]},
    }


def before_of(state: RunState, step: str) -> list[str]:
    return state.started[step].arguments["after"]


def check_resumed(
    base: Path, before: RunState, calls: Counter[str], effects: Counter[str], given: dict[str, Any]
) -> None:
    """No finished step was called again, and no effect happened again that nobody asked for."""
    again = lines(base / "calls") - calls
    finished = before.results.keys()
    assert not again.keys() & finished, f"finished steps ran again: {sorted(again.keys() & finished)}"
    assert not again.keys() & set(given.get("results", {})), "a step whose result a person gave ran all the same"
    twice = {step for step in lines(base / "effects") - effects if effects[step] and step not in given.get("retry", [])}
    assert not twice, f"effects happened twice, unasked: {sorted(twice)}"


def kill_and_settle(process: Forking, base: Path, chance: random.Random, whole: float, *, second: bool) -> Counter[str]:
    """Run, kill at a random moment (and its resumption too where ``second`` says so), go on to the end."""
    base.mkdir()
    (base / "portico.toml").touch()
    pid = start(process, base)
    seen: Counter[str] = Counter(killed=kill_somewhen(pid, base, chance, whole, early=chance.random() < EARLY))
    run, state = journal(base)
    if run is None:
        # It had not begun: nothing may have happened either.
        assert not lines(base / "calls"), "steps ran before the journal had the run"
        return seen + Counter(before=1)
    seen["uncertain"] += bool(state.uncertain)
    if second and state.state == "running" and not state.uncertain:
        calls, effects = lines(base / "calls"), lines(base / "effects")
        pid = start(process, base, run=run)
        seen["killed"] += kill_somewhen(pid, base, chance, whole, early=chance.random() < EARLY)
        check_resumed(base, state, calls, effects, {})
        _, state = journal(base)
    if state.state == "done":
        seen["done"] += 1
    else:
        report = settle(process, base, run)
        assert report["outcome"] == "answer", report
        assert report["text"].startswith("done: s10(s8(s6(s4(s1())))"), report
    assert lines(base / "effects") == EACH_ONCE, "each effect happened once"
    calls = lines(base / "calls")
    assert set(calls) == {f"s{number}" for number in range(1, 11)}
    return seen


def seconds_of_a_run(process: Forking, base: Path) -> float:
    """Return how long an undisturbed run takes from its first step; it ends with its answer and each effect once."""
    base.mkdir()
    (base / "portico.toml").touch()
    pid = start(process, base)
    while not lines(base / "calls"):
        time.sleep(0.001)
    began = time.monotonic()
    report = finish(base, pid)
    took = time.monotonic() - began
    assert report["outcome"] == "answer", report
    assert lines(base / "effects") == EACH_ONCE
    return took


def many_kills(process: Forking, folder: Path, kills: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    # Of two runs the shorter: a busy host may have stopped the other.
    whole = min(seconds_of_a_run(process, folder / name) for name in ("whole", "again"))
    seen: Counter[str] = Counter()
    rounds = 0
    while seen["killed"] < kills:
        rounds += 1
        assert rounds < 3 * kills + 20, f"too few kills found a run at work: {seen}"
        seen += kill_and_settle(process, folder / f"round{rounds}", chance, whole, second=rounds % 3 == 0)
    return seen


def test_kills_at_any_moment_and_every_run_comes_to_its_end_with_each_effect_once(process, tmp_path):
    check_where_kills_came(many_kills(process, tmp_path, KILLS, seed=11), KILLS)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_kills_and_every_run_comes_to_its_end_with_each_effect_once(process, tmp_path, seed):
    kills = KILLS_OF_A_SOAK // 2
    check_where_kills_came(many_kills(process, tmp_path, kills, seed), kills)


def check_where_kills_came(seen: Counter[str], kills: int) -> None:
    """Of ten kills one left a step with effects uncertain, and half came after the run began."""
    assert seen["uncertain"] >= kills // 10, f"too few kills hit a step with effects: {seen}"
    assert seen["killed"] - seen["before"] >= kills // 2, f"too many kills came before the run began: {seen}"


def kills_among_items(process: Forking, folder: Path, kills: int, seed: int) -> None:
    """Kill a run of a hundred items again and again, until as many kills found one at work."""
    chance, killed, wanted = random.Random(seed), 0, [f"s1[{index}]" for index in range(ITEMS)]
    for number in count(1):
        base = folder / f"items{number}"
        base.mkdir()
        (base / "portico.toml").touch()
        pid, run = start(process, base, items=ITEMS), None
        for _ in range(5):
            killed += kill_somewhen(pid, base, chance, 0.3, early=False)
            run, state = journal(base)
            if run is None or state.state == "done":
                break
            pid = start(process, base, run=run, **answers_to(base, state))
        if run is not None and journal(base)[1].state != "done":
            kill(pid)
            assert settle(process, base, run)["outcome"] == "answer"
        assert lines(base / "effects") == (Counter(wanted) if run is not None else Counter())
        if killed >= kills:
            return


def test_kills_among_a_hundred_items_and_none_is_lost_or_happens_twice(process, tmp_path):
    kills_among_items(process, tmp_path, KILLS // 2, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_thirty_kills_among_a_hundred_items_and_none_is_lost_or_happens_twice(process, tmp_path):
    kills_among_items(process, tmp_path, 30, seed=4)


def begun(process: Forking, base: Path, **task: Any) -> int:
    """Start a process and wait until it is at work on the run's first step, which has no effects."""
    calls = lines(base / "calls").total()
    pid = start(process, base, gate="gate", **task)
    end = time.monotonic() + PATIENCE
    while lines(base / "calls").total() == calls:
        assert is_running(pid), report_of(base, pid)
        assert time.monotonic() < end, f"the process {pid} did not begin within {PATIENCE:g} s"
        time.sleep(0.001)
    return pid


@pytest.fixture
def base(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "portico.toml").touch()
    return folder


def test_of_two_processes_that_resume_one_run_one_is_told_that_it_is_busy(process, base):
    assert kill(begun(process, base))
    run, _ = journal(base)
    pids = [start(process, base, run=run, gate="gate") for _ in range(2)]
    end = time.monotonic() + PATIENCE
    while all(is_running(pid) for pid in pids):
        assert time.monotonic() < end, "both processes are at work on one run"
        time.sleep(0.002)
    (base / "gate").touch()
    answered, refused = sorted((finish(base, pid) for pid in pids), key=lambda report: "error" in report)
    assert answered.get("outcome") == "answer", answered
    assert refused.get("error") == "StoreBusy", refused
    assert "Another process is at work on the run" in refused["message"]
    assert lines(base / "effects") == EACH_ONCE


def test_a_run_whose_process_is_at_work_is_not_resumed(process, base):
    pid = begun(process, base)
    run, _ = journal(base)
    report = finish(base, start(process, base, run=run))
    assert report.get("error") == "StoreBusy", report
    (base / "gate").touch()
    assert finish(base, pid)["outcome"] == "answer"
    assert lines(base / "effects") == EACH_ONCE
