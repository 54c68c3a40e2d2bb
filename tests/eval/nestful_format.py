"""Read NESTFUL's format: calls with labels and references made plans, specifications made functions' schemas.

The collection is written in several ways, by people and by models. What is read: the label ``var1`` as ``$var1`` and
``$var1$`` too; a list of calls, or of functions, as a text of JSON too; parameters under any key that ends in
``parameters``, or as a whole JSON Schema; outputs under ``output_parameters``, ``output_parameter`` or ``output``;
types by the names of JSON Schema, Python and other languages, several of them joined by ``or``, ``|`` or in a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portico.plans import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value

__all__ = ["Callable", "Task", "Unreadable", "plan_of", "read_functions", "read_tasks", "schema_of"]

RESULT = "var_result"
_LABEL = r"[A-Za-z_][A-Za-z_0-9]*"
_WHOLE = re.compile(rf"\$({_LABEL})((?:\.[^.\[\]$]+|\[[^\[\]$]+\])*)\$")
_INSIDE = re.compile(rf"\$({_LABEL})((?:\.[\w-]+|\[[^\[\]$]+\])*)\$")
_PART = re.compile(r"\.([^.\[\]$]+)|\[([^\[\]$]+)\]")
_LOOKS_LIKE_LABEL = re.compile(r"var_?[0-9]+")
_TYPES = {
    **dict.fromkeys(("string", "str", "text", "char", "character", "date", "time", "datetime", "date-time", "url",
                     "uri", "email", "uuid", "timestamp", "html"), "string"),
    **dict.fromkeys(("integer", "int", "long", "int32", "int64"), "integer"),
    **dict.fromkeys(("number", "float", "double", "decimal", "numeric"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "set", "sequence"), "array"),
    **dict.fromkeys(("object", "dict", "dictionary", "map", "mapping", "json"), "object"),
    **dict.fromkeys(("null", "none", "nonetype"), "null"),
}  # fmt: skip
_KEPT = ("description", "enum", "format")


class Unreadable(ValueError):
    """A task or a specification is not of the format; the message says why."""


@dataclass(frozen=True, slots=True)
class Callable:
    """A function of the specification: parameters and result as JSON Schemas."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it lies in the file; ``functions`` are those that it brings along."""

    name: str | int
    goal: Any
    calls: Any
    functions: Any = field(default=None)


def read_tasks(path: Path) -> list[Task]:
    """Read the tasks of a file, a JSON array or JSON lines. Raises `Unreadable`."""
    tasks = []
    for index, given in enumerate(_entries(path)):
        if not isinstance(given, Mapping):
            tasks.append(Task(index, None, None))
            continue
        name = next(
            (given[key] for key in ("sample_id", "id", "task_id") if isinstance(given.get(key), str | int)), index
        )
        tasks.append(Task(name, given.get("input"), given.get("output"), given.get("tools")))
    return tasks


def read_functions(given: Any) -> dict[str, Callable]:
    """Read a specification: a file, or what a task brings along. The first of several of one name counts."""
    entries = _entries(given) if isinstance(given, Path) else _decoded(given)
    if isinstance(entries, Mapping):
        entries = [{"name": name, **body} for name, body in entries.items() if isinstance(body, Mapping)]
    if not isinstance(entries, list):
        raise Unreadable("the functions are not a list")
    found: dict[str, Callable] = {}
    for entry in entries:
        wrapped = isinstance(entry, Mapping) and isinstance(entry.get("function"), Mapping)
        body = entry["function"] if wrapped else entry
        if not isinstance(body, Mapping) or not isinstance(body.get("name"), str):
            raise Unreadable("a function of the specification has no name")
        found.setdefault(body["name"], _function(body))
    return found


def plan_of(task: Task) -> Plan:
    """Return a task as a plan: each call a step, references by their labels, ``var_result`` the result.

    Without a ``var_result`` the result is that of the last call. Raises `Unreadable`.
    """
    calls = _decoded(task.calls)
    if not isinstance(task.goal, str) or not task.goal.strip():
        raise Unreadable("it has no input")
    if not isinstance(calls, list) or not calls:
        raise Unreadable("its output is no list of calls")
    read = [_call(call, index) for index, call in enumerate(calls)]
    labels = {label for _, label, _ in read if label is not None}
    steps: list[Step] = []
    result: Expression | None = None
    for name, label, arguments in read:
        if result is not None:
            raise Unreadable(f"{RESULT} is not its last call")
        members = {key: _expression(value, labels) for key, value in arguments.items()}
        if name == RESULT:
            result = ObjectOf(members)
        else:
            steps.append(Step(label or _free_label(len(steps), labels), name, members))
    return Plan(task.goal, tuple(steps), From(steps[-1].id) if result is None else result)


def schema_of(given: Any) -> dict[str, Any]:
    """Return the JSON Schema of one parameter or output; what is no type that JSON has is anything."""
    if isinstance(given, str):
        return _of_type(given)
    if isinstance(given, list):
        return _any_of([schema_of(each) for each in given])
    if not isinstance(given, Mapping):
        return {}
    schema = _of_type(given["type"]) if "type" in given else _of_parts(given)
    for key in _KEPT:
        if key in given and isinstance(given[key], list if key == "enum" else str):
            schema[key] = given[key]
    for key in ("minimum", "maximum"):
        if isinstance(given.get(key), int | float) and not isinstance(given[key], bool):
            schema[key] = given[key]
    if schema.get("type") == "array" and isinstance(given.get("items"), Mapping | str | list):
        schema["items"] = schema_of(given["items"])
    if schema.get("type") == "object" and isinstance(given.get("properties"), Mapping):
        listed = given.get("required")
        schema |= _object(given["properties"], listed if isinstance(listed, list) else ())
    if "enum" in schema and not all(_fits(value, schema.get("type")) for value in schema["enum"]):
        # The values that are written out say more than the type beside them.
        schema.pop("type")
    return schema


def _entries(path: Path) -> Any:
    text = path.read_text("utf-8-sig")
    try:
        found = json.loads(text)
    except ValueError as whole:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise Unreadable(f"{path} is neither JSON nor JSON lines: {whole}") from whole
    if isinstance(found, Mapping):
        lists = [value for value in found.values() if isinstance(value, list)]
        return lists[0] if len(lists) == 1 else found
    return found


def _decoded(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError as error:
        raise Unreadable(f"a text in the place of JSON is none: {error}") from error


def _call(call: Any, index: int) -> tuple[str, str | None, Mapping[str, Any]]:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str) or not call["name"]:
        raise Unreadable(f"its call {index + 1} has no name")
    arguments = _decoded(call.get("arguments") or {})
    if not isinstance(arguments, Mapping):
        raise Unreadable(f"the arguments of its call {index + 1} are no object")
    label = call.get("label")
    written = str(label).strip().strip("$") if label is not None else ""
    return call["name"], written or None, arguments


def _free_label(number: int, labels: set[str]) -> str:
    label = f"step{number + 1}"
    while label in labels:
        label += "_"
    return label


def _expression(value: Any, labels: set[str]) -> Expression:
    if isinstance(value, str):
        return _text(value, labels)
    if isinstance(value, list):
        items = tuple(_expression(item, labels) for item in value)
        return Value(value) if all(isinstance(item, Value) for item in items) else ListOf(items)
    if isinstance(value, Mapping):
        members = {key: _expression(member, labels) for key, member in value.items()}
        return Value(value) if all(isinstance(member, Value) for member in members.values()) else ObjectOf(members)
    return Value(value)


def _text(text: str, labels: set[str]) -> Expression:
    whole = _WHOLE.fullmatch(text.strip())
    if whole and _is_label(whole[1], labels):
        return _reference(whole)
    parts: list[str | Expression] = []
    done = 0
    for match in _INSIDE.finditer(text):
        if _is_label(match[1], labels):
            parts += [text[done : match.start()], _reference(match)]
            done = match.end()
    if not parts:
        return Value(text)
    return TextOf(tuple(part for part in (*parts, text[done:]) if part != ""))


def _is_label(word: str, labels: set[str]) -> bool:
    """Say whether a word between two dollar signs is meant as a label, known or not; prices are not."""
    return word in labels or _LOOKS_LIKE_LABEL.fullmatch(word) is not None


def _reference(match: re.Match[str]) -> From:
    path: list[str | int] = []
    for name, bracket in _PART.findall(match[2]):
        word = name or bracket.strip().strip("'\"")
        path.append(int(word) if re.fullmatch(r"-?[0-9]{1,15}", word) else word)
    return From(match[1], tuple(path))


def _function(entry: Mapping[str, Any]) -> Callable:
    parameters: dict[str, Any] = {}
    required: list[str] = []
    for key, given in entry.items():
        if not key.endswith(("parameters", "arguments")) or key.startswith("output") or not isinstance(given, Mapping):
            continue
        listed = given.get("required") if _is_schema(given) else ()
        properties = given["properties"] if _is_schema(given) else given
        made = _object(properties, listed if isinstance(listed, list) else ())
        parameters |= made["properties"]
        required += made.get("required", [])
    output = next((entry[key] for key in ("output_parameters", "output_parameter", "output") if key in entry), None)
    if isinstance(output, Mapping) and not _is_schema(output) and not isinstance(output.get("type"), str):
        # What a function gives, it gives with all that it names.
        returns: dict[str, Any] = {**_object(output, list(output)), "additionalProperties": False}
    else:
        returns = schema_of(output)
    schema = {"type": "object", "properties": parameters, "required": required, "additionalProperties": False}
    return Callable(entry["name"], str(entry.get("description", "")), schema, returns)


def _is_schema(given: Mapping[str, Any]) -> bool:
    """Tell a JSON Schema of an object from an object of schemas, in which a parameter may be called ``type``."""
    return given.get("type") in ("object", "dict") and isinstance(given.get("properties"), Mapping)


def _object(properties: Mapping[str, Any], listed: Any) -> dict[str, Any]:
    """Return the schema of an object; ``required`` stands beside each property, or in a list for all."""
    required = [
        name
        for name, given in properties.items()
        if name in listed
        or (isinstance(given, Mapping) and str(given.get("required")).lower() in ("true", "yes", "1", "required"))
    ]
    return {
        "type": "object",
        "properties": {name: schema_of(given) for name, given in properties.items()},
        **({"required": required} if required else {}),
    }


def _of_parts(given: Mapping[str, Any]) -> dict[str, Any]:
    for key in ("anyOf", "oneOf"):
        if isinstance(given.get(key), list):
            return _any_of([schema_of(each) for each in given[key]])
    return {"type": "object"} if "properties" in given else {"type": "array"} if "items" in given else {}


def _of_type(written: Any) -> dict[str, Any]:
    """Return the schema of a type as it is written: a word, several, or one with others in brackets."""
    if isinstance(written, list):
        return _any_of([_of_type(each) for each in written])
    if not isinstance(written, str):
        return schema_of(written) if isinstance(written, Mapping) else {}
    words = [word.strip() for word in _split(written, r"\s+or\s+|\||/|,")]
    if len(words) > 1:
        return _any_of([_of_type(word) for word in words if word])
    word, _, inner = written.strip().partition("[")
    name = word.strip().lower().removeprefix("typing.")
    inner = inner.rstrip().removesuffix("]").strip()
    if name in ("optional", "union") and inner:
        return _any_of([_of_type(each) for each in _split(inner, ",")] + [{"type": "null"}] * (name == "optional"))
    if name not in _TYPES:
        return {}
    schema: dict[str, Any] = {"type": _TYPES[name]}
    if schema["type"] == "array" and inner and name != "tuple":
        schema["items"] = _of_type(inner)
    return schema


def _split(text: str, separator: str) -> Iterator[str]:
    """Split a text where a separator stands outside of all brackets."""
    depth = start = position = 0
    pattern = re.compile(separator, re.IGNORECASE)
    while position < len(text):
        match = pattern.match(text, position) if depth == 0 else None
        if match:
            yield text[start:position]
            start = position = match.end()
            continue
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(text[position], 0)
        position += 1
    yield text[start:]


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    different = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
    if len(different) == 1:
        return different[0]
    return {} if {} in different or not different else {"anyOf": different}


def _fits(value: Any, kind: Any) -> bool:
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    if kind not in kinds:
        return True
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))
