"""From a model's reply to the plan in it, or to why there is none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from portico import FunctionSpec
from portico.plans import (
    INPUT,
    Expression,
    From,
    Infeasible,
    ListOf,
    ObjectOf,
    Plan,
    ReplyProblem,
    Step,
    TextOf,
    XmlPlan,
    references,
)
from portico_sequential_planner._prompt import MISSING_MARK

_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>|^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_END = "end"
_FIELD = re.compile(r"\.[A-Za-z_]\w*|\[[^\]]{0,40}\]")


def read_reply(
    text: str,
    catalogue: Mapping[str, FunctionSpec],
    *,
    goal: str,
    finished: Collection[str] = (),
    taken: Collection[str] = (),
    has_input: bool = False,
) -> XmlPlan | Infeasible:
    """Read a model's reply, mending what has one meaning only.

    ``finished`` are the ids of steps whose results are variables, ``taken`` those that no new step may have.
    Raises ``PlanFormatError`` with the place where no plan can be made of it, and `ReplyProblem`.
    """
    read = XmlPlan.read(text, catalogue, goal=goal, recover=True, finished=finished)
    if read.empty:
        return _infeasible(text)
    problems = list(_problems(read.plan, catalogue, has_input=has_input))
    if problems:
        raise ReplyProblem("\n".join(problems))
    return XmlPlan(_with_free_ids(read.plan, taken), read.recovered)


def _problems(plan: Plan, catalogue: Mapping[str, FunctionSpec], *, has_input: bool) -> Iterator[str]:
    """Yield what is a plan by its form, and not what was meant."""
    kinds: dict[str, Any] = {}
    for number, step in enumerate(plan.steps, 1):
        for name, expression in step.arguments.items():
            if not has_input and any(reference.step == INPUT for reference in references(expression)):
                yield f"Step {number} needs a value for {name}: there is no $INPUT."
            parts = expression.parts if isinstance(expression, TextOf) else ()
            for part, after in pairwise(parts):
                field = _FIELD.match(after) if isinstance(after, str) else None
                if isinstance(part, From) and field is not None and kinds.get(part.step) in ("object", "array"):
                    yield (
                        f"Step {number}, {name}: ${part.step}{field[0]} does not exist; "
                        f"${part.step} is the whole output of its step."
                    )
        spec = catalogue.get(step.function) if isinstance(step.function, str) else None
        kinds[step.id] = None if spec is None else spec.returns.get("type")


def _infeasible(text: str) -> Infeasible:
    """Make an outcome of an empty plan: its comments, and the words around it, are the reason."""
    comments = [" ".join(comment.split()) for comment in _COMMENT.findall(text)]
    around = " ".join(_TAG.sub(" ", _COMMENT.sub("\n", text)).split())
    reasons: list[str] = []
    missing: list[str] = []
    for said in (*comments, around):
        if said[: len(MISSING_MARK)].lower() == MISSING_MARK:
            missing.append(said[len(MISSING_MARK) :].strip(" ."))
        elif said and said.lower() != _END:
            reasons.append(said)
    return Infeasible(" ".join(reasons) or "The functions do not suffice.", tuple(filter(None, missing)))


def _with_free_ids(plan: Plan, taken: Collection[str]) -> Plan:
    """Give steps whose id is taken another one: a model may well use a name again for a step that failed."""
    used = {*taken, *(step.id for step in plan.steps)}
    renamed: dict[str, str] = {}
    for step in plan.steps:
        if step.id in taken:
            number = 2
            while f"{step.id}_{number}" in used:
                number += 1
            renamed[step.id] = f"{step.id}_{number}"
            used.add(renamed[step.id])
    if not renamed:
        return plan
    steps = tuple(
        Step(
            renamed.get(step.id, step.id),
            step.function,
            {name: _renamed(expression, renamed) for name, expression in step.arguments.items()},
            tuple(renamed.get(each, each) for each in step.after),
            step.reason,
        )
        for step in plan.steps
    )
    return Plan(plan.goal, steps, None if plan.result is None else _renamed(plan.result, renamed))


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case From(step, path):
            return From(names.get(step, step), path)
        case TextOf(parts):
            return TextOf(tuple(part if isinstance(part, str) else _renamed(part, names) for part in parts))
        case ListOf(items):
            return ListOf(tuple(_renamed(item, names) for item in items))
        case ObjectOf(members):
            return ObjectOf({name: _renamed(member, names) for name, member in members.items()})
        case _:
            return expression
