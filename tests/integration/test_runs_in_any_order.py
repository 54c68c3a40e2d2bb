"""Whatever is done with runs, in any order and with power cuts: the journal and the effects are those of a model."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from tests.support.cancelling import cancelled_at

from portico import From, Kernel, Plan, Step, Value, function
from portico.errors import RunError, StoreBusy
from portico.ports import Lease, RunStore
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

NAMES = st.sampled_from(["one", "two", "three"])
OWNERS = st.sampled_from(["here:1:a", "here:1:b"])
STEPS = ("s1", "s2", "s3")


class InFolder(RuleBasedStateMachine):
    """A machine with a folder, an event loop, and a journal in a file that may be closed and opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.store = self.open()

    def open(self) -> SqliteRunStore:
        return SqliteRunStore(SqliteSettings(path=Path(self.folder.name) / "runs.sqlite3"))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def before_closing(self) -> None:
        """Do what must be done before."""

    @rule()
    def closed_and_opened(self) -> None:
        self.before_closing()
        self.do(self.store.aclose())
        self.store = self.open()

    def teardown(self) -> None:
        self.do(self.store.aclose())
        self.runner.close()
        self.folder.cleanup()


class Journals(InFolder):
    """Two owners take runs, write to them and give them back."""

    leases: Bundle[Lease] = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, list[Mapping[str, Any]]] = {}
        self.holders: dict[str, tuple[str, int]] = {}

    @rule(target=leases, run=NAMES, owner=OWNERS)
    def taken(self, run: str, owner: str) -> Any:
        holder, newest = self.holders.get(run, (owner, 0))
        if holder not in (owner, ""):
            with pytest.raises(StoreBusy):
                self.do(self.store.acquire(run, owner=owner, seconds=600))
            return Lease(run, holder, newest)
        lease = self.do(self.store.acquire(run, owner=owner, seconds=600))
        assert lease.token > newest
        self.written.setdefault(run, [])
        self.holders[run] = (owner, lease.token)
        return lease

    @rule(lease=leases, words=st.lists(st.text(max_size=5), min_size=1, max_size=3))
    def written_to(self, lease: Lease, words: list[str]) -> None:
        entries = [{"type": "note", "word": word} for word in words]
        if self.holders[lease.run] != (lease.owner, lease.token):
            with pytest.raises(StoreBusy):
                self.do(self.store.append(lease, entries))
        else:
            self.do(self.store.append(lease, entries))
            self.written[lease.run] += entries

    def before_closing(self) -> None:
        # The lease of a process that is gone may be handed over: the model leaves that to the tests of leases.
        for run, (owner, token) in self.holders.items():
            if owner:
                self.given_back(Lease(run, owner, token))

    @rule(lease=consumes(leases))
    def given_back(self, lease: Lease) -> None:
        self.do(self.store.release(lease))
        if self.holders[lease.run] == (lease.owner, lease.token):
            self.holders[lease.run] = ("", lease.token)

    @invariant()
    def it_is_what_was_written(self) -> None:
        assert self.do(self.store.runs()) == list(self.written)
        for run, entries in self.written.items():
            assert self.do(self.store.read(run)) == entries
            assert self.do(self.store.held(run)) == (self.holders[run][0] != "")


class Runs(InFolder):
    """Runs of three payments begin, are cut off at any wait, and are continued as a person decides."""

    runs: Bundle[str] = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.paid: Counter[str] = Counter()
        self.agreed: Counter[str] = Counter()
        self.read: dict[str, list[Mapping[str, Any]]] = {}

    def kernel(self) -> Kernel:
        kernel = Kernel({RunStore: self.store})

        @function(effects=True)
        async def pay(account: str, step: str) -> str:
            """Pay."""
            await asyncio.sleep(0)
            self.paid[f"{account} {step}"] += 1
            await asyncio.sleep(0)
            return f"paid {step}"

        kernel.add_function(pay)
        return kernel

    @rule(target=runs, place=st.integers(1, 40))
    def begun(self, place: int) -> str:
        account = f"account {len(self.read)}"
        before = self.do(self.store.runs())
        plan = Plan(
            account,
            tuple(
                Step(name, "pay", {"account": Value(account), "step": Value(name)}, after=STEPS[number - 1 : number])
                for number, name in enumerate(STEPS)
            ),
            result=From("s3"),
        )
        kernel = self.kernel()
        self.do(cancelled_at(lambda: kernel.run_plan(plan), place))
        new = [run for run in self.do(self.store.runs()) if run not in before]
        self.read |= {run: [] for run in new}
        return new[0] if new else ""

    @rule(run=runs, place=st.integers(1, 40), again=st.booleans())
    def continued(self, run: str, place: int, again: bool) -> None:
        """Resume; of a step that may have happened a person says that it is to be done again, or what it gave."""
        if not run:
            return
        entries = self.do(self.store.read(run))
        state = self.state_of(entries)
        uncertain = [] if state is None else list(state.uncertain)
        options: dict[str, Any] = (
            {"retry": uncertain} if again else {"results": {each: f"paid {each}" for each in uncertain}}
        )
        kernel = self.kernel()
        try:
            self.do(cancelled_at(lambda: kernel.resume(run, **options), place))
        except RunError as error:
            assert state is None or state.outcome is not None, error
            return
        if again and state is not None:
            self.agreed.update(f"{state.goal} {each}" for each in uncertain)

    def state_of(self, entries: list[Mapping[str, Any]]) -> Any:
        from portico.plugins import RunState

        return RunState.of(entries) if entries else None

    @invariant()
    def nothing_is_lost_and_nothing_happens_twice(self) -> None:
        for run, before in self.read.items():
            entries = self.do(self.store.read(run))
            assert entries[: len(before)] == before
            self.read[run] = entries
            state = self.state_of(entries)
            if state is None:
                continue
            for step in STEPS:
                place = f"{state.goal} {step}"
                assert self.paid[place] <= 1 + self.agreed[place], place
            if state.outcome is not None:
                assert state.outcome.text == "paid s3"
                assert set(state.results) == set(STEPS)


ORDERS = settings(deadline=None, stateful_step_count=20, suppress_health_check=list(HealthCheck))
TestJournals = Journals.TestCase
TestJournals.settings = settings(ORDERS, max_examples=30)
TestRuns = Runs.TestCase
TestRuns.settings = settings(ORDERS, max_examples=30)
