"""A document with hundreds of operations, every style and every kind of body in it, loads whole and quickly."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from portico import Kernel

STYLES = [
    ("path", "simple"),
    ("query", "form"),
    ("query", "spaceDelimited"),
    ("query", "pipeDelimited"),
    ("query", "deepObject"),
    ("header", "simple"),
    ("cookie", "form"),
]
KINDS: Mapping[str, Any] = {
    "text": {"type": "string"},
    "number": {"type": "integer", "minimum": 0},
    "list": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "tree": {"$ref": "#/components/schemas/Tree"},
}
SAMPLES: Mapping[str, Any] = {
    "text": "a b", "number": 7, "list": ["a", "b"], "map": {"k": "v"}, "tree": {"name": "root"},
}  # fmt: skip
MEDIA_TYPES = [
    "application/json",
    "application/merge-patch+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
    "application/xml",
    "application/octet-stream",
    "image/png",
]
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
METHODS = ("get", "put", "post", "patch", "delete")


def schemas() -> dict[str, Any]:
    """Return 150 schemas of an ordinary kind: objects that inherit from and refer to others."""
    made: dict[str, Any] = {
        "Tree": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "id": {"type": "integer", "format": "int64", "readOnly": True},
                "name": {"type": "string", "minLength": 1},
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            },
        }
    }
    for number in range(150):
        base = {"$ref": f"#/components/schemas/Model{number // 2}"} if number else {"$ref": "#/components/schemas/Tree"}
        properties = {f"field{index}_{number}": {"type": "string", "nullable": True} for index in range(5)}
        properties["next"] = {"$ref": f"#/components/schemas/Model{number // 10 * 10 + (number + 1) % 10}"}
        own = {"type": "object", "properties": {f"of_{number}": {"type": "object", "properties": properties}}}
        made[f"Model{number}"] = {"allOf": [base, own], "description": f"Model {number}."}
    return made


def operation(number: int, parameters: list[Any], media_type: str | None, schema: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": f"operation-{number}",
        "summary": f"Do number {number}",
        "tags": [f"group{number % 10}"],
        "parameters": parameters,
        "responses": {
            "200": {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/Model{number % 150}"}}}},
            "404": {"$ref": "#/components/responses/Missing"},
        },
        "security": [{"key": []}, {}],
    }
    if media_type is not None:
        made["requestBody"] = {"required": True, "content": {media_type: {"schema": schema}}}
    return made


def document(url: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    bodies = itertools.cycle(MEDIA_TYPES)
    numbers = itertools.count()
    # Every place, style and kind of value, exploded and not, under some method.
    for (location, style), kind, explode in itertools.product(STYLES, KINDS, (True, False)):
        number = next(numbers)
        parameter = {"name": "value", "in": location, "style": style, "explode": explode, "schema": KINDS[kind]}
        parameter["required"] = location == "path"
        parameters = [parameter, {"$ref": "#/components/parameters/Page"}]
        path = f"/styles/{number}/{{value}}" if location == "path" else f"/styles/{number}"
        paths[path] = {"get": operation(number, parameters, None, None)}
    # Every kind of body with every method and several shapes.
    for kind, method, _ in itertools.product([*KINDS, "model"], METHODS, range(11)):
        number = next(numbers)
        media_type = next(bodies)
        # A form is an object.
        chosen = "map" if kind in ("text", "number", "list") and media_type in FORMS else kind
        schema = KINDS.get(chosen) or {"$ref": f"#/components/schemas/Model{number % 150}"}
        paths[f"/bodies/{number}"] = {method: operation(number, [], media_type, schema)}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Many", "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "parameters": {"Page": {"name": "page", "in": "query", "schema": {"type": "integer", "default": 1}}},
            "responses": {"Missing": {"description": "Not there"}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
    }


async def test_hundreds_of_operations_load_quickly_and_none_is_lost(opened, service):
    made = document(service.url)
    started = time.perf_counter()
    plugin = await opened(made)
    loaded = time.perf_counter() - started
    assert opened.lost == {}
    assert len(plugin.functions) == 400
    specs = [function.spec for function in plugin]
    assert time.perf_counter() - started < 30, "loading takes minutes where it should take a second"
    assert loaded < 20
    for spec in specs:
        json.dumps([spec.parameters, spec.returns], allow_nan=False)


async def test_every_style_and_every_body_can_be_called(opened, service):
    plugin = await opened(document(service.url))
    kernel = Kernel(plugins=[plugin])
    for called, function in enumerate(plugin, 1):
        arguments: dict[str, Any] = {}
        for parameter in function.parameters:
            if parameter.required or parameter.name == "value":
                arguments[parameter.name] = sample(parameter.schema)
        assert await kernel.invoke_json(function, arguments) == {}, function.full_name
        assert len(service.requests) == called
    assert {one.headers.get("content-type", "").partition(";")[0] for one in service.requests} == {"", *MEDIA_TYPES}


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits one of the schemas above."""
    if "anyOf" in schema:
        return "aGk="
    kinds = {"string": "text", "integer": "number", "array": "list", "object": "map"}
    kind = schema.get("type", "object")
    if kind == "object" and "name" in schema.get("required", ()):
        return SAMPLES["tree"]
    return SAMPLES[kinds[kind if isinstance(kind, str) else kind[0]]]


@pytest.mark.parametrize("times", [1, 4])
async def test_what_a_function_carries_does_not_grow_with_the_others(opened, service, times):
    one = document(service.url)
    more = {f"/more/{number}{path}": item for number in range(times) for path, item in one["paths"].items()}
    plugin = await opened({**one, "paths": more})
    smallest = plugin["operation_0"].spec.parameters
    assert smallest.get("$defs", {}) == {}
    tree = next(function for function in plugin if "Tree" in function.spec.parameters.get("$defs", {}))
    assert list(tree.spec.parameters["$defs"]) == ["Tree"]
