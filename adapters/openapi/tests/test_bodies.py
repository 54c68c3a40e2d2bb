"""Request bodies: which parameters they make, and their bytes."""

from __future__ import annotations

import base64
import email.parser
import email.policy
from typing import Any

import pytest

from portico.errors import ArgumentsInvalid

PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "description": "What it is called."},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "number"},
    },
}


def body(media_type: str, schema: Any, /, *, required: bool = True, parameters: Any = (), **media: Any) -> Any:
    content = {media_type: {"schema": schema, **media}}
    request_body = {"content": content, "required": required, "description": "A thing."}
    return {"post": {"operationId": "make", "parameters": list(parameters), "requestBody": request_body}}


def names(plugin: Any) -> list[str]:
    return [parameter.name for parameter in plugin["make"].parameters]


async def test_the_properties_of_an_object_are_parameters(opened, call, described, service):
    plugin = await opened(described({"/pets": body("application/json", PET)}))
    assert names(plugin) == ["name", "tags", "size"]
    assert plugin["make"].parameters[0].description == "What it is called."
    assert plugin["make"].spec.parameters["required"] == ["name"]
    await call(plugin, "make", name="Réx", tags=["a", "b"], size=2.0)
    assert service.last.method == "POST"
    assert service.last.headers["content-type"] == "application/json"
    assert service.last.body == '{"name":"Réx","tags":["a","b"],"size":2}'.encode()


async def test_a_required_body_is_sent_even_when_nothing_is_given(opened, call, described, service):
    loose = {**PET, "required": []}
    await call(await opened(described({"/pets": body("application/json", loose)})), "make")
    assert service.last.body == b"{}"
    await call(await opened(described({"/pets": body("application/json", loose, required=False)})), "make")
    assert service.last.body == b""
    assert "content-type" not in service.last.headers


@pytest.mark.parametrize(
    ("why", "schema", "options"),
    [
        ("a name is taken by a parameter", PET, {"parameters": [{"name": "name", "in": "query", "schema": {}}]}),
        ("further properties are welcome", {**PET, "additionalProperties": {"type": "integer"}}, {}),
        ("rules hold between properties", {**PET, "minProperties": 2}, {}),
        ("there are alternatives", {"oneOf": [PET, {"type": "object"}]}, {}),
        ("it may be null", {**PET, "type": ["object", "null"]}, {}),
        ("it may be left out as a whole, though not in part", PET, {"required": False}),
        ("it is a list", {"type": "array", "items": PET}, {}),
        ("it has no properties", {"type": "object"}, {}),
        ("a required property is not described", {**PET, "required": ["name", "owner"]}, {}),
        ("two properties would have one name", {"type": "object", "properties": {"a-b": {}, "a_b": {}}}, {}),
    ],
)
async def test_else_the_whole_is_one_parameter(opened, call, described, service, why, schema, options):
    plugin = await opened(described({"/pets": body("application/json", schema, **options)}))
    assert names(plugin)[-1] == "body", f"although {why}, the parameters are {names(plugin)}"
    assert plugin["make"].parameters[-1].description == "A thing."
    value = [{"name": "x"}] if schema.get("type") == "array" else {"name": "x", "owner": 1}
    await call(plugin, "make", body=value)
    assert service.last.body in (b'[{"name":"x"}]', b'{"name":"x","owner":1}')


async def test_a_parameter_called_body_leaves_the_name_to_itself(opened, call, described, service):
    parameters = [{"name": "body", "in": "query", "schema": {"type": "string"}}]
    plugin = await opened(described({"/": body("application/json", {"type": "array"}, parameters=parameters)}))
    assert names(plugin) == ["body", "request_body"]
    await call(plugin, "make", body="x", request_body=[1])
    assert (service.last.target, service.last.body) == ("/?body=x", b"[1]")


async def test_what_an_object_inherits_is_a_parameter_too(opened, call, described, service):
    components = {
        "schemas": {
            "Named": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "Pet": {
                "allOf": [{"$ref": "#/components/schemas/Named"}, {"type": "object", "properties": {"age": {}}}],
                "required": ["age"],
                "properties": {"id": {"readOnly": True}},
            },
        }
    }
    paths = {"/": body("application/json", {"$ref": "#/components/schemas/Pet"})}
    plugin = await opened(described(paths, components=components))
    assert names(plugin) == ["name", "age"]
    assert plugin["make"].spec.parameters["required"] == ["name", "age"]


async def test_arguments_are_checked_before_anything_is_sent(opened, call, described, service):
    deep = {"type": "object", "properties": {"at": {"type": "object", "required": ["x"], "properties": {"x": {}}}}}
    plugin = await opened(described({"/": body("application/json", deep)}))
    with pytest.raises(ArgumentsInvalid) as raised:
        await call(plugin, "make", at={"y": 1}, on=2)
    assert raised.value.faults == ("at.x: expected a value, got nothing", "on: unknown; the parameters are at")
    assert service.requests == []


async def test_json_of_another_name_keeps_its_name(opened, call, described, service):
    await call(await opened(described({"/": body("application/merge-patch+json", PET)})), "make", name="x")
    assert service.last.headers["content-type"] == "application/merge-patch+json"
    await call(await opened(described({"/": body("*/*", PET)})), "make", name="x")
    assert service.last.headers["content-type"] == "application/json"


async def test_of_the_kinds_of_json_the_plain_one_is_chosen(opened, call, described, service):
    operation = body("application/json-patch+json", PET)
    content = operation["post"]["requestBody"]["content"]
    content["application/merge-patch+json"] = {"schema": PET}
    await call(await opened(described({"/": operation})), "make", name="x")
    assert service.last.headers["content-type"] == "application/merge-patch+json"
    content["application/json; charset=utf-8"] = {"schema": PET}
    await call(await opened(described({"/": operation})), "make", name="x")
    assert service.last.headers["content-type"] == "application/json; charset=utf-8"


async def test_a_form_without_fields_is_no_parameter(opened, call, described, service):
    empty = {"type": "object", "properties": {}}
    plugin = await opened(described({"/": body(FORM, empty, required=False)}))
    assert names(plugin) == []
    await call(plugin, "make")
    assert service.last.body == b""
    assert names(await opened(described({"/": body(FORM, empty)}))) == ["body"]
    assert names(await opened(described({"/": body("application/json", empty, required=False)}))) == ["body"]


async def test_of_several_media_types_json_is_chosen(opened, call, described, service):
    operation = body("application/xml", PET)
    operation["post"]["requestBody"]["content"] |= {
        "multipart/form-data": {"schema": PET},
        "application/vnd.pet+json": {"schema": PET},
    }
    await call(await opened(described({"/": operation})), "make", name="x")
    assert service.last.headers["content-type"] == "application/vnd.pet+json"


FORM = "application/x-www-form-urlencoded"


async def test_a_form_is_written_as_browsers_do(opened, call, described, service):
    schema = {"type": "object", "properties": {"a b": {}, "list": {}, "map": {}, "no": {}, "yes": {}, "tilde": {}}}
    plugin = await opened(described({"/": body(FORM, schema)}))
    arguments = {"a_b": "x y&z=ü+", "list": [1, "b"], "map": {"k": [True]}, "no": None, "yes": False, "tilde": "~*"}
    await call(plugin, "make", **arguments)
    assert service.last.headers["content-type"] == FORM
    written = b"a+b=x+y%26z%3D%C3%BC%2B&list=1&list=b&map=%7B%22k%22%3A%5Btrue%5D%7D&yes=false&tilde=%7E*"
    assert service.last.body == written


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ({"style": "spaceDelimited"}, b"list=a%20b%20c"),
        ({"style": "pipeDelimited", "explode": False}, b"list=a%7Cb%20c"),
        ({"explode": False}, b"list=a,b%20c"),
        ({"style": "deepObject"}, b"list%5B0%5D=a&list%5B1%5D=b%20c"),
        ({"allowReserved": True}, b"list=a&list=b%20c"),
        ({"contentType": "application/json"}, b"list=%5B%22a%22%2C%22b+c%22%5D"),
    ],
)
async def test_a_property_of_a_form_has_its_own_encoding(opened, call, described, service, encoding, written):
    schema = {"type": "object", "properties": {"list": {"type": "array"}}}
    await call(
        await opened(described({"/": body(FORM, schema, encoding={"list": encoding})})), "make", list=["a", "b c"]
    )
    assert service.last.body == written


def parts_of(received: Any) -> list[tuple[str, dict[str, str], bytes]]:
    """Read a multipart body with the parser of the standard library."""
    head = f"Content-Type: {received.headers['content-type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + received.body)
    assert message.get_content_type() == "multipart/form-data"
    read = []
    for part in message.iter_parts():
        disposition = part["content-disposition"]
        headers = {"type": part.get("content-type", ""), "filename": disposition.params.get("filename", "")}
        read.append((disposition.params["name"], headers, part.get_payload(decode=True)))
    return read


MULTIPART = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "count": {"type": "integer"},
        "meta": {"type": "object"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "photo": {"type": "string", "format": "binary", "description": "A picture."},
        "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
    },
}


async def test_a_multipart_body_has_a_part_for_each_value(opened, call, described, service):
    plugin = await opened(described({"/": body("multipart/form-data", MULTIPART)}))
    png = bytes(range(256))
    await call(
        plugin,
        "make",
        note="ä\r\nb",
        count=3.0,
        meta={"a": 1},
        tags=["x", "y"],
        photo={"base64": base64.b64encode(png).decode(), "filename": 'a"b.png', "media_type": "image/png"},
        more=[base64.b64encode(b"one").decode(), {"text": "zwö"}],
    )
    octets = {"type": "application/octet-stream", "filename": "more"}
    assert parts_of(service.last) == [
        ("note", {"type": "", "filename": ""}, "ä\r\nb".encode()),
        ("count", {"type": "", "filename": ""}, b"3"),
        ("meta", {"type": "application/json", "filename": ""}, b'{"a":1}'),
        ("tags", {"type": "", "filename": ""}, b"x"),
        ("tags", {"type": "", "filename": ""}, b"y"),
        ("photo", {"type": "image/png", "filename": "a%22b.png"}, png),
        ("more", octets, b"one"),
        ("more", octets, "zwö".encode()),
    ]


async def test_a_multipart_body_byte_for_byte(opened, call, described, service):
    schema = {"type": "object", "properties": {"note": {"type": "string"}, "file": {"format": "binary"}}}
    plugin = await opened(described({"/": body("multipart/form-data", schema)}))
    await call(plugin, "make", note="hi", file={"text": "x"})
    kind, _, boundary = service.last.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    assert service.last.body.decode() == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="note"\r\n\r\nhi\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\nx\r\n--{boundary}--\r\n"
    )


async def test_the_encoding_of_a_part_names_its_media_type(opened, call, described, service):
    encoding = {
        "photo": {"contentType": "image/*, image/jpeg"},
        "meta": {"contentType": "application/vnd.meta+json"},
        "tags": {"contentType": "application/json"},
    }
    plugin = await opened(described({"/": body("multipart/form-data", MULTIPART, encoding=encoding)}))
    await call(plugin, "make", photo="aGk=", meta={"a": 1}, tags=["x"])
    read = {name: (headers["type"], content) for name, headers, content in parts_of(service.last)}
    assert read == {
        "photo": ("image/jpeg", b"hi"),
        "meta": ("application/vnd.meta+json", b'{"a":1}'),
        "tags": ("application/json", b'["x"]'),
    }


@pytest.mark.parametrize(
    ("schema", "is_file"),
    [
        ({}, True),
        ({"type": "string", "format": "binary"}, True),
        ({"contentMediaType": "image/png"}, True),
        ({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}, False),
        ({"type": "string", "contentMediaType": "application/json"}, False),
        ({"type": "string"}, False),
        ({"type": "string", "format": "byte"}, False),
    ],
)
async def test_what_is_a_file_in_3_1(opened, call, described, service, schema, is_file):
    whole = {"type": "object", "properties": {"it": schema}}
    plugin = await opened(described({"/": body("multipart/form-data", whole)}))
    await call(plugin, "make", it="aGk=")
    ((_, _, content),) = parts_of(service.last)
    assert content == (b"hi" if is_file else b"aGk=")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("not base64!", r'photo: it is not base64; text goes as {"text": …}'),
        ({"text": "x", "media_type": "a\r\nb"}, "photo: .* is no media type"),
        ({"file": "x"}, "photo"),
        (5, "photo"),
    ],
)
async def test_what_is_no_file_is_refused(opened, call, described, service, value, fault):
    plugin = await opened(described({"/": body("multipart/form-data", MULTIPART)}))
    with pytest.raises(ArgumentsInvalid, match=fault):
        await call(plugin, "make", photo=value)
    assert service.requests == []


async def test_a_file_name_cannot_end_its_header(opened, call, described, service):
    plugin = await opened(described({"/": body("multipart/form-data", MULTIPART)}))
    await call(plugin, "make", photo={"text": "x", "filename": 'a"\r\nX: y'})
    assert b'filename="a%22%0D%0AX: y"\r\n' in service.last.body


async def test_code_may_give_bytes(opened, described, service):
    plugin = await opened(described({"/": body("multipart/form-data", MULTIPART), "/raw": {"put": {
        "operationId": "raw", "requestBody": {"content": {"image/png": {}}},
    }}}))  # fmt: skip
    await plugin["make"].callable(photo=b"\x00\xff")
    assert b"\r\n\r\n\x00\xff\r\n" in service.last.body
    await plugin["raw"].callable(body=b"\x00\xff")
    assert (service.last.headers["content-type"], service.last.body) == ("image/png", b"\x00\xff")


async def test_text_goes_as_it_is(opened, call, described, service):
    plugin = await opened(described({"/": body("text/plain; charset=utf-8", {"type": "string"})}))
    await call(plugin, "make", body="a\nü")
    assert service.last.headers["content-type"] == "text/plain; charset=utf-8"
    assert service.last.body == "a\nü".encode()
    plugin = await opened(described({"/": body("text/plain", {"type": "integer"})}))
    await call(plugin, "make", body=5.0)
    assert service.last.body == b"5"


async def test_a_form_that_is_text_is_the_callers_to_write(opened, call, described, service):
    plugin = await opened(described({"/": body(FORM, {"type": "string"})}))
    await call(plugin, "make", body="a=1&b=%20")
    assert (service.last.headers["content-type"], service.last.body) == (FORM, b"a=1&b=%20")


async def test_other_text_formats_are_the_callers_to_write(opened, call, described, service):
    plugin = await opened(described({"/": body("application/xml", PET)}))
    assert plugin["make"].parameters[0].schema == {"type": "string", "description": "A thing."}
    await call(plugin, "make", body="<pet/>")
    assert (service.last.headers["content-type"], service.last.body) == ("application/xml", b"<pet/>")


async def test_anything_else_is_a_file(opened, call, described, service):
    plugin = await opened(described({"/": body("application/octet-stream", {"type": "string", "format": "binary"})}))
    await call(plugin, "make", body="AAE=")
    assert (service.last.headers["content-type"], service.last.body) == ("application/octet-stream", b"\x00\x01")
    await call(plugin, "make", body={"text": "é", "media_type": "text/x-special"})
    assert (service.last.headers["content-type"], service.last.body) == ("text/x-special", "é".encode())
    with pytest.raises(ArgumentsInvalid, match="body: it is not base64"):
        await call(plugin, "make", body="é")


async def test_a_body_of_3_0_is_that_of_3_1(opened, call, described, service):
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "nullable": True},
            "photo": {"type": "string", "format": "binary"},
            "any": {},
        },
    }
    plugin = await opened(described({"/": body("multipart/form-data", schema)}, openapi="3.0.3"))
    # In 3.0 a part without a type is whatever it is.
    await call(plugin, "make", name=None, photo="aGk=", any="aGk=")
    assert [(name, content) for name, _, content in parts_of(service.last)] == [("photo", b"hi"), ("any", b"aGk=")]


async def test_a_body_that_cannot_be_written_loses_its_operation(opened, described):
    paths = {
        "/a": body("multipart/related", PET),
        "/b": {"post": {"requestBody": {"content": {}}}},
        "/c": {"post": {"requestBody": {"$ref": "#/components/requestBodies/None"}}},
        "/d": {"post": {"operationId": "make", "requestBody": {"content": {"multipart/related": {}, FORM: {}}}}},
        "/e": body("text/plain\r\nX: y", {"type": "string"}),
        "/f": body(FORM, {"type": "array"}),
        "/g": body("multipart/form-data", {"type": "integer"}),
    }
    plugin = await opened(described(paths))
    assert [function.name for function in plugin] == ["make_2"]
    assert opened.lost == {
        "POST /a": "requestBody.content: none of multipart/related can be written",
        "POST /b": "requestBody.content: it has no content",
        "POST /c": "requestBody.$ref: '#/components/requestBodies/None' leads nowhere: there is no 'components'",
        "POST /e": "requestBody.content: none of text/plain X: y can be written",
        "POST /f": f"requestBody.content.{FORM}.schema: a form is an object, and its schema is of array",
        "POST /g": "requestBody.content.multipart/form-data.schema: a form is an object, and its schema is of integer",
    }
