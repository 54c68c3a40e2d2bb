"""Documents in JSON and YAML, from files and over HTTP, and the references between them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.errors import ConfigurationError
from portico_openapi._documents import parse, parse_location, read_yaml
from portico_openapi._errors import Unusable
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

HEAD = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[no, yes, on, off, y, NO]", ["no", "yes", "on", "off", "y", "NO"]),
        ("[true, True, FALSE, null, ~, '']", [True, True, False, None, None, ""]),
        (
            "[2024-01-31, 12:30:00, 2001-12-14t21:59:43.10-05:00]",
            ["2024-01-31", "12:30:00", "2001-12-14t21:59:43.10-05:00"],
        ),
        ("[1, -1, +1, 010, 0o10, 0x1F, 1_000]", [1, -1, 1, 10, 8, 31, "1_000"]),
        (
            "[1.5, .5, 1., 1e3, -1.5E-3, 1.2.3, .inf, .nan, 1e999]",
            [1.5, 0.5, 1.0, 1000.0, -0.0015, "1.2.3", ".inf", ".nan", "1e999"],
        ),
        ("['1', \"true\", !!str 5, !!int '7', ! 8]", ["1", "true", "5", 7, "8"]),
        (
            "{200: a, 3.0: b, true: c, null: d, 2024-01-31: e}",
            {"200": "a", "3.0": "b", "true": "c", "null": "d", "2024-01-31": "e"},
        ),
        ("{a: &x [1], b: *x, c: {<<: {d: 1, e: 2}, e: 3}}", {"a": [1], "b": [1], "c": {"e": 3, "d": 1}}),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}),
        ("{}", {}),
        ("", None),
        ("--- 5\n...\n", 5),
        ("9" * 5_000, "9" * 5_000),
    ],
    ids=range(13),
)
def test_yaml_has_the_values_of_json(text, value):
    read = read_yaml(text)
    assert read == value
    assert json.dumps(read) == json.dumps(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("a<*&! 1.", max_size=4), inner, max_size=4),
        max_leaves=20,
    )
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_json_is_the_same_in_yaml(value):
    assert read_yaml(json.dumps(value, ensure_ascii=False)) == value
    assert parse(json.dumps({"it": value}).encode()) == ({"it": value}, [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1", "line 1: "),
        ("a: b: c", "line 1: mapping values are not allowed"),
        ("a: 1\n---\nb: 2\n", "line 2: a second YAML document begins"),
        ("a: !!python/object:os.system x", "line 1: the tag 'tag:yaml.org,2002:python/object:os.system' is not one of"),
        ("a: !include /etc/passwd", "the tag '!include'"),
        ("a: !!set {x}", "the tag"),
        ("a: &x [*x]", "line 1: the alias 'x' has no value before it"),
        ("a: *nothing", "line 1: "),
        ("? [1, 2]\n: x", "line 1: a key is text"),
        ("a: &x [1]\n*x : 2\n", "line 2: a key is text"),
        ("<<: 5", "line 1: '<<' takes an object"),
        ("[" * 300 + "]" * 300, "nests deeper than 200 levels"),
        ("a: \x00", "unacceptable character|control characters are not allowed"),
    ],
    ids=range(13),
)
def test_what_is_not_plain_yaml_is_told_with_its_line(text, reason):
    with pytest.raises(Unusable, match=reason):
        read_yaml(text)


def test_a_bomb_of_aliases_is_counted_not_built():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    with pytest.raises(Unusable, match="more than 1,000,000 values, aliases counted"):
        read_yaml("\n".join(lines))
    merges = ["a0: &a0 {k: v}"] + [f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], k{i}: *a{i - 1}}}" for i in range(1, 40)]
    with pytest.raises(Unusable, match="more than 1,000,000 values"):
        read_yaml("\n".join(merges))


@given(st.text(st.sampled_from("a\\\ud83d\ude00"), max_size=6))
def test_half_of_a_surrogate_pair_in_json_becomes_a_replacement(text):
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert parse(json.dumps({"it": [text], text: 1}).encode()) == ({"it": [whole], whole: 1}, [])


def test_of_a_key_that_stands_twice_the_last_value_counts():
    assert read_yaml("a: 1\nb: 2\na: 3\n") == {"a": 3, "b": 2}
    assert parse(b'{"a": 1, "a": 2}') == ({"a": 2}, [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"hello", "it holds one value"),
        (b"[1]", "it holds one value"),
        (b"<!DOCTYPE html><html>", "it is HTML or XML"),
        (b"\xff\xfe\xff", "it is not UTF-8 text"),
        (b"a: \xff", "it is not UTF-8 text: byte 3"),
        (b'{"openapi": "3.1.0",}', r"it is not JSON: .*line 1 column 21"),
        (b'{"openapi": ' + b"[" * 100_000, "it is not JSON: it nests too deeply"),
        (b"openapi: 3.1.0\npaths: [", "it is not YAML: line 2"),
        (b"paths: {}", "is no OpenAPI 3 document: `openapi` is nothing; expected 3.0 or 3.1"),
        (b"openapi: 4.0.0", "is no OpenAPI 3 document: `openapi` is '4.0.0'; expected 3.0 or 3.1"),
        (b"openapi: [3]", "`openapi` is a list"),
        (b'swagger: "2.0"', r"it is Swagger '2\.0'; convert it to OpenAPI 3"),
        (b"openapi: 3.1.0\npaths: 5", "cannot be used: paths: expected an object, not 5"),
    ],
    ids=range(14),
)
async def test_what_is_no_document_is_a_configuration_error(tmp_path, content, reason):
    (tmp_path / "openapi.yaml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason) as raised:
        await OpenAPIFunctions(OpenAPISettings(document=tmp_path / "openapi.yaml")).load("service")
    assert str(tmp_path / "openapi.yaml") in str(raised.value)


@pytest.mark.parametrize("version", ["'3.0.0'", "3.0", "3.1", "3.1.1", "3.0.4"])
@pytest.mark.parametrize("paths", ["", "paths:", "paths: {}", "webhooks: {x: {post: {}}}"])
async def test_a_document_without_operations_has_no_functions(opened, version, paths):
    plugin = await opened(f"openapi: {version}\ninfo: {{title: T}}\n{paths}\n")
    assert plugin.functions == ()
    assert plugin.description.startswith("T.")


async def test_a_number_without_end_is_none(opened):
    parameter = '{"name": "x", "in": "query", "schema": {"minimum": 1e999, "minLength": 1e999, "default": 1e999}}'
    get = f'{{"operationId": "x", "parameters": [{parameter}]}}'
    plugin = await opened(f'{{"openapi": "3.1.0", "paths": {{"/": {{"get": {get}}}}}}}')
    assert plugin["x"].parameters[0].schema == {"default": "1e999"}


async def test_a_document_is_utf_8_with_or_without_a_mark(tmp_path):
    text = json.dumps({"openapi": "3.1.0", "info": {"title": "Zoë"}}, ensure_ascii=False)
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "a.json").write_bytes(text.encode(encoding))
        plugin = await OpenAPIFunctions(OpenAPISettings(document=tmp_path / "a.json")).load("service")
        assert plugin.description.startswith("Zoë."), encoding


@pytest.mark.parametrize("name", ["no such.yaml", ".", "pipe", "bad\0name", "x" * 5_000])
async def test_what_is_no_file_is_not_read(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="cannot be read: "):
        await OpenAPIFunctions(OpenAPISettings(document=tmp_path / name)).load("service")


async def test_a_large_document_is_refused_with_the_setting(tmp_path):
    (tmp_path / "a.yaml").write_text("x" * 1001)
    with pytest.raises(ConfigurationError, match="more than 1,000 bytes; the setting maximum_document_bytes allows"):
        await OpenAPIFunctions(OpenAPISettings(document=tmp_path / "a.yaml", maximum_document_bytes=1000)).load("s")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("https://a.example/x.json", "https://a.example/x.json"),
        ("HTTP://a.example/x//y/#part", "http://a.example/x//y/"),
        (Path("/etc/app/https:/a.example/x.json?y=z"), "https://a.example/x.json?y=z"),
        (Path("https:/a.example/x"), "https://a.example/x"),
        (Path("/etc/app/x.json"), Path("/etc/app/x.json")),
        ("x.json", Path("x.json")),
        ("c:/x.json", Path("c:/x.json")),
    ],
)
def test_urls_and_files_are_told_apart(given, found):
    assert parse_location(given) == found


@pytest.mark.parametrize("given", ["ftp://a.example/x", "file:///etc/passwd", Path("/etc/app/ftp:/a.example/x")])
def test_other_urls_are_refused(given):
    with pytest.raises(ConfigurationError, match=r"give a file or an http\(s\) URL"):
        parse_location(given)


def write(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        path = folder / f"{name}.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return folder / "root.yaml"


ROOT = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "http://127.0.0.1"}]}


def taking(schema: Any, id: str = "x") -> dict[str, Any]:
    return {"get": {"operationId": id, "parameters": [{"name": "p", "in": "query", "schema": schema}]}}


async def test_references_lead_anywhere_that_they_may_stand(tmp_path):
    root = {
        **ROOT,
        "paths": {
            "/item": {"$ref": "paths.yaml#/~1item"},
            "/own/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "put": {
                    "operationId": "put",
                    "requestBody": {"$ref": "parts.yaml#/bodies/Tree"},
                    "responses": {"200": {"$ref": "parts.yaml#/responses/0"}},
                },
            },
        },
        "components": {
            "parameters": {"Id": {"$ref": "parts.yaml#/parameters/id%20of"}},
            "schemas": {"Kind": {"enum": ["a", "b"]}},
        },
    }
    parts = {
        "parameters": {
            "id of": {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"$ref": "root.yaml#/components/schemas/Kind"},
            }
        },
        "bodies": {"Tree": {"required": True, "content": {"application/json": {"schema": {"$ref": "sub/tree.yaml"}}}}},
        "responses": [
            {"description": "", "content": {"application/json": {"schema": {"$ref": "sub/tree.yaml#/properties/leaf"}}}}
        ],
    }
    (tmp_path / "sub").mkdir()
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "leaf": {"$ref": "../parts.yaml#/leaf"}},
    }
    (tmp_path / "sub" / "tree.yaml").write_text(yaml.safe_dump(tree))
    path = write(
        tmp_path, root=root, parts={**parts, "leaf": {"type": "integer"}}, paths={"/item": taking({"type": "null"})}
    )
    source = OpenAPIFunctions(OpenAPISettings(document=path))
    plugin = await source.load("service")
    assert source.lost == ()
    assert [function.name for function in plugin] == ["x", "put"]
    parameters = plugin["put"].spec.parameters
    assert parameters["properties"] == {
        "id": {"enum": ["a", "b"]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        "leaf": {"$ref": "#/$defs/leaf"},
    }
    assert parameters["$defs"]["tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/tree"}
    assert plugin["put"].spec.returns == {"type": "integer"}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/components/schemas/No", "leads nowhere: there is no 'components'"),
        ("#/paths/~1/get/5", "leads nowhere: there is no '5'"),
        ("#/servers/01/url", "leads nowhere"),
        ("#/servers/1", "leads nowhere: there is no '1'"),
        ("#anchor", "anchors are not followed"),
        ("no.yaml", "no such file or directory"),
        ("../outside.yaml#/x", "it lies outside the folder of the document"),
        ("%2e%2e/outside.yaml", "it lies outside the folder of the document"),
        ("link.yaml", "it lies outside the folder of the document"),
        ("/etc/passwd", "it lies outside the folder of the document"),
        ("file:///etc/passwd", "it lies outside the folder of the document"),
        ("//host/x", "a file may refer to files only"),
        ("http://127.0.0.1:1/x.yaml", "a file may refer to files only"),
        ("data:application/json,{}", "a file may refer to files only"),
        ("urn:x", "a file may refer to files only"),
        ("http://[", "is no reference"),
        ("broken.yaml", "it is not YAML: line 1"),
        ("#/%ff", "is no reference"),
        (5, "a reference is text"),
        (None, "a reference is text"),
    ],
)
async def test_a_reference_that_leads_nowhere_loses_its_operation_only(tmp_path, reference, reason):
    (tmp_path / "outside.yaml").write_text("x: {type: string}")
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    paths = {"/": taking({"$ref": reference}), "/y": taking({"$ref": "other.yaml#/ok"}, "y")}
    path = write(folder, root={**ROOT, "paths": paths}, other={"ok": {"type": "integer"}}, broken="a: [")
    source = OpenAPIFunctions(OpenAPISettings(document=path))
    plugin = await source.load("service")
    assert [function.name for function in plugin] == ["y"]
    assert [one.operation for one in source.lost] == ["GET /"]
    assert source.lost[0].reason.startswith("the query parameter 'p'.schema.$ref: ")
    assert reason in source.lost[0].reason


async def test_references_of_a_fetched_document_stay_at_its_origin(service, tmp_path):
    elsewhere = service.url.replace("localhost", "127.0.0.1")
    (tmp_path / "secret.yaml").write_text("type: string")
    paths = {
        "/a": taking({"$ref": "more.json#/a"}, "a"),
        "/b": taking({"$ref": f"{elsewhere}/more.json#/a"}, "b"),
        "/c": taking({"$ref": (tmp_path / "secret.yaml").as_uri()}, "c"),
        "/d": taking({"$ref": "gone.json"}, "d"),
        "/e": taking({"$ref": "moved.json"}, "e"),
    }
    service.answer({**ROOT, "paths": paths})
    service.answer({"a": {"type": "integer"}})
    service.answer("", 404)
    service.answer("", 302, Location=f"{elsewhere}/moved.json")
    service.answer({"type": "string"})
    source = OpenAPIFunctions(OpenAPISettings(document=f"{service.url}/docs/root.json"))
    plugin = await source.load("service")
    assert [function.name for function in plugin] == ["a"]
    assert plugin["a"].parameters[0].schema == {"type": "integer"}
    reasons = {one.operation: one.reason for one in source.lost}
    assert "not of the document's origin" in reasons["GET /b"]
    assert "not of the document's origin" in reasons["GET /c"]
    assert "nothing at this address (404)" in reasons["GET /d"]
    assert "not of the document's origin" in reasons["GET /e"]
    assert [one.target for one in service.requests][:3] == ["/docs/root.json", "/docs/more.json", "/docs/gone.json"]
    await source.aclose()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (("", 404), r"\(404\)"),
        (({"detail": "no entry"}, 403), r"\(403\).* no entry"),
        (("<html>", 200, "text/html"), "it is HTML or XML"),
        (("x" * 2_000, 200), "it has more than 1,000 bytes"),
        (("", 204), "answered in another form"),
    ],
)
async def test_a_document_that_cannot_be_fetched_is_a_configuration_error(service, answer, reason):
    service.answer(*answer)
    source = OpenAPIFunctions(OpenAPISettings(document=f"{service.url}/x", maximum_document_bytes=1_000))
    with pytest.raises(ConfigurationError, match=f"The OpenAPI document {service.url}/x cannot be read: .*{reason}"):
        await source.load("service")
    await source.aclose()


async def test_a_fetch_follows_few_redirects_and_none_out_of_http(service):
    source = OpenAPIFunctions(OpenAPISettings(document=f"{service.url}/x"))
    for location in ("file:///etc/passwd", "ftp://x.example/"):
        service.answer("", 302, Location=location)
        with pytest.raises(ConfigurationError, match="which is not followed"):
            await source.load("service")
    for _ in range(10):
        service.answer("", 302, Location="/x")
    with pytest.raises(ConfigurationError, match="redirects more than 5 times"):
        await source.load("service")
    await source.aclose()


async def test_references_in_a_circle_of_documents_are_read_once(tmp_path):
    files = {f"f{number}": {"a": {"$ref": f"f{(number + 1) % 5}.yaml#/a"}} for number in range(5)}
    path = write(tmp_path, root={**ROOT, "paths": {"/": taking({"$ref": "f0.yaml#/a"})}}, **files)
    source = OpenAPIFunctions(OpenAPISettings(document=path))
    assert (await source.load("service")).functions == ()
    assert "its references lead back to itself" in source.lost[0].reason


async def test_there_is_an_end_to_the_documents_that_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("portico_openapi._documents._MOST_DOCUMENTS", 10)
    paths = {f"/{number}": taking({"$ref": f"f{number}.yaml"}, f"x{number}") for number in range(20)}
    files = {f"f{number}": {"type": "string"} for number in range(20)}
    source = OpenAPIFunctions(OpenAPISettings(document=write(tmp_path, root={**ROOT, "paths": paths}, **files)))
    plugin = await source.load("service")
    assert len(plugin.functions) == 10
    assert "more than 10 others" in source.lost[-1].reason


@pytest.mark.parametrize("file", ["empty.yaml", "empty.json"])
@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_document_is_called_empty(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(ConfigurationError, match="cannot be read: it is empty"):
        await OpenAPIFunctions(OpenAPISettings(document=tmp_path / file)).load("service")
