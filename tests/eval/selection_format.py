"""Read collections of functions and queries in the format of Seal-Tools: JSON lines, or one JSON list.

A function is ``{"api_name", "api_description", "parameters": {name: {"description"}}}``; a query is ``{"query",
"calling": [{"api"}]}``. What others call ``name`` and ``description`` is taken too, and parameters as a JSON Schema, as
a list, or as texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico import FunctionSpec

__all__ = ["Query", "read_functions", "read_queries"]

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Query:
    """A request and the names of the functions that serve it, each once."""

    text: str
    functions: tuple[str, ...]


def read_functions(path: Path) -> tuple[list[FunctionSpec], list[str]]:
    """Return the functions of a file, and what is odd about it, each in one sentence.

    Of functions of one name the first counts. Raises ``ValueError`` for a file that has none.
    """
    found: dict[str, FunctionSpec] = {}
    nameless = repeated = 0
    for item in _items(path):
        given = item.get("function") if isinstance(item.get("function"), Mapping) else item
        name = _text(given, "api_name", "name")
        if not name:
            nameless += 1
        elif name in found:
            repeated += 1
        else:
            properties = dict(_parameters(given.get("parameters")))
            schema = {"type": "object", "properties": properties}
            found[name] = FunctionSpec(name, _text(given, "api_description", "description"), schema, {})
    if not found:
        raise ValueError(f"{path} has no functions: each needs an 'api_name'")
    return list(found.values()), _odd(
        path, (nameless, "without an 'api_name'"), (repeated, "of a name that was there before")
    )


def read_queries(path: Path, names: Iterable[str]) -> tuple[list[Query], list[str]]:
    """Return the queries of a file for which there are functions, and what is odd about it, each in one sentence.

    Functions that are not among ``names`` cannot be found by anything and are not asked for. Raises ``ValueError``
    when no query is left.
    """
    known = set(names)
    found: list[Query] = []
    blank = nothing = unknown = 0
    for item in _items(path):
        text = _text(item, "query", "question", "input")
        called = dict.fromkeys(_called(item.get("calling", item.get("output"))))
        wanted = tuple(name for name in called if name in known)
        if not text:
            blank += 1
        elif not called:
            nothing += 1
        else:
            unknown += len(called) - len(wanted)
            if wanted:
                found.append(Query(text, wanted))
    if not found:
        raise ValueError(
            f"{path} has no query that can be measured: each needs a 'query' and in 'calling' an 'api' of the functions"
        )
    odd = _odd(path, (blank, "without a 'query'"), (nothing, "without an 'api' in 'calling'"))
    if unknown:
        odd.append(f"{path}: {unknown} times it asks for a function that there is not; those are not counted.")
    return found, odd


def _items(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    for where, value in _values(path, text):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}, {where}: expected an object, got {json.dumps(value)[:_SHOWN]}")
        yield value


def _values(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip().startswith("["):
        yield from ((f"item {number}", value) for number, value in enumerate(_loaded(path, "line", text, 0), 1))
        return
    # Not `splitlines`: it would cut at characters that may stand inside of a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", _loaded(path, "line", line, number - 1)


def _loaded(path: Path, what: str, text: str, before: int) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        number = before + (error.lineno if isinstance(error, json.JSONDecodeError) else 1)
        raise ValueError(
            f"{path}, {what} {number} is no JSON: {getattr(error, 'msg', 'it is nested too deep')}"
        ) from error


def _text(item: Mapping[str, Any], *keys: str) -> str:
    """Return the first of the values that is a text and not blank."""
    return next((value.strip() for key in keys if isinstance(value := item.get(key), str) and value.strip()), "")


def _parameters(given: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield parameters, each with its description, whatever they are written as."""
    if isinstance(given, Mapping):
        properties = given.get("properties")
        for name, value in (properties if isinstance(properties, Mapping) else given).items():
            yield str(name), _described(value)
    elif isinstance(given, list):
        for value in given:
            name = value if isinstance(value, str) else _text(value, "name") if isinstance(value, Mapping) else ""
            if name:
                yield name, {} if isinstance(value, str) else _described(value)


def _described(value: Any) -> dict[str, str]:
    described = value if isinstance(value, str) else _text(value, "description") if isinstance(value, Mapping) else ""
    return {"description": described} if described else {}


def _called(given: Any) -> Iterator[str]:
    for call in given if isinstance(given, list) else [given]:
        name = (
            call
            if isinstance(call, str)
            else _text(call, "api", "api_name", "name")
            if isinstance(call, Mapping)
            else ""
        )
        if name.strip():
            yield name.strip()


def _odd(path: Path, *counts: tuple[int, str]) -> list[str]:
    return [f"{path}: {count} left out, {what}." for count, what in counts if count]
