"""The settings of a prompt, in Portico's terms and in those of Semantic Kernel."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import yaml

from portico import PromptInput

_DEEPEST = 64
_SHOWN = 200
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PromptInvalid(Exception):
    """A prompt cannot be used: the reason, with the place in the file where it has one."""


def read_document(text: str, kind: str) -> Any:
    """Return the value of a document; ``kind`` is ``yaml``, ``toml`` or ``json``. Raises `PromptInvalid`."""
    try:
        match kind:
            case "toml":
                value: Any = tomllib.loads(text)
            case "json":
                value = json.loads(text)
            case _:
                value = _read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:_SHOWN]
        raise PromptInvalid(f"this is not {kind.upper()}: {reason}") from error
    except RecursionError:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels") from None
    _require_json(value, 0)
    return value


def _read_yaml(text: str) -> Any:
    """Read YAML without aliases: repeated without bound, they make a small file a large value."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise PromptInvalid(f"line {event.start_mark.line + 1}: aliases (*{event.anchor:.60}) are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise PromptInvalid(f"line {event.start_mark.line + 1}: it nests deeper than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe one


def _require_json(value: Any, depth: int) -> None:
    """Refuse what JSON does not hold: YAML and TOML have dates, infinite numbers and keys that are no text."""
    if depth > _DEEPEST:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels")
    if type(value) is dict:
        for key, inner in value.items():
            if type(key) is not str:
                raise PromptInvalid(f"the key {str(key)[:_SHOWN]} is a {type(key).__name__}: write it in quotes")
            _require_json(inner, depth + 1)
    elif type(value) is list:
        for inner in value:
            _require_json(inner, depth + 1)
    elif (type(value) is float and not math.isfinite(value)) or type(value) not in (
        *(str, int, float, bool),
        type(None),
    ):
        raise PromptInvalid(f"{str(value)[:_SHOWN]} is a {type(value).__name__}: write it as text, in quotes")


_KINDS = ["string", "integer", "number", "boolean", "array", "object"]
_MODES = ["auto", "required", "none"]
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}
_NUMBER = {"type": "number"}
_NAME = {"pattern": "^[0-9A-Za-z_]+$"}
_JSON_SCHEMA = {"type": ["object", "string"]}


def _table(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


_SAMPLING = {
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "max_tokens": {"type": "integer", "minimum": 1},
    "seed": {"type": "integer"},
}
_INPUT = _table(
    {
        "description": _TEXT,
        "type": {"enum": _KINDS},
        "schema": _JSON_SCHEMA,
        "default": {},
        "required": _FLAG,
        "trusted": _FLAG,
    }
)
_VARIABLES = {
    "type": "array",
    "items": _table(
        {
            "name": {**_TEXT, **_NAME},
            "description": _TEXT,
            "default": {},
            "defaultValue": {},
            "is_required": _FLAG,
            "required": _FLAG,
            "json_schema": _JSON_SCHEMA,
            "allow_dangerously_set_content": _FLAG,
            "is_sensitive": _FLAG,
            "sample": {},
        },
        "name",
    ),
}
_EXECUTION = _table(
    {
        **_SAMPLING,
        "service_id": _TEXT,
        "model_id": {"const": ""},  # a prompt chooses a configured chat service, not a model
        "stop_sequences": _TEXTS,
        "presence_penalty": _NUMBER,
        "frequency_penalty": _NUMBER,
        "results_per_prompt": {"const": 1},
        "number_of_responses": {"const": 1},
        "function_choice_behavior": _table({"type": {"enum": _MODES}, "functions": _TEXTS}, "type"),
    }
)
_SETTINGS = _table(
    {
        **_SAMPLING,
        "name": {**_TEXT, **_NAME},
        "description": _TEXT,
        "language": _TEXT,
        "template": _TEXT,
        "inputs": {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": {"if": _TEXT, "then": True, "else": _INPUT},
        },
        "returns": {"if": _TEXT, "then": {"enum": _KINDS}, "else": {"type": "object"}},
        "effects": _FLAG,
        "tags": _TEXTS,
        "stop": _TEXTS,
        "chat": _TEXT,
        "functions": _TEXTS,
        "tool_choice": {"enum": _MODES},
        "extras": {"type": "object"},
        # Semantic Kernel's.
        "schema": {"const": 1},
        "type": {"const": "completion"},
        "template_format": _TEXT,
        "allow_dangerously_set_content": _FLAG,
        "input_variables": _VARIABLES,
        "input": _table({"parameters": _VARIABLES}),
        "output_variable": _table({"name": _TEXT, "description": _TEXT, "json_schema": _JSON_SCHEMA}),
        "execution_settings": {"type": "object", "additionalProperties": _EXECUTION},
        "completion": _EXECUTION,
        "default_services": _TEXTS,
    }
)
"""JSON Schema of a settings file, without its nulls."""


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The settings of one prompt. ``options`` are those of a turn."""

    name: str | None = None
    description: str = ""
    language: str | None = None
    template: str | None = None
    inputs: Mapping[str, PromptInput] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    returns: Mapping[str, Any] | None = None
    effects: bool = False
    tags: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(document: object) -> PromptSettings:
    """Return what a document says; raises `PromptInvalid` for keys that are not known or do not fit."""
    given: dict[str, Any] = {} if document is None else _without_nulls(document)
    faults = _validate()(given)
    if faults:
        raise PromptInvalid("; ".join(faults[:3]))
    inputs = _inputs(given)
    trusted = {name for name, one in inputs.items() if one.get("trusted")}
    return PromptSettings(
        name=given.get("name"),
        description=given.get("description", "").strip(),
        language=given.get("language") or given.get("template_format"),
        template=given.get("template"),
        inputs={name: _input(one) for name, one in inputs.items()},
        trusted=frozenset(inputs if given.get("allow_dangerously_set_content") else trusted),
        returns=_returns(given),
        effects=given.get("effects", False),
        tags=tuple(given.get("tags", ())),
        options=_execution_options(given) | _options(given, stop="stop"),
    )


@lru_cache(1)
def _validate() -> Callable[[Any], list[str]]:
    from portico_basics.jsonschema.validator import JsonschemaValidator

    return JsonschemaValidator().compile(_SETTINGS)


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if type(value) is list else value


def _inputs(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the inputs in Portico's terms, by name."""
    inputs = {
        name: {"description": one} if isinstance(one, str) else one for name, one in given.get("inputs", {}).items()
    }
    for variable in given.get("input_variables") or given.get("input", {}).get("parameters", []):
        one = {
            "description": variable.get("description", ""),
            "schema": variable.get("json_schema"),
            "trusted": variable.get("allow_dangerously_set_content", False),
        }
        default = variable.get("default", variable.get("defaultValue"))
        if default is not None:
            one["default"] = default  # there, a default counts whatever is_required says
        elif "is_required" in variable or "required" in variable:
            one["required"] = variable.get("is_required", variable.get("required"))
        inputs[variable["name"]] = one
    return inputs


def _input(one: Mapping[str, Any]) -> PromptInput:
    schema = _json_schema(one.get("schema")) or {"type": one.get("type", "string")}
    required = one.get("required", "default" not in one)
    default = PromptInput.REQUIRED if required else one.get("default")
    return PromptInput(schema, one.get("description", "").strip(), default)


def _json_schema(value: Any) -> Any:
    """Return a JSON Schema, which may be written as JSON text."""
    if not isinstance(value, str) or not value:
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise PromptInvalid(f"the JSON Schema {value[:60]!r} is not JSON: {error}") from error


def _returns(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    returns: Any = given.get("returns")
    if isinstance(returns, str):
        return {"type": returns}
    if returns is None and "output_variable" in given:
        output = given["output_variable"]
        returns = dict(_json_schema(output.get("json_schema")) or {"type": "string"})
        if output.get("description"):
            returns["description"] = output["description"]
    return cast("Mapping[str, Any] | None", returns)


def _options(given: Mapping[str, Any], *, stop: str) -> dict[str, Any]:
    options = {key: given[key] for key in (*_SAMPLING, "chat", "functions", "tool_choice", "extras") if key in given}
    if given.get(stop):
        options["stop"] = tuple(given[stop])
    return options


def _execution_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``execution_settings``: those called default, or the only ones.

    Settings under the name of a service choose that chat service. The older ``completion`` holds them directly.
    """
    services = given.get("execution_settings") or {"default": given.get("completion", {})}
    if "default" not in services and len(services) > 1:
        raise PromptInvalid(f"execution_settings has {', '.join(map(repr, services))}, and none called 'default'")
    name = "default" if "default" in services else next(iter(services))
    settings = services[name]
    options = _options(settings, stop="stop_sequences")
    service = settings.get("service_id") or name
    if service != "default":
        options["chat"] = service
    choice = settings.get("function_choice_behavior")
    if choice is not None:
        options["tool_choice"] = choice["type"]
        options["functions"] = tuple(choice.get("functions", ())) or None
    extras = {key: settings[key] for key in ("presence_penalty", "frequency_penalty") if settings.get(key)}
    if extras:
        options["extras"] = extras
    return {key: value for key, value in options.items() if value is not None}
