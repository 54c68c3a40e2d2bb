"""What comes back: the schema of the result, and the result."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from portico.errors import LimitExceeded, ResponseInvalid
from portico.plans import path_problem

PET = {"type": "object", "properties": {"name": {"type": "string"}, "key": {"type": "string", "writeOnly": True}}}


def json_of(schema: Any) -> dict[str, Any]:
    return {"description": "ok", "content": {"application/json": {"schema": schema}}}


def operation(responses: Any, method: str = "get") -> dict[str, Any]:
    return {method: {"operationId": "look", "responses": responses}}


@pytest.mark.parametrize(
    ("responses", "schema"),
    [
        ({"200": json_of({"type": "integer"})}, {"type": "integer"}),
        ({"201": json_of({"type": "integer"}), "default": json_of({"type": "string"})}, {"type": "integer"}),
        ({"2XX": json_of({"type": "integer"})}, {"type": "integer"}),
        ({"default": json_of({"type": "integer"})}, {"type": "integer"}),
        ({"204": {"description": "done"}}, {"type": "null"}),
        ({"200": json_of({"type": "integer"}), "204": {}}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ({"200": json_of({"type": "integer"}), "202": json_of({"type": "integer"})}, {"type": "integer"}),
        ({"200": {"content": {"application/json": {}}}}, {}),
        (
            {"200": {"content": {"text/csv": {}, "application/hal+json": {"schema": {"type": "array"}}}}},
            {"type": "array"},
        ),
        ({"200": {"content": {"image/png": {}, "text/csv": {"schema": {"type": "array"}}}}}, {"type": "string"}),
        ({"404": json_of({"type": "string"})}, {}),
        ({}, {}),
        ({"302": {"description": "elsewhere"}, "default": json_of({"type": "string"})}, {}),
    ],
)
async def test_the_output_schema_is_that_of_success(opened, described, responses, schema):
    plugin = await opened(described({"/": operation(responses)}))
    assert plugin["look"].spec.returns == schema


async def test_definitions_of_several_answers_come_together(opened, described):
    components = {
        "schemas": {"Pet": PET, "Job": {"type": "object", "properties": {"of": {"$ref": "#/components/schemas/Pet"}}}}
    }
    responses = {
        "200": json_of({"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}),
        "202": json_of({"$ref": "#/components/schemas/Job"}),
    }
    plugin = await opened(described({"/": operation(responses)}, components=components))
    returns = plugin["look"].spec.returns
    assert returns["anyOf"][0] == {"type": "array", "items": {"$ref": "#/$defs/Pet"}}
    assert returns["$defs"] == {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}
    assert path_problem(returns, ("of", "name")) is None
    assert "there can be nothing" in str(path_problem(returns, ("of", "name", "x")))


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "text", [], [1, [2]], {"a": {"b": None}}, "null"])
async def test_json_is_given_as_it_is(opened, call, described, service, value):
    service.answer(json.dumps(value))
    plugin = await opened(described({"/": operation({"200": json_of({"type": "object"})})}))
    assert await call(plugin, "look") == value


async def test_an_answer_that_strays_from_its_schema_is_still_of_use(opened, call, described, service):
    service.answer({"nmae": 5})
    strict = {**PET, "required": ["name"], "additionalProperties": False}
    plugin = await opened(described({"/": operation({"200": json_of(strict)})}))
    assert await call(plugin, "look") == {"nmae": 5}


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "application/problem+json", ""])
async def test_json_with_another_label_is_json_where_only_json_is_documented(
    opened, call, described, service, content_type
):
    service.answer("[1]", content_type=content_type)
    plugin = await opened(described({"/": operation({"200": json_of({})})}))
    assert await call(plugin, "look") == [1]


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        ("<html><title>Log in</title>", "text/html; charset=utf-8"),
        ('{"half": ', "application/json"),
        ("NaN", "application/json"),
        ("[" * 100_000, "application/json"),
        (b"\xff\xfe\x00\x01", "image/png"),
    ],
)
async def test_what_should_be_json_and_is_not_is_told(opened, call, described, service, content, content_type):
    service.answer(content, content_type=content_type)
    plugin = await opened(described({"/": operation({"200": json_of({})})}))
    with pytest.raises(
        ResponseInvalid, match=rf"service-look \(GET /\) .* Expected JSON, got {content_type}"
    ) as raised:
        await call(plugin, "look")
    assert len(str(raised.value)) < 600


async def test_text_is_a_string_in_the_charset_of_its_label(opened, call, described, service):
    plugin = await opened(described({"/": operation({"200": {"content": {"text/plain": {}}}})}))
    service.answer("grün".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1")
    service.answer("grün".encode(), content_type="text/plain")
    service.answer("grün".encode(), content_type="text/plain; charset=no-such-thing")
    service.answer('{"a": 1}', content_type="text/plain")
    service.answer(b"a\xffb", content_type="text/plain")
    assert [await call(plugin, "look") for _ in range(5)] == ["grün", "grün", "grün", '{"a": 1}', "a\ufffdb"]
    assert service.last.headers["accept"] == "text/plain"


async def test_bytes_come_in_base64_with_their_media_type(opened, call, described, service):
    service.answer(b"\x89PNG\x00", content_type="image/png")
    plugin = await opened(described({"/": operation({"200": {"content": {"image/png": {}}}})}))
    result = await call(plugin, "look")
    assert result == {"media_type": "image/png", "base64": base64.b64encode(b"\x89PNG\x00").decode()}
    assert path_problem(plugin["look"].spec.returns, ("base64",)) is None


async def test_without_documentation_the_label_decides(opened, call, described, service):
    plugin = await opened(described({"/": operation({})}))
    service.answer("[1]", content_type="application/vnd.api+json")
    service.answer("[1]", content_type="text/csv")
    service.answer("[1]", content_type="application/zip")
    service.answer("", content_type="application/json")
    zipped = {"media_type": "application/zip", "base64": "WzFd"}
    assert [await call(plugin, "look") for _ in range(4)] == [[1], "[1]", zipped, None]
    assert service.last.headers["accept"] == "application/json, */*;q=0.5"


async def test_nothing_is_null(opened, call, described, service):
    plugin = await opened(described({"/": {**operation({"200": json_of({})}), **operation({"200": {}}, "head")}}))
    service.answer("", 204)
    assert await call(plugin, "look") is None
    assert await call(plugin, "look_2") is None
    assert service.last.method == "HEAD"


async def test_a_packed_answer_is_unpacked(opened, call, described, service):
    service.answer(gzip.compress(b'{"a":1}'), Content_Encoding="gzip")
    plugin = await opened(described({"/": operation({"200": json_of({})})}))
    assert await call(plugin, "look") == {"a": 1}


@pytest.mark.parametrize("packed", [False, True])
async def test_a_large_answer_is_refused_with_the_bound(opened, call, described, service, packed):
    content = json.dumps("x" * 5_000)
    if packed:
        service.answer(gzip.compress(content.encode()), Content_Encoding="gzip")
    else:
        service.answer(content)
    plugin = await opened(described({"/": operation({"200": json_of({})})}), maximum_response_bytes=1_000)
    with pytest.raises(LimitExceeded, match=r"service-look \(GET /\) .*1,000 bytes; maximum_response_bytes"):
        await call(plugin, "look")
    service.answer("[1]")
    assert await call(plugin, "look") == [1]


async def test_write_only_properties_are_no_part_of_a_result(opened, described):
    required = {**PET, "required": ["name", "key"]}
    plugin = await opened(described({"/": operation({"200": json_of(required)})}))
    assert plugin["look"].spec.returns == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }


async def test_a_wrong_response_loses_the_operation_and_a_wrong_error_does_not(opened, described):
    nowhere = {"$ref": "#/components/responses/None"}
    plugin = await opened(
        described(
            {
                "/a": operation({"200": nowhere}),
                "/b": operation({"200": {}, "404": nowhere, "default": nowhere}),
                "/c": operation({"200": {"content": {"a b": {}}}}),
            }
        )
    )
    assert [function.name for function in plugin] == ["look_2"]
    assert list(opened.lost) == ["GET /a", "GET /c"]
    assert opened.lost["GET /a"].startswith("responses.200.$ref: '#/components/responses/None' leads nowhere")
