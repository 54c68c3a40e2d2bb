"""Secrets go where the document says and nowhere else, and are seen nowhere."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from typing import Any

import pytest

from portico.errors import AuthenticationFailed, ConfigurationError, ServiceError
from portico.plugins import Secret
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

KEY = "s3cr3t/key+ü=1"
SCHEMES = {
    "in_header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "in_query": {"type": "apiKey", "in": "query", "name": "api key"},
    "in_cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "other": {"type": "http", "scheme": "GenieKey"},
    "oauth": {"type": "oauth2", "flows": {}},
    "open_id": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example"},
    "mutual": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
    "nameless": {"type": "apiKey", "in": "header"},
}


@pytest.fixture
def secured(described: Any) -> Any:
    """Make a document whose one operation, ``look``, has these requirements."""

    def secured(*requirements: dict[str, Any], **operation: Any) -> dict[str, Any]:
        look = {"operationId": "look", "security": list(requirements), **operation}
        return described({"/": {"get": look}}, components={"securitySchemes": SCHEMES})

    return secured


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return what was logged here; the service's own log is not ours."""
    return "\n".join(record.getMessage() for record in caplog.records if record.name != "werkzeug")


def needing(*names: str) -> dict[str, Any]:
    return {name: [] for name in names}


@pytest.mark.parametrize(
    ("scheme", "secret", "header", "written"),
    [
        ("in_header", "abc", "x-api-key", "abc"),
        ("in_cookie", "a;b c", "cookie", "session=a%3Bb%20c"),
        ("basic", "Ada:pass:wörd", "authorization", f"Basic {base64.b64encode('Ada:pass:wörd'.encode()).decode()}"),
        ("bearer", "abc", "authorization", "Bearer abc"),
        ("bearer", "bearer abc", "authorization", "bearer abc"),
        ("other", "abc", "authorization", "GenieKey abc"),
        ("oauth", "abc", "authorization", "Bearer abc"),
        ("open_id", "abc", "authorization", "Bearer abc"),
    ],
)
async def test_each_scheme_has_its_place(opened, call, secured, service, scheme, secret, header, written):
    plugin = await opened(secured(needing(scheme)), credentials={scheme: Secret(secret)})
    await call(plugin, "look")
    assert service.last.headers[header] == written


async def test_a_key_in_the_query(opened, call, secured, service):
    parameters = [{"name": "q", "in": "query", "schema": {}}]
    document = secured(needing("in_query"), parameters=parameters)
    plugin = await opened(document, credentials={"in_query": Secret(KEY)})
    await call(plugin, "look", q="x")
    assert service.last.target == "/?q=x&api%20key=s3cr3t%2Fkey%2B%C3%BC%3D1"
    await call(plugin, "look")
    assert service.last.target == "/?api%20key=s3cr3t%2Fkey%2B%C3%BC%3D1"


async def test_all_of_one_alternative_are_sent_and_the_first_complete_one_counts(opened, call, secured, service):
    document = secured(needing("in_header", "mutual"), needing("in_header", "in_cookie"), needing("bearer"))
    secrets = {name: Secret(name) for name in ("in_header", "in_cookie", "bearer")}
    await call(await opened(document, credentials=secrets), "look")
    assert service.last.headers["x-api-key"] == "in_header"
    assert service.last.headers["cookie"] == "session=in_cookie"
    assert "authorization" not in service.last.headers
    await call(await opened(document, credentials={"bearer": Secret("b")}), "look")
    assert service.last.headers["authorization"] == "Bearer b"
    assert "x-api-key" not in service.last.headers


async def test_what_may_go_without_goes_with_what_there_is(opened, call, secured, service):
    document = secured({}, needing("bearer"))
    await call(await opened(document), "look")
    assert "authorization" not in service.last.headers
    await call(await opened(document, credentials={"bearer": Secret("abc")}), "look")
    assert service.last.headers["authorization"] == "Bearer abc"


async def test_the_documents_requirement_holds_unless_the_operation_has_its_own(opened, call, described, service):
    paths = {"/": {"get": {"operationId": "look"}, "put": {"operationId": "free", "security": []}}}
    document = described(paths, components={"securitySchemes": SCHEMES}, security=[needing("bearer")])
    plugin = await opened(document, credentials={"bearer": Secret("abc")})
    await call(plugin, "look")
    assert service.last.headers["authorization"] == "Bearer abc"
    await call(plugin, "free")
    assert "authorization" not in service.last.headers


async def test_without_its_secret_an_operation_stays_and_says_so(opened, call, secured, service):
    document = secured(needing("bearer", "in_query"), needing("mutual"), needing("no such"), summary="Look at it")
    plugin = await opened(document, credentials={"bearer": Secret("abc")})
    assert opened.lost == {}
    assert plugin["look"].description.startswith("Look at it.\n\nIt cannot be called: it needs credentials")
    with pytest.raises(AuthenticationFailed, match=r"service-look \(GET /\) was not called") as raised:
        await call(plugin, "look")
    for word in ("in_query", "mutual", "mutualTLS", "no such", "is not described", "`credentials`"):
        assert word in str(raised.value)
    assert service.requests == []


@pytest.mark.parametrize("security", [5, [5], [{"key": []}, None], {"key": []}])
async def test_a_mistake_in_the_requirements_is_something_missing(opened, call, described, security):
    document = described({"/": {"get": {"operationId": "look"}}}, security=security)
    plugin = await opened(document)
    assert opened.lost == {}
    with pytest.raises(AuthenticationFailed, match="the document does not tell"):
        await call(plugin, "look")


async def test_a_header_of_the_settings_stands_for_a_scheme(opened, call, secured, service):
    document = secured(needing("no such"))
    secret = {"Authorization": Secret("Custom abc")}
    await call(await opened(document, headers={"X-Tenant": "seven"}, secret_headers=secret), "look")
    assert service.last.headers["authorization"] == "Custom abc"
    assert service.last.headers["x-tenant"] == "seven"
    await call(await opened(secured(needing("in_header")), secret_headers={"x-api-key": Secret("abc")}), "look")
    assert service.last.headers["x-api-key"] == "abc"


async def test_what_the_settings_fill_is_no_parameter(opened, secured):
    parameters = [
        {"name": "x-api-key", "in": "header", "required": True, "schema": {"type": "string"}},
        {"name": "X-Tenant", "in": "header", "required": True, "schema": {"type": "string"}},
        {"name": "api key", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "q", "in": "query", "schema": {"type": "string"}},
    ]
    document = secured(needing("in_header", "in_query"), parameters=parameters)
    secrets = {"in_header": Secret("abc"), "in_query": Secret("abc")}
    plugin = await opened(document, credentials=secrets, headers={"x-tenant": "seven"})
    assert [parameter.name for parameter in plugin["look"].parameters] == ["q"]


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ({"bearr": "abc"}, r"functions\.service\.credentials\.bearr: .*Nearest: bearer"),
        ({"mutual": "abc"}, r"functions\.service\.credentials\.mutual: the scheme cannot be used here: .*mutualTLS"),
        ({"digest": "abc"}, "digest"),
        ({"nameless": "abc"}, "an apiKey has a name"),
        ({"basic": "hunter2!"}, "expected `user:password`"),
        ({"bearer": "hunter2!\nx"}, "line breaks"),
        ({"bearer": " hunter2!"}, "spaces around it"),
    ],
)
async def test_a_secret_that_cannot_be_meant_is_a_configuration_error(opened, secured, secrets, message):
    with pytest.raises(ConfigurationError, match=message) as raised:
        await opened(secured(), credentials={name: Secret(value) for name, value in secrets.items()})
    assert "hunter2" not in str(raised.value)


async def test_without_schemes_a_secret_is_told_where_to_go(opened, described):
    with pytest.raises(ConfigurationError, match="It has none; `secret_headers` sends a secret in a header"):
        await opened(described({}), credentials={"key": Secret("abc")})


@pytest.mark.parametrize(
    "settings",
    [
        {"headers": {"bad name": "x"}},
        {"headers": {"X-A": "a\r\nX-B: c"}},
        {"secret_headers": {"X-A": Secret("hunter2!\n")}},
    ],
)
async def test_headers_of_the_settings_are_headers(opened, described, settings):
    with pytest.raises(ConfigurationError, match=rf"functions\.service\.{next(iter(settings))}\.") as raised:
        await opened(described({}), **settings)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["in_header", "in_query", "in_cookie", "basic", "bearer"])
async def test_no_error_and_no_log_repeats_a_secret(opened, call, secured, service, caplog, scheme):
    secret = Secret(f"user:{KEY}")
    echo = {"message": f"bad key user:{KEY}, {KEY} and {base64.b64encode(f'user:{KEY}'.encode()).decode()}"}
    plugin = await opened(secured(needing(scheme)), credentials={scheme: secret})
    with caplog.at_level(logging.INFO):
        told = []
        for answer in ((echo, 400), (echo, 401), (json.dumps(echo), 200, "text/html"), ("x" + KEY, 500, "text/plain")):
            service.answer(*answer)
        service.answer("", 302, Location=f"http://elsewhere.example/{KEY}?k={KEY}")
        for _ in range(5):
            try:
                await call(plugin, "look")
            except ServiceError as error:
                told.append("".join(traceback.format_exception(error)))
    assert len(told) >= 4
    seen = "\n".join([*told, logged(caplog), repr(plugin), repr(opened.sources[-1]), repr(plugin["look"].callable)])
    for form in (KEY, "s3cr3t", "s3cr3t%2Fkey"):
        assert form not in seen, f"{form!r} is in {seen[max(0, seen.index(form) - 200) : seen.index(form) + 50]}"


async def test_settings_do_not_show_their_secrets():
    settings = OpenAPISettings(document="d", credentials={"a": Secret(KEY)}, secret_headers={"b": Secret(KEY)})
    assert KEY not in repr(settings)
    assert KEY not in repr(OpenAPIFunctions(settings))


async def test_secrets_go_to_the_chosen_origin_only(opened, call, described, service, httpserver):
    elsewhere = service.url.replace("localhost", "127.0.0.1")
    assert elsewhere != service.url
    secured = {"security": [needing("bearer")]}
    paths = {
        "/here": {"get": {"operationId": "here", **secured}},
        "/path": {"servers": [{"url": elsewhere}], "get": {"operationId": "there", **secured}},
        "/operation": {"get": {"operationId": "anyone", "servers": [{"url": elsewhere}]}},
        "/below": {"get": {"operationId": "below", "servers": [{"url": f"{service.url}/v2"}], **secured}},
    }
    document = described(paths, components={"securitySchemes": SCHEMES})
    settings = {"credentials": {"bearer": Secret("abc")}, "secret_headers": {"X-Own": Secret("def")}}
    plugin = await opened(document, **settings)
    await call(plugin, "here")
    assert (service.last.headers["authorization"], service.last.headers["x-own"]) == ("Bearer abc", "def")
    await call(plugin, "below")
    assert (service.last.target, service.last.headers["authorization"]) == ("/v2/below", "Bearer abc")
    with pytest.raises(AuthenticationFailed, match="of another origin than the document's"):
        await call(plugin, "there")
    await call(plugin, "anyone")
    assert service.last.headers["host"].startswith("127.0.0.1")
    assert not {"authorization", "x-own"} & set(service.last.headers)
    # A URL in the settings is for every operation, and all of it is trusted.
    plugin = await opened(document, server=elsewhere, **settings)
    await call(plugin, "there")
    assert service.last.headers["authorization"] == "Bearer abc"


async def test_a_secret_in_the_query_follows_a_redirect_inside_the_origin(opened, call, secured, service, caplog):
    plugin = await opened(secured(needing("in_query")), credentials={"in_query": Secret(KEY)})
    service.answer("", 302, Location="/there?page=2")
    with caplog.at_level(logging.INFO):
        await call(plugin, "look")
    assert service.last.target == "/there?page=2&api%20key=s3cr3t%2Fkey%2B%C3%BC%3D1"
    assert "s3cr3t" not in logged(caplog)
    assert "/there" in logged(caplog), "the log is meant to show that the call was made"
