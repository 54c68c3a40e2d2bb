"""Plans drawn as Mermaid flowcharts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from portico.plans.path import print_path
from portico.plans.plan import INPUT, Expression, Plan, PlanTemplate, Step, references
from portico.plans.text_form import printable

__all__ = ["plan_to_mermaid"]

_LONGEST = 80
_DEEPEST = 100
_KEPT = frozenset(" _-.,/")


def plan_to_mermaid(plan: Plan) -> str:
    """Draw a plan as a Mermaid flowchart.

    >>> from portico.plans.plan import From
    >>> print(plan_to_mermaid(Plan("Shout", (Step("s1", "Tone-shout"),), result=From("s1", ("text",)))))
    flowchart TD
        n0["s1<br/>Tone-shout"]
        n1(["result"])
        n0 -- "#36;.text" --> n1

    A line is a value, labelled with its path; a dotted line only says what to wait for. Nested plans are boxes of
    their own. Names of nodes are ours and labels are escaped, so that no plan can write Mermaid of its own. Labels
    are cut at 80 characters. Mermaid draws 500 lines and 50,000 characters where it is not told otherwise.
    """
    drawing = _Drawing()
    drawing.plan(plan, "    ", 0, given=False)
    return "\n".join(["flowchart TD", *drawing.nodes, *drawing.edges()])


@dataclass(frozen=True, slots=True)
class _Node:
    """Where lines to a step end and where lines from it begin: they differ for a nested plan."""

    whole: str
    entry: str
    exit: str


@dataclass(slots=True)
class _Drawing:
    nodes: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    waits: dict[tuple[str, str], None] = field(default_factory=dict)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count - 1}"

    def node(self, indent: str, left: str, label: str, right: str) -> str:
        name = self.name()
        self.nodes.append(f'{indent}{name}{left}"{label}"{right}')
        return name

    def plan(self, plan: Plan, indent: str, depth: int, *, given: bool) -> tuple[str | None, str | None]:
        """Draw a plan's nodes and lines; return its input node and its result node, where it has them."""
        entry: str | None = None
        drawn: dict[str, _Node] = {}
        if given or plan.input is not None or _uses_input(plan):
            entry = self.node(indent, "([", "input", "])")
            drawn[INPUT] = _Node(entry, entry, entry)
        for step in plan.steps:
            drawn[step.id] = self.step(step, indent, depth)
        for step in plan.steps:
            self.arrive(step, drawn, indent)
        result: str | None = None
        if plan.result is not None:
            result = self.node(indent, "([", "result", "])")
            self.lines(plan.result, result, drawn, indent)
        if entry is None and result is None and not plan.steps:
            self.node(indent, "[", "nothing to do", "]")
        return entry, result

    def step(self, step: Step, indent: str, depth: int) -> _Node:
        match step.function:
            case Plan() as plan if depth < _DEEPEST:
                name = self.name()
                title = f"{_label(step.id)}: {_label(plan.goal)}" if plan.goal.strip() else _label(step.id)
                self.nodes.append(f'{indent}subgraph {name}["{title.replace(":", "#58;")}"]')
                entry, result = self.plan(plan, f"{indent}    ", depth + 1, given=bool(step.arguments))
                self.nodes.append(f"{indent}end")
                return _Node(name, entry or name, result or name)
            case Plan():
                label, left, right = "a plan nested too deeply to be drawn", "[", "]"
            case PlanTemplate(_, language):
                label, left, right = f"{_label(language)} template", "[[", "]]"
            case str(function):
                label, left, right = _label(function), "[", "]"
        name = self.node(indent, left, f"{_label(step.id)}<br/>{label}", right)
        return _Node(name, name, name)

    def arrive(self, step: Step, drawn: dict[str, _Node], indent: str) -> None:
        here = drawn[step.id]
        for expression in step.arguments.values():
            self.lines(expression, here.entry, drawn, indent)
        for earlier in step.after:
            self.waits[self.known(earlier, drawn, indent).whole, here.whole] = None

    def lines(self, expression: Expression, to: str, drawn: dict[str, _Node], indent: str) -> None:
        for reference in references(expression):
            start = self.known(reference.step, drawn, indent).exit
            paths = self.values.setdefault((start, to), [])
            path = print_path(reference.path) if reference.path else ""
            if path not in paths:
                paths.append(path)

    def known(self, step: str, drawn: dict[str, _Node], indent: str) -> _Node:
        """Return a step's node; one that the plan does not have is drawn as a step of earlier."""
        if step not in drawn:
            name = self.node(indent, "(", f"{_label(step)}<br/>earlier", ")")
            drawn[step] = _Node(name, name, name)
        return drawn[step]

    def edges(self) -> Iterator[str]:
        for (start, to), paths in self.values.items():
            label = _label(", ".join(path or "$" for path in paths)) if any(paths) else ""
            yield f'    {start} -- "{label}" --> {to}' if label else f"    {start} --> {to}"
        for start, to in self.waits:
            if (start, to) not in self.values:
                yield f"    {start} -.-> {to}"


def _uses_input(plan: Plan) -> bool:
    written = [expression for step in plan.steps for expression in step.arguments.values()]
    written += [] if plan.result is None else [plan.result]
    return any(reference.step == INPUT for expression in written for reference in references(expression))


def _label(text: str) -> str:
    """Return a text as it may stand in a quoted label: every sign that Mermaid or HTML may obey as its code.

    The signs of CSS matter too: Mermaid takes the last ``;`` away from a line that reads ``style…:…#…;``.
    """
    text = printable(" ".join(text.split()))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return "".join(each if each in _KEPT or not each.isascii() or each.isalnum() else f"#{ord(each)};" for each in text)
