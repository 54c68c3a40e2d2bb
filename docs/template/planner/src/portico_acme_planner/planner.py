"""The planner: one method, which proposes what to do next."""

import json
import re
from textwrap import shorten

from portico import Answer, Citation, FunctionSpec, Infeasible, Plan, Planner, Services, Step, Task, Value
from portico.errors import PlanError
from portico.plans import Emit, Event, StepRecord

from portico_acme_planner.config import AcmeSettings

__all__ = ["AcmePlanner"]


class AcmePlanner(Planner):
    """Ask the functions that fit the goal's words best, all at once, and put together what they say.

    >>> from portico import Kernel, function
    >>> @function
    ... def letters(text: str) -> int:
    ...     '''Count the letters of a text.'''
    ...     return sum(letter.isalpha() for letter in text)
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(letters)
    >>> planner = AcmePlanner(AcmeSettings(), None)
    >>> kernel.run_sync(kernel.run_goal("a b c", planner=planner)).outcome.text
    'letters: 3'

    It takes functions that need one text and have no effects, and gives them the goal. One that fails is reported in
    the answer's warnings. Raises ``PlanError`` where all of them fail, and where its plan is refused.
    """

    name = "acme"

    def __init__(self, settings: AcmeSettings, services: Services | None) -> None:
        self._settings = settings

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Propose the calls, and when they have run, the answer. It is a function of its task: it keeps nothing."""
        if task.refused:
            findings = "; ".join(str(finding) for finding in task.refused[-1].findings)
            raise PlanError(f"The planner {self.name!r} has no other plan than the one that was refused: {findings}")
        if task.steps:
            answer = _answer(task.steps)
            emit(Event.TextDelta(answer.text))
            return answer
        chosen = _fitting(task)[: self._settings.functions]
        if not chosen:
            return Infeasible("No function takes a text and nothing else.", missing=("a function of one text",))
        return Plan(
            task.goal,
            tuple(
                Step(f"s{number}", spec.name, {parameter: Value(task.goal)}, reason=spec.description)
                for number, (spec, parameter) in enumerate(chosen, 1)
            ),
        )


def _fitting(task: Task) -> list[tuple[FunctionSpec, str]]:
    """Return the functions that the goal can be given to, each with the parameter for it; the best first."""
    goal = _words(task.goal)
    # All functions of a search find the same, each in another form: the one that planners are to ask is tagged.
    searches = {_plugin(spec) for spec in task.functions if spec.is_search}
    asked = [spec for spec in task.functions if spec.is_search or _plugin(spec) not in searches]
    found = [(spec, parameter) for spec in asked if (parameter := _only_text(spec)) is not None]
    return sorted(found, key=lambda pair: -len(goal & _words(f"{pair[0].name} {pair[0].description}")))


def _only_text(spec: FunctionSpec) -> str | None:
    required = spec.parameters.get("required", ())
    if spec.effects or len(required) != 1:
        return None
    schema = spec.parameters["properties"][required[0]]
    # Any text fits it, whatever people type: there are no `enum`, `pattern` or `format`.
    return str(required[0]) if schema.get("type") == "string" and schema.keys() <= {"type", "description"} else None


def _plugin(spec: FunctionSpec) -> str:
    return spec.name.partition("-")[0]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))


def _answer(steps: tuple[StepRecord, ...]) -> Answer:
    """Put the results together, in the plan's order: steps come in the order in which they ended."""
    parts: list[str] = []
    citations: list[Citation] = []
    warnings: list[str] = []
    for record in sorted(steps, key=lambda record: record.step.id):
        if record.error is not None:
            warnings.append(f"{record.step.function} failed: {record.error}")
            continue
        if not _are_passages(record.result):
            text = record.result if isinstance(record.result, str) else json.dumps(record.result, ensure_ascii=False)
            parts.append(f"{record.step.function}: {text}")
            continue
        for passage in record.result:
            number = len(citations) + 1
            citations.append(Citation(number, passage.get("name"), passage.get("link"), passage["value"]))
            parts.append(f"{shorten(passage['value'], 400, placeholder=' …')} [{number}]")
    if len(warnings) == len(steps):
        raise PlanError(" ".join(warnings))
    return Answer("\n\n".join(parts) or "Nothing was found.", tuple(citations), warnings=tuple(warnings))


def _are_passages(result: object) -> bool:
    """Tell whether it is what a search gives: then the answer cites it."""
    return isinstance(result, list) and all(isinstance(item, dict) and "value" in item for item in result)
