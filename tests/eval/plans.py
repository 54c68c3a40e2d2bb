"""Which plans in XML, damaged ones among them, are recovered and which are refused.

Each line of the file is a JSON object: ``xml`` is the text of a model, ``functions`` are those that it may call. They
are a list of names, or of objects with a name (``plugin`` beside it, if any) and parameters, or an object that maps
names to parameters. Parameters are a JSON Schema, a list of names, a list of objects with a name and perhaps a type,
or an object that maps names to schemas or descriptions. Without parameters a function may be called with anything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from portico import FunctionSpec
from portico.errors import PlanFormatError
from portico.plans import XmlPlan, check_plan, plan_to_json

__all__ = ["add_arguments", "catalogue", "describe", "run"]

PLUGIN_KEYS = ("plugin", "plugin_name", "pluginName", "PluginName", "skill", "skill_name", "skillName")
NAME_KEYS = ("name", "Name", "function", "function_name", "full_name")
PARAMETER_KEYS = ("parameters", "Parameters", "inputs", "args", "arguments", "input_schema")
DESCRIPTION_KEYS = ("description", "Description")
RETURN_KEYS = ("returns", "output", "output_schema", "return")
KINDS = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
PYTHON_KINDS = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
KEYWORDS = frozenset({"properties", "type", "$ref", "required", "anyOf", "$defs", "additionalProperties"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help='JSON lines: {"xml": …, "functions": …}', metavar="FILE")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read every plan; a line that is no object with a text is an error."""
    results = [judged(line, number) for number, line in lines(arguments.file)]
    recovered = sum(result["outcome"] == "recovered" for result in results)
    print(f"{arguments.file}: {len(results)} plans", file=sys.stderr)
    return {"recovered": recovered, "refused": len(results) - recovered, "results": results}


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['recovered']} recovered, {result['refused']} refused"
    for one in result["results"]:
        if one["outcome"] == "refused":
            yield f"  line {one['number']}: {one['reason']}"
        else:
            findings = sum(finding["severity"] == "error" for finding in one["findings"])
            checked = f"{findings} errors in the check" if findings else "checks"
            yield f"  line {one['number']}: {len(one['plan']['steps'])} steps, {len(one['mends'])} mends, {checked}"


def lines(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a file with the numbers of their lines; raises ``ValueError`` for what is none."""
    # Not splitlines(): a JSON string may hold other line breaks than "\n".
    for number, line in enumerate(file.read_text("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: no JSON: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("xml"), str):
            raise ValueError(f'{file}, line {number}: an object with the text "xml" is expected')
        try:
            catalogue(document.get("functions"))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{file}, line {number}: {error}") from error
        yield number, document


def judged(document: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Read one plan and say what became of it."""
    functions = catalogue(document.get("functions"))
    result: dict[str, Any] = {"number": number}
    if "id" in document:
        result["id"] = document["id"]
    goal = document.get("goal")
    try:
        read = XmlPlan.read(
            document["xml"], functions or None, goal=goal if isinstance(goal, str) else "", recover=True
        )
    except PlanFormatError as error:
        return {
            **result,
            "outcome": "refused",
            "reason": str(error),
            "line": error.line,
            "column": error.column,
            "mends": [],
            "findings": [],
        }
    checked = document.get("functions") is not None and not read.empty
    findings = [*read.findings, *check_plan(read.plan, functions)] if checked else list(read.findings)
    return {
        **result,
        "outcome": "recovered",
        "empty": read.empty,
        "plan": plan_to_json(read.plan),
        "mends": [{"line": mend.line, "column": mend.column, "what": mend.what} for mend in read.recovered],
        "findings": [
            {"step": each.step, "place": each.place, "severity": each.severity, "message": each.words}
            for each in findings
        ],
    }


def catalogue(functions: Any) -> dict[str, FunctionSpec]:
    """Read the functions of a line, in whichever form they are."""
    if isinstance(functions, Mapping) and isinstance(functions.get("functions"), list):
        functions = functions["functions"]
    if isinstance(functions, Mapping):
        specs = [one(name, value) for name, value in functions.items()]
    elif isinstance(functions, list):
        specs = [one(None, value) for value in functions]
    elif functions is None:
        specs = []
    else:
        raise ValueError("functions are a list, or an object by name")
    return {spec.name: spec for spec in specs}


def one(name: str | None, value: Any) -> FunctionSpec:
    """Read one function: its name, an object, or its parameters where the name is known."""
    if isinstance(value, str) and name is None:
        return FunctionSpec(full_name(value, None), "", anything(), {})
    if name is not None and (value is None or isinstance(value, str)):
        return FunctionSpec(full_name(name, None), value or "", anything(), {})
    if name is not None and not (isinstance(value, Mapping) and first(value, PARAMETER_KEYS) is not None):
        return FunctionSpec(full_name(name, None), "", parameters(value), {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is no function")
    if isinstance(value.get("function"), Mapping):
        # As services of chat have them: {"type": "function", "function": {…}}.
        value = value["function"]
    written = name or first(value, NAME_KEYS)
    if not isinstance(written, str):
        raise ValueError(f"a function without a name: {json.dumps(value)[:200]}")
    plugin = first(value, PLUGIN_KEYS)
    returns = first(value, RETURN_KEYS)
    return FunctionSpec(
        full_name(written, plugin if isinstance(plugin, str) and plugin else None),
        str(first(value, DESCRIPTION_KEYS) or ""),
        parameters(first(value, PARAMETER_KEYS)),
        returns if isinstance(returns, Mapping) and KEYWORDS & set(returns) else {},
        bool(value.get("effects", False)),
    )


def full_name(written: str, plugin: str | None) -> str:
    """Return a name as the kernel has it, ``Plugin-Function``."""
    written = written.removeprefix("function.")
    if plugin is None or written.startswith((f"{plugin}.", f"{plugin}-")):
        return written.replace(".", "-", 1)
    return f"{plugin}-{written}"


def parameters(written: Any) -> dict[str, Any]:
    """Return the JSON Schema of parameters in any of their forms."""
    if written is None:
        return anything()
    if isinstance(written, Mapping):
        if isinstance(written.get("properties"), Mapping) or written.get("type") == "object":
            return sound(written)
        written = [{"name": name, **described(value)} for name, value in written.items()]
    if not isinstance(written, list):
        raise ValueError(f"{written!r} are no parameters")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for each in written:
        known = {"name": each} if isinstance(each, str) else each
        name = first(known, NAME_KEYS) if isinstance(known, Mapping) else None
        if not isinstance(name, str):
            raise ValueError(f"{each!r} is no parameter")
        properties[name] = schema(known)
        default = first(known, ("default", "default_value", "defaultValue", "DefaultValue"))
        needed = first(known, ("required", "is_required", "isRequired", "IsRequired"))
        # A view of Semantic Kernel has an empty text where there is no default, and does not say what is needed.
        if needed is True:
            required.append(name)
        elif default not in (None, ""):
            properties[name] = {**properties[name], "default": default}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def sound(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of parameters without what is malformed at its top, which says nothing."""
    kept = dict(schema)
    for key in ("properties", "$defs"):
        if not isinstance(kept.get(key, {}), Mapping):
            del kept[key]
    if "properties" in kept:
        kept["properties"] = {
            name: each if isinstance(each, Mapping | bool) else {} for name, each in kept["properties"].items()
        }
    if "required" in kept:
        needed = kept["required"] if isinstance(kept["required"], list) else []
        kept["required"] = [name for name in needed if isinstance(name, str)]
    return kept


def described(value: Any) -> Mapping[str, Any]:
    """Return what is said of a parameter: a schema, the name of a kind, or a description."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and (value in KINDS or value in PYTHON_KINDS):
        return {"type": value}
    return {"description": value} if isinstance(value, str) else {}


def schema(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one parameter; a text, where nothing else is said."""
    inner = known.get("schema")
    if isinstance(inner, Mapping):
        return dict(inner)
    found = {
        key: value for key, value in known.items() if key in ("type", "enum", "anyOf", "items", "properties", "$ref")
    }
    if isinstance(found.get("type"), str):
        found["type"] = PYTHON_KINDS.get(found["type"], found["type"].lower())
    kinds = [found["type"]] if isinstance(found.get("type"), str) else found.get("type", [])
    if not found or not set(kinds) <= KINDS:
        found = {} if found else {"type": "string"}
    return found


def anything() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def first(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((document[key] for key in keys if key in document), None)
