"""What a pursuit asks of a plan before it runs: that it passes its check, and that its functions are still the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from portico._schema.validate import PlainSchemaValidator
from portico.errors import PlanInvalid, PlanStale, PorticoError, SchemaUnsupported
from portico.functions import FunctionManual
from portico.plans.check import check_plan
from portico.plans.findings import Finding
from portico.plans.plan import Plan, PlanTemplate, Step, functions_used
from portico.plans.plan_functions import plans_of
from portico.plans.staleness import Stale, fingerprint, stale_functions

if TYPE_CHECKING:
    from portico.kernel import Kernel

__all__ = ["checked", "sound", "with_fingerprints"]


def checked(
    kernel: Kernel,
    plan: Plan,
    *,
    input: Any = None,
    finished: Mapping[str, FunctionManual | None] | None = None,
    taken: Collection[str] = (),
    manuals: Mapping[str, FunctionManual] | None = None,
) -> list[Finding]:
    """Return the findings of a plan's check with what a kernel has, and with the input that is at hand.

    ``manuals`` are the functions that the plan may use, where they are not all.
    """
    given = None if input is None and plan.input is None else {"const": input}
    found = check_plan(
        plan,
        kernel.manuals if manuals is None else manuals,
        finished=finished,
        taken=taken,
        validator=kernel.schema_validator,
        input=given,
        templates=lambda source, language: kernel.template(source, language=language),
        plans=plans_of(kernel),
    )
    if plan.input is not None and not any(finding.place == "input" for finding in found):
        found += _misfit(kernel, plan.input, input)
    return found


def _misfit(kernel: Kernel, schema: Mapping[str, Any], value: Any) -> list[Finding]:
    try:
        validate = (kernel.schema_validator or PlainSchemaValidator()).compile(schema)
    except SchemaUnsupported as error:
        return [Finding(f"the input could not be checked: {error}", None, "input", "warning")]
    return [Finding(str(fault), None, "input") for fault in validate(value)]


def with_fingerprints(kernel: Kernel, plan: Plan) -> Plan:
    """Return a plan with what it rests on in each function that it uses, as far as that can be told."""
    manuals, known = kernel.manuals, kernel.fingerprints
    prints: dict[str, str] = {}
    for name in _functions_used(kernel, plan):
        manual = manuals.get(name)
        if manual is not None:
            if name not in known:
                known[name] = fingerprint(manual)
            prints[name] = known[name]
    return replace(plan, fingerprints=prints)


def sound(kernel: Kernel, plan: Plan, *, input: Any = None, ended: Mapping[str, Step] | None = None) -> list[str]:
    """Return what is to be said of what is left of a plan, which can run; the steps that ``ended`` do not again.

    Raises ``PlanStale`` where functions changed so that it cannot run as it was meant, ``PlanInvalid`` where it cannot
    for another reason. A change that leaves the plan valid is harmless, and said, unless a function that had no
    effects has some: a step of it may have been tried twice.
    """
    manuals = kernel.manuals
    left, finished = plan, {}
    if ended:
        left = replace(plan, steps=tuple(step for step in plan.steps if step.id not in ended))
        finished = {
            step.id: manuals.get(step.function) if isinstance(step.function, str) else None for step in ended.values()
        }
    findings = checked(kernel, left, input=input, finished=finished) if left.steps or not ended else []
    errors = [finding for finding in findings if finding.severity == "error"]
    harmless: list[Stale] = []
    if plan.fingerprints:
        stale = [each for each in stale_functions(left, manuals) if each.function in _functions_used(kernel, left)]
        harmful = [each for each in stale if errors or _harmful(each, kernel)]
        if harmful:
            raise PlanStale([str(each) for each in harmful])
        harmless = stale
    if errors:
        raise PlanInvalid(errors)
    return [f"A function changed since the plan was made, and the plan still fits it. {each}." for each in harmless]


def _harmful(stale: Stale, kernel: Kernel) -> bool:
    return stale.function not in kernel.manuals or "it has effects now" in stale.changes


def _functions_used(kernel: Kernel, plan: Plan) -> set[str]:
    used = functions_used(plan)
    for step in plan.steps:
        if isinstance(step.function, Plan):
            used |= _functions_used(kernel, step.function)
        elif isinstance(step.function, PlanTemplate):
            used |= _called_by(kernel, step.function)
    return used


def _called_by(kernel: Kernel, template: PlanTemplate) -> set[str]:
    """Return the functions that a template is seen to call; not every language tells."""
    try:
        compiled = kernel.template(template.source, language=template.language)
        return {kernel.function(call.function).full_name for call in getattr(compiled, "calls", ())}
    except PorticoError:
        return set()
