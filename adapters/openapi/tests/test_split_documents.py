"""Documents whose operations, paths and schemas stand in files of their own."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from portico import FunctionPlugin, Kernel
from portico.plugins import Secret
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import LostOperation, OpenAPIFunctions

SPLIT = Path(__file__).parent / "split"


def loaded(document: Path, **options: Any) -> tuple[FunctionPlugin, tuple[LostOperation, ...]]:
    source = OpenAPIFunctions(OpenAPISettings(document=document, **options))
    return asyncio.run(source.load("service")), source.lost


def whole(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """Write the references of a schema out, which must not lead back to themselves."""
    if isinstance(schema, list):
        return [whole(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = definitions or schema.get("$defs", {})
    made = {key: whole(part, definitions) for key, part in schema.items() if key not in ("$defs", "$ref")}
    name = schema["$ref"].removeprefix("#/$defs/") if isinstance(schema.get("$ref"), str) else None
    return {**whole(definitions[name], definitions), **made} if name else made


@pytest.mark.parametrize(
    ("document", "functions"),
    [
        (
            "shop/openapi.yaml",
            {
                "list_orders": "state* size open columns",
                "make_order": "customer* lines* state note",
                "read_order": "order*",
                "drop_order": "order* reason",
                "put_invoice": "order* body*",
                "read_stock": "item",
            },
        ),
        (
            "library/openapi.json",
            {"find_books": "filter sort", "read_book": "isbn*", "lend": "books* reader*", "add_cover": "isbn* body*"},
        ),
        ("weather/openapi.yaml", {"forecast": "place* days hours", "readings": "station* window*", "report": "body*"}),
    ],
)
def test_every_operation_of_a_split_document_has_its_parameters(document, functions):
    plugin, lost = loaded(SPLIT / document)
    assert lost == ()
    found = {one.name: " ".join(f"{p.name}{'*' * p.required}" for p in one.parameters) for one in plugin}
    assert found == functions
    assert [one.name for one in plugin if one.spec.returns == {}] == []
    assert [one.name for one in plugin for p in one.parameters if set(p.schema) <= {"description"}] == []


@pytest.mark.parametrize(
    ("document", "name", "arguments", "request_line", "body"),
    [
        (
            "shop/openapi.yaml",
            "list_orders",
            {"state": "3", "size": 10, "open": True, "columns": ["date", "price"]},
            "GET /orders?state=3&size=10&open=true&columns=date,price",
            b"",
        ),
        (
            "shop/openapi.yaml",
            "make_order",
            {"customer": "Ada", "lines": [{"item": "tea", "count": 2}], "note": None},
            "POST /orders",
            b'{"customer":"Ada","lines":[{"item":"tea","count":2}],"note":null}',
        ),
        ("shop/openapi.yaml", "drop_order", {"order": 5, "reason": "x"}, "DELETE /orders/5?reason=x", b""),
        (
            "library/openapi.json",
            "find_books",
            {"filter": {"title": "a", "year": 1}, "sort": ["year", "title"]},
            "GET /books?filter%5Btitle%5D=a&filter%5Byear%5D=1&sort=year&sort=title",
            b"",
        ),
        (
            "library/openapi.json",
            "lend",
            {"books": ["0" * 13], "reader": {"name": "Ada", "card": 1}},
            "POST /loans",
            b'{"books":["0000000000000"],"reader":{"name":"Ada","card":1}}',
        ),
        (
            "weather/openapi.yaml",
            "forecast",
            {"place": 7, "hours": [{"from": 1, "to": 2}]},
            "GET /places/7/forecast?hours=%5B%7B%22from%22%3A1%2C%22to%22%3A2%7D%5D",
            b"",
        ),
        (
            "weather/openapi.yaml",
            "readings",
            {"station": "a", "window": ["1", "2"]},
            "GET /stations/a/readings;window=1;window=2",
            b"",
        ),
        (
            "weather/openapi.yaml",
            "report",
            {"body": {"place": "x", "sky": "clear", "wind": 1}},
            "POST /reports",
            b'{"place":"x","sky":"clear","wind":1}',
        ),
    ],
)
async def test_an_operation_of_a_split_document_is_called(service, document, name, arguments, request_line, body):
    source = OpenAPIFunctions(OpenAPISettings(document=SPLIT / document, server=service.url, retries=0))
    kernel = Kernel(plugins=[await source.load("service")])
    await kernel.invoke_json(f"service-{name}", arguments)
    assert f"{service.last.method} {service.last.target}" == request_line
    assert service.last.body == body
    await source.aclose()


async def test_a_document_whose_sections_are_files_has_its_title_server_and_credentials(service, tmp_path):
    sections = {
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": service.url}],
        "security": [{"key": []}],
        "paths": {"/a": {"get": {"operationId": "a"}}},
        "components": {"securitySchemes": {"$ref": "schemes.json"}},
    }
    (tmp_path / "parts").mkdir()
    for name, section in sections.items():
        (tmp_path / "parts" / f"{name}.json").write_text(json.dumps(section))
    scheme = {"type": "apiKey", "in": "header", "name": "X-Key"}
    (tmp_path / "parts" / "schemes.json").write_text(json.dumps({"key": {"$ref": "#/one"}, "one": scheme}))
    root = {"openapi": "3.1.0", **{name: {"$ref": f"parts/{name}.json"} for name in sections}}
    (tmp_path / "root.json").write_text(json.dumps(root))
    settings = OpenAPISettings(document=tmp_path / "root.json", credentials={"key": Secret("secret")})
    source = OpenAPIFunctions(settings)
    plugin = await source.load("service")
    assert (plugin.description, source.lost) == ("Shop.", ())
    await Kernel(plugins=[plugin]).invoke_json("service-a", {})
    assert (service.last.target, service.last.headers["x-key"]) == ("/a", "secret")
    await source.aclose()


async def test_what_stands_beside_the_reference_of_paths_counts_also_where_that_leads_nowhere(opened):
    own, theirs = ({"get": {"operationId": name}} for name in ("own", "theirs"))
    document = {"openapi": "3.1.0", "info": {}, "x-paths": {"/a": theirs, "/b": theirs}}
    plugin = await opened(document | {"paths": {"$ref": "#/x-paths", "/a": own}})
    assert [one.name for one in plugin] == ["own", "theirs"]
    plugin = await opened(document | {"paths": {"$ref": "#/nowhere", "/a": own}})
    assert [one.name for one in plugin] == ["own"]
    assert "leads nowhere" in opened.lost["$ref"]


async def test_what_stands_beside_a_reference_counts_and_first(opened):
    query = {"in": "query", "schema": {"type": "string"}}
    paths = {
        "/a/{id}": {
            "$ref": "#/components/pathItems/A",
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        },
        "/b": {
            "get": {
                "$ref": "#/components/x-operations/b",
                "operationId": "mine",
                "parameters": [{**query, "name": "p", "required": True}, {**query, "name": "own"}],
            }
        },
    }
    components = {
        "pathItems": {"A": {"get": {"operationId": "a"}, "parameters": [{**query, "name": "q"}]}},
        "x-operations": {
            "b": {
                "operationId": "b",
                "description": "Theirs.",
                "parameters": [{**query, "name": "p"}, {**query, "name": "more"}],
            }
        },
    }
    plugin = await opened({"openapi": "3.1.0", "info": {}, "paths": paths, "components": components})
    assert {one.name: [(p.name, p.required) for p in one.parameters] for one in plugin} == {
        "a": [("q", False), ("id", True)],
        "mine": [("p", True), ("more", False), ("own", False)],
    }
    assert plugin["mine"].description == "Theirs."


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"$ref": "no.yaml"}, "no such file"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$ref": "#/x-circle"}, "its references lead to each other"),
        ({"$ref": "#/openapi"}, "expected an object, not '3.1.0'"),
        ({"$ref": "folder/secret.yaml"}, "it lies outside the folder of the document"),
        ({"$ref": "folder/../folder/secret.yaml"}, "it lies outside the folder of the document"),
        ({"$ref": "folder%2fsecret.yaml"}, "it lies outside the folder of the document"),
        ({"$ref": "inner/../../outside/secret.yaml"}, "it lies outside the folder of the document"),
        ({"parameters": {"$ref": "folder/secret.yaml"}}, "it lies outside the folder of the document"),
        ({"responses": {"$ref": "link.yaml"}}, "it lies outside the folder of the document"),
        (5, "expected an object, not 5"),
        (None, "expected an object, not nothing"),
    ],
)
def test_an_operation_that_leads_nowhere_is_lost_with_the_reason(tmp_path, operation, reason):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.yaml").write_text("operationId: secret")
    folder = tmp_path / "document"
    (folder / "inner").mkdir(parents=True)
    (folder / "folder").symlink_to(tmp_path / "outside", target_is_directory=True)
    (folder / "link.yaml").symlink_to(Path("..", "outside", "secret.yaml"))
    root = {"openapi": "3.1.0", "info": {}, "paths": {"/a": {"get": operation, "put": {"operationId": "put"}}}}
    (folder / "root.json").write_text(json.dumps(root | {"x-circle": {"$ref": "#/x-circle"}}))
    plugin, lost = loaded(folder / "root.json")
    assert [one.name for one in plugin] == ["put"]
    assert [one.operation for one in lost] == ["GET /a"]
    assert reason in lost[0].reason


def test_a_document_of_a_thousand_files_is_read(tmp_path):
    paths = {f"/{number}": {"get": {"$ref": f"o/{number}.json"}} for number in range(1_000)}
    (tmp_path / "o").mkdir()
    for number in range(1_000):
        (tmp_path / "o" / f"{number}.json").write_text(json.dumps({"operationId": f"x{number}"}))
    (tmp_path / "root.json").write_text(json.dumps({"openapi": "3.1.0", "info": {}, "paths": paths}))
    plugin, lost = loaded(tmp_path / "root.json")
    assert (len(plugin.functions), lost) == (1_000, ())


WHOLE: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}],
            "get": {
                "operationId": "read",
                "tags": ["pets"],
                "parameters": [
                    {"name": "X-More", "in": "header", "schema": {"oneOf": [{"type": "string"}, {"type": "boolean"}]}},
                    {"name": "where", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                ],
                "responses": {
                    "200": {
                        "description": "A pet.",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {}}},
                                }
                            }
                        },
                    }
                },
            },
            "patch": {
                "summary": "Change a pet",
                "deprecated": True,
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string", "minLength": 1},
                                    "photo": {"type": "string", "contentMediaType": "image/png"},
                                    "at": {"type": "object", "properties": {"x": {"type": "number"}}},
                                    "id": {"type": "integer", "readOnly": True},
                                },
                            }
                        }
                    },
                },
                "responses": {"204": {"description": "Done."}},
            },
        },
        "/kinds": {"get": {"operationId": "kinds", "responses": {"200": {"description": "x", "content": {
            "application/json": {"schema": {"type": "array", "items": {"enum": ["cat", "dog"]}}}}}}}},
    },
}  # fmt: skip
INSIDE: Mapping[str, Mapping[str, str]] = {
    "root": {"paths": "paths"},
    "paths": {"*": "item"},
    "item": {"get": "operation", "patch": "operation", "parameters": "parameters"},
    "parameters": {"*": "parameter"},
    "parameter": {"schema": "schema", "content": "content"},
    "operation": {"parameters": "parameters", "requestBody": "body", "responses": "responses"},
    "body": {"content": "content"},
    "content": {"*": "media"},
    "media": {"schema": "schema"},
    "responses": {"*": "response"},
    "response": {"content": "content"},
    "schema": {"properties": "properties", "items": "schema", "oneOf": "schemas"},
    "schemas": {"*": "schema"},
    "properties": {"*": "schema"},
}
"""What stands in each kind of a document's objects, by key."""


@st.composite
def split(draw: st.DrawFn) -> dict[str, str]:
    """Move parts of the document into other files, at random; return the text of each file by its path."""
    files: dict[str, str] = {}

    def part(value: Any, kind: str, folder: str) -> Any:
        """Return the part as it stands in a file of this folder."""
        if kind in ("root", "schemas") or draw(st.integers(0, 3)):
            return whole_part(value, kind, folder)
        place, ending = draw(st.sampled_from(["", "parts/", "parts/deep er/"])), draw(st.sampled_from(["json", "yaml"]))
        made = whole_part(value, kind, place)
        keys = draw(st.sampled_from([[], ["part"], ["a/b", "~ %"]]))
        for key in reversed(keys):
            made = {key: made}
        path = f"{place}f{len(files)}.{ending}"
        files[path] = json.dumps(made) if ending == "json" else yaml.safe_dump(made, sort_keys=False)
        pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)
        return {"$ref": f"{quote(os.path.relpath(path, folder or '.'))}#{quote(pointer)}"}

    def whole_part(value: Any, kind: str, folder: str) -> Any:
        known = INSIDE.get(kind, {})
        if isinstance(value, list):
            return [part(one, known["*"], folder) for one in value]
        inside = {key: known.get(key, known.get("*")) for key in value}
        return {key: part(one, inside[key], folder) if inside[key] else one for key, one in value.items()}

    root = whole_part(WHOLE, "root", "")
    return {"root.json": json.dumps(root), **files}


def described(plugin: FunctionPlugin) -> list[Any]:
    return [
        (one.name, one.description, one.tags, whole(dict(one.spec.parameters)), whole(dict(one.spec.returns)))
        for one in plugin
    ]


@given(split())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_document_split_anywhere_is_the_same_document(files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)
        plugin, lost = loaded(Path(folder) / "root.json")
        (Path(folder) / "whole.json").write_text(json.dumps(WHOLE))
        assert lost == ()
        assert described(plugin) == described(loaded(Path(folder) / "whole.json")[0])
