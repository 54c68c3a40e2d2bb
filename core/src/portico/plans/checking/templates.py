"""What the calls that are written in a template get wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from portico.functions import FunctionManual
from portico.plans.checking.manuals import Known, known_of
from portico.plans.checking.names import FunctionNames
from portico.plans.checking.shapes import listed
from portico.plans.plan import INPUT, PlanTemplate
from portico.prompts.written_calls import FunctionCall

__all__ = ["CallProblem", "call_problems"]


@dataclass(frozen=True, slots=True)
class CallProblem:
    """What is wrong with a call in a template, a sentence with line and column."""

    message: str
    nearest: tuple[str, ...] = ()


def call_problems(
    template: PlanTemplate,
    calls: Sequence[FunctionCall],
    variables: Collection[str],
    catalogue: Mapping[str, FunctionManual],
    names: FunctionNames,
) -> Iterator[CallProblem]:
    """Yield what surely fails when the template is rendered with ``variables``, by `portico.prompts.calling`.

    A parameter is missing for sure only if the template does not even contain its name: it may set a variable.
    """
    for call in calls:
        where = f"line {call.line}, column {call.column}"
        # A template that writes a name in another case, or with another separator, is understood.
        found = call.function if call.function in catalogue else names.meant(call.function)
        if found is None:
            near = names.nearest(call.function)
            hint = names.hint(near)
            yield CallProblem(f"{where}: there is no function {call.function!r}{hint}", near)
            continue
        known = known_of(catalogue[found])
        yield from (CallProblem(f"{where}: {problem}") for problem in _faults(call, known, template, variables))


def _faults(call: FunctionCall, known: Known, template: PlanTemplate, variables: Collection[str]) -> Iterator[str]:
    parameters = list(known.parameters)
    if call.positional > len(parameters):
        yield f"{known.name} takes {len(parameters)} arguments, not {call.positional} without a name"
    given = {name.casefold() for name in (*parameters[: call.positional], *call.named)}
    by_case = {name.casefold() for name in parameters}
    for name in call.named:
        if known.closed and name.casefold() not in by_case:
            yield f"{known.name} has no parameter {name!r}; it has: {listed(parameters)}"
    bare = not call.positional and not call.named
    for name in known.required:
        if name.casefold() in given or name in variables or name in template.source:
            continue
        if bare and name == parameters[0] and (INPUT in variables or INPUT in template.source):
            continue
        yield f"{known.name} needs the argument {name!r}"
