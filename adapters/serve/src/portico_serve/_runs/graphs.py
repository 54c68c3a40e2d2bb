"""Plans as a page draws them: the text, the graph, and the findings of a check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from portico.plans import INPUT, Finding, Plan, plan_to_json, plan_to_text, references
from portico_cli.show.plans import called_name

if TYPE_CHECKING:
    from portico import Kernel

RESULT = "result"


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {
        "severity": finding.severity,
        "message": finding.message,
        "step": finding.step,
        "place": finding.place,
        "hint": finding.hint or None,
        "verdict": finding.verdict or None,
    }


def drawn(kernel: Kernel, plan: Plan, findings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a plan in JSON, as text and as a graph, without what only its planner needs."""
    bare = Plan(plan.goal, plan.steps, plan.result, input=plan.input)
    return {
        "plan": plan_to_json(bare),
        "text": plan_to_text(bare, catalogue=kernel.specs),
        "graph": graph(kernel, plan, findings),
    }


def graph(kernel: Kernel, plan: Plan, findings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the nodes and edges of a plan. Also one that is wrong is drawn: with a circle, or without a step."""
    by_step: dict[str | None, list[Mapping[str, Any]]] = {}
    for each in findings:
        by_step.setdefault(each["step"], []).append(each)
    needs = {step.id: set(step.depends_on()) for step in plan.steps}
    nodes: dict[str, dict[str, Any]] = {}
    if plan.input is not None or any(INPUT in each for each in needs.values()) or _reads_input(plan):
        nodes[INPUT] = _node(INPUT, "")
    for step in plan.steps:
        effects = kernel.may_have_effects(Plan("", (step,)))
        marks = {"effects": effects, "each": step.each is not None, "when": step.when is not None}
        nodes[step.id] = _node(step.id, called_name(step), step.reason) | marks
    if plan.result is not None and RESULT not in nodes:
        nodes[RESULT] = _node(RESULT, "")
        needs[RESULT] = {each.step for each in references(plan.result)}
    order = {id: number for number, id in enumerate(nodes)}
    edges = [
        [earlier, id]
        for id, earliers in needs.items()
        for earlier in sorted(earliers & nodes.keys() - {id}, key=order.__getitem__)
    ]
    _put_levels(nodes, edges)
    for id, node in nodes.items():
        node["findings"] = by_step.get(id, [])
    return {"nodes": list(nodes.values()), "edges": edges}


def _reads_input(plan: Plan) -> bool:
    return plan.result is not None and any(each.step == INPUT for each in references(plan.result))


def _node(id: str, function: str, reason: str = "") -> dict[str, Any]:
    flags = {"effects": False, "each": False, "when": False}
    return {"id": id, "title": id, "function": function, "reason": reason, **flags, "level": 0}


def _put_levels(nodes: Mapping[str, dict[str, Any]], edges: Iterable[Sequence[str]]) -> None:
    """Give each node the length of the longest way to it; in a circle, the first way round counts."""
    waits = dict.fromkeys(nodes, 0)
    after: dict[str, list[str]] = {}
    for start, to in edges:
        waits[to] += 1
        after.setdefault(start, []).append(to)
    ready = [id for id, count in waits.items() if not count]
    left = dict.fromkeys(nodes)
    while left:
        id = ready.pop() if ready else next(iter(left))
        if id not in left:
            continue
        del left[id]
        for to in after.get(id, ()):
            if to in left:
                nodes[to]["level"] = max(nodes[to]["level"], nodes[id]["level"] + 1)
                waits[to] -= 1
                if not waits[to]:
                    ready.append(to)
