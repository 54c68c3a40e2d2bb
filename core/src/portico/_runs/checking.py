"""Checks, reviews and approves plans and steps before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._functions.middleware import PlanReview, RequireApproval, StepRun, run_middleware
from portico._plans.check import check_plan
from portico._plans.checking.shapes import itemize
from portico._plans.findings import Finding
from portico._plans.functions import calls_of, known_result, plan_of
from portico._plans.plan import Plan, PlanTemplate, Step
from portico._plans.reuse import Stale, fingerprint
from portico._plans.task import Refusal
from portico._runs.guarding import Guard
from portico._schema.validate import PlainSchemaValidator
from portico.errors import PlanInvalid, PlanStale, SchemaUnsupported

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from portico._functions.functions import FunctionSpec
    from portico._kernel_like import KernelLike


Reviewed: TypeAlias = RequireApproval | Refusal | Plan | None
DecidePlan: TypeAlias = Callable[[PlanReview], Awaitable[bool | str | Plan | Refusal]]
DecideStep: TypeAlias = Callable[[StepRun], Awaitable[bool | str]]
"""True approves; False, or the reason in words, pauses."""

UNKNOWN: Any = object()
"""Stands for an input that is not known yet: None is an input."""


def check(
    kernel: KernelLike,
    plan: Plan,
    *,
    input: Any = None,
    finished: Mapping[str, FunctionSpec | Mapping[str, Any] | None] | None = None,
    taken: Collection[str] = (),
    specs: Mapping[str, FunctionSpec] | None = None,
    allowed: Collection[str] | None = None,
    guard: Guard | None = None,
) -> list[Finding]:
    """Check a plan with the functions of a kernel and its input, unless that is `UNKNOWN`, and return the findings.

    ``specs`` are the functions that the plan's steps may use, by default all. A template is written for more than its
    planner saw: it may call all that are ``allowed``. The ``guard`` of a run knows what its steps have read.
    """
    given: Mapping[str, Any] | None = None if input is None and plan.input is None else {"const": input}
    if input is UNKNOWN:
        given = plan.input or {}
    found = check_plan(
        plan,
        kernel.specs if specs is None else specs,
        finished=finished,
        taken=taken,
        validator=kernel.schema_validator,
        input=given,
        templates=lambda source, language: kernel.template(source, language=language),
    )
    sound = not found or all(finding.severity != "error" for finding in found)
    if sound and allowed is not None:
        found += _find_left_out(kernel, plan, kernel.specs.keys() - allowed)
        sound = not found or all(finding.severity != "error" for finding in found)
    if sound and (guard or (guard := Guard.of(kernel))):
        found += guard.findings(plan)
    if input is not UNKNOWN and plan.input is not None and not any(finding.place == "input" for finding in found):
        found += _misfit(kernel, plan.input, input)
    return found


def _find_left_out(
    kernel: KernelLike, plan: Plan, left_out: Collection[str], within: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """Yield a finding for each template, also of nested plans, that may call a function that is left out."""
    for step in plan.steps:
        ids = (*within, step.id)
        match step.function:
            case Plan() as inner:
                yield from _find_left_out(kernel, inner, left_out, ids)
            case PlanTemplate():
                called = {*calls_of((step,), kernel)}
                if names := sorted(name for name in left_out if name in called or "" in called):
                    message = f"the template may call what this plan may not use: {itemize(names)}"
                    yield Finding(message, ids[0], " ".join((*ids[1:], "function")))


def _misfit(kernel: KernelLike, schema: Mapping[str, Any], value: Any) -> list[Finding]:
    try:
        validate = (kernel.schema_validator or PlainSchemaValidator()).compile(schema)
    except SchemaUnsupported as error:
        return [Finding(f"the input could not be checked: {error}", None, "input", "warning")]
    return [Finding(str(fault), None, "input") for fault in validate(value)]


def with_fingerprints(kernel: KernelLike, plan: Plan) -> Plan:
    """Return a plan with the fingerprints of the functions that it uses."""
    return replace(plan, fingerprints=fingerprints_of(kernel, plan.steps))


def fingerprints_of(kernel: KernelLike, steps: Iterable[Step]) -> dict[str, str]:
    """Return the fingerprints of the functions that steps use, by name."""
    specs, known = kernel.specs, kernel.fingerprints
    names = [name for name in sorted({*calls_of(steps, kernel)}) if name in specs]
    known.update((name, fingerprint(specs[name])) for name in names if name not in known)
    return {name: known[name] for name in names}


def require_valid(
    kernel: KernelLike, plan: Plan, *, input: Any = None, ended: Mapping[str, Step] | None = None
) -> list[str]:
    """Check the steps of a plan that have not ``ended`` and return the warnings.

    Raises ``PlanStale`` where functions changed so that the plan cannot run as it was meant, and ``PlanInvalid`` where
    it cannot run for another reason. A change that leaves the plan valid is a warning, unless it is harmful: a step of
    a function that has effects now may have been tried twice.
    """
    specs = kernel.specs
    left, finished = plan, {}
    if ended:
        left = replace(plan, steps=tuple(step for step in plan.steps if step.id not in ended))
        finished = {step.id: known_result(step, specs) for step in ended.values()}
    findings = check(kernel, left, input=input, finished=finished) if left.steps or not ended else []
    errors = [finding for finding in findings if finding.severity == "error"]
    harmless: list[Stale] = []
    if plan.fingerprints:
        used = set(calls_of(left.steps, kernel))
        stale = [each for each in Stale.of(left, specs) if each.function in used]
        harmful = [each for each in stale if errors or each.function not in specs or each.harmful]
        if harmful:
            raise PlanStale([str(each) for each in harmful])
        harmless = stale
    if errors:
        raise PlanInvalid(errors)
    return [f"A function changed since the plan was made, and the plan still fits it. {each}." for each in harmless]


async def review_plan(kernel: KernelLike, plan: Plan, run: str, planner: str = "") -> Reviewed:
    """Run the plan middleware and return what it decided; None where the plan may run.

    Raises ``TypeError`` for middleware that neither proceeds nor decides.
    """
    if not kernel.middleware.plan:
        return None
    approved: list[Plan] = []

    async def approve() -> None:
        approved.append(plan)

    given: Any = await run_middleware(kernel.middleware.plan, PlanReview(plan, run, planner), approve)
    if isinstance(given, RequireApproval | Refusal | Plan):
        return given
    if given is not None or not approved:
        raise TypeError(
            "a plan middleware returns a RequireApproval, a Refusal, a Plan, or what `await proceed()` gave, not "
            f"{given!r}"
        )
    return None


async def review_inner_plan(kernel: KernelLike, plan: Plan, run: str) -> RequireApproval | None:
    """Review the plan of a function that a step calls; what would change it pauses the step."""
    decided = await review_plan(kernel, plan, run)
    if isinstance(decided, Plan):
        return RequireApproval("the plan of a function cannot be edited in a run")
    return refusal_hold(decided) if isinstance(decided, Refusal) else decided


def refusal_hold(refusal: Refusal) -> RequireApproval:
    """Return the pause of a plan that was refused and that no planner can replace."""
    return RequireApproval(" ".join(each.message for each in refusal.findings) or "the plan was refused")


def plan_approval(decide: DecidePlan | None) -> Callable[[PlanReview, Any], Awaitable[Reviewed]]:
    """Return middleware that pauses every plan which ``decide`` does not approve."""
    edited: dict[str, Plan] = {}

    async def approve(review: PlanReview, proceed: Callable[[], Awaitable[Reviewed]]) -> Reviewed:
        if decide is None:
            return RequireApproval("the plan waits for approval")
        # The plan that `decide` gave comes back for the other middleware to see. An equal one may be another, later.
        own = edited.pop(review.run, None)
        if own is not None and own.steps is review.plan.steps and own.result is review.plan.result:
            return await proceed()
        decided = await decide(review)
        if isinstance(decided, Plan):
            edited[review.run] = decided
        if isinstance(decided, Plan | Refusal):
            return decided
        return await proceed() if decided is True else RequireApproval(decided or "the plan was not approved")

    return approve


def effect_approval(kernel: KernelLike, decide: DecideStep | None) -> Callable[[StepRun, Any], Awaitable[Any]]:
    """Return middleware that pauses each step with effects which ``decide`` does not approve, one at a time."""
    asking = asyncio.Lock()

    async def approve(run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        called = run.step.function
        function = kernel.functions.get(called) if isinstance(called, str) else None
        if function is None or not function.effects or plan_of(function) is not None:
            return await proceed()
        if decide is None:
            return RequireApproval(f"the step {run.step.id} has effects and waits for approval")
        async with asking:
            decided = await decide(run)
        if decided is True:
            return await proceed()
        return RequireApproval(decided or f"the step {run.step.id} was not approved")

    return approve
