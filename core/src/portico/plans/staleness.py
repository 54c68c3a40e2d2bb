"""Whether the functions that a plan uses are still what they were when it was written, and what changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from portico._schema.definitions import with_definitions
from portico.functions import FunctionManual
from portico.plans.plan import Plan

__all__ = ["Stale", "fingerprint", "stale_functions"]

_WORDS = frozenset({"description", "title", "examples", "$comment"})
"""Keywords that are for people: a plan does not rest on them."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose argument is an object of schemas: its keys are no keywords."""
_DATA = frozenset({"const", "default", "enum", "required"})
_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Stale:
    """A function that is not what it was when a plan was written; ``changes`` are sentences that say how.

    >>> print(Stale("Weather-forecast", ("the parameter 'days' is new and needed", "its result changed")))
    Weather-forecast: the parameter 'days' is new and needed; its result changed
    """

    function: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.function}: {'; '.join(self.changes)}"


def fingerprint(manual: FunctionManual) -> str:
    """Return what a plan rests on in a function as a short text: a digest of each part, so that it tells which changed.

    >>> manual = FunctionManual("f", "", {"properties": {"city": {"type": "string"}}, "required": ["city"]}, {})
    >>> fingerprint(manual)
    '{"e": 0, "p": {"city": "!38a346ca"}, "r": "44136fa3"}'

    ``p`` are the parameters, those that are needed with ``!``; ``r`` is the result, ``e`` whether it has effects, and
    ``o`` the other rules of the parameters, where there are any. What is written for people only does not count.
    """
    parameters = manual.parameters
    definitions = parameters.get("$defs", {})
    required = parameters.get("required", ())
    rest = {key: value for key, value in parameters.items() if key not in ("properties", "required", "$defs", "type")}
    body: dict[str, Any] = {
        "p": {
            name: ("!" if name in required else "") + _digest(_used(schema, definitions))
            for name, schema in parameters.get("properties", {}).items()
        },
        "r": _digest(manual.returns),
        "e": int(manual.effects),
    }
    if rest.get("additionalProperties") is False:
        del rest["additionalProperties"]
    if _plain(rest):
        body["o"] = _digest(_used(rest, definitions))
    return json.dumps(body, ensure_ascii=False, sort_keys=True)


def stale_functions(plan: Plan, catalogue: Mapping[str, FunctionManual]) -> tuple[Stale, ...]:
    """Return the functions that are other ones, or gone, since the plan was written, and what changed of each.

    A plan without fingerprints says nothing of its age.
    """
    found: list[Stale] = []
    for name, recorded in plan.fingerprints.items():
        manual = catalogue.get(name)
        if manual is None:
            found.append(Stale(name, ("it is gone",)))
        elif fingerprint(manual) != recorded:
            changes = tuple(_changes(_read(recorded), _read(fingerprint(manual))))
            found.append(Stale(name, changes or ("it is not what it was",)))
    return tuple(found)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if not before:
        return
    old, new = before["p"], now["p"]
    for name, digest in new.items():
        if name not in old:
            yield f"the parameter {name!r} is new" + (" and needed" if digest[:1] == "!" else "")
        elif old[name] != digest:
            if old[name].removeprefix("!") != digest.removeprefix("!"):
                yield f"the parameter {name!r} takes something else"
            if (old[name][:1] == "!") != (digest[:1] == "!"):
                yield f"the parameter {name!r} is {'needed now' if digest[:1] == '!' else 'no longer needed'}"
    for name in old:
        if name not in new:
            yield f"the parameter {name!r} is gone"
    if before.get("o") != now.get("o"):
        yield "what its arguments must be together changed"
    if before["r"] != now["r"]:
        yield "its result is another"
    if before["e"] != now["e"]:
        yield "it has effects now" if now["e"] else "it has no effects any more"


def _read(text: str) -> Mapping[str, Any]:
    """Read a fingerprint; an empty object for a text that is none, as of another version."""
    try:
        body = json.loads(text)
        parameters = body["p"]
        fine = all(isinstance(digest, str) for digest in parameters.values()) and {"r", "e"} <= body.keys()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return {}
    return body if fine else {}


def _digest(schema: Any) -> str:
    text = json.dumps(_plain(schema), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def _plain(schema: Any) -> Any:
    """Return a schema without what is for people."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            plain[key] = {name: _plain(each) for name, each in value.items()}
        elif key not in _WORDS:
            plain[key] = value if key in _DATA else _plain(value)
    return plain


def _used(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with those of the definitions that it rests on."""
    if not isinstance(schema, Mapping):
        return schema
    reached: dict[str, Any] = {}
    ahead: list[Any] = [schema]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping):
            reference = part.get("$ref")
            if isinstance(reference, str):
                name = reference.removeprefix("#/$defs/")
                if name in definitions and name not in reached:
                    reached[name] = definitions[name]
                    ahead.append(definitions[name])
            ahead.extend(part.values())
        elif isinstance(part, list):
            ahead.extend(part)
    return with_definitions(schema, reached)
