"""The functions as tools of a request, and the way back from a call to a step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from portico import FunctionSpec, Tool, ToolCall
from portico.errors import ArgumentsInvalid
from portico.plans import FittedFunctions, ModelCall, Step
from portico.plugins import JsonSchema, Mismatch, StrictForm


class Offer:
    """What one request offers: the functions that fit, and one tool to say that the goal is infeasible.

    It is made once for a catalogue, so that a service can keep what it made of the tools.
    """

    def __init__(self, functions: Sequence[FunctionSpec], goal: str, *, tokens: int, strict: bool) -> None:
        fitted = FittedFunctions.of(functions, goal, tokens=tokens, write=_as_tools)
        self.fitted = fitted
        self._catalogue = {spec.name: spec for spec in fitted.functions}
        self._by_wire: dict[str, tuple[FunctionSpec, StrictForm | None]] = {}
        tools = []
        for spec in fitted.functions:
            made, form = spec.tool_form(strict=strict)
            self._by_wire[made.name] = (spec, form)
            tools.append(made)
        self.infeasible = JsonSchema.free_name("infeasible", self._by_wire)
        tools.append(Tool(self.infeasible, _INFEASIBLE, _INFEASIBLE_PARAMETERS))
        self.tools = tuple(tools)

    def is_infeasible(self, call: ToolCall) -> bool:
        """Tell whether a call says that the goal cannot be reached."""
        return call.name == self.infeasible or (
            call.name not in self._by_wire and call.name.strip().casefold() == self.infeasible
        )

    def step(self, call: ToolCall, *, id: str, reason: str) -> Step:
        """Make a call a step that passes the check on its own.

        Raises ``FunctionNotFound`` with the nearest names and ``ArgumentsInvalid`` with every fault.
        """
        spec, form = self._by_wire.get(call.name, (None, None))
        if spec is None:
            spec = self._catalogue[FunctionSpec.find_name(call.name, self._catalogue, lenient=True)]
        try:
            arguments = ModelCall.arguments(call.arguments.strip() or "{}")
        except ValueError as error:
            raise ArgumentsInvalid(spec.name, [f"the arguments are not one JSON object: {error}"]) from error
        if form is not None and not form.identity:
            try:
                arguments = form.decode(arguments)
            except (Mismatch, RecursionError) as error:
                raise ArgumentsInvalid(spec.name, [str(error) or "nested too deeply"]) from error
        step = ModelCall.step(spec.name, arguments, self._catalogue, id=id, reason=reason)
        faults = ModelCall.faults(step, self._catalogue)
        if faults:
            raise ArgumentsInvalid(spec.name, [fault.removeprefix("arguments.").rstrip(".") for fault in faults])
        return step


_INFEASIBLE = (
    "Call this, and nothing else beside it, when the goal cannot be reached with the other functions. Do not call it "
    "before you have tried what may work."
)
_INFEASIBLE_PARAMETERS = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "Why the goal cannot be reached, in the goal's language."},
        "missing": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The capabilities that would be needed.",
        },
    },
    "required": ["reason", "missing"],
    "additionalProperties": False,
}


def _as_tools(specs: Iterable[FunctionSpec]) -> str:
    """Write manuals as they lie in a request, to know how much they take."""
    made = (spec.tool() for spec in specs)
    return json.dumps([[each.name, each.description, each.parameters] for each in made], ensure_ascii=False)
