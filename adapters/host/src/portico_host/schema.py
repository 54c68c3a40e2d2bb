"""JSON Schema (2020-12) of `portico.toml`, made from the table of ports and the installed settings classes."""

from __future__ import annotations

import datetime as dt
import json
import logging
import typing
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from portico.errors import PluginBroken, PorticoError, SchemaUnsupported
from portico.plugins import Secret
from portico.ports import PORTS, PortInfo
from portico_host.configuration import NAME_PATTERN, NONE, can_be_none, is_beside, names_what_it_uses
from portico_host.fields import (
    NotJson,
    bare,
    is_settings_class,
    json_members,
    json_value,
    limited,
    named_elements,
    settings_fields,
    union_members,
)
from portico_host.host_tables import LoopBudget, PluginChoice, SecretRules
from portico_host.loading import broken, settings_class_of
from portico_host.packages import Offer, Plugins
from portico_host.settings import array_maker

__all__ = ["configuration_schema", "offered_schema", "settings_schema"]

_LOG = logging.getLogger("portico_host")
_SCALARS: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Path: {"type": "string", "minLength": 1},
    dt.datetime: {"type": "string", "format": "date-time"},
    dt.date: {"type": "string", "format": "date"},
    dt.time: {"type": "string", "format": "time"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
}
_NEVER: Mapping[str, Any] = {"not": {}}
"""What nothing fits: there is no value of TOML for the type, so that a file cannot set it."""


def configuration_schema(plugins: Plugins) -> dict[str, Any]:
    """Return the schema of a whole `portico.toml` for what is installed, for editors.

    A package that cannot be used is left out of the choices; where that is for its settings, the log has a warning.
    Required settings are required here although the environment might have them.
    """
    tables = {port.table: _port_table(port, plugins) for port in PORTS if not is_beside(port)}
    for port in PORTS:
        if is_beside(port):
            tables[port.table] = _with_beside(tables[port.table], port, plugins)
    tables["plugins"] = settings_schema(PluginChoice)
    tables["plugins"]["description"] = "Which installed packages are imported at all."
    tables["secrets"] = settings_schema(SecretRules)
    tables["secrets"]["description"] = "Where secrets may come from."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "portico.toml",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
    }


def settings_schema(cls: type[Any]) -> dict[str, Any]:
    """Return the schema of a settings class: its keys, their types, documentation and defaults.

    A setting of a type that no file can hold is one that nothing fits. Raises ``SchemaUnsupported`` where it has no
    default either, and for keys of tables that are no strings; whatever else resolving its types raises.
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise broken(offer, "its settings class cannot be described", error) from error
    return schema


def _port_table(port: PortInfo, plugins: Plugins) -> dict[str, Any]:
    choices = _choices(port, plugins)
    if port.many:
        named = [_named_entry(name, summary, schema) for name, (summary, schema) in choices.items()]
        own: dict[str, Any] = {}
        if names_what_it_uses(port):
            own = {
                "properties": {
                    name: {"anyOf": [_unnamed(one), *named]} for name, one in zip(choices, named, strict=True)
                }
            }
        entry = {
            "type": "object",
            "description": f"A {port.noun}: which one to use, and its settings.",
            # Said by itself too, so that a name that is not installed is reported as such.
            "properties": {"use": _use(port, choices)},
            "required": ["use"],
            "anyOf": named,
        }
        return {
            "type": "object",
            **own,
            "description": f"Any number of [{port.table}.NAME], each with the {port.noun} to use and its settings.",
            "propertyNames": {"pattern": f"^(?:{NAME_PATTERN})$"},
            "additionalProperties": entry if named else False,
        }
    properties: dict[str, Any] = {
        "use": _use(port, choices),
        **{name: {**schema, "description": summary} for name, (summary, schema) in choices.items()},
    }
    if port.table == "planner":
        properties |= settings_schema(LoopBudget)["properties"]
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
        "additionalProperties": False,
        **({"allOf": needy} if needy else {}),
    }


def _use(port: PortInfo, choices: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return the schema of a choice; ``x-taplo`` is where editors of TOML find what each of the words means."""
    words = {name: summary for name, (summary, _) in choices.items()}
    if can_be_none(port):
        words[NONE] = f"Do without a {port.noun}."
    return {
        "enum": [*words],
        "description": f"The {port.noun} to use.",
        **({"default": port.default} if port.default in words else {}),
        "x-taplo": {"docs": {"enumValues": [*words.values()]}},
    }


def _with_beside(table: Mapping[str, Any], port: PortInfo, plugins: Plugins) -> dict[str, Any]:
    """Return the schema of a table with the choice of a port that shares it, and the settings beside that."""
    choices = _choices(port, plugins)
    properties: dict[str, Any] = {}
    for _, schema in choices.values():
        for name, member in schema["properties"].items():
            known = properties.get(name)
            properties[name] = member if known is None or known == member else {"anyOf": [known, member]}
    rules: list[dict[str, Any]] = [
        {
            "if": {"properties": {port.key: {"const": name}}, "required": [port.key]},
            "then": {
                "properties": {key: schema["properties"].get(key, False) for key in properties},
                "required": schema.get("required", []),
            },
        }
        for name, (_, schema) in choices.items()
    ]
    return {
        **table,
        "properties": {
            **table.get("properties", {}),
            port.key: {**_use(port, choices), "description": f"The {port.noun} to use; its settings stand beside it."},
            **properties,
        },
        **({"allOf": rules, "dependentRequired": {name: [port.key] for name in properties}} if properties else {}),
    }


def _choices(port: PortInfo, plugins: Plugins) -> dict[str, tuple[str, dict[str, Any]]]:
    found = {}
    for name in plugins.names(port.name):
        try:
            offer = plugins.offer(port.name, name)
            schema = offered_schema(offer) or _object({}, [])
        except PluginBroken as error:
            _LOG.warning("%s It is left out.", error)
            continue
        except PorticoError:
            continue
        found[name] = (offer.registration.summary, schema)
    return found


def _named_entry(name: str, summary: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"use": {"const": name, "description": summary}, **schema["properties"]}
    return {**_object(properties, ["use", *schema.get("required", ())]), "description": summary}


def _unnamed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an entry that needs no `use`, for it bears the name."""
    return {**entry, "required": [key for key in entry["required"] if key != "use"]}


def _class_schema(cls: type[Any], above: frozenset[type[Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for member in settings_fields(cls):
        # A class inside itself: what is deeper is checked when it is read.
        schema = {"type": "object"} if bare(member.hint) in above else _schema(member.hint, above | {cls})
        if schema == _NEVER and member.required:
            raise SchemaUnsupported(
                f"The setting {member.key!r} has no default and cannot be of the type {member.hint}."
            )
        schema = limited(schema, member.limits)
        if member.doc:
            schema["description"] = member.doc
        if not member.required:
            default = None if schema.get("not") == {} else _default(member.default)
            if default is not None:
                schema["default"] = default
        properties[member.key] = schema
    return _object(properties, [member.key for member in settings_fields(cls) if member.required])


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _schema(hint: Any, above: frozenset[type[Any]]) -> dict[str, Any]:
    hint = bare(hint)
    members = union_members(hint)
    if members is not None:
        options = [_schema(member, above) for member in members if bare(member) is not type(None)]
        options = [option for option in options if option != _NEVER] or options[:1]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if hint is Secret:
        return _secret()
    if typing.get_origin(hint) is typing.Literal:
        return _enumerated(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enumerated(hint)
    if is_settings_class(hint):
        return {"type": "object"} if hint in above else _class_schema(hint, above)
    if isinstance(hint, typing.Hashable) and hint in _SCALARS:
        return dict(_SCALARS[hint])
    return _collection(hint, typing.get_args(hint), above)


def _enumerated(options: Iterable[Any]) -> dict[str, Any]:
    members = json_members(options)
    return {"enum": members} if members else dict(_NEVER)


def _collection(hint: Any, arguments: tuple[Any, ...], above: frozenset[type[Any]]) -> dict[str, Any]:
    kind = typing.get_origin(hint) or hint
    if kind is tuple and kind is not hint and Ellipsis not in arguments:
        return _fixed(arguments, above)
    if not isinstance(kind, type):
        return dict(_NEVER)
    named = named_elements(hint)
    if named is not None:
        return {"type": "array"} if kind in above else _fixed(named, above | {kind})
    if typing.is_typeddict(kind):
        if kind in above:
            return {"type": "object"}
        hints = typing.get_type_hints(kind).items()
        return _object(
            {name: _schema(inner, above | {kind}) for name, inner in hints},
            sorted(getattr(kind, "__required_keys__", ())),
        )
    if issubclass(kind, Mapping):
        if arguments and bare(arguments[0]) is not str:
            raise SchemaUnsupported(f"The keys of a table are strings, not {arguments[0]!r}.")
        return {"type": "object", "additionalProperties": _schema(arguments[1], above) if len(arguments) > 1 else True}
    if array_maker(hint) is not None:
        return {"type": "array", "items": _schema(arguments[0], above) if arguments else True}
    return dict(_NEVER)


def _fixed(hints: Iterable[Any], above: frozenset[type[Any]]) -> dict[str, Any]:
    """Return the schema of an array with one element of each type; `prefixItems` is not to be empty."""
    prefix = [_schema(hint, above) for hint in hints]
    elements = {"prefixItems": prefix} if prefix else {}
    return {"type": "array", **elements, "minItems": len(prefix), "maxItems": len(prefix)}


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
        shown = json_value(value)
    except NotJson:
        return None
    return None if _holds_none(shown) else shown


def _holds_none(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_holds_none, parts))
