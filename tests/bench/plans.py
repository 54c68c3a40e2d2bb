"""What a plan costs beside what it does: `python -m tests.bench.plans`.

- *five steps*: a plan in XML of five native functions is parsed, checked and run; the floor is ElementTree parsing the
  same text and five plain awaits. Held to a limit, and shown in its three parts.
- *a step*: a plan of fifty steps is run without a journal, as a chain and as a fan, and the plain awaits are taken
  away. Held to a limit in microseconds a step; checking is shown beside it, and so is what a bare task costs: side by
  side, each step needs one.
- *a loop*, *flows*: an item of a step that runs for a thousand, without its call; and the check of fifty steps with a
  policy. Both are held to limits in microseconds.
- *journal*: the longest time for which the event loop was not free, while another connection holds the database of the
  journal now and then, for a time that is known: whoever writes has to wait. Beside it, the same of a loop that has
  nothing to do, and of a journal that is written on the loop, which shows that the measurement can see it. Held to a
  part of that time.
- *JSON*: writing and reading a plan beside what `json` alone takes for the same document.

The kinds take turns in short batches and a ratio is the median over the rounds, so that a slow moment of the machine
falls on all of them alike. Microseconds are those of the best round: others on the machine can only add to them. For
the same reason what is over its limit in microseconds is measured again, twice at most, and the least is taken.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.peers.work import PLAN as TEXT, five_awaits, join, lower, read_and_await, repeat, upper

from portico import Each, Function, FunctionLabels, Kernel, Policy
from portico.plans import From, ListOf, Plan, Step, Value, XmlPlan, check_plan, plan_from_json, plan_to_json
from portico.ports import Lease, RunStore
from portico_testkit.fakes.run_store import MemoryRunStore

LIMIT = 10.0
STEP_LIMIT = 12.0
ITEM_LIMIT = 25.0
FLOWS_LIMIT = 5_000.0
ITEMS = 1_000
ROUNDS = 600
BATCH = 2
STEPS = 50
MEASURED_AGAIN = 2
JOURNAL_ROUNDS = 5
HELD_SECONDS = 0.05
"""How long another connection holds the database of the journal, each time."""
HELD_EACH = 0.08
STALL_LIMIT = 0.5
"""The part of that time for which the event loop may not be free: half of it lies far from both ends."""
FLOOR = "ElementTree and five awaits"
STALL = "longest stall, journal, ms"


def make_kernel(policy: Policy | None = None) -> Kernel:
    kernel = Kernel(policy=policy)
    for callable in (upper, lower, join, repeat):
        kernel.add_function(Function.of(callable, plugin="Text"))
    return kernel


def chain() -> Plan:
    """Make a plan in which each step waits for the one before."""
    steps = [Step("s1", "Text-upper", {"text": Value("hello")})]
    steps += [Step(f"s{n}", "Text-upper", {"text": From(f"s{n - 1}")}) for n in range(2, STEPS + 1)]
    return Plan("", tuple(steps), From(f"s{STEPS}"))


def fan() -> Plan:
    """Make a plan whose steps are all ready at once."""
    steps = tuple(Step(f"s{n}", "Text-upper", {"text": Value("hello")}) for n in range(1, STEPS + 1))
    return Plan("", steps, ListOf(tuple(From(step.id) for step in steps)))


async def sample(work: Callable[[], Awaitable[Any]]) -> float:
    """Return the microseconds of one call, over a batch."""
    started = time.perf_counter_ns()
    for _ in range(BATCH):
        await work()
    return (time.perf_counter_ns() - started) / BATCH / 1_000


async def measured(kinds: Mapping[str, Callable[[], Awaitable[Any]]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best microseconds of each kind, and the median of its ratios to the first of the same round."""
    samples: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, work in kinds.items():
            samples[kind].append(await sample(work))
    floor = next(iter(samples.values()))
    ratios = {
        kind: statistics.median(one / other for one, other in zip(values, floor, strict=True))
        for kind, values in samples.items()
    }
    return {kind: min(values) for kind, values in samples.items()}, ratios


async def five_steps(kernel: Kernel) -> tuple[dict[str, float], dict[str, float]]:
    catalogue = {name: function.spec for name, function in kernel.functions.items()}
    plan = XmlPlan.read(TEXT, catalogue).plan
    wanted = await five_awaits()
    got = (await kernel.run_plan(plan)).outcome
    assert getattr(got, "value", None) == wanted, "the plan does what the awaits do"

    async def whole() -> None:
        await kernel.run_plan(XmlPlan.read(TEXT, catalogue).plan)

    async def parse() -> None:
        XmlPlan.read(TEXT, catalogue)

    async def parse_and_check() -> None:
        check_plan(XmlPlan.read(TEXT, catalogue).plan, catalogue)

    async def run_again() -> None:
        await kernel.run_plan(plan)

    return await measured(
        {
            FLOOR: read_and_await,
            "parse, check and run": whole,
            "parse": parse,
            "parse and check": parse_and_check,
            "run it again": run_again,
        }
    )


async def a_step(kernel: Kernel, plan: Plan) -> dict[str, float]:
    """Return the microseconds of one step: of running it beyond a plain await, and of checking it."""
    catalogue = {name: function.spec for name, function in kernel.functions.items()}

    async def awaits() -> None:
        for _ in range(STEPS):
            await upper(text="hello")

    async def run() -> None:
        await kernel.run_plan(plan)

    async def check() -> None:
        check_plan(plan, catalogue)

    async def tasks() -> None:
        await asyncio.gather(*[upper(text="hello") for _ in range(STEPS)])

    found: dict[str, float] = {}
    for _ in range(1 + MEASURED_AGAIN):
        taken, _ = await measured({"awaits": awaits, "run": run, "check": check, "tasks": tasks})
        overhead = (taken["run"] - taken["check"] - taken["awaits"]) / STEPS
        if not found or overhead < found["overhead"]:
            bare = (taken["tasks"] - taken["awaits"]) / STEPS
            found = {"overhead": overhead, "check": taken["check"] / STEPS, "bare task": bare}
        if found["overhead"] <= STEP_LIMIT:
            break
    return found


async def loops_and_flows(kernel: Kernel) -> dict[str, float]:
    """Return the microseconds of an item of a loop beyond the call, and those of checking the flows of fifty steps."""
    once = Step("s1", "Text-upper", {"text": From("item")}, each=Each(Value(["hello"] * ITEMS)))
    plan, policy = Plan("", (once,), From("s1")), Policy("enforce", {"Text-*": FunctionLabels.read({"$": "as given"})})
    flows = make_kernel(policy)

    async def calls() -> None:
        for _ in range(ITEMS):
            await kernel.invoke_json("Text-upper", {"text": "hello"})

    async def loop() -> None:
        await kernel.run_plan(plan)

    async def check() -> None:
        flows.check_plan(chain())

    async def check_alone() -> None:
        kernel.check_plan(chain())

    taken = {
        kind: min([await sample(work) for _ in range(30)])
        for kind, work in {"calls": calls, "loop": loop, "check": check, "alone": check_alone}.items()
    }
    return {"an item": (taken["loop"] - taken["calls"]) / ITEMS, "flows": taken["check"], "alone": taken["alone"]}


async def longest_stall(work: Awaitable[Any]) -> float:
    """Return the longest time, in milliseconds, that a task had to wait for its turn while ``work`` is done."""
    running = asyncio.ensure_future(work)
    longest = 0.0
    while not running.done():
        before = time.perf_counter()
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - before)
    await running
    return longest * 1_000


@contextmanager
def held_now_and_then(path: Path) -> Iterator[None]:
    """Have another thread hold a database, so that whoever writes has to wait."""
    over = threading.Event()

    def hold() -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        while not over.wait(HELD_EACH - HELD_SECONDS):
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(HELD_SECONDS)
            connection.execute("ROLLBACK")
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class OnTheLoop(MemoryRunStore):
    """Writes as nobody should: the event loop waits for the database."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("COMMIT")
        await super().append(lease, entries)


async def journal() -> dict[str, float]:
    """Return the medians of the longest stalls, and of the time of a step with nothing in its way."""
    from portico_basics.config import SqliteSettings
    from portico_basics.sqlite.store import SqliteRunStore

    kernel = make_kernel()
    stalls: dict[str, list[float]] = {"nothing to do": [], "journal": [], "journal on the loop": []}
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite3"
        kernel.run_store = store = SqliteRunStore(SqliteSettings(path=path, sync="always"))
        try:
            await kernel.run_plan(chain())
            for _ in range(JOURNAL_ROUNDS):
                started = time.perf_counter()
                await kernel.run_plan(chain())
                seconds.append(time.perf_counter() - started)
            on_the_loop = OnTheLoop(path)
            with held_now_and_then(path):
                for _ in range(JOURNAL_ROUNDS):
                    # Long enough that the database is held meanwhile, however fast the disk is.
                    stalls["nothing to do"].append(await longest_stall(asyncio.sleep(2 * HELD_EACH)))
                    stores: dict[str, RunStore] = {"journal": store, "journal on the loop": on_the_loop}
                    for kind, each in stores.items():
                        kernel.run_store = each
                        stalls[kind].append(await longest_stall(at_least(2 * HELD_EACH, kernel)))
            on_the_loop.connection.close()
        finally:
            await store.aclose()
    return {
        **{f"longest stall, {kind}, ms": statistics.median(values) for kind, values in stalls.items()},
        "a step, each entry synced, ms": statistics.median(seconds) * 1_000 / STEPS,
    }


async def at_least(seconds: float, kernel: Kernel) -> None:
    """Run plans for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        await kernel.run_plan(chain())


async def json_form() -> tuple[dict[str, float], dict[str, float]]:
    plan = chain()
    document = plan_to_json(plan)
    assert plan_from_json(json.loads(json.dumps(document))) == plan

    async def floor() -> None:
        json.loads(json.dumps(document))

    async def round_trip() -> None:
        plan_from_json(json.loads(json.dumps(plan_to_json(plan))))

    return await measured({"json alone": floor, "plan to JSON and back": round_trip})


def main() -> int:
    """Measure, print the figures and one JSON line; return 1 where a limit is broken."""
    kernel = make_kernel()
    broken: list[str] = []
    print(f"medians of {ROUNDS} batches of {BATCH}; microseconds, unless something else is said")
    taken, ratios = asyncio.run(five_steps(kernel))
    for kind, microseconds in taken.items():
        limit = f"  limit {LIMIT:.0f}x" if kind == "parse, check and run" else ""
        print(f"five steps: {kind:38}{microseconds:10.1f}{ratios[kind]:8.2f}x{limit}")
    if ratios["parse, check and run"] > LIMIT:
        broken.append("five steps")
    steps: dict[str, dict[str, float]] = {}
    for name, plan in {"chain": chain(), "fan": fan()}.items():
        steps[name] = asyncio.run(a_step(kernel, plan))
        print(f"a step: {name + ', overhead of running':42}{steps[name]['overhead']:10.1f}  limit {STEP_LIMIT:.0f}")
        print(f"a step: {name + ', check':42}{steps[name]['check']:10.1f}")
        beside = steps[name]["overhead"] / steps[name]["bare task"]
        print(f"a step: {'a bare task':42}{steps[name]['bare task']:10.1f}    overhead {beside:.1f} times that")
        if steps[name]["overhead"] > STEP_LIMIT:
            broken.append(f"a step: {name}")
    more = asyncio.run(loops_and_flows(kernel))
    print(f"a loop: {'an item, beyond its call':42}{more['an item']:10.1f}  limit {ITEM_LIMIT:.0f}")
    print(f"flows: {'check of fifty steps with a policy':43}{more['flows']:10.1f}  limit {FLOWS_LIMIT:.0f}")
    print(f"flows: {'the same without a policy':43}{more['alone']:10.1f}")
    if more["an item"] > ITEM_LIMIT or more["flows"] > FLOWS_LIMIT:
        broken.append("loops and flows")
    journalled = asyncio.run(journal()) if importlib.util.find_spec("portico_basics.sqlite") else {}
    for kind, milliseconds in journalled.items():
        limit = f"  limit {STALL_LIMIT * HELD_SECONDS * 1_000:.0f}" if kind == STALL else ""
        print(f"journal: {kind:41}{milliseconds:10.2f}{limit}")
    if journalled and journalled[STALL] > STALL_LIMIT * HELD_SECONDS * 1_000:
        broken.append("journal")
    json_taken, json_ratios = asyncio.run(json_form())
    for kind, microseconds in json_taken.items():
        print(f"JSON, {STEPS} steps: {kind:34}{microseconds:10.1f}{json_ratios[kind]:8.2f}x")
    figures = {
        "five steps": {kind: {"us": taken[kind], "ratio": ratios[kind]} for kind in taken},
        "a step": steps,
        "journal": journalled,
        "json": json_ratios["plan to JSON and back"],
    }
    print(json.dumps({"bench": "plans", "broken": broken, "figures": figures}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
