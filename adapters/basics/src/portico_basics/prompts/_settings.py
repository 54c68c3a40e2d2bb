"""The keys of a settings file, in our terms or in Semantic Kernel's, to the settings of a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from portico_basics.prompts._prompt import Input, PromptSettings
from portico_basics.prompts._semantic_kernel import execution_options, variables_as_inputs
from portico_basics.prompts._wrong import Fields, Wrong, described

_NAME = re.compile(r"[0-9A-Za-z_]+")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_MODES = ("auto", "required", "none")


def read_settings(document: object) -> PromptSettings:
    """Return what a document says; raises `Wrong` for the first key that is not known or does not fit."""
    fields = Fields({} if document is None else document, "")
    # Semantic Kernel writes the version of its own format, and what the prompt is for.
    if fields.integer("schema") not in (None, 1):
        raise fields.wrong("schema", "only version 1 of Semantic Kernel's format is known")
    fields.choice("type", ("completion",))
    name = fields.text("name") or None
    if name is not None and not _NAME.fullmatch(name):
        raise fields.wrong("name", f"a function's name has letters, digits and '_' only, not {described(name)}")
    settings = PromptSettings(
        name=name,
        description=(fields.text("description") or "").strip(),
        language=fields.text(fields.one_of("language", "template_format")) or None,
        template=fields.text("template"),
        inputs=_inputs(fields),
        returns=_returns(fields),
        effects=fields.flag("effects") or False,
        tags=fields.texts("tags") or (),
        options=_options(fields),
    )
    fields.finish()
    return settings


def _inputs(fields: Fields) -> dict[str, Input]:
    key = fields.one_of("inputs", "input_variables", "input")
    if key == "inputs":
        given: Mapping[str, Any] = fields.table(key) or {}
    else:
        given = variables_as_inputs(fields, key)
    everything = fields.flag("allow_dangerously_set_content")
    made = {}
    for name, value in given.items():
        place = fields.place(f"{key}.{name}")
        if not _NAME.fullmatch(name):
            raise Wrong(f"{place}: the name of an input has letters, digits and '_' only")
        made[name] = _input(value, place, trusted=everything or False)
    folded = [name.casefold() for name in made]
    twice = next((name for name in made if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise Wrong(f"{fields.place(key)}.{twice}: names of inputs differ in more than case")
    return made


def _input(value: object, place: str, *, trusted: bool) -> Input:
    """Read one input: a table, or a description alone."""
    if type(value) is str:
        return Input({"type": "string"}, value, trusted=trusted)
    fields = Fields({} if value is None else value, place)
    schema = _schema(fields, "type", "schema")
    has_default = "default" in fields
    default = fields.any("default")
    required = fields.flag("required")
    if required and has_default:
        raise fields.wrong("required", "an input with a default is not required: leave one of both out")
    made = Input(
        schema,
        (fields.text("description") or "").strip(),
        not has_default if required is None else required,
        default,
        fields.flag("trusted") or trusted,
    )
    fields.finish()
    return made


def _schema(fields: Fields, type_key: str, schema_key: str) -> dict[str, Any]:
    """Read a type by its name, or a JSON Schema."""
    schema = _json_schema(fields, schema_key)
    kind = fields.choice(type_key, _TYPES)
    if kind is not None and schema is not None:
        raise fields.wrong(type_key, f"{schema_key!r} says it already: leave one of both out")
    return schema or {"type": kind or "string"}


def _json_schema(fields: Fields, key: str) -> dict[str, Any] | None:
    """Take a JSON Schema, as a table or as JSON text."""
    value = fields.any(key)
    if type(value) is str:
        from portico_basics.prompts._documents import read_document

        try:
            value = read_document(value, "json")
        except Wrong as error:
            raise fields.wrong(key, str(error)) from error
    if value is not None and type(value) is not dict:
        raise fields.wrong(key, f"expected a JSON Schema, got {described(value)}")
    return value


def _returns(fields: Fields) -> dict[str, Any] | None:
    key = fields.one_of("returns", "output_variable")
    value = fields.any(key)
    if value is None:
        return None
    if key == "returns":
        if type(value) is str and value in _TYPES:
            return {"type": value}
        if type(value) is not dict:
            raise fields.wrong(key, f"expected a JSON Schema or one of {', '.join(_TYPES)}, got {described(value)}")
        return value
    output = Fields(value, key)
    output.text("name")
    schema = _json_schema(output, "json_schema") or {"type": "string"}
    description = output.text("description")
    output.finish()
    return {**schema, "description": description} if description else schema


def _options(fields: Fields) -> dict[str, Any]:
    options: dict[str, Any] = {
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "max_tokens": fields.integer("max_tokens", 1),
        "stop": fields.texts("stop"),
        "seed": fields.integer("seed"),
        "chat": fields.text("chat") or None,
        "functions": fields.texts("functions"),
        "tool_choice": fields.choice("tool_choice", _MODES),
        "extras": fields.table("extras"),
    }
    options = {key: value for key, value in options.items() if value is not None}
    key = fields.one_of("execution_settings", "completion")
    theirs = execution_options(fields, key)
    both = sorted(options.keys() & theirs.keys())
    if both:
        raise fields.wrong(both[0], f"{key!r} says it too: leave one of both out")
    fields.texts("default_services")
    return {**options, **theirs}
