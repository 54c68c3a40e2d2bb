"""The kit of the port finds what is wrong with a client, and names it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import ClassVar

import httpx
import pytest

from portico.errors import ConfigurationError, PorticoError, ServiceUnavailable
from portico.http import HttpRequest, HttpResponse
from portico_httpx.client import HttpxHttpClient
from portico_httpx.config import HttpxSettings
from portico_testkit import http_client as kit_module
from portico_testkit import tasks
from portico_testkit.http_cases import BROKEN, NO_ADDRESSES, dripping_body
from portico_testkit.http_client import HttpClientKit
from portico_testkit.kit_failures import names_of_tests

GOOD = {"read_timeout": 20, "total_timeout": 40, "max_bytes": 100_000, "max_wait": 0.05, "trust_env": False}
HASTY = {"read_timeout": 0.4, "total_timeout": 0.8}
"""For tests whose servers fall silent: elsewhere a busy host would be taken for such a server."""


class Kit(HttpClientKit):
    seconds = 0.8


class Variant(HttpxHttpClient):
    """Does right what a variant does not do wrong."""

    settings: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        super().__init__(HttpxSettings(**{**GOOD, **self.settings}))


class FollowsRedirects(Variant):
    async def send(self, request):
        response = await super().send(request)
        if 300 <= response.status < 400 and "location" in response.headers:
            return await super().send(HttpRequest(request.url.rpartition("/")[0] + response.headers["location"]))
        return response


class RaisesForStatus(Variant):
    async def send(self, request):
        response = await super().send(request)
        if response.status >= 500:
            raise ServiceUnavailable("It failed.")
        return response


class CapitalHeaders(Variant):
    async def send(self, request):
        response = await super().send(request)
        return HttpResponse(response.status, response.body, {n.title(): v for n, v in response.headers.items()})


class DropsEmptyParameters(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, params={n: v for n, v in request.params.items() if v}))


class SendsNone(Variant):
    async def send(self, request):
        params = {name: "None" if value is None else value for name, value in request.params.items()}
        return await super().send(dataclasses.replace(request, params=params))


class NeverAgain(Variant):
    settings: ClassVar[dict[str, object]] = {"retries": 0}


class TooOften(Variant):
    settings: ClassVar[dict[str, object]] = {"retries": 5}


class RepeatsEveryFailure(Variant):
    async def send(self, request):
        response = await super().send(request)
        return await super().send(request) if response.status == 500 else response


class NoBoundInTime(Variant):
    settings: ClassVar[dict[str, object]] = {"total_timeout": 1000}


class NoBoundInBytes(Variant):
    settings: ClassVar[dict[str, object]] = {"max_bytes": 10**9}


class Logs(Variant):
    settings: ClassVar[dict[str, object]] = HASTY

    async def send(self, request):
        for value in request.headers.values():
            logging.getLogger("acme").debug("Sending %s", getattr(value, "reveal", str)())
        return await super().send(request)


class TellsTheKey(Variant):
    settings: ClassVar[dict[str, object]] = HASTY

    async def send(self, request):
        try:
            return await super().send(request)
        except ServiceUnavailable as error:
            keys = [value.reveal() for value in request.params.values() if hasattr(value, "reveal")]
            raise ServiceUnavailable(f"{error} {keys}") from error


class VendorsErrors(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except ServiceUnavailable as error:
            raise httpx.ConnectError("All connection attempts failed") from error


class KeepsCookies(Variant):
    cookie: str | None = None

    async def send(self, request):
        headers = {**request.headers, "cookie": self.cookie}
        response = await super().send(dataclasses.replace(request, headers=headers))
        self.cookie = response.headers.get("set-cookie")
        return response


class MixesAnswers(Variant):
    last: HttpResponse | None = None

    async def send(self, request):
        answer = await super().send(request)
        last, self.last = self.last, answer
        return last if last is not None and last.status != answer.status else answer


class GoesOnWhenCancelled(Variant):
    settings: ClassVar[dict[str, object]] = {"read_timeout": 30, "total_timeout": 30}

    async def send(self, request):
        sending = asyncio.ensure_future(super().send(request))
        sending.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(sending)


class OfOneLoop(Variant):
    loop: asyncio.AbstractEventLoop | None = None

    async def send(self, request):
        self.loop = self.loop or asyncio.get_running_loop()
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("bound to a different event loop")
        return await super().send(request)


class StaysOpen(Variant):
    settings: ClassVar[dict[str, object]] = HASTY

    async def aclose(self):
        pass


class Nameless(Variant):
    def __init__(self) -> None:
        super().__init__()
        self.name = " "


class DropsHeaders(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, headers={}))


class AlwaysPosts(Variant):
    async def send(self, request):
        return await super().send(dataclasses.replace(request, method="POST"))


class CutsBodies(Variant):
    async def send(self, request):
        response = await super().send(request)
        return dataclasses.replace(response, body=response.body[:100])


class DropsHeadersOfAnswers(Variant):
    async def send(self, request):
        return dataclasses.replace(await super().send(request), headers={})


class TakesAddressesForValues(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except ConfigurationError as error:
            raise ValueError("That is no address.") from error


class ShowsTheProtocol(Variant):
    async def send(self, request):
        try:
            return await super().send(request)
        except PorticoError as error:
            raise httpx.RemoteProtocolError("illegal status line") from error


CAUGHT = [
    (Nameless, "it_has_a_name", (), "name is empty"),
    (DropsHeaders, "headers_reach_the_service_as_they_are", (), "came as []"),
    (DropsHeaders, "no_value_becomes_a_header_of_its_own", (), "DID NOT RAISE"),
    (AlwaysPosts, "a_body_is_json", (), "PUT"),
    (CutsBodies, "a_body_comes_decoded", (), "a body sent whole came as"),
    (DropsHeadersOfAnswers, "long_waits_are_the_callers_affair", ("3600",), "retry-after"),
    (
        TakesAddressesForValues,
        "an_address_that_is_none_is_a_mistake_in_the_configuration",
        NO_ADDRESSES[:1],
        "no address",
    ),
    (ShowsTheProtocol, "what_is_not_http_is_an_error_of_ours", BROKEN[:1], "illegal status line"),
    (FollowsRedirects, "every_answer_comes_back_whatever_its_status", (302,), "a redirect was followed"),
    (RaisesForStatus, "every_answer_comes_back_whatever_its_status", (500,), "It failed"),
    (CapitalHeaders, "every_answer_comes_back_whatever_its_status", (200,), "not in lower case"),
    (DropsEmptyParameters, "parameters_reach_the_service_as_they_are", (), "the service was given"),
    (SendsNone, "parameters_reach_the_service_as_they_are", (), "('none', 'None')"),
    (NeverAgain, "who_asks_for_patience_is_asked_again", (429,), "was not asked again"),
    (NeverAgain, "a_connection_that_fails_is_tried_again", (), ""),
    (TooOften, "who_asks_for_patience_is_asked_again", (503,), "asked 6 times, not 3"),
    (RepeatsEveryFailure, "other_failures_are_not_repeated", (), "after 500 the request was sent 2 times"),
    (NoBoundInTime, "slowness_is_bounded", (dripping_body,), "there is no end"),
    (NoBoundInBytes, "size_is_bounded", (), "DID NOT RAISE"),
    (TellsTheKey, "secrets_are_neither_in_errors_nor_in_logs", ("caplog",), "an error shows a secret"),
    (Logs, "secrets_are_neither_in_errors_nor_in_logs", ("caplog",), "a secret was logged"),
    (VendorsErrors, "nobody_there_is_unavailable", (), "All connection attempts failed"),
    (KeepsCookies, "nothing_of_one_answer_goes_with_the_next_request", (), "a cookie was sent back"),
    (MixesAnswers, "concurrent_requests_do_not_mix", (), ""),
    (GoesOnWhenCancelled, "a_cancelled_request_is_let_go", (), "there is no end"),
    (OfOneLoop, "event_loops_use_it_side_by_side_and_one_after_another", (), "different event loop"),
    (StaysOpen, "it_leaves_nothing_behind", (), ""),
]


ENDLESS = (NoBoundInTime, GoesOnWhenCancelled, StaysOpen)
"""Those that the kit finds by the end of its patience."""


@pytest.mark.parametrize(("variant", "test", "arguments", "words"), CAUGHT)
async def test_a_fault_is_caught_by_the_test_that_names_it(
    variant: type[Variant],
    test: str,
    arguments: tuple[object, ...],
    words: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variant in ENDLESS:
        monkeypatch.setattr(kit_module, "_PATIENCE", 1.0)
        monkeypatch.setattr(tasks, "_PATIENCE", 1.0)
    client = variant()
    given = [caplog if argument == "caplog" else argument for argument in arguments]
    try:
        with pytest.raises((Exception, pytest.fail.Exception)) as caught:
            await getattr(Kit(), f"test_{test}")(client, *given)
    finally:
        await HttpxHttpClient.aclose(client)
    assert words in str(caught.value)


def test_each_test_of_the_kit_catches_something() -> None:
    assert set(names_of_tests(Kit)) == {f"test_{test}" for _, test, *_ in CAUGHT}
