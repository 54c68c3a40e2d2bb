"""Reads and writes plans as XML."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico._plans.checking.expressions import FunctionNames
from portico._plans.difference import plan_difference
from portico._plans.findings import Finding
from portico._plans.json_form import plan_to_json
from portico._plans.plan import Expression, From, Plan, TextOf, Value
from portico._plans.xml_form.control import attribute_at, control_attributes
from portico._plans.xml_form.document import LIMIT_OF_CHARACTERS, Document, Mend, WrittenCall
from portico._plans.xml_form.mending import mend
from portico._plans.xml_form.steps import Steps, full_name
from portico.errors import PlanFormatError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from portico._functions.functions import FunctionSpec


@dataclass(frozen=True, slots=True)
class XmlPlan:
    """A plan that was read, with the repairs that its text needed, in the order of the text.

    >>> XmlPlan.read("<plan><function.Tone.shout text='hey'></plan>", recover=True).recovered[0].what
    'the tag of function.Tone.shout is not closed'
    """

    plan: Plan
    recovered: tuple[Mend, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Warnings: what is read as text and may be meant as a variable; those of a check go beside them."""
    _source: tuple[Document, list[WrittenCall]] | None = field(default=None, repr=False, compare=False)

    @property
    def empty(self) -> bool:
        """Whether it is ``<plan />``, which says that the goal cannot be reached with these functions."""
        return not self.plan.steps

    def place_of(self, step: str | None, place: str = "") -> tuple[int, int] | None:
        """Return line and column of what a finding is about: the attribute where there is one, else the step.

        >>> XmlPlan.read('<plan><function.Tone.shout text="hey"/></plan>').place_of("s1", "arguments.text")
        (1, 28)

        None for a step that the text does not have. A name with a dot in it may get the place of the step.
        """
        index = next((index for index, each in enumerate(self.plan.steps) if each.id == step), None)
        if self._source is None or index is None:
            return None
        document, calls = self._source
        return document.place(calls[index], attribute_at(place))

    attribute_at = staticmethod(attribute_at)

    @staticmethod
    def read(
        text: str,
        catalogue: Mapping[str, FunctionSpec] | None = None,
        *,
        goal: str = "",
        recover: bool = False,
        finished: Collection[str] = (),
        input: Any = None,
    ) -> XmlPlan:
        """Read a plan from XML.

        With a ``catalogue``, names of functions and parameters may be in any case, texts are read as the JSON that a
        parameter takes, ``$X.field`` is a part of a result also inside of a text, and steps with effects keep their
        order. ``goal`` is the plan's goal, by default the text of ``<goal>``. ``finished`` are the ids of earlier steps
        of the same run, or these with their JSON results: they are variables here, and no new step gets one of them.
        ``input`` is the JSON value that the plan will be given; the members of an object are variables too. With
        ``recover``, a text that is no XML is repaired if only one reading is possible.

        Raises ``PlanFormatError`` with line and column for anything else; also for more than 1,000,000 characters or
        1,000 steps. The plan is not checked against the catalogue.
        """
        if len(text) > LIMIT_OF_CHARACTERS:
            raise PlanFormatError(f"The plan has {len(text):,} characters; {LIMIT_OF_CHARACTERS:,} are allowed.")
        document, functions = Document(text), FunctionNames(catalogue or {})
        mends: tuple[Mend, ...] = ()
        try:
            calls, written_goal = document.parse()
        except PlanFormatError as error:
            if not recover:
                raise
            document = mend(text, lambda name: functions.spec(full_name(name)) is not None)
            calls, written_goal = document.parse()
            # What was wrong may be around the plan, where nothing but the plan is read.
            what = str(error).partition(": ")[2].rstrip(".")
            mends = document.mends or (Mend(error.line or 1, error.column or 1, what),)
        steps, result, doubts = Steps(calls, functions, finished, document.error, input).build()
        return XmlPlan(Plan(goal or written_goal, steps, result), mends, tuple(doubts), (document, calls))

    @staticmethod
    def write(
        plan: Plan, catalogue: Mapping[str, FunctionSpec] | None = None, *, bare: bool = False, input: Any = None
    ) -> str:
        """Write a plan as XML that `XmlPlan.read`, given the same catalogue and input, reads as the same plan.

        >>> from portico import Step
        >>> print(XmlPlan.write(Plan("", (Step("s1", "Tone-shout", {"text": Value("hey")}),), From("s1"))))
        <plan>
          <function.Tone.shout text="hey" setContextVariable="s1" appendToResult="RESULT__s1"/>
        </plan>

        Notes and fingerprints, which planner and kernel make, are left out, and with ``bare`` the schema of the input.
        Values that are no texts, and parts of results inside of a text, need a ``catalogue``, those of the input an
        ``input``. Raises ``PlanFormatError`` with the reason if XML cannot hold the plan, or JSON one of its values.
        """
        plan = replace(plan, notes=None, fingerprints={}, input=None if bare else plan.input)
        plan_to_json(plan)  # refuses values that JSON does not have
        text = _document(plan)
        try:
            again = XmlPlan.read(text, catalogue, input=input).plan
        except PlanFormatError as error:
            raise PlanFormatError(f"XML cannot hold this plan. It would be read so: {error}") from error
        difference = plan_difference(plan, again)
        if not difference.same:
            changes = "; ".join(line.strip() for line in str(difference).splitlines())
            advice = "" if catalogue else "; a catalogue may help, as it says what the functions take and give"
            raise PlanFormatError(
                f"XML cannot hold this plan. It would come back as another: {changes[:_SHOWN]}{advice}."
            )
        return text


_SHOWN = 300
_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("\r"): "&#13;"}
_ATTRIBUTE_ESCAPES = _ESCAPES | {ord('"'): "&quot;", ord("\n"): "&#10;", ord("\t"): "&#9;"}


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
    appended = {part.step: part.path for part in _result_parts(plan.result) if isinstance(part, From)}
    used = {reference.step for reference in plan.references()}
    taken = {step.id.lower() for step in plan.steps}
    lines = [f"{_goal(plan)}<plan>"]
    for number, step in enumerate(plan.steps, 1):
        if not isinstance(step.function, str):
            raise PlanFormatError(f"XML cannot hold this plan: step {step.id} is a plan or a template.")
        if step.reason:
            lines.append(f"  <!-- {step.reason} -->")
        attributes = [(name, _expression(expression)) for name, expression in step.arguments.items()]
        attributes += control_attributes(step, _expression)
        if step.id in used or step.id != f"s{number}":
            attributes.append(("setContextVariable", step.id))
        if step.id in appended:
            key = f"RESULT__{step.id}"
            while key.lower() in taken:
                key += "_"
            attributes.append(("appendToResult", f"{key}{From.print_path(appended[step.id])[1:]}"))
        written = "".join(f' {name}="{value.translate(_ATTRIBUTE_ESCAPES)}"' for name, value in attributes)
        lines.append(f"  <function.{step.function.replace('-', '.')}{written}/>")
    return "\n".join([*lines, "</plan>"])


def _goal(plan: Plan) -> str:
    return f"<goal>{plan.goal.translate(_ESCAPES)}</goal>\n" if plan.goal else ""


def _expression(expression: Expression) -> str:
    match expression:
        case Value(value):
            return _text(value)
        case From(step, path):
            return f"${step}{From.print_path(path)[1:]}"
        case TextOf(parts):
            return "".join(part if isinstance(part, str) else _expression(part) for part in parts)
        case _:
            raise PlanFormatError("XML cannot hold this plan: it has lists or objects with results in them.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
