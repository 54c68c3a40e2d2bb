"""JSON Schema (2020-12) of `portico.toml`, made from the table of ports and the installed settings classes."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from portico.errors import PorticoError
from portico.plugins import Secret
from portico.ports import PORTS, PortInfo
from portico_host.configuration import (
    NAME_PATTERN,
    LoopBudget,
    PluginChoice,
    PolicyRules,
    SecretRules,
    can_be_none,
    is_beside,
    names_what_it_uses,
)
from portico_host.fields import bare, is_settings_class, json_value, limit, options_of, settings_fields, union_members
from portico_host.loading import blame, settings_class_of
from portico_host.packages import Offer, Plugins
from portico_host.settings import ARRAYS, TABLES
from portico_host.shapes import SourceShape
from portico_host.tree import NONE

_SCALARS: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Path: {"type": "string", "minLength": 1},
    Any: {},
}
_NEVER: Mapping[str, Any] = {"not": {}}
"""What nothing fits: there is no value of TOML for the type, so that a file cannot set it."""


def configuration_schema(plugins: Plugins) -> dict[str, Any]:
    """Return the schema of a whole `portico.toml` for what is installed, for editors.

    A package that cannot be used is left out of the choices. Required settings are required here
    although the environment might have them.
    """
    tables = {port.table: _port_table(port, plugins) for port in PORTS if not is_beside(port)}
    for port in PORTS:
        if is_beside(port):
            tables[port.table] = _with_beside(tables[port.table], port, plugins)
    tables["plugins"] = settings_schema(PluginChoice)
    tables["plugins"]["description"] = "Which installed packages are imported at all."
    tables["secrets"] = settings_schema(SecretRules)
    tables["secrets"]["description"] = "Where secrets may come from."
    tables["policy"] = settings_schema(PolicyRules)
    tables["policy"]["description"] = "Which values may reach which functions."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "portico.toml",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
    }


def settings_schema(cls: type[Any]) -> dict[str, Any]:
    """Return the schema of a settings class: its keys, their types, documentation and defaults.

    Nothing fits a setting of a type that no file can hold. Raises whatever resolving the types raises.
    """
    return _class_schema(cls, frozenset())


def offered_schema(offer: Offer) -> dict[str, Any] | None:
    """Return the schema of a registration's settings, None when it has nothing to set; it can be written as JSON.

    Raises ``PluginBroken`` where the settings class cannot be read or described.
    """
    cls = settings_class_of(offer)
    if cls is None:
        return None
    try:
        schema = settings_schema(cls)
        json.dumps(schema, allow_nan=False)
    except Exception as error:
        raise blame(offer, "its settings class cannot be described", error) from error
    return schema


def _port_table(port: PortInfo, plugins: Plugins) -> dict[str, Any]:
    choices = _choices(port, plugins)
    required = [] if names_what_it_uses(port) else ["use"]
    shaping = settings_schema(SourceShape)["properties"] if port.name == "TextSearch" else {}
    named = [_named_entry(name, summary, schema, required, shaping) for name, (summary, schema) in choices.items()]
    entry = {
        "type": "object",
        "description": f"A {port.noun}: which one to use, and its settings.",
        # Said by itself too, so that a name that is not installed is reported as such.
        "properties": {"use": _use(port, choices)},
        "required": required,
        "anyOf": named,
    }
    if port.many:
        return {
            "type": "object",
            "description": f"Any number of [{port.table}.NAME], each with the {port.noun} to use and its settings.",
            "propertyNames": {"pattern": f"^(?:{NAME_PATTERN})$"},
            "additionalProperties": entry if named else False,
        }
    use = _use(port, choices)
    properties: dict[str, Any] = {
        "use": use,
        **{name: {**schema, "description": summary} for name, (summary, schema) in choices.items()},
    }
    if port.table == "planner":
        properties |= settings_schema(LoopBudget)["properties"]
    # A name of the user's own has a table with `use` in it.
    plain = {name: member for name, member in use.items() if name != "enum"}
    properties["use"] = {**plain, "anyOf": [{"enum": use["enum"]}, {"type": "string"}]}
    only_plugins = {
        "if": {"propertyNames": {"enum": list(properties)}},
        "then": {"properties": {"use": {"enum": use["enum"]}}},
    }
    # What a service cannot do without stands in its table, which must be there when it is chosen.
    needy = [
        {"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": {"required": [name]}}
        for name, (_, schema) in choices.items()
        if schema.get("required")
    ]
    return {
        "type": "object",
        "description": f"The {port.noun} to use, and in [{port.table}.NAME] what only that one knows.",
        "properties": properties,
        "additionalProperties": entry if named else False,
        "allOf": [only_plugins, *needy],
    }


def _use(port: PortInfo, choices: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    names = [*choices, *([NONE] if can_be_none(port) else [])]
    default = {"default": port.default} if port.default in names else {}
    return {"enum": names, "description": f"The {port.noun} to use.", **default}


def _with_beside(table: dict[str, Any], port: PortInfo, plugins: Plugins) -> dict[str, Any]:
    """Return the schema of a table with the choice of a port that shares it, and the settings beside that.

    Whether a setting belongs to the one that is chosen is checked when the file is read, not here.
    """
    choices = _choices(port, plugins)
    settings: dict[str, Any] = {}
    for _, schema in choices.values():
        for name, member in schema["properties"].items():
            settings[name] = {"anyOf": [settings[name], member]} if name in settings else member
    use = {**_use(port, choices), "description": f"The {port.noun} to use; its settings stand beside it."}
    rules = {"dependentRequired": {name: [port.key] for name in settings}} if settings else {}
    return {**table, "properties": {**table.get("properties", {}), port.key: use, **settings}, **rules}


def _choices(port: PortInfo, plugins: Plugins) -> dict[str, tuple[str, dict[str, Any]]]:
    found = {}
    for name in plugins.names(port.name):
        try:
            offer = plugins.offer(port.name, name)
            found[name] = (offer.registration.summary, offered_schema(offer) or _object({}, []))
        except PorticoError:
            continue
    return found


def _named_entry(
    name: str, summary: str, schema: Mapping[str, Any], required: list[str], shaping: Mapping[str, Any]
) -> dict[str, Any]:
    properties = {"use": {"const": name, "description": summary}, **shaping, **schema["properties"]}
    return {**_object(properties, [*required, *schema.get("required", ())]), "description": summary}


def _class_schema(cls: type[Any], above: frozenset[type[Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    fields = settings_fields(cls)
    for member in fields:
        schema = limit(_schema(member.hint, above | {cls}), member.limits)
        if member.doc:
            schema["description"] = member.doc
        default = _default(member.default)
        if default is not None:
            schema["default"] = default
        properties[member.key] = schema
    return _object(properties, [member.key for member in fields if member.required])


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _schema(hint: Any, above: frozenset[type[Any]]) -> dict[str, Any]:
    hint = bare(hint)
    members = union_members(hint)
    if members is not None:
        options = [_schema(member, above) for member in members if member is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if hint is Secret:
        return _secret()
    choices = options_of(hint)
    if choices is not None:
        return {"enum": [json_value(raw) for raw, _ in choices]}
    if is_settings_class(hint):
        # A class inside itself: what is deeper is checked when it is read.
        return {"type": "object"} if hint in above else _class_schema(hint, above)
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in TABLES:
        return {"type": "object", "additionalProperties": _schema(arguments[1], above) if arguments else True}
    if kind in ARRAYS:
        elements = [_schema(argument, above) for argument in arguments if argument is not Ellipsis]
        if len(elements) > 1:
            return {"type": "array", "prefixItems": elements, "minItems": len(elements), "maxItems": len(elements)}
        return {"type": "array", "items": elements[0] if elements else True}
    return dict(_SCALARS.get(hint, _NEVER))


def _secret() -> dict[str, Any]:
    name = {"type": "string", "minLength": 1}
    return {
        "anyOf": [
            {**_object({"env": {**name, "description": "An environment variable."}}, ["env"])},
            {**_object({"file": {**name, "description": "A file with nothing but the secret."}}, ["file"])},
            {**name, "description": "The secret itself; better kept elsewhere."},
        ]
    }


def _default(value: Any) -> Any:
    """Return a default as JSON has it, None for what need not be shown."""
    try:
        return json_value(value)
    except TypeError:
        return None
