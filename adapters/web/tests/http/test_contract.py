"""HttpxHttpClient does what every HttpClient must."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from portico_testkit.http_client import HttpClientKit
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

SLOW = ("slowness", "secrets", "leaves_nothing")
"""The tests whose servers fall silent. Elsewhere there is patience, or a busy host would be taken for such a server."""


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> HttpxSettings:
    times = (0.5, 2) if any(word in request.node.name for word in SLOW) else (20, 40)
    return HttpxSettings(
        read_timeout=times[0], total_timeout=times[1], max_bytes=100_000, max_wait=0.05, trust_env=False
    )


class TestHttpxHttpClient(HttpClientKit):
    @pytest.fixture
    async def http_client(self, settings: HttpxSettings) -> AsyncIterator[HttpxHttpClient]:
        client = HttpxHttpClient(settings, None)
        yield client
        await client.aclose()


class TestWithAClientThatIsGiven(HttpClientKit):
    @pytest.fixture
    async def http_client(self, settings: HttpxSettings) -> AsyncIterator[HttpxHttpClient]:
        async with httpx.AsyncClient(trust_env=False) as given:
            client = HttpxHttpClient(settings, None, client=given)
            yield client
            await client.aclose()
            assert not given.is_closed, "a client that is given is its owner's to close"

    @pytest.mark.xfail(reason="its connections are its owner's to close", run=False)
    async def test_it_leaves_nothing_behind(self) -> None: ...
