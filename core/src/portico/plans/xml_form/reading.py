"""From a text to a plan: the parser's calls become steps, their variables references."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from portico.errors import PlanFormatError
from portico.functions import FunctionManual
from portico.plans.findings import Finding
from portico.plans.plan import Plan
from portico.plans.xml_form.lenient import parse_leniently
from portico.plans.xml_form.placing import attribute_offset
from portico.plans.xml_form.steps import steps_and_result
from portico.plans.xml_form.strict import parse_strictly
from portico.plans.xml_form.written import LIMIT_OF_CHARACTERS, Mend, WrittenCall, WrittenPlan, format_error, places

__all__ = ["XmlPlan", "plan_from_xml", "read_plan"]


@dataclass(frozen=True, slots=True)
class XmlPlan:
    """A plan that was read, with everything that was mended for it, in the order of the text.

    >>> read_plan("<plan><function.Tone.shout text='hey'></plan>", recover=True).recovered[0].what
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

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Line and column, counted from 1, where each step begins, by its id; found when they are asked for."""
        if self._source is None:
            return {}
        text, written = self._source
        found = places(text, [written.characters(call.offset) for call in written.calls])
        return {step.id: place for step, place in zip(self.plan.steps, found, strict=True)}

    def place_of(self, step: str | None, place: str = "") -> tuple[int, int] | None:
        """Return line and column of what a finding is about: the attribute where there is one, else the step.

        >>> read_plan('<plan><function.Tone.shout text="hey"/></plan>').place_of("s1", "arguments.text")
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
                offset = attribute_offset(text, offset, call, max(names, key=len), strict=written.strict) or offset
        [found] = places(text, [offset])
        return found


def plan_from_xml(
    text: str,
    catalogue: Mapping[str, FunctionManual] | None = None,
    *,
    goal: str = "",
    recover: bool = False,
    finished: Collection[str] = (),
) -> Plan:
    """Read a plan; see `read_plan`.

    >>> plan_from_xml('<plan><function.Tone.shout text="hey"/></plan>').steps[0].function
    'Tone-shout'
    """
    return read_plan(text, catalogue, goal=goal, recover=recover, finished=finished).plan


def read_plan(
    text: str,
    catalogue: Mapping[str, FunctionManual] | None = None,
    *,
    goal: str = "",
    recover: bool = False,
    finished: Collection[str] = (),
) -> XmlPlan:
    """Read a plan from XML.

    ``catalogue`` maps full names to manuals: with it, names of functions and parameters are found in any case, texts
    are read as the JSON that a parameter takes, and steps with effects keep their order. ``goal`` is the plan's; by
    default it is what ``<goal>`` says. ``finished`` are the ids of steps of the same pursuit: they are variables
    here, and no new step takes them. With ``recover`` a text that is no XML is mended where only one reading is
    possible.

    Raises ``PlanFormatError`` with line and column for anything else; also for more than 1,000,000 characters or 1,000
    steps. The plan is not checked against the catalogue.
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
            offset = attribute_offset(text, offset, call, attribute, strict=written.strict) or offset
        return format_error(text, offset, problem)

    steps, result, doubts = steps_and_result(written.calls, catalogue, finished, fail)
    return XmlPlan(
        Plan(goal or written.goal, steps, result),
        () if refused is None else _placed(text, mends, refused),
        tuple(Finding(each.what, each.step, f"arguments.{each.argument}", "warning") for each in doubts),
        (text, written),
    )


def _placed(text: str, mends: list[tuple[int, str]], refused: PlanFormatError) -> tuple[Mend, ...]:
    """Return what was mended by line and column; where nothing had to be, what the parser had against the text."""
    if not mends:
        return (Mend(refused.line or 1, refused.column or 1, str(refused).partition(": ")[2].rstrip(".")),)
    mends.sort()
    found = places(text, (offset for offset, _ in mends))
    return tuple(Mend(*place, what) for place, (_, what) in zip(found, mends, strict=True))
