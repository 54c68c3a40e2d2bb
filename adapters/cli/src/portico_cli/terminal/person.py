"""Ask the person at the terminal before a plan, a step or a call with effects."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from portico.errors import PorticoError
from portico.plans import Finding, Refusal, plan_of, plan_to_text
from portico.plugins import RunState
from portico_cli.show.layout import Hanging
from portico_cli.show.output import safe_text, show_errors
from portico_cli.show.plans import Placed, argument_lines, called_name, finding_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico import FlowReview, FunctionInvocation, Kernel, PlanReview, StepRun
    from portico.plans import Plan
    from portico_cli.invocation import Invocation, RunOptions


_LONGEST = 65_536
_INDEX = re.compile(r"\[\d+\]")
_Quiet = Callable[[], AbstractContextManager[object]]


def person_at_terminal(kernel: Kernel, invocation: Invocation, quiet: _Quiet) -> Person | None:
    """Return the person who can be asked; None without a terminal, and where a program reads JSON."""
    # What shows progress replaces the stream meanwhile, and is not a terminal before rich 15.
    shown = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    return Person(kernel, quiet) if not invocation.json and sys.stdin.isatty() and shown.isatty() else None


def add_approvals(kernel: Kernel, invocation: Invocation, options: RunOptions, quiet: _Quiet) -> Person | None:
    """Let a kernel ask before plans, or steps with effects, run; without a person it holds them.

    Without these options a person is asked about plans that may have effects, except with ``--yes``. Return the
    person, if there is one.
    """
    person = person_at_terminal(kernel, invocation, quiet)
    if person is not None:
        kernel.approve_flows(person.about_flow)
    if options.approve:
        kernel.approve_plans(person.about_plan if person else None)
    if options.approve_effects:
        kernel.approve_effects(person.about_step if person else None)
    if person is not None and not (options.approve or options.approve_effects or options.yes):

        async def decide(review: PlanReview) -> bool | Refusal:
            return await person.about_plan(review) if kernel.may_have_effects(review.plan) else True

        kernel.approve_plans(decide)
    return person


def ask_before_effects(
    person: Person | None,
) -> Callable[[FunctionInvocation, Callable[[], Awaitable[Any]]], Awaitable[Any]]:
    """Return middleware that asks before each call with effects; without a person no such call is made.

    The model reads why a call was not made, and continues. The steps of a plan are asked for one by one.
    """
    always: set[str] = set()

    async def ask(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        function = context.function
        name = function.full_name
        if not function.effects or name in always or plan_of(function) is not None:
            return await proceed()
        if person is None:
            raise PorticoError(
                f"{name} was not called: it has effects, and no person can be asked. `--yes` allows such calls."
            )
        answer = await person.about_call(name, context.arguments)
        if answer == "n":
            raise PorticoError(f"{name} was not called: the user did not approve it.")
        if answer == "a":
            always.add(name)
        return await proceed()

    return ask


class Person:
    """Asks on standard error, one question at a time; ``quiet`` keeps progress away meanwhile.

    The event loop continues while the person thinks. The end of the input means no. ``knows_flows`` says that the
    findings on a plan were shown before.
    """

    knows_flows = False

    def __init__(self, kernel: Kernel, quiet: _Quiet) -> None:
        self._kernel = kernel
        self._quiet = quiet
        self._asking = asyncio.Lock()
        self._line = b""
        self._agreed: Counter[str] = Counter()

    async def about_plan(self, review: PlanReview) -> bool | Refusal:
        """Show a plan and ask whether it may run, or why its planner must make another."""
        async with self._asking:
            with self._quiet():
                show_errors(
                    safe_text(plan_to_text(review.plan, catalogue=self._kernel.specs)), *self._flows(review.plan)
                )
                another = "[a]nother, " if review.planner else ""
                letter = await self._choice(f"Run this plan? [y]es, {another}[n]o: ", "yan" if another else "yn")
                if letter != "a":
                    return letter == "y"
                words = (await self._read("What must be different? ") or "").strip()
                return Refusal(review.plan, (Finding(words or "the user wants another plan", None),))

    async def about_step(self, run: StepRun) -> bool | str:
        """Show a step with its arguments and ask whether it may run.

        One whose values were agreed to because of a flow is not asked about again.
        """
        if self._take(_call(run.run, called_name(run.step), run.arguments)):
            return True
        words = f"Step {run.step.id} calls {called_name(run.step)}, which has effects."
        flows = await self._flows_to(run.run, run.step.id)
        yes = await self._about(words, run.arguments, "Run it? [y]es, [n]o: ", "yn", flows) == "y"
        if yes:
            self._agreed.update(_call(run.run, f"{run.step.id} {each}", run.arguments) for each in flows)
        return yes

    async def about_flow(self, review: FlowReview) -> bool | str:
        """Show a step with a value that the user did not give, and ask whether it may run with it.

        What a question about the step said already is not asked again.
        """
        step, flows, run = review.step, review.flows, review.run
        called = called_name(step)
        if all(self._take(_call(run, f"{step.id} {each.why}", review.arguments)) for each in flows):
            return True
        subject = f"Step {step.id} calls {called}" if run else f"The model calls {called}"
        # Of a step that runs for each of a list, each argument is the list of its values.
        calls: list[Mapping[str, Any]] = [review.arguments]
        if step.each is not None and not step.id.endswith("]"):
            calls = [
                dict(zip(review.arguments, values, strict=True))
                for values in zip(*review.arguments.values(), strict=True)
            ]
            subject += f" for {len(calls)} items"
        words = f"{subject} with what you did not say yourself."
        notes = [each.why for each in flows]
        notes += await self._sources(run, tuple(dict.fromkeys(source for each in flows for source in each.sources)))
        # The arguments that it is about come first.
        first = {str(each.place[1]) for each in flows if each.place[0] == "arguments"}
        arguments = dict(sorted(review.arguments.items(), key=lambda each: each[0] not in first))
        if await self._about(words, arguments, "Let it run with these values? [y]es, [n]o: ", "yn", notes) != "y":
            return "the user did not agree"
        self._agreed.update(_call(run, called, each) for each in calls)
        return True

    def _take(self, question: str) -> bool:
        """Tell whether a question has its answer already, which counts once."""
        self._agreed.subtract([question] if (known := self._agreed[question] > 0) else [])
        return known

    async def about_call(self, function: str, arguments: Mapping[str, object]) -> str:
        """Show a call of a function with effects and ask whether it may be made: "y", "n", or "a" for always."""
        if self._take(_call("", function, arguments)):
            return "y"
        words = f"{function} has effects. It would be called with:"
        return await self._about(words, arguments, "Call it? [y]es, [n]o, [a]lways in this conversation: ", "yna")

    def _flows(self, plan: Plan) -> Iterable[RenderableType]:
        """Return a line for each flow of a plan that no label allows."""
        found = () if self.knows_flows else self._kernel.check_plan(plan)
        return finding_lines("", [Placed(each) for each in found if each.verdict], enforced=self._enforced)

    @property
    def _enforced(self) -> bool:
        return self._kernel.policy is not None and self._kernel.policy.mode == "enforce"

    async def _plan(self, run: str) -> Plan | None:
        """Return the plan of a run as its journal has it."""
        store = self._kernel.run_store
        entries = [] if store is None or not run else await store.read(run)
        return RunState.of(entries).plan if entries else None

    async def _flows_to(self, run: str, step: str) -> list[str]:
        """Return what the check of the plan says of the values that a step takes, where a person must agree to them."""
        plan = await self._plan(run) if self._enforced else None
        if plan is None:
            return []
        ids = _INDEX.sub("", step).split("/")
        found = (each for each in self._kernel.check_plan(plan) if each.verdict)
        return [each.message for each in found if [each.step, *each.place.split(" ")[:-1]] == ids]

    async def _sources(self, run: str, sources: Iterable[str]) -> list[str]:
        """Return what the steps call that values are from."""
        plan = await self._plan(run)
        steps = {} if plan is None else {step.id: step for step in plan.steps}
        ids = dict.fromkeys(re.split(r"[.\[/:]", source)[0] for source in sources)
        return [f"{id} is what {called_name(steps[id])} gave" for id in ids if id in steps]

    async def _about(
        self, words: str, arguments: Mapping[str, object], question: str, letters: str, notes: Iterable[str] = ()
    ) -> str:
        async with self._asking:
            with self._quiet():
                told = (Hanging(safe_text(f"{each}.", "yellow"), "! ", "yellow") for each in notes)
                show_errors(Hanging(safe_text(words, "bold")), *argument_lines(arguments), *told)
                return await self._choice(question, letters)

    async def _choice(self, question: str, letters: str) -> str:
        while (given := await self._read(question)) is not None:
            word = given.strip().lower()[:1]
            if word and word in letters:
                return word
        show_errors("")
        return "n"

    async def _read(self, question: str) -> str | None:
        """Return a line without its end, None at the end of the input."""
        sys.stderr.write(question)
        sys.stderr.flush()
        while b"\n" not in self._line and len(self._line) < _LONGEST:
            piece = await _read_piece()
            if not piece:
                return None
            self._line += piece
        line, _, self._line = self._line.partition(b"\n")
        return line.decode("utf-8", "replace")


def _call(run: str, what: str, arguments: Mapping[str, object]) -> str:
    return f"{run} {what} {json.dumps(arguments, sort_keys=True, default=repr)}"


async def _read_piece() -> bytes:
    """Read from the terminal; the event loop continues meanwhile, if the system can watch a terminal."""
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except (RuntimeError, OSError):
        # Windows cannot watch a console; there everything waits for the answer.
        return os.read(descriptor, _LONGEST)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _LONGEST)
