"""What is done to a run in one attempt after another, and what has to be recorded of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from portico.ports import DurableRuns, Runner
from portico_testkit._run_store_cases import short
from portico_testkit.tasks import in_time

__all__ = ["Attempt", "Call", "Doing", "durable_of"]


@dataclass(frozen=True, slots=True)
class Call:
    """An action's name, what it gives, whether it fails instead, and in how many turns of the event loop."""

    name: str
    value: Any
    fails: bool = False
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is executed of a run before it is begun again; ``fails`` says that its work raises in the end."""

    calls: tuple[Call, ...]
    side_by_side: bool = False
    fails: bool = False


@dataclass(slots=True)
class Doing:
    """Executes actions of a run, and notes which of them were called."""

    runner: Runner
    run: str
    called: list[str] = field(default_factory=list)
    recorded: dict[str, Any] = field(default_factory=dict)
    """What has to be recorded by now."""

    async def do(self, name: str, value: Any = "done") -> Any:
        """Execute an action that gives the value."""
        return await self.call(Call(name, value))

    async def call(self, call: Call) -> Any:
        """Execute an action; return what it gave, or the error of one that fails."""
        error = ConnectionError(f"{call.name} is down")

        async def action() -> Any:
            self.called.append(call.name)
            for _ in range(call.turns):
                await asyncio.sleep(0)
            if call.fails:
                raise error
            return call.value

        try:
            return await self.runner.execute(self.run, call.name, action)
        except ConnectionError as raised:
            assert raised is error, "another error came out than the action raised: raise it as it is, not a copy"
            return raised

    async def attempt(self, attempt: Attempt, seconds: float) -> None:
        """Do an attempt, and hold it against what has to be recorded before and after it."""
        before, self.called = dict(self.recorded), []
        failure = RuntimeError("the work failed")

        async def work() -> list[Any]:
            if attempt.side_by_side:
                results = list(await asyncio.gather(*map(self.call, attempt.calls)))
            else:
                results = [await self.call(call) for call in attempt.calls]
            if attempt.fails:
                raise failure
            return results

        durable = durable_of(self.runner)
        run = in_time(durable.run(self.run, work), "a run had no end", seconds=seconds)
        if attempt.fails:
            with pytest.raises(RuntimeError) as caught:
                await run
            assert caught.value is failure, "another error came out of `run_goal` than the work raised"
        else:
            for call, result in zip(attempt.calls, await run, strict=True):
                self._is_right(call, result, before)
        for call in attempt.calls:
            if call.name not in before and not call.fails:
                self.recorded[call.name] = call.value
        expected = [call.name for call in attempt.calls if call.name not in before]
        told = f"{sorted(before)} were recorded, {[call.name for call in attempt.calls]} were executed"
        assert sorted(self.called) == sorted(expected), f"{told}, and the actions called were {self.called}"
        await self.is_recorded()

    async def is_recorded(self) -> None:
        """Fail unless `recorded` tells what has to be recorded, and nothing else."""
        recorded = dict(await durable_of(self.runner).recorded(self.run))
        told = f"of the run {self.run!r}, {sorted(self.recorded)} succeeded, and {sorted(recorded)} are recorded"
        assert recorded.keys() == self.recorded.keys(), told
        for name, value in self.recorded.items():
            assert repr(recorded[name]) == repr(value), f"{short(value)} is recorded as {short(recorded[name])}"

    def _is_right(self, call: Call, result: Any, before: dict[str, Any]) -> None:
        if call.name in before:
            expected = before[call.name]
            assert repr(result) == repr(expected), f"{call.name} gave {expected!r}, and {result!r} is given back"
        elif call.fails:
            assert isinstance(result, ConnectionError), f"{call.name} failed, and gave {result!r}"
        else:
            assert repr(result) == repr(call.value), f"{call.name} gave {call.value!r}, which came as {result!r}"


def durable_of(runner: Runner) -> DurableRuns:
    """Return what the runner records with."""
    durable = runner.durable
    assert durable is not None, "the runner has no `durable`: give the fixture `runner` one that records"
    return durable


_NAMES = ("s1", "s2", "s3", "s1/s2", "S1", "proposal-1-0af3", "с1", " s1", 'a b\'s "c" %s')
