"""Reads and writes plans as XML."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico._plans.findings import Finding
from portico._plans.json_form import plan_to_json
from portico._plans.plan import INPUT, Expression, From, Plan, Step, TextOf, Value, references
from portico._plans.xml_form.lenient import attribute_offset, parse_leniently, parse_strictly
from portico._plans.xml_form.steps import Steps
from portico._plans.xml_form.tags import LIMIT_OF_CHARACTERS, Mend, WrittenCall, WrittenPlan, format_error, places
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from portico._functions.functions import FunctionSpec


@dataclass(frozen=True, slots=True)
class XmlPlan:
    """A plan that was read, with everything that was mended for it, in the order of the text.

    >>> XmlPlan.read("<plan><function.Tone.shout text='hey'></plan>", recover=True).recovered[0].what
    'the tag of function.Tone.shout is not closed'
    """

    plan: Plan
    recovered: tuple[Mend, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Warnings: what is read as text and may be meant as a variable; those of a check go beside them."""
    _source: tuple[str, WrittenPlan] | None = field(default=None, repr=False, compare=False)

    @property
    def empty(self) -> bool:
        """Whether it is ``<plan />``, which says that the goal cannot be reached with these functions."""
        return not self.plan.steps

    def place_of(self, step: str | None, place: str = "") -> tuple[int, int] | None:
        """Return line and column of what a finding is about: the attribute where there is one, else the step.

        >>> XmlPlan.read('<plan><function.Tone.shout text="hey"/></plan>').place_of("s1", "arguments.text")
        (1, 28)

        None for a step that the text does not have.
        """
        index = next((index for index, each in enumerate(self.plan.steps) if each.id == step), None)
        if self._source is None or index is None:
            return None
        text, written = self._source
        call = written.calls[index]
        offset = written.characters(call.offset)
        if place.startswith("arguments."):
            argument = place.removeprefix("arguments.").lower()
            # The longest name that the place begins with: a name may hold a dot.
            names = [
                name
                for name in call.attributes
                if argument.startswith(name.lower()) and argument[len(name.lower()) :][:1] in ("", ".", "[")
            ]
            if names:
                offset = attribute_offset(text, offset, max(names, key=len), call.offsets) or offset
        [found] = places(text, [offset])
        return found

    @staticmethod
    def read(
        text: str,
        catalogue: Mapping[str, FunctionSpec] | None = None,
        *,
        goal: str = "",
        recover: bool = False,
        finished: Collection[str] = (),
    ) -> XmlPlan:
        """Read a plan from XML.

        ``catalogue`` maps full names to manuals: with it, names of functions and parameters are found in any case,
        texts are read as the JSON that a parameter takes, and steps with effects keep their order. ``goal`` is the
        plan's; by default it is what ``<goal>`` says. ``finished`` are the ids of steps of the same run: they are
        variables here, and no new step takes them. With ``recover`` a text that is no XML is mended where only one
        reading is possible.

        Raises ``PlanFormatError`` with line and column for anything else; also for more than 1,000,000 characters or
        1,000 steps. The plan is not checked against the catalogue.
        """
        if len(text) > LIMIT_OF_CHARACTERS:
            raise PlanFormatError(f"The plan has {len(text):,} characters; {LIMIT_OF_CHARACTERS:,} are allowed.")
        mends: list[tuple[int, str]] = []
        refused: PlanFormatError | None = None
        try:
            written = parse_strictly(text)
        except PlanFormatError as error:
            if not recover:
                raise
            refused = error
            written = parse_leniently(text, catalogue, mends)

        def fail(call: WrittenCall, problem: str, attribute: str | None = None) -> PlanFormatError:
            offset = written.characters(call.offset)
            if attribute is not None:
                offset = attribute_offset(text, offset, attribute, call.offsets) or offset
            return format_error(text, offset, problem)

        steps, result, doubts = Steps(written.calls, catalogue, finished, fail).build()
        return XmlPlan(
            Plan(goal or written.goal, steps, result),
            () if refused is None else _placed(text, mends, refused),
            tuple(doubts),
            (text, written),
        )

    @staticmethod
    def write(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None = None, *, bare: bool = False) -> str:
        """Write a plan as XML that `XmlPlan.read`, given the same catalogue, reads as the same plan.

        >>> print(XmlPlan.write(Plan("", (Step("s1", "Tone-shout", {"text": Value("hey")}),), From("s1"))))
        <plan>
          <function.Tone.shout text="hey" setContextVariable="s1" appendToResult="RESULT__s1"/>
        </plan>

        Values that are no texts need the ``catalogue`` that says so. ``bare`` leaves out what is not of the steps:
        notes, fingerprints and the schema of the input. Raises ``PlanFormatError`` with the reason where XML cannot
        hold the plan, and where JSON cannot hold one of its values.
        """
        if bare:
            plan = replace(plan, notes=None, fingerprints={}, input=None)
        wanted = plan_to_json(plan)
        for problem in _problems(plan):
            raise PlanFormatError(f"XML cannot hold this plan: {problem}.")
        text = _document(plan)
        try:
            again = XmlPlan.read(text, catalogue).plan
        except PlanFormatError as error:
            raise PlanFormatError(f"XML cannot hold this plan. It would be read so: {error}") from error
        difference = _difference(wanted, plan_to_json(again), typed=catalogue is not None)
        if difference:
            raise PlanFormatError(f"XML cannot hold this plan: {difference}.")
        return text


def _placed(text: str, mends: list[tuple[int, str]], refused: PlanFormatError) -> tuple[Mend, ...]:
    """Return what was mended by line and column; where nothing had to be, what the parser had against the text."""
    if not mends:
        return (Mend(refused.line or 1, refused.column or 1, str(refused).partition(": ")[2].rstrip(".")),)
    mends.sort()
    found = places(text, (offset for offset, _ in mends))
    return tuple(Mend(*place, what) for place, (_, what) in zip(found, mends, strict=True))


_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("\r"): "&#13;"}
_ATTRIBUTE_ESCAPES = _ESCAPES | {ord('"'): "&quot;", ord("\n"): "&#10;", ord("\t"): "&#9;"}


def _problems(plan: Plan) -> Iterator[str]:
    """Yield why a plan cannot be written; whether it can be read again shows when it is."""
    if plan.input is not None:
        yield "it has a schema of its input"
    if plan.notes is not None:
        yield "it has notes"
    if plan.fingerprints:
        yield "it has fingerprints of functions"
    if plan.result is None and plan.steps:
        yield "it has no result; the result of an XML plan is that of its last step where no other is appended"
    written: set[str] = {INPUT}
    for step in plan.steps:
        if not isinstance(step.function, str):
            yield f"step {step.id} is a plan or a template"
        if step.seconds is not None or step.attempts is not None:
            yield f"step {step.id} has its own seconds or attempts"
        for name, expression in step.arguments.items():
            parts = expression.parts if isinstance(expression, TextOf) else (expression,)
            if not all(isinstance(part, str | From | Value) for part in parts) or Value in map(type, parts[1:]):
                yield (
                    f"the argument {name[:60]!r} of step {step.id} is neither a value, a whole result, nor a text with "
                    "whole results in it"
                )
        for reference in _references_of(step):
            if reference.step not in written:
                yield f"step {step.id} refers to {reference.step}, which is not written before it"
            if reference.path:
                yield f"step {step.id} takes a part of {reference.step}; variables are whole"
        written.add(step.id)
    for part in _result_parts(plan.result):
        if not isinstance(part, From) or part.path or part.step == INPUT or part.step not in written:
            yield "its result is not the whole result of one step, or of several, joined by line breaks"


def _references_of(step: Step) -> Iterator[From]:
    for expression in step.arguments.values():
        yield from references(expression)


def _result_parts(result: Expression | None) -> Iterator[str | Expression]:
    """Yield the parts of a result; the line breaks between references are none."""
    if isinstance(result, TextOf):
        for index, part in enumerate(result.parts):
            if index % 2 == 0 or part != "\n":
                yield part
    elif result is not None:
        yield result


def _document(plan: Plan) -> str:
    if not plan.steps:
        return f"{_goal(plan)}<plan/>"
    appended = {part.step for part in _result_parts(plan.result) if isinstance(part, From)}
    used = {reference.step for step in plan.steps for reference in _references_of(step)} | appended
    taken = {step.id.lower() for step in plan.steps}
    lines = [f"{_goal(plan)}<plan>"]
    for number, step in enumerate(plan.steps, 1):
        if step.reason:
            lines.append(f"  <!-- {step.reason} -->")
        attributes = [(name, _expression(expression)) for name, expression in step.arguments.items()]
        if step.id in used or step.id != f"s{number}":
            attributes.append(("setContextVariable", step.id))
        if step.id in appended:
            key = f"RESULT__{step.id}"
            while key.lower() in taken:
                key += "_"
            attributes.append(("appendToResult", key))
        written = "".join(f' {name}="{value.translate(_ATTRIBUTE_ESCAPES)}"' for name, value in attributes)
        lines.append(f"  <function.{str(step.function).replace('-', '.')}{written}/>")
    return "\n".join([*lines, "</plan>"])


def _goal(plan: Plan) -> str:
    return f"<goal>{plan.goal.translate(_ESCAPES)}</goal>\n" if plan.goal else ""


def _expression(expression: Expression) -> str:
    match expression:
        case Value(value):
            return _text(value)
        case From(step):
            return f"${step}"
        case TextOf(parts):
            return "".join(part if isinstance(part, str) else _expression(part) for part in parts)
        case _:
            raise TypeError(f"{expression!r} is not written as a text")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _difference(wanted: dict[str, Any], got: dict[str, Any], *, typed: bool) -> str | None:
    """Say what would be read back as something else; ``typed`` is where a catalogue was given."""
    # As texts, since Python's 1 is its true.
    if json.dumps(wanted) == json.dumps(got):
        return None
    if len(wanted["steps"]) != len(got["steps"]):
        return "it would be read with other steps"
    for one, other in zip(wanted["steps"], got["steps"], strict=True):
        for key in one | other:
            if key != "arguments" and json.dumps(one.get(key)) != json.dumps(other.get(key)):
                advice = "; give the catalogue, which says so" if key == "after" and not typed else ""
                return f"step {one['id']} would be read with another {key}{advice}"
        given, read = one.get("arguments", {}), other.get("arguments", {})
        for name in given | read:
            if json.dumps(given.get(name)) != json.dumps(read.get(name)):
                a_text = isinstance(given.get(name, {}).get("value", ""), str)
                advice = "" if typed or a_text else "; give the catalogue, which says that it is no text"
                return f"the argument {name!r} of step {one['id']} would be read as something else{advice}"
    return f"the {'result' if wanted['goal'] == got['goal'] else 'goal'} would be read as something else"
