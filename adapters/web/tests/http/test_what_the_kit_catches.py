"""The kit of the port finds what is wrong with a client, and names it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import ClassVar

import pytest

from portico.errors import ServiceUnavailable
from portico.plugins import HttpRequest, HttpResponse
from portico_testkit.http_client import HttpClientKit
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

GOOD = {"read_timeout": 20, "total_timeout": 40, "max_bytes": 100_000, "max_wait": 0.05, "trust_env": False}
HASTY = {"read_timeout": 0.4, "total_timeout": 0.8}


class Kit(HttpClientKit):
    seconds = 0.8


class Variant(HttpxHttpClient):
    settings: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        super().__init__(HttpxSettings(**{**GOOD, **self.settings}))


def fixtures(kind: type[Variant]) -> dict[str, Callable[..., object]]:
    async def http_client() -> AsyncIterator[Variant]:
        client = kind()
        yield client
        await HttpxHttpClient.aclose(client)

    return {"http_client": http_client}


FAULTS = KnownFaults(Kit, fixtures)


@FAULTS.caught_by("every_answer_comes_back_whatever_its_status", "a redirect was followed")
class FollowsRedirects(Variant):
    async def send(self, request):
        response = await super().send(request)
        if 300 <= response.status < 400 and "location" in response.headers:
            return await super().send(HttpRequest(request.url.rpartition("/")[0] + response.headers["location"]))
        return response


@FAULTS.caught_by("secrets_are_neither_in_errors_nor_in_logs", "an error shows a secret")
class TellsTheKey(Variant):
    settings: ClassVar[dict[str, object]] = HASTY  # the server of this test falls silent

    async def send(self, request):
        try:
            return await super().send(request)
        except ServiceUnavailable as error:
            keys = [value.reveal() for value in request.params.values() if hasattr(value, "reveal")]
            raise ServiceUnavailable(f"{error} {keys}") from error


@FAULTS.caught_by("concurrent_requests_do_not_mix")
class MixesAnswers(Variant):
    last: HttpResponse | None = None

    async def send(self, request):
        answer = await super().send(request)
        last, self.last = self.last, answer
        return last if last is not None and last.status != answer.status else answer


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    await FAULTS.check(fault, {"caplog": lambda: caplog}, patience=Kit.seconds + 1)
