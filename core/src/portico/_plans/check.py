"""Checks a plan before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionSpec
from portico._plans.checking.plans import Around, PlanCheck, Plans, Templates
from portico._plans.checking.shapes import UNKNOWN, Output, at_path, known_of, whole
from portico._plans.findings import Finding
from portico._schema.validate import PlainSchemaValidator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from portico._plans.plan import JsonPath, Plan
    from portico._ports.schema_validator import SchemaValidator

"""By steps, place, and whether it is a name that changes: an argument may be renamed and have another value too."""


_VALIDATOR = PlainSchemaValidator()


def check_plan(
    plan: Plan,
    catalogue: Mapping[str, FunctionSpec],
    *,
    finished: Mapping[str, FunctionSpec | Mapping[str, Any] | None] | None = None,
    taken: Collection[str] = (),
    validator: SchemaValidator | None = None,
    input: Mapping[str, Any] | None = None,
    templates: Templates | None = None,
    plans: Plans | None = None,
) -> list[Finding]:
    """Return everything that is wrong with a plan, in the order of its steps.

    >>> from portico._plans.plan import From, Step
    >>> from portico import Plan, Step
    >>> for finding in check_plan(Plan("g", (Step("s1", "shout", {"text": From("s2")}),)), {}):
    ...     print(finding)
    s1 function: there is no function 'shout'
    s1 arguments.text: there is no step 's2'; the steps are: s1

    ``finished`` are steps of the same run that have run, by id, with the manual of what each called or the JSON
    Schema of its result (None: not known): new steps may refer to them. ``taken`` are the ids that no new step may
    have. ``input`` is the JSON Schema of what the plan will be given, such as ``{"const": value}`` for a value that
    is at hand; without it the plan's own word counts. ``templates`` compiles the templates among the steps, which are
    not looked into without it. ``plans`` tells the plan that a function runs, as
    `portico._plans.functions.plans_of` does: with it, plans that call each other in a circle are found.

    What is mended for certain has a `Fix`, and the rest is checked as if that were done: the plan that
    `portico._plans.findings.apply_fixes` makes has the other findings, and no new ones.
    """
    found: list[Finding] = []
    around = Around(catalogue, validator or _VALIDATOR, templates, found, plans)
    known = {step: _output_of(gave) for step, gave in finished.items()} if finished else {}
    given = None if input is None else whole(input)
    try:
        PlanCheck(around, plan, (), given, finished=known, taken=taken).check()
    except RecursionError:
        found.append(Finding("the plan is nested too deeply to be checked"))
    return found


def path_problem(schema: Mapping[str, Any], path: JsonPath) -> str | None:
    """Say why a value of ``schema`` cannot have anything at ``path``; None when it may.

    Only what the schema rules out is a problem: an open schema allows every path.
    """
    place = at_path(whole(schema), path)
    return place.problem or (None if place.mended is None else at_path(whole(schema), path, exact=True).problem)


def _output_of(gave: FunctionSpec | Mapping[str, Any] | None) -> Output:
    if gave is None:
        return UNKNOWN
    return known_of(gave).output if isinstance(gave, FunctionSpec) else Output(whole(gave))
