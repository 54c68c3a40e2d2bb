"""Random documents that are written loosely, each with the document that its author meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

Pair = tuple[dict[str, Any], dict[str, Any]]
"""An operation as it is written, and as it is meant."""

NAMES = ("a", "b", "c", "d", "e")
VALUES: dict[str, list[Any]] = {
    "string": ["1", "2.5", "true", "x"],
    "integer": [0, 1, 25],
    "number": [1, 2.5, -3],
    "boolean": [True, False],
}


def truths(random: Random) -> Pair:
    """Truth values that are texts."""
    words = {True: ["true", "True", "yes"], False: ["false", "FALSE", "no"]}

    def parameter(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        flags = {key: random.random() < 0.5 for key in ("required", "explode", "deprecated", "allowReserved")}
        rest = {"name": name, "in": "query", "schema": {"type": "array", "minItems": 1, "items": {"type": "string"}}}
        return {**rest, **{key: random.choice(words[flag]) for key, flag in flags.items()}}, {**rest, **flags}

    pairs = [parameter(name) for name in random.sample(NAMES, 3)]
    return {"parameters": [one for one, _ in pairs]}, {"parameters": [two for _, two in pairs]}


def enums(random: Random) -> Pair:
    """Values of another type than the one that is said."""
    kind = random.choice(list(VALUES))
    values = random.sample(VALUES[kind], random.randint(1, len(VALUES[kind])))
    written = [
        json.dumps(value) if kind != "string" else json.loads(value) if value != "x" else value for value in values
    ]
    texts = random.random() < 0.5
    place = random.choice(["query", "body", "items"])
    loose: dict[str, Any] = {"type": kind, "enum": written if texts or kind == "string" else values}
    meant: dict[str, Any] = {"type": kind, "enum": values}
    if place == "body":
        return body({"type": "object", "required": ["p"], "properties": {"p": loose}}), body(
            {"type": "object", "required": ["p"], "properties": {"p": meant}}
        )
    if place == "items":
        loose = {"type": "array", "minItems": 1, "items": {"type": kind}, "enum": loose["enum"]}
        meant = {"type": "array", "minItems": 1, "items": meant}
    rest = {"name": "p", "in": "query", "required": True}
    return {"parameters": [{**rest, "schema": loose}]}, {"parameters": [{**rest, "schema": meant}]}


def closed(random: Random) -> Pair:
    """An object in parts, some of which are closed."""
    properties: dict[str, Any] = {}

    def part(depth: int) -> dict[str, Any]:
        own = {name: {"type": random.choice(["string", "integer"])} for name in random.sample(NAMES, 2)}
        own = {name: properties.setdefault(name, schema) for name, schema in own.items()}
        made: dict[str, Any] = {"type": "object", "properties": own}
        if random.random() < 0.5:
            made["additionalProperties"] = False
        if depth:
            made["allOf"] = [part(depth - 1) for _ in range(random.randint(1, 2))]
        return made

    loose: dict[str, Any] = {"additionalProperties": False, "allOf": [part(1), part(0)]}
    meant: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if random.random() < 0.5:
        loose, meant = ({"type": "object", "required": ["in"], "properties": {"in": one}} for one in (loose, meant))
    return body(loose), body(meant)


def forms(random: Random) -> Pair:
    """Forms whose fields are not described."""
    loose: dict[str, Any] = random.choice([{}, {"type": "object"}, {"type": "object", "properties": {}}])
    meant = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    return body({**loose, "required": ["a"]}, "multipart/form-data"), body(meant, "multipart/form-data")


def alternatives(random: Random) -> Pair:
    """Alternatives and lists of objects in a path or a query, in styles that can say them."""
    word = {"type": "string", "pattern": "^[a-z]{2,4}$"}
    row = {"type": "object", "required": ["a"], "properties": {"a": word}}
    several = {"type": "array", "minItems": 2, "items": word}
    # Of what is in a path, Prism ends on a comma.
    choices: list[tuple[str, str, bool, Any]] = [
        ("path", "simple", False, {"oneOf": [word, {"type": "integer"}]}),
        ("path", "label", True, several),
        ("path", "matrix", True, several),
        ("query", "form", True, {"oneOf": [{"type": "boolean"}, several]}),
        ("query", "deepObject", True, {"type": "array", "minItems": 1, "items": row}),
        ("query", "deepObject", True, row),
    ]
    place, style, explode, schema = random.choice(choices)
    parameter = {"name": "p", "in": place, "required": True, "style": style, "explode": explode, "schema": schema}
    return {"parameters": [parameter]}, {"parameters": [parameter]}


def body(schema: Any, media_type: str = "application/json") -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


CLASSES: tuple[Callable[[Random], Pair], ...] = (truths, enums, closed, forms, alternatives)


def loose_document(random: Random, operations: int) -> Pair:
    """Return a document as it is written and as it is meant; its operations stand in another place of it."""
    written: dict[str, Any] = {}
    meant: dict[str, Any] = {}
    elsewhere: dict[str, Any] = {}
    for number in range(operations):
        kind = CLASSES[number % len(CLASSES)]
        loose, plain = kind(random)
        id = f"{kind.__name__}_{number}"
        answer = {"responses": {"204": {"description": "Done."}}, "operationId": id}
        in_path = any(one["in"] == "path" for one in plain.get("parameters", ()))
        path = f"/{id}/{{p}}" if in_path else f"/{id}"
        if random.random() < 0.5:
            elsewhere[id] = {**loose, **answer}
            loose = {"$ref": f"#/x-operations/{id}"}
        else:
            loose = {**loose, **answer}
        written[path], meant[path] = {"post": loose}, {"post": {**plain, **answer}}
    head = {"openapi": "3.0.3", "info": {"title": "Loose", "version": "1"}}
    return {**head, "paths": written, "x-operations": elsewhere}, {**head, "paths": meant}
