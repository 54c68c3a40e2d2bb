"""Documents that are broken at random places, and hostile ones."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico import FunctionPlugin
from portico.errors import ArgumentsInvalid, PorticoError
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import LostOperation, OpenAPIFunctions


def json_of(schema: Any) -> dict[str, Any]:
    return {"description": "ok", "content": {"application/json": {"schema": schema}}}


PET = {"$ref": "#/components/schemas/Pet"}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1", "description": "A shop."},
    "servers": [{"url": "https://{host}.example/v1", "variables": {"host": {"default": "pets", "enum": ["pets"]}}}],
    "security": [{"key": []}],
    "tags": [{"name": "pets"}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "tags": ["pets"],
                "parameters": [
                    {"$ref": "#/components/parameters/Limit"},
                    {"name": "tags", "in": "query", "style": "pipeDelimited", "schema": {"type": "array", "items": {}}},
                    {"name": "where", "in": "query", "content": {"application/json": {"schema": PET}}},
                ],
                "responses": {"200": json_of({"type": "array", "items": PET}), "default": json_of({"type": "string"})},
            },
            "post": {
                "operationId": "addPet",
                "requestBody": {"required": True, "content": {"application/json": {"schema": PET}}},
                "responses": {"201": json_of(PET), "202": {"description": "later"}},
                "security": [{"key": [], "basic": []}, {}],
            },
        },
        "/pets/{id}/photo": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "put": {
                "summary": "Set the photo",
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "properties": {"file": {"type": "string", "format": "binary"}},
                            },
                            "encoding": {"file": {"contentType": "image/png"}},
                        }
                    }
                },
                "responses": {"204": {"description": "done"}},
                "deprecated": True,
            },
        },
    },
    "components": {
        "parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 5}}},
        "schemas": {
            "Pet": {
                "allOf": [{"$ref": "#/components/schemas/Named"}],
                "required": ["kind"],
                "properties": {"kind": {"enum": ["cat", "dog"]}, "parent": PET},
            },
            "Named": {"type": "object", "properties": {"name": {"type": "string", "nullable": True}}},
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "query", "name": "key"},
            "basic": {"type": "http", "scheme": "basic"},
        },
    },
}
UNTOUCHED = {
    "/untouched": {
        "get": {
            "operationId": "untouched",
            "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": json_of({"type": "object", "properties": {"a": {"type": "integer"}}})},
        }
    }
}
ODD = st.sampled_from(
    [None, True, False, 0, -1, 1.5, "", "x", "\x00", "#", "#/", "#/paths", "../x.json", "{", "{id}", "object"]
    + [[], [None], ["x"], {}, {"x": {}}, {"type": "x"}, {"$ref": None}]
    + [{"$ref": reference} for reference in ("#", "#/components/schemas/Pet", "x.yaml")]
)  # fmt: skip
GRAFTS = st.sampled_from([DOCUMENT["paths"], DOCUMENT["components"], PET, [PET]])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, part in inner for place in places(part, (*path, key))]


PLACES = places(DOCUMENT)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """Break a valid document in some places: a value goes, is another, moves, or gets another key."""
    document = copy.deepcopy(DOCUMENT)
    for place in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4)):
        parent: Any = document
        try:
            for key in place[:-1]:
                parent = parent[key]
            key = place[-1]
            how = draw(st.sampled_from(["remove", "replace", "rename", "graft"]))
            if how == "replace":
                parent[key] = copy.deepcopy(draw(ODD))
            elif how == "graft":
                parent[key] = copy.deepcopy(
                    draw(st.sampled_from([DOCUMENT["paths"], DOCUMENT["components"], PET, [PET]]))
                )
            elif how == "rename" and isinstance(parent, dict):
                parent[draw(st.text(max_size=5) | st.sampled_from(["$ref", "get", "schema", "{x}"]))] = parent.pop(key)
            else:
                del parent[key]
        except (KeyError, IndexError, TypeError):
            continue
    paths = document.get("paths")
    if isinstance(paths, dict):
        paths |= UNTOUCHED
    return document


def loaded(folder: Path, document: Any, **options: Any) -> tuple[FunctionPlugin, tuple[LostOperation, ...]]:
    path = folder / ("d.yaml" if isinstance(document, str) else "d.json")
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    source = OpenAPIFunctions(OpenAPISettings(document=path, **options))
    return asyncio.run(source.load("service")), source.lost


@given(document=broken())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_document_broken_anywhere_raises_our_errors_and_loses_what_is_broken(tmp_path, document):
    whole = isinstance(document.get("paths"), dict) and str(document.get("openapi")).startswith("3.0")
    try:
        plugin, lost = loaded(tmp_path, document)
    except PorticoError:
        assert not whole or document["openapi"] != "3.0.3", "an untouched operation was lost with the document"
        return
    names = [function.name for function in plugin]
    if "/untouched" in (document.get("paths") or {}):
        assert "untouched" in names, f"an untouched operation was lost: {lost}"
        untouched = plugin["untouched"]
        assert untouched.spec.parameters["properties"] == {"q": {"type": "string"}}
        assert untouched.spec.returns == {"type": "object", "properties": {"a": {"type": "integer"}}}
    for one in lost:
        assert one.operation
        assert len(one.reason) < 1_000
    for function in plugin:
        json.dumps([function.spec.parameters, function.spec.returns], allow_nan=False)
        for value in (None, 1, "x", ["x"], {"x": 1}):
            try:
                function.structure_arguments({parameter.name: value for parameter in function.parameters})
            except ArgumentsInvalid:
                continue


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_no_document_and_said_to_be_none(tmp_path, content):
    (tmp_path / "d").write_bytes(content)
    with pytest.raises(PorticoError):
        asyncio.run(OpenAPIFunctions(OpenAPISettings(document=tmp_path / "d")).load("service"))


@given(cut=st.integers(0, 2_000), at=st.integers(0, 2_000), letters=st.text(max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_document_whose_text_is_damaged_raises_only_our_errors(tmp_path, cut, at, letters):
    import yaml

    text = yaml.safe_dump(DOCUMENT)
    at = at % len(text)
    damaged = text[:at] + letters + text[at + cut % 40 :]
    try:
        loaded(tmp_path, damaged.encode("utf-8", "replace").decode())
    except PorticoError:
        return


def with_schema(schema: Any, **components: Any) -> dict[str, Any]:
    bad = {"get": {"operationId": "bad", "parameters": [{"name": "p", "in": "query", "schema": schema}]}}
    return {"openapi": "3.1.0", "info": {}, "paths": {"/bad": bad, **UNTOUCHED}, "components": {"schemas": components}}


def chain(length: int, *, loop: bool) -> dict[str, Any]:
    last = "#/components/schemas/S0" if loop else "#/components/schemas/End"
    made = {f"S{number}": {"$ref": f"#/components/schemas/S{number + 1}"} for number in range(length - 1)}
    return {**made, f"S{length - 1}": {"$ref": last}, "End": {"type": "string"}}


def doubling(length: int, key: str) -> dict[str, Any]:
    made = {f"D{number}": {key: [{"$ref": f"#/components/schemas/D{number + 1}"}] * 2} for number in range(length)}
    return {**made, f"D{length}": {"type": "string"}}


HOSTILE = {
    "a long circle of references": with_schema({"$ref": "#/components/schemas/S0"}, **chain(3_000, loop=True)),
    "a long chain of references": with_schema({"$ref": "#/components/schemas/S0"}, **chain(3_000, loop=False)),
    "alternatives that double": with_schema({"$ref": "#/components/schemas/D0"}, **doubling(200, "anyOf")),
    "parts that double": with_schema({"$ref": "#/components/schemas/D0"}, **doubling(200, "allOf")),
    "references through references": with_schema(
        {"$ref": "#/components/schemas/A/b/b/b/b"},
        A={"$ref": "#/components/schemas/B"},
        B={"b": {"$ref": "#/components/schemas/A"}},
    ),
    "a pointer into its own reference": with_schema(
        {"$ref": "#/components/schemas/A/x"}, A={"$ref": "#/components/schemas/A/x"}
    ),
    "a text of ten megabytes": with_schema({"type": "string", "description": "x" * 10_000_000}),
    "a pattern of a megabyte": with_schema({"type": "string", "pattern": "(" * 1_000_000}),
    "a type of a megabyte": with_schema({"type": "x" * 1_000_000}),
    "a hundred thousand properties": with_schema(
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(100_000)}}
    ),
    "a hundred thousand values": with_schema({"enum": list(range(100_000))}),
    "a reference of a megabyte": with_schema({"$ref": "#/" + "x/" * 500_000}),
    "a name of a megabyte": with_schema({"$ref": "#/components/schemas/" + "x" * 1_000_000}, **{"x" * 1_000_000: {}}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_documents_take_little_time_and_harm_nothing_else(tmp_path, kind):
    started = time.perf_counter()
    plugin, lost = loaded(tmp_path, HOSTILE[kind])
    assert "untouched" in [function.name for function in plugin]
    assert all(len(str(one)) < 1_000 for one in lost)
    assert len(plugin.description) < 3_000
    for function in plugin:
        assert len(function.spec.description) < 2_000
        for value in ("x", {"a": 1}, 5):
            try:
                function.structure_arguments({"p": value} if function.name == "bad" else {"q": value})
            except ArgumentsInvalid as error:
                assert len(str(error)) < 5_000_000
    assert time.perf_counter() - started < 30


def test_names_and_paths_without_end_are_cut(tmp_path):
    long = "/" + "a" * 1_000_000
    paths = {long: {"get": {"operationId": "b" * 1_000_000}, "put": 5, "post": {"tags": ["t" * 1_000_000]}}}
    plugin, lost = loaded(tmp_path, {"openapi": "3.1.0", "info": {"title": "x" * 1_000_000}, "paths": paths})
    assert [len(function.name) for function in plugin] == [64, 64]
    assert len(str(lost[0])) < 200
    assert len(plugin.description) < 1_500
    assert all(len(function.description) < 1_100 for function in plugin)


def test_a_bomb_of_aliases_in_a_schema_ends(tmp_path):
    lines = ["x-a0: &a0 {type: string}"]
    lines += [f"x-a{i}: &a{i} {{type: object, properties: {{l: *a{i - 1}, r: *a{i - 1}}}}}" for i in range(1, 15)]
    parameters = "[{name: p, in: query, schema: *a14}]"
    paths = [
        "paths:",
        f"  /bad: {{get: {{operationId: bad, parameters: {parameters}}}}}",
        "  /good: {get: {operationId: good}}",
    ]
    text = "\n".join(["openapi: 3.1.0", "info: {}", *lines, *paths])
    started = time.perf_counter()
    plugin, _ = loaded(tmp_path, text)
    assert "good" in [function.name for function in plugin]
    assert time.perf_counter() - started < 60
