"""Runs: begin them, decide about their plans, continue, stop and repeat them. Their journal is their only state."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from portico.errors import (
    LimitExceeded,
    PlanFormatError,
    PlanInvalid,
    PorticoError,
    RunError,
    RunNotFound,
    StoreBusy,
    StoreError,
)
from portico.plans import Answer, Emit, Event, Finding, Plan, Refusal, RunEvent, plan_from_json, plan_to_json
from portico.plugins import RunState
from portico.ports import JobQueue, JobStatus, RunStore
from portico_cli.runs import RunEntry, parse_time, read_run
from portico_cli.show.answer import STATES
from portico_serve._inputs import InputInvalid, NotFound
from portico_serve._runs.feeds import Feeds, Seen, TellingStore, Watcher
from portico_serve._runs.graphs import drawn, finding_to_json
from portico_serve._runs.passages import passage_view
from portico_serve._runs.traces import trace_view
from portico_serve._runs.views import (
    APPROVE,
    MODES,
    Here,
    Kept,
    approve_mode,
    check_within,
    describe,
    earlier_steps,
    row,
    step_view,
)

if TYPE_CHECKING:
    from portico import FlowReview, Kernel, PlanReview, Run

_LOG = logging.getLogger(__name__)

WAITS = "the plan waits for approval"
_MODE: ContextVar[str | None] = ContextVar("portico_serve_approve", default=None)
_KIND = "pursuit"
_PATIENCE = 15.0
_PAUSE = 0.1
_MOST_HERE = 200
_MOST_ROWS = 2_000
_MOST_WRITTEN = 200_000
_MOST_LOOKED_AT = 1_000
_UNLISTED = ("waiting", "running", "failed", "cancelled")


@dataclass(slots=True)
class Decision:
    """What a person decided about what a run waits for: this ``plan``, or this ``step``; and what is to be done."""

    plan: Plan | None
    step: str | None
    given: bool | Plan | Refusal


@dataclass(slots=True, eq=False)
class _Work:
    """A run that this process carries out. ``begun`` gives its name when the journal has it."""

    begun: asyncio.Future[str]
    name: str = ""
    decision: Decision | None = None
    writing: str = ""
    task: asyncio.Task[Any] | None = None
    ended: bool = False
    """Whether its journal has its end: the task is about to end too."""

    def stop(self) -> None:
        """Cancel the work once: a second time would break off what the first one lets it write."""
        if self.task is not None and not self.task.cancelling():
            self.task.cancel()


class Runs:
    """The runs of the journal, and those among them that this process carries out.

    ``sources`` are the names of the searches that a question may use. ``trace`` is the file into which the kernel's
    observers write spans, if there is one. A plan is held while no person has decided about it: one that may have
    effects, or every one, as its run was begun. What is held is in the journal, and the decision resumes the run.
    Raises ``RunError`` for a kernel without a journal.
    """

    def __init__(self, kernel: Kernel, sources: Sequence[str] = (), trace: Path | None = None) -> None:
        if kernel.run_store is None:
            raise RunError('No journal is kept. Name one, as in `use = "sqlite"`, in [runs] of portico.toml.')
        self.kernel = kernel
        self.sources = tuple(sources)
        self._trace = trace
        self._feeds = Feeds(self)
        self._here: dict[str, _Work] = {}
        self._kept = Kept()
        self._rows: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._works: set[_Work] = set()
        self.store = cast("RunStore", TellingStore(kernel.run_store, self._feeds.wake))
        kernel.run_store = self.store
        kernel.approve_plans(self._decide_plan)
        kernel.approve_flows(self._decide_flow)
        kernel.middleware.origin.append(lambda: {} if (mode := _MODE.get()) is None else {APPROVE: mode})

    @property
    def queue(self) -> JobQueue | None:
        """The queue of the runner's workers, if it has some."""
        return self.kernel.runner.jobs if self.kernel.runner is not None else None

    async def aclose(self) -> None:
        """End all streams and stop the runs here; the journal says then that they were interrupted."""
        self._feeds.close()
        tasks = [work.task for work in self._works if work.task is not None]
        for work in self._works:
            work.stop()
        if tasks:
            await asyncio.wait(tasks)

    def close_streams(self) -> None:
        """End all streams, so that a server that stops need not wait for those who watch."""
        self._feeds.close()

    # Begin, decide, continue.

    async def start(
        self,
        goal: str,
        *,
        sources: Collection[str] | None = None,
        planner: str | None = None,
        input: Any = None,
        approve: str = "effects",
    ) -> str:
        """Begin a run of a goal and return its name, when the journal has it.

        Raises ``InputInvalid`` for a source that is not here, and what `Kernel.run_goal` raises before it begins.
        """
        if unknown := sorted(set(sources or ()) - set(self.sources)):
            has = f"There are {', '.join(self.sources)}." if self.sources else "There is none."
            raise InputInvalid(f"There is no source {unknown[0]!r}. {has}")
        # Names of functions know no hyphen.
        others = [] if sources is None else [each.replace("-", "_") for each in self.sources if each not in sources]
        exclude = [each for each in others if each in self.kernel.plugins]
        return await self._begin(
            approve, lambda emit: self.kernel.run_goal(goal, planner=planner, input=input, exclude=exclude, emit=emit)
        )

    async def answer(self, goal: str, context: Mapping[str, Any] | None, listen: Emit) -> Run:
        """Run a goal in the task of one who waits for its end; ``listen`` gets its events too."""
        self._require_room()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        work = _Work(asyncio.get_running_loop().create_future())
        self._take_on(work, task)

        def emit(event: RunEvent) -> None:
            self._listen(work, event)
            listen(event)

        return await self.kernel.run_goal(goal, context=context, emit=emit)

    async def replay(self, run: str) -> str:
        """Run the steps of a run that has its answer again, with the same input, as a new run; return its name.

        Raises ``RunError`` for a run without an answer, ``PlanStale`` and ``PlanInvalid`` where its functions changed.
        """
        state = self._require_state(await self.read(run))
        if not isinstance(state.outcome, Answer):
            raise RunError(f"The run {run} has no answer, so there is nothing to run again. Resume it instead.")
        plan = _executed_plan(state)
        if not plan.steps:
            raise RunError(f"The run {run} has its answer without a step, so there is nothing to run again.")
        mode = approve_mode(state)
        return await self._begin(mode, lambda emit: self.kernel.run_plan(plan, input=state.input, emit=emit))

    async def approve(
        self, run: str, *, step: str | None = None, plan: Any = None, proposal: int | None = None
    ) -> None:
        """Agree to what a run waits for: its plan, the one given in its place, or the step; and continue the run.

        With the number of the ``proposal``, only that one is agreed to. Raises ``StoreBusy`` while the run is at work,
        ``RunError`` where nothing waits or something else, ``PlanInvalid`` for a given plan that cannot run.
        """
        async with self._taken(run) as work:
            entry = await self.read(run)
            state = self._require_held(entry)
            if step != state.step:
                what = "its plan" if state.step is None else f"the step {state.step}"
                raise RunError(f"The run {run} waits for agreement to {what}. Look at it again.")
            self._require_proposal(entry, proposal)
            given: bool | Plan = True
            if plan is not None:
                given = self._require_plan(plan, state)
            held = state.plan if step is None else state.inner.get(step)
            work.decision = Decision(held, step, given)
            await self._continue(run, work, state)

    async def refuse(self, run: str, reason: str, *, proposal: int | None = None) -> None:
        """Refuse the plan that waits, and let the planner propose again with the reason.

        Raises as `approve` does, and ``RunError`` for a plan that has no planner and for a step.
        """
        async with self._taken(run) as work:
            entry = await self.read(run)
            state = self._require_held(entry)
            if state.step is not None:
                raise RunError(f"The run {run} waits at the step {state.step}: only a whole plan can be refused.")
            if state.planner == "plan":
                raise RunError(f"The plan of the run {run} has no planner that could propose another one.")
            self._require_proposal(entry, proposal)
            assert state.plan is not None  # noqa: S101 - it waits
            work.decision = Decision(state.plan, None, Refusal(state.plan, (Finding(reason),)))
            await self._continue(run, work, state)

    async def resume(self, run: str, *, retry: Collection[str] = (), results: Mapping[str, Any] | None = None) -> None:
        """Continue a run as `Kernel.resume` does, and raise what it raises before the run continues."""
        async with self._taken(run) as work:
            entry = await self.read(run)
            if entry.run_state is None and entry.job is not None:
                raise RunError(f"The run {run} waits for a worker: it has not begun, so there is nothing to resume.")
            await self._continue(run, work, self._require_state(entry), retry=retry, results=dict(results or {}))

    async def cancel(self, run: str) -> None:
        """Stop a run that is carried out here, or that waits for a worker or is in one.

        Raises ``RunError`` for another one, and for a run that ended before it could be stopped.
        """
        work = self._here.get(run)
        if work is not None and work.task is not None:
            work.stop()
            await asyncio.wait([work.task], timeout=_PATIENCE)
        else:
            await self._cancel_job(run)
        entry = await self.read(run)
        if entry.state not in ("interrupted", "uncertain", "cancelled", "running"):
            raise RunError(f"The run {run} ended before it could be cancelled: it is {entry.state}.")

    async def _cancel_job(self, run: str) -> None:
        queue = self.queue
        entry = await self.read(run)
        if queue is None or entry.job is None or entry.job.state not in ("waiting", "running"):
            if entry.state == "running":
                raise RunError(
                    f"The run {run} was not begun here: stop the process that runs it, for example with Ctrl-C."
                )
            raise RunError(f"The run {run} is {entry.state}: no process carries it out, so there is nothing to cancel.")
        await queue.cancel([run])
        end = asyncio.get_running_loop().time() + _PATIENCE
        while await self.store.held(run) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - elsewhere
            await asyncio.sleep(_PAUSE)
        self._feeds.wake(run)

    @asynccontextmanager
    async def _taken(self, run: str) -> AsyncIterator[_Work]:
        """Keep a run for this caller alone until it continues; ``StoreBusy`` where it is at work."""
        before = self._here.get(run)
        if before is not None and before.ended and before.task is not None:
            await asyncio.wait([before.task], timeout=_PATIENCE)
        if run in self._here:
            raise StoreBusy(f"The run {run} is at work here already. Wait until it is done.")
        work = self._here[run] = _Work(asyncio.get_running_loop().create_future(), run)
        try:
            yield work
        finally:
            if work.task is None:
                del self._here[run]

    async def _begin(self, mode: str, work: Callable[[Emit], Awaitable[Run]]) -> str:
        if mode not in MODES:
            raise InputInvalid(f"approve is one of {', '.join(MODES)}, not {mode!r:.80}.")
        self._require_room()
        return await self._launch(_Work(asyncio.get_running_loop().create_future()), mode, work)

    def _require_room(self) -> None:
        if len(self._works) >= _MOST_HERE:
            raise LimitExceeded(f"{_MOST_HERE} runs are at work here. Begin another when one of them is done.")

    async def _continue(self, run: str, work: _Work, state: RunState, **options: Any) -> None:
        await self._launch(work, approve_mode(state), lambda emit: self.kernel.resume(run, emit=emit, **options))

    async def _launch(self, work: _Work, mode: str, start: Callable[[Emit], Awaitable[Run]]) -> str:
        self._take_on(work, asyncio.create_task(self._carry_out(work, mode, start)))
        return await asyncio.shield(work.begun)

    def _take_on(self, work: _Work, task: asyncio.Task[Any]) -> None:
        """Keep a run as one of those here until its task has ended."""
        work.task = task
        self._works.add(work)
        task.add_done_callback(lambda task: self._leave(work))

    def _leave(self, work: _Work) -> None:
        """Let go of a run that is no longer at work. A task may have been cancelled before it began."""
        self._works.discard(work)
        if not work.begun.done():
            work.begun.set_exception(StoreBusy("This was stopped before it began."))
            work.begun.exception()  # seen, also if the caller has gone
        if self._here.get(work.name) is work:
            del self._here[work.name]
        self._feeds.wake(work.name)

    async def _carry_out(self, work: _Work, mode: str, start: Callable[[Emit], Awaitable[Run]]) -> None:
        """Carry out a run to its end. How it ended is in its journal."""
        _MODE.set(mode)
        try:
            await start(partial(self._listen, work))
        except Exception as error:  # noqa: BLE001 - whatever a planner or a function raises
            if not work.begun.done():
                wrong = isinstance(error, ValueError | TypeError)
                work.begun.set_exception(InputInvalid(f"{error}") if wrong else error)
                work.begun.exception()
            elif isinstance(error, StoreError):
                _LOG.warning("The run %s stopped: %s", work.name, error)

    def _listen(self, work: _Work, event: RunEvent) -> None:
        match event:
            case Event.RunStarted():
                work.name = event.run
                self._here[event.run] = work
                if not work.begun.done():
                    work.begun.set_result(event.run)
            case Event.Ended():
                work.ended = True
            case Event.TextDelta() if len(work.writing) < _MOST_WRITTEN:
                work.writing += event.text
                self._feeds.put(work.name, "text", {"text": event.text})
            case Event.Proposed() | Event.Refused() | Event.StepStarted() | Event.StepRetried() if work.writing:
                work.writing = ""  # what was written was not the answer
                self._feeds.refresh(work.name)

    # What a person has decided.

    async def _decide_plan(self, review: PlanReview) -> bool | str | Plan | Refusal:
        work = self._here.get(review.run)
        decision = work.decision if work is not None else None
        if (
            work is not None
            and decision is not None
            and decision.plan is not None
            and _same(decision.plan, review.plan)
        ):
            if decision.step is None:
                work.decision = None
            return decision.given
        asks = _MODE.get() == "always" or self.kernel.may_have_effects(review.plan)
        return WAITS if asks else True

    async def _decide_flow(self, review: FlowReview) -> bool | str:
        work = self._here.get(review.run)
        decision = work.decision if work is not None else None
        return decision is not None and decision.step == review.step.id and decision.given is True

    def _require_held(self, entry: RunEntry) -> RunState:
        state = self._require_state(entry)
        if entry.state == "uncertain":
            steps = ", ".join(state.uncertain)
            raise RunError(f"The run {entry.name} waits for a word on what happened to {steps}: resume it with that.")
        if entry.state != "held":
            raise RunError(f"The run {entry.name} is {entry.state}: nothing in it waits for agreement.")
        return state

    def _require_proposal(self, entry: RunEntry, number: int | None) -> None:
        if number is None:
            return
        latest = len(describe(self.kernel, entry, Here(), self._kept)["proposals"])
        if number != latest:
            raise RunError(f"The run has proposal {latest} by now, and not {number}. Look at that one first.")

    def _require_state(self, entry: RunEntry) -> RunState:
        if entry.run_state is None:
            raise RunError(f"The run {entry.name} cannot be continued: {entry.problem or entry.state}.")
        return entry.run_state

    def _require_plan(self, document: Any, state: RunState) -> Plan:
        """Return a plan that a person edited. Raises ``PlanInvalid`` with what is wrong with it."""
        if state.step is not None:
            raise RunError(f"The run waits at the step {state.step}: the plan of a run at work cannot be edited.")
        plan, findings = self._check(document, state)
        if plan is None or any(each.severity == "error" for each in findings):
            raise PlanInvalid([each for each in findings if each.severity == "error"])
        return plan

    async def check(self, document: Any, run: str | None = None) -> dict[str, Any]:
        """Check a plan that is being edited, and draw it; what is wrong with its form is a finding too."""
        state = None if run is None else (await self.read(run)).run_state
        plan, found = self._check(document, state)
        findings = [finding_to_json(each) for each in found]
        if plan is None:
            return {"findings": findings, "text": None, "graph": None}
        try:
            made = drawn(self.kernel, plan, findings)
        except (PorticoError, ValueError, RecursionError) as error:
            return {"findings": [*findings, finding_to_json(Finding(str(error)))], "text": None, "graph": None}
        return {"findings": findings, "text": made["text"], "graph": made["graph"]}

    def _check(self, document: Any, state: RunState | None) -> tuple[Plan | None, list[Finding]]:
        try:
            plan = plan_from_json(document)
        except PlanFormatError as error:
            return None, [Finding(str(error))]
        except RecursionError:
            return None, [Finding("the plan is nested too deep")]
        if state is None:
            return plan, self.kernel.check_plan(plan)
        pending = {step.id for step in state.plan.steps} if state.plan is not None and state.pending else set()
        pending -= {record.step.id for record in state.records}
        earlier = [step for step in earlier_steps(state, plan) if step.id not in pending]
        taken = [
            Finding("a step of this run has this id already", step.id)
            for step in plan.steps
            if step.id not in pending and any(record.step.id == step.id for record in state.records)
        ]
        known = {} if state.input is None and plan.input is None else {"input": state.input}
        return plan, [*taken, *check_within(self.kernel, plan, earlier, **known)]

    # What a page shows.

    async def read(self, run: str) -> RunEntry:
        """Read a run of the journal or the queue; ``RunNotFound`` if there is none of exactly this name."""
        job = await self._job(run)
        entry = await read_run(self.store, run, job)
        if entry.entries or job is not None or entry.state == "unreadable":
            return entry
        known = await self.store.runs()
        if run not in known:
            raise RunNotFound(run, known)
        return entry

    async def _job(self, run: str) -> JobStatus | None:
        if self.queue is None or ((work := self._here.get(run)) is not None and work.task is not None):
            return None
        with suppress(StoreError):  # the run is that of the journal then
            [job] = await self.queue.status([run], body=True)
            return job
        return None

    async def listing(
        self, *, query: str = "", state: str = "", limit: int = 50, before: str | None = None
    ) -> dict[str, Any]:
        """Return runs, the newest first; those with a text in their goal or name, those in a state, those after one."""
        if state and state not in STATES:
            raise InputInvalid(f"state is one of {', '.join(STATES)}, not {state!r:.80}.")
        names = list(await self.store.runs())
        jobs: dict[str, JobStatus] = {}
        if self.queue is not None:
            with suppress(StoreError):
                jobs = {each.name: each for each in await self.queue.jobs(_KIND, states=_UNLISTED, limit=10_000)}
        known = set(names)
        names += [name for name in reversed(jobs) if name not in known]
        names.reverse()
        if before is not None:
            names = names[names.index(before) + 1 :] if before in names else []
        found: list[dict[str, Any]] = []
        looked_at, last = 0, None
        for name in names:
            if len(found) >= limit or looked_at >= _MOST_LOOKED_AT:
                return {"runs": found, "more": True, "next": last}
            each = await self._row(name, jobs.get(name))
            looked_at, last = looked_at + 1, name
            words = f"{name} {each['goal'] or ''}".casefold()
            if (not state or each["state"] == state) and query.casefold().strip() in words:
                found.append(each)
        return {"runs": found, "more": False, "next": None}

    async def _row(self, name: str, job: JobStatus | None) -> dict[str, Any]:
        if name in self._rows:
            return self._rows[name]
        if job is not None and self.queue is not None and job.body is None:
            with suppress(StoreError):
                [job] = await self.queue.status([name], body=True)
        made = row(await read_run(self.store, name, job, whole=False), self._known(name))
        if made["state"] in ("done", "infeasible") and not made["here"]:
            self._rows[name] = made
            while len(self._rows) > _MOST_ROWS:
                self._rows.popitem(last=False)
        return made

    async def describe(self, run: str) -> dict[str, Any]:
        """Return everything that a page shows of a run but the values of its steps."""
        return describe(self.kernel, await self.read(run), self._known(run), self._kept)

    async def step(self, run: str, id: str) -> dict[str, Any]:
        """Return a step of a run with its values; ``NotFound`` where there is none."""
        try:
            return step_view(await self.read(run), id)
        except LookupError as error:
            raise NotFound(f"The run {run} has no step {id!r:.80}.") from error

    async def passage(self, run: str, number: int) -> dict[str, Any]:
        """Return the passage that the answer of a run cites by a number. ``NotFound`` where it cites none."""
        return passage_view(self.kernel, self._require_state(await self.read(run)), number)

    async def trace(self, run: str) -> dict[str, Any]:
        """Return the spans of a run: those of the file with traces, or else those that its journal tells."""
        return await trace_view(await self.read(run), self._trace)

    def watch(self, run: str) -> AbstractAsyncContextManager[Watcher]:
        """Watch a run as long as the block; its `Watcher` gives the events."""
        return self._feeds.watch(run)

    def _known(self, run: str) -> Here:
        work = self._here.get(run)
        return Here(work is not None, work.writing if work is not None else "")

    # What a feed asks for.

    def present(self, run: str) -> tuple[bool, Mapping[str, Any]]:
        """Tell whether a run is carried out here, and what only this process knows of it."""
        known = self._known(run)
        return known.here, {"writing": known.writing}

    async def look(self, run: str, before: Seen | None) -> Seen:
        """Read a run again, as little of it as needed."""
        if before is not None and before.shape["here"] and run in self._here:
            entries = await self.store.read(run)
            if before.takes(entries):
                began = before.shape["started_at"]
                return before.take(entries, lambda at: _seconds_between(began, at))
        entry = await self.read(run)
        known = self._known(run)
        signs = (len(entry.entries), entry.state, entry.worker, known.here)
        if before is not None and signs == (before.count, before.state, before.shape["worker"], before.shape["here"]):
            return before
        return Seen(describe(self.kernel, entry, known, self._kept), entry.entries)


def _seconds_between(began: str, at: str) -> float:
    return round((parse_time(at) - parse_time(began)).total_seconds(), 3)


def _same(one: Plan, other: Plan) -> bool:
    # As JSON: 1 and true are equal in Python.
    forms = [json.dumps(plan_to_json(Plan("", each.steps, each.result, input=each.input))) for each in (one, other)]
    return forms[0] == forms[1]


def _executed_plan(state: RunState) -> Plan:
    """Return the steps that finished as one plan, with the result where a plan gave the answer."""
    steps = tuple(record.step for record in state.records if record.error is None and record.step.own)
    plan = state.plan
    ran = plan is not None and all(step.id in state.results for step in plan.steps)
    result = plan.result if plan is not None and ran else None
    prints = {name: each for one in state.plans for name, each in one.fingerprints.items()}
    schema = next((one.input for one in reversed(state.plans) if one.input is not None), None)
    return Plan(state.goal, steps, result, fingerprints=prints, input=schema)
