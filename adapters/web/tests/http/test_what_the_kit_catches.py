"""The kit of the port finds what is wrong with a client, and names it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import ClassVar

import httpx
import pytest

from portico.errors import ConfigurationError, PorticoError, ServiceUnavailable
from portico.http import HttpRequest, HttpResponse
from portico_testkit.http_client import HttpClientKit
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

GOOD = {"read_timeout": 20, "total_timeout": 40, "max_bytes": 100_000, "max_wait": 0.05, "trust_env": False}
HASTY = {"read_timeout": 0.4, "total_timeout": 0.8}
SILENT = ("slowness", "secrets", "leaves_nothing")
"""The tests whose servers fall silent: elsewhere who is hasty would take a busy host for such a server."""


class Kit(HttpClientKit):
    seconds = 0.8


class Variant(HttpxHttpClient):
    """Does right what a variant does not do wrong."""

    settings: ClassVar[dict[str, object]] = {}

    def __init__(self, settings: Mapping[str, object] = GOOD) -> None:
        super().__init__(HttpxSettings(**{**settings, **self.settings}))


def fixtures(kind: type[Variant]) -> dict[str, Callable[..., object]]:
    async def http_client(request: pytest.FixtureRequest) -> AsyncIterator[Variant]:
        hasty = any(word in request.node.name for word in SILENT)
        client = kind({**GOOD, **HASTY} if hasty else GOOD)
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


@FAULTS.caught_by("every_answer_comes_back_whatever_its_status", "It failed")
class RaisesForStatus(Variant):
    async def send(self, request):
        response = await super().send(request)
        if response.status >= 500:
            raise ServiceUnavailable("It failed.")
        return response


@FAULTS.caught_by("every_answer_comes_back_whatever_its_status", "not in lower case")
class CapitalHeaders(Variant):
    async def send(self, request):
        response = await super().send(request)
        return HttpResponse(response.status, response.body, {n.title(): v for n, v in response.headers.items()})


@FAULTS.caught_by("parameters_reach_the_service_as_they_are", "the service was given")
class DropsEmptyParameters(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, params={n: v for n, v in request.params.items() if v}))


@FAULTS.caught_by("parameters_reach_the_service_as_they_are", r"\('none', 'None'\)")
class SendsNone(Variant):
    async def send(self, request):
        params = {name: "None" if value is None else value for name, value in request.params.items()}
        return await super().send(dataclasses.replace(request, params=params))


@FAULTS.caught_by("who_asks_for_patience_is_asked_again", "was not asked again")
@FAULTS.caught_by("a_connection_that_fails_is_tried_again")
class NeverAgain(Variant):
    settings: ClassVar[dict[str, object]] = {"retries": 0}


@FAULTS.caught_by("who_asks_for_patience_is_asked_again", "asked 6 times, not 3")
class TooOften(Variant):
    settings: ClassVar[dict[str, object]] = {"retries": 5}


@FAULTS.caught_by("other_failures_are_not_repeated", "after 500 the request was sent 2 times")
class RepeatsEveryFailure(Variant):
    async def send(self, request):
        response = await super().send(request)
        return await super().send(request) if response.status == 500 else response


@FAULTS.caught_by("slowness_is_bounded", "there is no end")
class NoBoundInTime(Variant):
    settings: ClassVar[dict[str, object]] = {"total_timeout": 1000}


@FAULTS.caught_by("size_is_bounded", "DID NOT RAISE")
class NoBoundInBytes(Variant):
    settings: ClassVar[dict[str, object]] = {"max_bytes": 10**9}


@FAULTS.caught_by("secrets_are_neither_in_errors_nor_in_logs", "a secret was logged")
class Logs(Variant):
    async def send(self, request):
        for value in request.headers.values():
            logging.getLogger("acme").debug("Sending %s", getattr(value, "reveal", str)())
        return await super().send(request)


@FAULTS.caught_by("secrets_are_neither_in_errors_nor_in_logs", "an error shows a secret")
class TellsTheKey(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except ServiceUnavailable as error:
            keys = [value.reveal() for value in request.params.values() if hasattr(value, "reveal")]
            raise ServiceUnavailable(f"{error} {keys}") from error


@FAULTS.caught_by("nobody_there_is_unavailable", "All connection attempts failed")
class VendorsErrors(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except ServiceUnavailable as error:
            raise httpx.ConnectError("All connection attempts failed") from error


@FAULTS.caught_by("nothing_of_one_answer_goes_with_the_next_request", "a cookie was sent back")
class KeepsCookies(Variant):
    cookie: str | None = None

    async def send(self, request):
        headers = {**request.headers, "cookie": self.cookie}
        response = await super().send(dataclasses.replace(request, headers=headers))
        self.cookie = response.headers.get("set-cookie")
        return response


@FAULTS.caught_by("concurrent_requests_do_not_mix")
class MixesAnswers(Variant):
    last: HttpResponse | None = None

    async def send(self, request):
        answer = await super().send(request)
        last, self.last = self.last, answer
        return last if last is not None and last.status != answer.status else answer


@FAULTS.caught_by("a_cancelled_request_is_let_go", "there is no end")
class GoesOnWhenCancelled(Variant):
    settings: ClassVar[dict[str, object]] = {"read_timeout": 30, "total_timeout": 30}

    async def send(self, request):
        sending = asyncio.ensure_future(super().send(request))
        sending.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(sending)


@FAULTS.caught_by("event_loops_use_it_side_by_side_and_one_after_another", "different event loop")
class OfOneLoop(Variant):
    loop: asyncio.AbstractEventLoop | None = None

    async def send(self, request):
        self.loop = self.loop or asyncio.get_running_loop()
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("bound to a different event loop")
        return await super().send(request)


@FAULTS.caught_by("it_leaves_nothing_behind")
class StaysOpen(Variant):
    async def aclose(self):
        pass


@FAULTS.caught_by("it_has_a_name", "name is empty")
class Nameless(Variant):
    def __init__(self, settings: Mapping[str, object] = GOOD) -> None:
        super().__init__(settings)
        self.name = " "


@FAULTS.caught_by("headers_reach_the_service_as_they_are", r"came as \[\]")
@FAULTS.caught_by("no_value_becomes_a_header_of_its_own", "DID NOT RAISE")
class DropsHeaders(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, headers={}))


@FAULTS.caught_by("a_body_is_json", "PUT")
class AlwaysPosts(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, method="POST"))


@FAULTS.caught_by("a_body_comes_decoded", "a body sent whole came as")
class CutsBodies(Variant):
    async def send(self, request):
        response = await super().send(request)
        return dataclasses.replace(response, body=response.body[:100])


@FAULTS.caught_by("long_waits_are_the_callers_affair", "retry-after")
class DropsHeadersOfAnswers(Variant):
    async def send(self, request):
        return dataclasses.replace(await super().send(request), headers={})


@FAULTS.caught_by("an_address_that_is_none_is_a_mistake_in_the_configuration", "no address")
class TakesAddressesForValues(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except ConfigurationError as error:
            raise ValueError("That is no address.") from error


@FAULTS.caught_by("what_is_not_http_is_an_error_of_ours", "illegal status line")
class ShowsTheProtocol(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except PorticoError as error:
            raise httpx.RemoteProtocolError("illegal status line") from error


class TestTheHttpClientKit(KitOfAKit):
    faults = FAULTS
    correct = (Variant,)
    patience = Kit.seconds + 1
