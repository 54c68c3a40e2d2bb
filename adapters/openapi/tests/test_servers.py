"""Which URL is called."""

from __future__ import annotations

import json

import pytest

from portico.errors import ConfigurationError
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

LOOK = {"/x": {"get": {"operationId": "look"}}}


async def target(opened, call, service, document, **settings):
    await call(await opened(document, **settings), "look")
    return service.last.target


async def test_the_first_server_is_called_and_another_may_be_chosen(opened, call, described, service):
    servers = [{"url": f"{service.url}/v1/"}, {"url": f"{service.url}/v2"}]
    document = described(LOOK, servers=servers)
    assert await target(opened, call, service, document) == "/v1/x"
    assert await target(opened, call, service, document, server=1) == "/v2/x"
    # What comes from the environment is text.
    assert await target(opened, call, service, document, server="1") == "/v2/x"
    assert await target(opened, call, service, document, server=f"{service.url}/v3/") == "/v3/x"


async def test_variables_have_defaults_and_can_be_set(opened, call, described, service):
    host, _, port = service.url.removeprefix("http://").partition(":")
    variables = {
        "port": {"default": port},
        "base": {"default": "v1", "enum": ["v1", "v2"]},
        "host": {"default": "no.example"},
    }
    document = described(LOOK, servers=[{"url": "http://{host}:{port}/{base}", "variables": variables}])
    assert await target(opened, call, service, document, server_variables={"host": host}) == "/v1/x"
    both = {"host": host, "base": "v2"}
    assert await target(opened, call, service, document, server_variables=both) == "/v2/x"
    with pytest.raises(ConfigurationError, match=r"server_variables: .* 'bse'; nearest: base"):
        await opened(document, server_variables={"bse": "v2"})
    with pytest.raises(ConfigurationError, match=r"service\.server: the variable 'base' is one of v1, v2"):
        await opened(document, server_variables={"base": "v9"})


async def test_a_path_and_an_operation_may_have_their_own(opened, call, described, service):
    variable = {"url": f"{service.url}/{{v}}", "variables": {"v": {"default": "operation"}}}
    item = {
        "servers": [{"url": f"{service.url}/path"}],
        "get": {"operationId": "look"},
        "put": {"operationId": "set", "servers": [variable]},
        "post": {"operationId": "bad", "servers": [{"url": "ftp://x.example"}]},
    }
    plugin = await opened(described({"/x": item}), server_variables={"v": "chosen"})
    await call(plugin, "look")
    assert service.last.target == "/path/x"
    await call(plugin, "set")
    assert service.last.target == "/chosen/x"
    assert opened.lost == {"POST /x": "servers[0]: 'ftp://x.example' is not an http or https URL"}
    plugin = await opened(described({"/x": item}), server=service.url)
    await call(plugin, "look")
    assert service.last.target == "/x"


async def test_a_relative_server_is_relative_to_the_documents_url(call, described, service, httpserver):
    for servers, expected in (([{"url": "/v1"}], "/v1/x"), ([{"url": "v2"}], "/docs/v2/x"), ([], "/x"), (None, "/x")):
        document = described(LOOK, servers=servers)
        service.answer(document)
        source = OpenAPIFunctions(OpenAPISettings(document=f"{service.url}/docs/openapi.json"))
        await call(await source.load("service"), "look")
        assert service.last.target == expected
        await source.aclose()


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        (None, "'/' is relative to a document that has no URL"),
        ([], "'/' is relative to a document that has no URL"),
        ([{"url": "/v1"}], "'/v1' is relative to a document that has no URL"),
        ([{"url": "ftp://a.example"}], "'ftp://a.example' is not an http or https URL"),
        ([{"url": "file:///etc"}], "is not an http or https URL"),
        ([{"url": "https://{tenant}.example"}], "the variable 'tenant' of its URL has no value; set it in"),
        ([{"url": "https://user:pass@a.example"}], "a user name or password in its URL is not taken"),
        ([{"url": "https://a.example/?x=1"}], "has a query, a fragment or characters"),
        ([{"url": "https://a.example:port"}], "names no host or no possible port"),
        ([{"url": "https://["}], "is no URL"),
        ([{"url": 5}], "url: expected text, not 5"),
        ([7], "expected an object, not 7"),
        ("x", "servers: expected a list, not 'x'"),
    ],
)
async def test_without_a_server_functions_are_there_and_calls_say_why(opened, call, described, servers, reason):
    plugin = await opened(described(LOOK, servers=servers))
    assert reason in plugin.description
    assert "pass@" not in plugin.description
    with pytest.raises(ConfigurationError, match='Set `server = "https://…"`') as raised:
        await call(plugin, "look")
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("ftp://a.example", "is not an http or https URL"),
        ("a.example", "'a.example' is relative"),
        ("https://user:pass@a.example", "a user name or password"),
        (2, "there is no server 2: the document has 1, counted from 0"),
        (-1, "there is no server -1"),
        ("", "is relative"),
    ],
)
async def test_a_server_that_cannot_be_meant_is_a_configuration_error(opened, described, server, reason):
    with pytest.raises(ConfigurationError, match=r"functions\.service\.server: ") as raised:
        await opened(described(LOOK), server=server)
    assert reason in str(raised.value)


async def test_a_document_may_be_fetched_through_redirects_inside_https_or_http(call, described, service):
    document = json.dumps(described(LOOK, servers=[{"url": "/v1"}]))
    service.answer("", 301, Location="/specs/openapi.json")
    service.answer(document)
    source = OpenAPIFunctions(OpenAPISettings(document=f"{service.url}/openapi"))
    await call(await source.load("service"), "look")
    assert [one.target for one in service.requests] == ["/openapi", "/specs/openapi.json", "/v1/x"]
    await source.aclose()


@pytest.mark.parametrize(
    ("url", "outside"),
    [("https://clock.example", True), ("http://127.0.0.1:8000", False), ("http://localhost", False),
     ("http://[::1]:1", False), ("http://192.168.0.7", True)],
)  # fmt: skip
async def test_what_is_sent_to_another_machine_reaches_out(opened, described, url, outside):
    look = (await opened(described(LOOK, servers=[{"url": url}])))["look"]
    assert (look.labels is not None and look.labels.reaches_out) is outside
