"""What documents say in a way that OpenAPI does not mean: the function is the one that their authors meant."""

from __future__ import annotations

import asyncio
import base64
import copy
import email.parser
import email.policy
import json
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from jsonschema import Draft202012Validator

from portico import FunctionPlugin, Kernel
from portico.errors import ArgumentsInvalid
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

QUICK = settings(suppress_health_check=[HealthCheck.too_slow])
NAMES = st.sampled_from(["a", "b", "c", "d"])


def opened(
    operation: Mapping[str, Any], path: str = "/", *, version: str = "3.1.0", **components: Any
) -> tuple[FunctionPlugin, list[httpx.Request]]:
    """Return the functions of a document with one operation, none of it lost, and the requests that they send."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(204)

    document = {
        "openapi": version,
        "info": {},
        "servers": [{"url": "https://x.example"}],
        "paths": {path: {"post": {"operationId": "it", **operation}}},
        "components": {"schemas": components},
    }
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "document.json"
        file.write_text(json.dumps(document))
        source = OpenAPIFunctions(OpenAPISettings(document=file), client=client)
        plugin = asyncio.run(source.load("service"))
    assert source.lost == ()
    return plugin, requests


def call(plugin: FunctionPlugin, arguments: Mapping[str, Any]) -> None:
    asyncio.run(Kernel(plugins=[plugin]).invoke_json("service-it", arguments))


def taking(schema: Any, **keys: Any) -> dict[str, Any]:
    return {"parameters": [{"name": "p", "in": "query", "schema": schema, **keys}]}


def sending(schema: Any, media_type: str = "application/json", **keys: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}, **keys}}


# Truth values that are texts.

TEXTS = {True: ("true", "True", "TRUE", "yes", " on"), False: ("false", "False", "no", "off")}
TRUTHFUL = {
    "parameters": [
        {"name": "p", "in": "query", "required": True, "explode": False, "allowReserved": True, "deprecated": True,
         "schema": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
        {"name": "q", "in": "query", "required": False, "explode": True, "schema": {"type": "array", "items": {}}},
    ],
    "deprecated": True,
    "requestBody": {"required": True, "content": {"application/json": {"schema": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "n": {"type": "integer", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
            "m": {"type": "object", "additionalProperties": True, "writeOnly": True},
            "k": {"type": "string", "nullable": False, "readOnly": False},
        },
    }}}},
}  # fmt: skip


def truths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] if isinstance(value, bool) else [at for key, part in inner for at in truths(part, (*path, key))]


@given(st.data())
@QUICK
def test_a_truth_value_written_as_a_text_is_that_truth_value(data):
    loose: Any = copy.deepcopy(TRUTHFUL)
    for path in data.draw(st.sets(st.sampled_from(truths(TRUTHFUL)))):
        parent = loose
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = data.draw(st.sampled_from(TEXTS[parent[path[-1]]]))
    said, strict = opened(TRUTHFUL, version="3.0.3")
    texted, lenient = opened(loose, version="3.0.3")
    assert texted["it"].spec.parameters == said["it"].spec.parameters
    assert texted["it"].description == said["it"].description
    arguments = {"p": ["a/b", "c"], "q": [1, 2], "n": 1, "m": {"x": 1}}
    for plugin in (said, texted):
        call(plugin, arguments)
    assert (lenient[0].url, lenient[0].content) == (strict[0].url, strict[0].content)


# Values of another type than the one that is said.

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["1", "2.5", "true", "x", "007", ""]),
    "integer": st.integers(-5, 5),
    "number": st.sampled_from([1, 2.5, -1, 1e20]),
    "boolean": st.booleans(),
}


def otherwise(value: Any) -> Any:
    """Write a value as one of another type whose text is the same."""
    if isinstance(value, str):
        return json.loads(value) if value in ("1", "2.5", "true") else value
    return json.dumps(value)


@pytest.mark.parametrize("kind", VALUES)
@given(st.data())
@QUICK
def test_an_enum_of_another_type_means_values_of_the_type_that_is_said(kind, data):
    values = data.draw(st.lists(VALUES[kind], min_size=1, max_size=4, unique_by=json.dumps))
    written = [otherwise(value) if data.draw(st.booleans()) else value for value in values]
    of_none = data.draw(st.sampled_from([[], [None], [{"a": 1}]]))
    schema = {"type": kind, "enum": written + of_none, "default": written[0]}
    listed = data.draw(st.booleans())
    plugin, requests = opened(taking({"type": "array", "items": {"type": kind}, "enum": written} if listed else schema))
    for value in values:
        call(plugin, {"p": [value] if listed else value})
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    assert [dict(request.url.params) for request in requests] == [{"p": t.removesuffix(".0")} for t in texts]
    if not listed:
        assert plugin["it"].parameters[0].schema["default"] == values[0]
    for wrong in ("never", 99, None, {"a": 1}):
        with pytest.raises(ArgumentsInvalid):
            call(plugin, {"p": [wrong] if listed else wrong})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "enum": ["a", "b"]}, "a"),
        ({"type": "integer", "enum": ["low", "high"]}, "low"),
        ({"type": "string", "enum": [None]}, None),
        ({"type": "boolean", "const": "maybe"}, "maybe"),
        ({"type": "boolean", "enum": ["yes", "no"], "default": "yes"}, "yes"),
        ({"type": "boolean", "enum": ["True", "False"]}, "True"),
        ({"type": "array", "enum": ["a"]}, ["a"]),
        ({"type": "array", "enum": [["a"]]}, ["a"]),
        ({"type": ["string", "null"], "enum": [1, None]}, "1"),
    ],
)
def test_a_type_that_no_value_can_have_is_the_mistake(schema, value):
    plugin, requests = opened(sending({"type": "object", "properties": {"p": schema}}))
    call(plugin, {"p": value})
    assert json.loads(requests[0].content) == {"p": value}
    with pytest.raises(ArgumentsInvalid):
        call(plugin, {"p": "never"})


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"type": ["boolean", "null"], "enum": ["True", "False", None]}, [True, False, None]),
        ({"type": "boolean", "nullable": True, "enum": ["yes", "no", None]}, [True, False, None]),
        ({"type": "boolean", "enum": [True, "False"]}, [True, False]),
        ({"type": "boolean", "enum": ["true", "off", "low"]}, [True, False]),
        ({"type": ["string", "boolean"], "enum": [True, "False"]}, [True, "False"]),
        ({"type": ["integer", "null"], "enum": ["yes", 1, None]}, [None, 1]),
        ({"type": ["integer", "null"], "enum": ["low", "yes", None]}, [None, "yes", "low"]),
        ({"type": "integer", "nullable": True, "enum": ["low", "yes", None]}, [None, "yes", "low"]),
    ],
)
def test_a_text_beside_values_that_fit_is_the_truth_value_that_it_means(schema, taken):
    plugin, requests = opened(sending({"type": "object", "properties": {"p": schema}}), version="3.0.3")
    for value in (True, False, None, 1, "True", "False", "yes", "low"):
        with suppress(ArgumentsInvalid):
            call(plugin, {"p": value})
    assert [request.content for request in requests] == [httpx.Request("", "", json={"p": p}).content for p in taken]


# An object that is closed and has several parts.


@st.composite
def closed_objects(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """Draw an object in parts, some of which are closed, with its definitions and the names of its properties."""
    definitions: dict[str, Any] = {}
    names: set[str] = set()

    def part(depth: int) -> dict[str, Any]:
        own = draw(st.sets(NAMES, max_size=2))
        names.update(own)
        made: dict[str, Any] = {"properties": {name: {"type": "integer"} for name in sorted(own)}}
        if draw(st.booleans()):
            made["type"] = "object"
        if draw(st.booleans()):
            made[draw(st.sampled_from(["additionalProperties", "additionalProperties", "unevaluatedProperties"]))] = (
                False
            )
        if draw(st.booleans()):
            made["minProperties"] = 0
        if depth:
            made["allOf"] = [part(depth - 1) for _ in range(draw(st.integers(0, 2)))]
        if draw(st.booleans()):
            name = f"D{len(definitions)}"
            definitions[name] = made
            beside = {"additionalProperties": False} if draw(st.booleans()) else {}
            return {"$ref": f"#/components/schemas/{name}", **beside}
        return made

    schema = {"additionalProperties": False, "allOf": [part(2), part(1)]}
    return schema, definitions, names


@pytest.mark.parametrize("nested", [False, True])
@given(closed_objects())
@QUICK
def test_an_object_in_parts_takes_the_properties_of_all_of_them_and_no_others(nested, drawn):
    schema, definitions, names = drawn
    schema = {"type": "object", "required": ["in"], "properties": {"in": schema}} if nested else schema
    plugin, requests = opened(sending(schema), **definitions)
    whole = dict.fromkeys(sorted(names), 1)

    def arguments(value: dict[str, Any]) -> dict[str, Any]:
        if nested:
            return {"in": value}
        return {"body": value} if plugin["it"].parameters[0].name == "body" else value

    call(plugin, arguments(whole))
    assert json.loads(requests[0].content) == ({"in": whole} if nested else whole)
    for wrong in ({**whole, "more": 1}, *({**whole, name: "x"} for name in names)):
        with pytest.raises(ArgumentsInvalid):
            call(plugin, arguments(wrong))


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
@pytest.mark.parametrize("closing", ["additionalProperties", "unevaluatedProperties"])
def test_an_object_of_closed_alternatives_takes_no_other_properties(key, closing):
    first, second = ({"properties": {name: {"type": "integer"}}, closing: False} for name in "bc")
    schema = {"type": "object", "properties": {"a": {}}, key: [first, {"$ref": "#/components/schemas/C"}]}
    plugin, _ = opened(sending({"properties": {"in": schema}}), C=second)
    for right in ({"a": 1, "b": 1}, {"a": 1, "c": 1}):
        call(plugin, {"in": right})
    with pytest.raises(ArgumentsInvalid):
        call(plugin, {"in": {"a": 1, "b": 1, "more": 1}})
    del first[closing]
    plugin, _ = opened(sending({"properties": {"in": schema}}), C=second)
    call(plugin, {"in": {"a": 1, "b": 1, "more": 1}})


OBJECTS = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 1) | st.just("x"), max_size=4)
PARTS = st.recursive(
    st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, st.sampled_from([{"type": "integer"}, {}]), max_size=2)},
        optional={"additionalProperties": st.sampled_from([False, False, True, {"type": "integer"}])},
    ),
    lambda inner: st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, st.just({"type": "integer"}), max_size=2)},
        optional={
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "additionalProperties": st.just(False),
        },
    ),
    max_leaves=6,
)


@given(PARTS, PARTS, OBJECTS)
@QUICK
def test_no_object_that_a_document_takes_is_refused(schema, definition, value):
    """jsonschema judges the document as it is written: what it takes, the function takes."""
    definitions = {"D": definition}
    schema = {**schema, "allOf": [*schema.get("allOf", ()), {"$ref": "#/components/schemas/D"}]}
    assume(Draft202012Validator({**schema, "components": {"schemas": definitions}}).is_valid(value))
    plugin, _ = opened(sending({"type": "object", "properties": {"in": schema}}), **definitions)
    call(plugin, {"in": value})


# Forms whose fields are not described.

UNDESCRIBED = (
    {}, None, True, {"type": "object"}, {"type": "string"}, {"type": "string", "format": "binary"},
    {"type": "object", "properties": {}}, {"description": "A file."}, {"type": "object", "required": ["a"]},
)  # fmt: skip
FIELDS = st.one_of(st.text("ab ü\r\n", max_size=4), st.integers(-3, 3), st.booleans())


def parts_of(request: httpx.Request) -> list[tuple[str, str, bytes]]:
    """Read a multipart body with the parser of the standard library: names, names of files, contents."""
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + request.content)
    read = []
    for part in message.iter_parts():
        found = part["content-disposition"].params
        read.append((found["name"], found.get("filename", ""), part.get_payload(decode=True)))
    return read


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@given(
    schema=st.sampled_from(UNDESCRIBED),
    fields=st.dictionaries(st.sampled_from(["a", "b c", "file"]), FIELDS | st.lists(FIELDS, max_size=2), min_size=1),
    content=st.binary(max_size=5),
    required=st.booleans(),
)
@QUICK
def test_a_form_that_is_not_described_takes_any_fields_and_files(version, schema, fields, content, required):
    assume(required or schema != {"type": "object", "properties": {}})
    assume("a" in fields or schema != UNDESCRIBED[-1])
    plugin, requests = opened(sending(schema, "multipart/form-data", required=required), version=version)
    file = {"base64": base64.b64encode(content).decode(), "filename": "x.bin"}
    call(plugin, {"body": {**fields, "upload": file}})
    pairs = [(name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value])]
    texts = [(name, "", (one if isinstance(one, str) else json.dumps(one)).encode()) for name, one in pairs]
    assert parts_of(requests[0]) == [*texts, ("upload", "x.bin", content)]
    with pytest.raises(ArgumentsInvalid):
        call(plugin, {"body": "not a form"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "string", "format": "binary"}},
        {"type": "object", "oneOf": [
            {"properties": {"up": {"type": "string", "format": "binary"}}},
            {"$ref": "#/components/schemas/Link"},
        ]},
        {"allOf": [{"$ref": "#/components/schemas/Up"}, {"$ref": "#/components/schemas/Link"}], "minProperties": 1},
    ],
)  # fmt: skip
def test_a_file_of_a_form_is_a_file_wherever_it_is_described(schema):
    components = {
        "Up": {"type": "object", "properties": {"up": {"type": "string", "format": "binary"}}},
        "Link": {"type": "object", "properties": {"link": {"type": "string"}}},
    }
    plugin, requests = opened(sending(schema, "multipart/form-data"), **components)
    call(plugin, {"body": {"up": "aGk="}})
    assert parts_of(requests[0]) == [("up", "up", b"hi")]


def test_a_form_that_is_a_list_is_lost_with_the_reason(tmp_path):
    paths = {"/": {"post": sending({"type": "array", "items": {}}, "multipart/form-data")}}
    (tmp_path / "d.json").write_text(json.dumps({"openapi": "3.1.0", "info": {}, "paths": paths}))
    source = OpenAPIFunctions(OpenAPISettings(document=tmp_path / "d.json"))
    assert asyncio.run(source.load("service")).functions == ()
    assert source.lost[0].reason.endswith("a form is an object, and its schema is of array")


# Lists of objects, and alternatives, in paths and queries.

SINGLES = st.text("ab/ ü=,.;", min_size=1, max_size=4) | st.integers(-3, 3) | st.booleans()
FLAT = st.dictionaries(st.sampled_from(["k", "l m"]), SINGLES, min_size=1)
ROWS = st.lists(FLAT, min_size=1, max_size=3)
ROW = {"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}}
ALTERNATIVES = {"oneOf": [{"type": ["string", "integer", "boolean"]}, {"type": "array", "items": ROW}, ROW]}


def text_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: text_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return [text_of(part) for part in value]
    return value if isinstance(value, str) else json.dumps(value)


def read_deep(pairs: list[tuple[str, str]]) -> Any:
    """Read ``p[0][k]=v`` as servers do that know deepObject."""
    rows: dict[str, Any] = {}
    for name, text in pairs:
        number, _, key = name.removeprefix("p[").removesuffix("]").partition("][")
        rows.setdefault(number, {})[key] = text
    return [rows[str(number)] for number in range(len(rows))]


@given(ROWS)
@QUICK
def test_a_list_of_objects_reaches_the_service_where_the_style_can_say_it(rows):
    assume("/../" not in json.dumps(rows))
    plugin, requests = opened(taking({"type": "array", "items": ROW}, style="deepObject", explode=True))
    call(plugin, {"p": rows})
    assert read_deep(parse_qsl(requests[0].url.query.decode(), keep_blank_values=True)) == text_of(rows)
    content = {"application/json": {"schema": {"type": "array", "items": ROW}}}
    for place, path in (("query", "/"), ("path", "/{p}")):
        parameters = [{"name": "p", "in": place, "required": True, "content": content}]
        plugin, requests = opened({"parameters": parameters}, path)
        call(plugin, {"p": rows})
        target = requests[0].url.raw_path.decode()
        assert json.loads(unquote(target.removeprefix("/").removeprefix("?p="))) == rows


def read_path(style: str, explode: bool, text: str, like: Any) -> Any:
    """Read a value in a style of paths; ``like`` tells its kind, as its schema tells services."""
    lead, joint = {"simple": ("", ","), "label": (".", "." if explode else ","), "matrix": (";", ";")}[style]
    assert text.startswith(lead)
    text = text[len(lead) :]
    if style == "matrix" and not (explode and isinstance(like, dict)):
        parts = text.split(";") if explode else [text]
        assert all(part.partition("=")[0] == "p" for part in parts)
        parts = [part.partition("=")[2] for part in parts]
        parts = parts if explode else parts[0].split(",")
    else:
        parts = text.split(joint)
    if isinstance(like, list):
        return [unquote(part) for part in parts]
    if not isinstance(like, dict):
        return unquote(",".join(parts))
    pairs = [part.partition("=")[::2] for part in parts] if explode else zip(parts[::2], parts[1::2], strict=True)
    return {unquote(key): unquote(value) for key, value in pairs}


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@given(value=SINGLES | FLAT | st.lists(SINGLES, min_size=1, max_size=3), explode=st.booleans())
@QUICK
def test_alternatives_in_a_path_are_written_as_their_kind(style, explode, value):
    # A dot is what delimits the style label, and it is never percent-encoded.
    assume(style != "label" or "." not in json.dumps(value))
    # A path that leads upwards is refused.
    assume(not re.search(r"[/\\]\.\.", json.dumps(value)))
    items = {"type": "array", "items": {"type": ["string", "integer", "boolean"]}}
    schema = {"oneOf": [*ALTERNATIVES["oneOf"][::2], items]}
    parameter = {"name": "p", "in": "path", "required": True, "style": style, "explode": explode, "schema": schema}
    plugin, requests = opened({"parameters": [parameter]}, "/x{p}/y")
    call(plugin, {"p": value})
    target = requests[0].url.raw_path.decode()
    assert target.count("/") == 2
    assert read_path(style, explode, target.removeprefix("/x").removesuffix("/y"), value) == text_of(value)


@given(value=SINGLES | FLAT | ROWS)
@QUICK
def test_alternatives_in_a_query_are_written_as_their_kind(value):
    plugin, requests = opened(taking(ALTERNATIVES, style="deepObject", explode=True))
    call(plugin, {"p": value})
    pairs = parse_qsl(requests[0].url.query.decode(), keep_blank_values=True)
    if isinstance(value, list):
        assert read_deep(pairs) == text_of(value)
    elif isinstance(value, dict):
        assert {name.removeprefix("p[").removesuffix("]"): text for name, text in pairs} == text_of(value)
    else:
        assert pairs == [("p", text_of(value))]
