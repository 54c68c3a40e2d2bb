"""Calls of a model as steps of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import Plan, Step, Value
from portico._schema.coerce import mend
from portico._schema.values import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping


class ModelCall:
    """A call that a model wrote: ``step`` makes a step of it, ``faults`` says what is wrong with that step.

    ``arguments`` reads the JSON object of a call's arguments.
    """

    @staticmethod
    def step(
        name: str, arguments: Mapping[str, Any], catalogue: Mapping[str, FunctionSpec], *, id: str, reason: str = ""
    ) -> Step:
        """Make the step that a model means; names and values in another spelling are understood as in a tool call.

        >>> from portico import Function
        >>> def forecast(city: str, days: int = 1) -> str:
        ...     return "Sun"
        >>> spec = Function.of(forecast, plugin="Weather").spec
        >>> step = ModelCall.step("weather.forecast", {"city": "Oslo", "days": "3"}, {spec.name: spec}, id="s1")
        >>> step.function, step.arguments["days"]
        ('Weather-forecast', Value(value=3))

        Every argument is a `Value`: text of a model never becomes a reference. Raises ``FunctionNotFound`` with the
        nearest names. The arguments are not checked; `ModelCall.faults` does that.
        """
        spec = catalogue[FunctionSpec.find_name(name, catalogue, lenient=True)]
        mended = mend(spec.parameters, dict(arguments))
        return Step(id, spec.name, {key: Value(value) for key, value in mended.items()}, reason=reason)

    @staticmethod
    def faults(step: Step, catalogue: Mapping[str, FunctionSpec]) -> list[str]:
        """Check a step that refers to no other step, and return one sentence for each error."""
        findings = check_plan(Plan("", (step,)), catalogue)
        return [
            f"{finding.place}: {finding.words}" if finding.place else finding.words
            for finding in findings
            if finding.severity == "error"
        ]

    @staticmethod
    def arguments(text: str, *, more: bool = False) -> dict[str, Any]:
        """Read a JSON object as models write it; with ``more``, the one with which the text begins.

        >>> ModelCall.arguments("{'city': 'Oslo', 'now': True,}")
        {'city': 'Oslo', 'now': True}

        ``ValueError`` says what is wrong with any other text, such as one with a key twice.
        """
        try:
            value = read_json(text, more=more)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        return value
