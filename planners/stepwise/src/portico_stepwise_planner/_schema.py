"""The JSON Schema of one turn, for services that hold a reply to one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portico import ChatCapabilities, ChatRequest, FunctionSpec
from portico.errors import SchemaUnsupported
from portico.plans import ReplyProblem
from portico.plugins import JsonSchema, Mismatch, StrictForm
from portico_stepwise_planner._arguments import REFERENCE

_LONGEST_THOUGHT = 2_000


@dataclass(frozen=True, slots=True)
class TurnSchema:
    """A schema, as it is or in strict form, and the way back from what was written under it."""

    schema: Mapping[str, Any]
    form: StrictForm | None = None

    def ask(self, request: ChatRequest) -> ChatRequest:
        """Return the request whose reply is held to the schema."""
        return replace(
            request, response_schema=self.schema, response_name="turn", response_strict=self.form is not None
        )

    def plain(self, text: str) -> str:
        """Return a reply as the schema without strict form has it; raises `ReplyProblem` where it is none."""
        if self.form is None or self.form.identity:
            return text
        try:
            return json.dumps(self.form.decode(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError, Mismatch) as error:
            raise ReplyProblem(f"the reply is not of the form asked for: {error}") from error

    def draft(self, value: Any) -> Any:
        """Return what has come of a reply so far as the schema without strict form has it; None where it is unknown."""
        if self.form is None or self.form.identity:
            return value
        try:
            return self.form.decode(value)
        except (RecursionError, Mismatch):
            return None


def turn_schema(
    functions: Sequence[FunctionSpec], infeasible: str | None, capabilities: ChatCapabilities, *, references: bool
) -> TurnSchema | None:
    """Make the schema of a thought with one call of these functions or with the final answer.

    ``infeasible`` is how the model says that none helps, None where it is to answer. None for a service that holds
    replies to no schema. Strict form where the service takes it and it can hold the
    schema, if loosely: everything is checked afterwards. With ``references`` an argument may be one; where strict form
    cannot hold them beside what the functions take, they are left out.
    """
    if not capabilities.response_schema:
        return None
    schema = _turn(functions, infeasible, references=references)
    if not capabilities.strict:
        return TurnSchema(schema)
    for tried in (schema, _turn(functions, infeasible, references=False)) if references else (schema,):
        try:
            form = StrictForm.of(tried)
        except SchemaUnsupported:
            continue
        return TurnSchema(form.schema, form)
    return TurnSchema(schema)


def _turn(functions: Sequence[FunctionSpec], infeasible: str | None, *, references: bool) -> Mapping[str, Any]:
    definitions: dict[str, Mapping[str, Any]] = {}
    taken = [(spec.name, JsonSchema.hoist(spec.parameters, definitions)) for spec in functions]
    if references and functions:
        reference = JsonSchema.free_name("reference", definitions)
        definitions[reference] = REFERENCE
        taken = [(name, _or_references(parameters, f"#/$defs/{reference}")) for name, parameters in taken]
    actions = [_call(name, parameters) for name, parameters in taken]
    if infeasible is not None:
        lacking = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
        reason = {"type": "string", "maxLength": _LONGEST_THOUGHT}
        actions.append(_call(infeasible, _object({"reason": reason, "missing": lacking})))
    actions.append(_object({"final": {"type": "string"}}))
    thought = {"type": "string", "maxLength": _LONGEST_THOUGHT}
    return JsonSchema.attach(
        _object({"thought": thought, "action": {"anyOf": actions} if len(actions) > 1 else actions[0]}), definitions
    )


def _or_references(parameters: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """Let each parameter be a reference too; a default stays beside the alternatives, where strict form looks."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping):
        return parameters
    either: dict[str, Any] = {}
    for name, schema in properties.items():
        own = dict(schema) if isinstance(schema, Mapping) else schema
        beside = {"default": own.pop("default")} if isinstance(own, dict) and "default" in own else {}
        either[name] = {"anyOf": [own, {"$ref": reference}], **beside}
    return {**parameters, "properties": either}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return _object({"function": {"type": "string", "enum": [name]}, "arguments": arguments})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
