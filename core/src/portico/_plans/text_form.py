"""Plans as text for people, and as Mermaid diagrams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico._plans.plan import (
    AT_ONCE,
    INPUT,
    ITEM,
    STEP_OPTIONS,
    Each,
    Expression,
    From,
    ListOf,
    ObjectOf,
    Plan,
    PlanTemplate,
    Step,
    TextOf,
    Value,
    When,
    references,
)

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._plans.findings import Finding

_PLAIN_ID = re.compile(r"[^\W\d][\w-]*")
_LITERALS = ("true", "false", "null", "step", "present", "NaN", "Infinity")
_JOINERS = "\u200c\u200d"
"""Zero-width joiners: not printable by themselves, but needed by Persian and by many emoji."""


def plan_to_text(plan: Plan, *, catalogue: Mapping[str, FunctionSpec] | None = None) -> str:
    r"""Write a plan for people: the goal, what it is given, each step with all its arguments, and the result.

    >>> print(plan_to_text(Plan("Greet Ada", (
    ...     Step("s1", "Names-full", {"first": Value("Ada")}, reason="the greeting is formal"),
    ...     Step("s2", "Tone-shout", {"text": TextOf(("Hello ", From("s1", ("name",))))}, after=("s1",)),
    ... ), result=From("s2"))))
    Goal: Greet Ada
    <BLANKLINE>
    1. s1: Names-full
         because: the greeting is formal
         first = "Ada"
    2. s2: Tone-shout
         text = "Hello " + s1.name
         after: s1
    <BLANKLINE>
    Result: s2

    Literals are JSON; ``s1.name`` is a part of the result of step ``s1``. With a ``catalogue``, each step says what its
    function does, whether it has effects and whether it exists. Nothing is left out or cut, since people approve what
    they read; control characters are written as escapes.
    """
    return "\n".join(_plan(plan, catalogue, ""))


def expression_to_text(expression: Expression) -> str:
    """Write one expression on a line: ``"on " + s1.date``.

    >>> expression_to_text(ListOf((Value("a"), From("s1", ("days", 0)))))
    '["a", s1.days[0]]'
    """
    return printable(_expression(expression))


def when_to_text(when: When) -> str:
    """Write a condition on a line.

    >>> when_to_text(When("equal", (From("s1", ("kind",)), Value("invoice")), negated=True))
    's1.kind is not "invoice"'
    """
    first, *others = map(expression_to_text, when.values) if when.values else ("nothing",)
    if when.test != "equal":
        others = [when.test, *others]
    elif others and others[0] in ("true", "false"):
        others[0] = f"equal to {others[0]}"  # The test "true" fails where a value is neither.
    return f"{first} {'is not' if when.negated else 'is'} {', '.join(others)}"


def each_to_text(each: Each) -> str:
    """Write what a step runs for on a line: ``each item of s1, 2 at a time``."""
    at_once = f", {AT_ONCE.print(each.at_once)}" if each.at_once != 1 else ""
    return f"each item of {expression_to_text(each.items)}{at_once}{', null where it fails' * (each.failed == 'skip')}"


def printable(text: str) -> str:
    r"""Return a text on one line, with an escape for each character that is not printable.

    >>> printable("red:\x1b[31m\nno more")
    'red:\\x1b[31m\\nno more'
    """
    if text.isprintable():
        return text
    odd = [each for each in set(text) if not each.isprintable() and each not in _JOINERS]
    return text.translate({ord(each): each.encode("unicode_escape").decode() for each in odd})


def _plan(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None, indent: str) -> Iterator[str]:
    gap = [] if indent else [""]
    if not indent:
        yield f"Goal: {_words(plan.goal)}"
    if plan.input is not None:
        yield f"{indent}Input: {input_in_words(plan.input)}"
    if plan.steps:
        yield from gap
    for number, step in enumerate(plan.steps, 1):
        yield from _step(number, step, catalogue, indent)
    yield from gap
    if plan.result is not None:
        yield f"{indent}Result: {expression_to_text(plan.result)}"
    else:
        yield f"{indent}Result: none; {'the planner goes on' if not indent else 'the step gives null'}"


def _step(number: int, step: Step, catalogue: Mapping[str, FunctionSpec] | None, indent: str) -> Iterator[str]:
    head = f"{indent}{number}. {_id(step.id)}:"
    inner = f"{indent}     "
    match step.function:
        case str(name):
            spec = None if catalogue is None else catalogue.get(name)
            effects = " (has effects)" if spec is not None and spec.effects else ""
            missing = " (not in the catalogue)" if catalogue is not None and spec is None else ""
            yield f"{head} {printable(name)}{effects}{missing}"
            if spec is not None and spec.description:
                yield f"{inner}{_words(spec.description)}"
        case Plan(goal):
            yield f"{head} a nested plan: {_words(goal)}"
        case PlanTemplate(_, language):
            yield f"{head} a template in {_words(language)}"
    if step.reason:
        yield f"{inner}because: {_words(step.reason)}"
    if step.each is not None:
        yield f"{inner}for {each_to_text(step.each)}"
    if step.when is not None:
        yield f"{inner}when {when_to_text(step.when)}"
    for name, expression in step.arguments.items():
        yield f"{inner}{_key(name)} = {expression_to_text(expression)}"
    if step.after:
        yield f"{inner}after: {', '.join(map(_id, step.after))}"
    for name, given in step.options().items():
        yield f"{inner}{STEP_OPTIONS[name].print(given)}"
    match step.function:
        case Plan() as plan:
            yield from _plan(plan, catalogue, inner)
        case PlanTemplate(source):
            lines = source.split("\n")
            for start in range(0, len(lines), 1_000):  # each by itself takes a hundred bytes
                some = lines[start : start + 1_000]
                yield "\n".join(f"{inner}| {printable(line)}".rstrip() for line in some)


def _expression(expression: Expression) -> str:
    match expression:
        case Value(value):
            return _literal(value)
        case From(step, path):
            return _reference(step) + From.print_path(path)[1:]
        case TextOf(parts):
            written = [_literal(part) if isinstance(part, str) else _part(part) for part in parts]
            # A text of references alone still is a text, whatever they give.
            return " + ".join(written if any(isinstance(part, str) for part in parts) else ['""', *written])
        case ListOf(items):
            return f"[{', '.join(_expression(item) for item in items)}]"
        case ObjectOf(members):
            pairs = (f"{_literal(name)}: {_expression(member)}" for name, member in members.items())
            return f"{{{', '.join(pairs)}}}"


def _part(expression: Expression) -> str:
    written = _expression(expression)
    return f"({written})" if isinstance(expression, TextOf) else written


def _literal(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return "(a value that is not JSON)"


def input_in_words(schema: Mapping[str, Any]) -> str:
    """Describe the input of a plan in a few words, or write the schema if it is no object with properties.

    >>> input_in_words({"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]})
    'city (string), days (integer, optional)'
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return printable(_literal(dict(schema)))
    required = schema.get("required", ())
    words = []
    for name, member in properties.items():
        kind = member.get("type") if isinstance(member, Mapping) else None
        kinds = kind if isinstance(kind, list) else [kind] if isinstance(kind, str) else ["any"]
        optional = "" if name in required else ", optional"
        words.append(f"{_key(name)} ({printable(' or '.join(map(str, kinds)))}{optional})")
    return ", ".join(words)


def _id(step: str) -> str:
    return step if _PLAIN_ID.fullmatch(step) else printable(json.dumps(step, ensure_ascii=False))


_key = _id


def _reference(step: str) -> str:
    """Write the id of a step where a literal may stand too."""
    plain = _PLAIN_ID.fullmatch(step) and step not in _LITERALS
    return step if plain else f"step {json.dumps(step, ensure_ascii=False)}"


def _words(text: str) -> str:
    return printable(" ".join(text.split()))


_LONGEST = 80
_KEPT = frozenset(" _-.,/")
_COLOURS = {"ask": "fill:#ffe2a8,stroke:#b36b00,color:#000", "refuse": "fill:#ffc9c9,stroke:#c00000,color:#000"}


def plan_to_mermaid(plan: Plan, findings: Iterable[Finding] = ()) -> str:
    """Draw a plan as a Mermaid flowchart.

    >>> from portico._plans.plan import From
    >>> print(plan_to_mermaid(Plan("Shout", (Step("s1", "Tone-shout"),), result=From("s1", ("text",)))))
    flowchart TD
        n0["s1<br/>Tone-shout"]
        n1(["result"])
        n0 -- "#36;.text" --> n1

    A line is a value, labelled with its path; a dotted line only says what to wait for. A nested plan is a box. Names
    of nodes are ours and labels are escaped, so that no plan can write its own Mermaid. Labels are cut at 80
    characters. By default Mermaid draws at most 500 lines and 50,000 characters. Of the ``findings`` of a check, steps
    that a person must agree to are amber, and those that are refused red.
    """
    drawing = _Drawing()
    drawing.plan(plan, "    ", given=False)
    return "\n".join(["flowchart TD", *drawing.nodes, *drawing.edges(), *drawing.colours(findings)])


@dataclass(slots=True)
class _Drawing:
    nodes: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    """The paths of the values on the line between two nodes."""
    waits: dict[tuple[str, str], None] = field(default_factory=dict)
    steps: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The node of each step, by the ids of the steps around it and its own."""
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count - 1}"

    def node(self, indent: str, left: str, label: str, right: str) -> str:
        name = self.name()
        self.nodes.append(f'{indent}{name}{left}"{label}"{right}')
        return name

    def plan(self, plan: Plan, indent: str, *, given: bool, within: tuple[str, ...] = ()) -> None:
        """Draw a plan's nodes and lines."""
        drawn: dict[str, str] = {}
        if given or plan.input is not None or any(reference.step == INPUT for reference in plan.references()):
            drawn[INPUT] = self.node(indent, "([", "input", "])")
        for step in plan.steps:
            drawn[step.id] = self.steps[*within, step.id] = self.step(step, indent, within)
        for step in plan.steps:
            shown = drawn if step.each is None else {**drawn, ITEM: ""}
            for expression in step.expressions():
                self.lines(expression, drawn[step.id], shown, indent)
            for earlier in step.after:
                self.waits[self.find_node(earlier, drawn, indent), drawn[step.id]] = None
        if plan.result is not None:
            self.lines(plan.result, self.node(indent, "([", "result", "])"), drawn, indent)
        elif not drawn:
            self.node(indent, "[", "nothing to do", "]")

    def step(self, step: Step, indent: str, within: tuple[str, ...]) -> str:
        match step.function:
            case Plan() as plan:
                name = self.name()
                title = f"{_label(step.id)}#58; {_label(plan.goal)}" if plan.goal.strip() else _label(step.id)
                title += _marks(step)
                self.nodes.append(f'{indent}subgraph {name}["{title}"]')
                self.plan(plan, f"{indent}    ", given=bool(step.arguments), within=(*within, step.id))
                self.nodes.append(f"{indent}end")
                return name
            case PlanTemplate(_, language):
                return self.node(indent, "[[", f"{_label(step.id)}<br/>{_label(language)} template{_marks(step)}", "]]")
            case str(function):
                return self.node(indent, "[", f"{_label(step.id)}<br/>{_label(function)}{_marks(step)}", "]")

    def lines(self, expression: Expression, to: str, drawn: dict[str, str], indent: str) -> None:
        for reference in references(expression):
            if drawn.get(reference.step) == "":
                continue  # the item at hand
            paths = self.values.setdefault((self.find_node(reference.step, drawn, indent), to), {})
            paths[From.print_path(reference.path) if reference.path else ""] = None

    def find_node(self, step: str, drawn: dict[str, str], indent: str) -> str:
        """Return a step's node; one that the plan does not have is drawn as a step of earlier."""
        if step not in drawn:
            drawn[step] = self.node(indent, "(", f"{_label(step)}<br/>earlier", ")")
        return drawn[step]

    def edges(self) -> Iterator[str]:
        for (start, to), paths in self.values.items():
            label = _label(", ".join(path or "$" for path in paths)) if any(paths) else ""
            yield f'    {start} -- "{label}" --> {to}' if label else f"    {start} --> {to}"
        for start, to in self.waits:
            if (start, to) not in self.values:
                yield f"    {start} -.-> {to}"

    def colours(self, findings: Iterable[Finding]) -> Iterator[str]:
        """Yield the colours of the steps with a verdict; a refusal counts more than a question."""
        verdicts: dict[str, str] = {}
        for finding in findings:
            if finding.step is None or not finding.verdict:
                continue
            words = (finding.step, *finding.place.split(" "))
            ids = max((ids for ids in self.steps if words[: len(ids)] == ids), key=len, default=())
            name = self.steps.get(ids, "")
            if verdicts.get(name) != "refuse":
                verdicts[name] = finding.verdict
        for verdict, colour in _COLOURS.items():
            if names := [name for name, each in verdicts.items() if name and each == verdict]:
                yield f"    classDef {verdict} {colour}"
                yield f"    class {','.join(names)} {verdict}"


def _marks(step: Step) -> str:
    """Return lines of a label that say how often a step runs, and when."""
    loop = "<br/>for each item" if step.each is not None else ""
    return loop + (f"<br/>when {_label(when_to_text(step.when))}" if step.when is not None else "")


def _label(text: str) -> str:
    """Return a text as it may stand in a quoted label: every sign that Mermaid or HTML may obey as its code.

    The signs of CSS matter too: Mermaid takes the last ``;`` away from a line that reads ``style…:…#…;``.
    """
    text = printable(" ".join(text.split()))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return "".join(each if each in _KEPT or not each.isascii() or each.isalnum() else f"#{ord(each)};" for each in text)
