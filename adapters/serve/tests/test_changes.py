"""The changes of a run, whatever it does: applied to the first snapshot they give what a new snapshot gives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import given, settings, strategies as st

from portico import Kernel, function
from portico.errors import PorticoError, RateLimited
from portico.plans import Budget, Plan, plan_from_json
from portico.plugins import RunState
from portico_cli.runs import RunEntry, parse_time
from portico_serve._runs.feeds import Seen
from portico_serve._runs.views import Here, Kept, describe
from portico_testkit.fakes.run_store import MemoryRunStore


class _Work:
    """Functions that end in every way."""

    def __init__(self) -> None:
        self.calls = 0

    @function
    async def make(self, count: int) -> list[int]:
        """Make a list."""
        await asyncio.sleep(0)
        return list(range(count))

    @function
    async def use(self, value: Any) -> Any:
        """Give a value back, at the third call only after an error that may pass."""
        self.calls += 1
        if self.calls % 3 == 0:
            raise RateLimited("the line is busy", retry_after=0)
        return value

    @function(effects=True)
    async def send(self, value: Any) -> str:
        """Send something."""
        return "sent"

    @function
    def fail(self) -> None:
        """Fail always."""
        raise RuntimeError("it fell over")


def _step(number: int, kind: str, earlier: int) -> dict[str, Any]:
    before: dict[str, Any] = {"from": f"s{earlier % number}"} if number else {"value": [1, 2]}
    made: dict[str, Any] = {"id": f"s{number}"}
    match kind:
        case "make" | "fail" | "send":
            arguments = {"make": {"count": {"value": earlier % 4}}, "fail": {}, "send": {"value": before}}[kind]
            return made | {"function": f"work-{kind}", "arguments": arguments}
        case "each":
            items: dict[str, Any] = {"items": {"value": [1, 2, 3]}, "at_once": 2, "failed": "skip"}
            return made | {"function": "work-use", "arguments": {"value": {"from": "item"}}, "each": items}
        case "when":
            one = {"value": {"value": 1}}
            return made | {"function": "work-use", "arguments": one, "when": {"present": before}}
        case "nested":
            inner = {"id": "a", "function": "work-use", "arguments": {"value": {"value": 1}}}
            return made | {"function": {"version": 1, "goal": "Inside", "steps": [inner]}}
        case _:
            return made | {"function": "work-use", "arguments": {"value": before}, "attempts": 2}


_KINDS = st.tuples(
    st.sampled_from(["make", "use", "each", "when", "nested", "fail", "send"]), st.integers(min_value=0, max_value=9)
)


async def _journal(plan: Plan, *, hold: bool, again: bool) -> tuple[Kernel, list[Mapping[str, Any]]]:
    """Run a plan, hold it first, and try again what failed, as is asked; return what the journal has."""
    store = MemoryRunStore()
    kernel = Kernel(run_store=store, budget=Budget(step_attempts=2))
    kernel.add_plugin(_Work(), "work")
    asked = 0

    async def decide(review: Any) -> bool:
        nonlocal asked
        asked += 1
        return not hold or asked > 1

    kernel.approve_plans(decide)
    with suppress(PorticoError):
        await kernel.run_plan(plan, run="r1")
    for _ in range(1 + again):
        state = RunState.of(await store.read("r1"))
        failed = [each.step.id for each in state.records if each.error is not None and each.step.own]
        if state.state == "held" or (again and state.state == "failed" and state.resumable):
            with suppress(PorticoError):
                await kernel.resume("r1", retry=failed if again else ())
    return kernel, await store.read("r1")


def _seconds(began: str, at: str) -> float:
    return round((parse_time(at) - parse_time(began)).total_seconds(), 3)


def _seen(kernel: Kernel, entries: Sequence[Mapping[str, Any]], kept: Kept) -> Seen:
    state = RunState.of(entries)
    return Seen(describe(kernel, RunEntry("r1", state.state, entries, state), Here(here=True), kept), entries)


@settings(max_examples=30, deadline=None)
@given(
    kinds=st.lists(_KINDS, min_size=1, max_size=5),
    cuts=st.lists(st.integers(min_value=1, max_value=60), max_size=12),
    hold=st.booleans(),
    again=st.booleans(),
)
def test_applied_changes_give_what_a_new_snapshot_gives(
    kinds: list[tuple[str, int]], cuts: list[int], hold: bool, again: bool
) -> None:
    steps = [_step(number, kind, earlier) for number, (kind, earlier) in enumerate(kinds)]
    plan = plan_from_json({"version": 2, "goal": "Work", "steps": steps})
    kernel, entries = asyncio.run(_journal(plan, hold=hold, again=again))
    kept, before, shown = Kept(), None, dict[str, Any]()

    for cut in [*sorted({min(each, len(entries)) for each in cuts}), len(entries)]:
        read = entries[:cut]
        fresh = _seen(kernel, read, Kept())
        whole = {**fresh.shape, **fresh.volatile}
        if before is not None and before.takes(read):
            now = before.take(read, partial(_seconds, entries[0]["at"]))
        else:
            now = _seen(kernel, read, kept)
        changed = None if before is None else now.changed(before)
        if changed is None:
            shown = {**now.shape, **now.volatile}
        else:
            shown = {**shown, **changed, "steps": {**shown["steps"], **changed["steps"]}}
        before = now
        assert shown == whole
