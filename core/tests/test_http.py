"""HTTP as connectors see it: requests and answers as data, and the error that an answer is."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._plugins.http import HttpRequest, HttpResponse
from portico._plugins.registration import Secret
from portico.errors import (
    AuthenticationFailed,
    ContextOverflow,
    PorticoError,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_testkit.strategies import json_values


def said(answer: Any, status: int = 400, **headers: str) -> HttpResponse:
    return HttpResponse(status, json.dumps(answer).encode(), headers)


def test_a_request_is_get_and_with_json_post_unless_it_says_otherwise() -> None:
    assert HttpRequest("https://a.example").method == "GET"
    assert HttpRequest("https://a.example", json={}).method == "POST"
    assert HttpRequest("https://a.example", json=[], method="PUT").method == "PUT"


def test_a_request_does_not_show_its_secrets() -> None:
    request = HttpRequest(
        "https://a.example", {"key": Secret("s3cret")}, {"X-Key": Secret("s3cret")}, {"k": Secret("s3cret")}
    )
    assert "s3cret" not in f"{request} {request!r}"


@pytest.mark.fuzz
@given(st.binary(max_size=30) | json_values().map(lambda value: json.dumps(value).encode()))
def test_a_body_is_json_or_a_value_error(body: bytes) -> None:
    try:
        HttpResponse(200, body).json()
    except ValueError:
        return


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000])
def test_json_beyond_what_python_reads_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        HttpResponse(200, body).json()


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (302, ResponseInvalid, "not followed"),
        (400, ServiceError, "Check what it was asked"),
        (401, AuthenticationFailed, "Check the key"),
        (402, QuotaExceeded, "quota"),
        (403, AuthenticationFailed, "Check the key"),
        (404, ServiceError, "Check its address"),
        (408, ServiceTimeout, "Try again later"),
        (422, ServiceError, "Check what it was asked"),
        (429, RateLimited, "Try again later"),
        (500, ServiceUnavailable, "Try again later"),
        (503, ServiceUnavailable, "Try again later"),
        (504, ServiceTimeout, "Try again later"),
        (599, ServiceUnavailable, "Try again later"),
    ],
)
def test_the_status_decides_and_the_message_says_what_to_do(status: int, kind: type[ServiceError], advice: str) -> None:
    error = HttpResponse(status).error("Text search 'acme'")
    assert type(error) is kind
    assert str(error).startswith("Text search 'acme' ")
    assert f"({status})" in str(error)
    assert advice in str(error)


def test_a_service_that_means_something_else_by_its_status_is_believed() -> None:
    error = said({"error": "Pay."}, 403).error("Acme", QuotaExceeded)
    assert type(error) is QuotaExceeded
    assert str(error).endswith("It says: Pay.")
    assert type(HttpResponse(400).error("Acme", ContextOverflow)) is ContextOverflow


def test_advice_of_the_caller_takes_the_place_of_the_usual() -> None:
    error = HttpResponse(403).error("Acme", advice="Switch JSON on.")
    assert str(error) == "Acme refused access (403). Switch JSON on."


@pytest.mark.parametrize(
    "answer",
    [
        {"message": "Words."},
        {"error": "Words."},
        {"error": {"message": "Words.", "code": 7}},
        {"error": {"code": 403, "message": "Words.", "errors": [{"reason": "x"}]}},
        {"errors": [{"message": "Words."}, {"message": "More."}]},
        {"detail": {"error": "Words."}},
        {"detail": [{"msg": "Words."}]},
        {"type": "ErrorResponse", "error": {"detail": "Words.", "meta": {}}},
        {"error": {"code": "maxlag", "info": "Words."}},
        {"title": "Words."},
        "Words.",
        ["Words."],
    ],
)
def test_what_a_service_says_is_found_where_services_say_it(answer: Any) -> None:
    assert str(said(answer).error("Acme")).endswith("It says: Words.")


def test_the_place_of_a_mistake_is_told_too() -> None:
    answer = {"error": {"detail": "Invalid.", "meta": {"errors": [{"loc": ["query", "country"], "msg": "None such."}]}}}
    assert str(said(answer, 422).error("Acme")).endswith("It says: Invalid. (query.country: None such.)")


def test_plain_text_is_what_a_service_says_and_a_page_is_not() -> None:
    plain = HttpResponse(400, b"Words.\n", {"content-type": "text/plain; charset=utf-8"})
    assert str(plain.error("Acme")).endswith("It says: Words.")
    assert "It says" not in str(HttpResponse(400, b"<h1>No</h1>", {"content-type": "text/html"}).error("Acme"))


@pytest.mark.fuzz
@given(st.integers(100, 599), st.binary(max_size=60) | json_values().map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_an_error_of_one_short_line(status: int, body: bytes) -> None:
    error = HttpResponse(status, body, {"content-type": "text/plain"}).error("Acme")
    assert isinstance(error, PorticoError)
    assert str(error).isprintable(), f"{str(error)!r} cannot be printed on a line"
    assert len(str(error)) < 600


@pytest.mark.parametrize("padding", [0, 250, 290, 299, 400])
def test_a_key_that_the_service_repeats_is_not_shown_not_even_in_part(padding: int) -> None:
    key = Secret("abcdefghijklmnopqrstuvwxyz/0123+456")
    for written in (key.reveal(), "abcdefghijklmnopqrstuvwxyz/0123%2B456", "abcdefghijklmnopqrstuvwxyz%2F0123%2B456"):
        text = f"{'x' * padding}{written} is wrong, {written}"
        for response in (
            said({"error": text}),
            HttpResponse(400, text.encode(), {"content-type": "text/plain"}),
            HttpResponse(302, headers={"location": f"https://a.example/{text}"}),
        ):
            assert "abcde" not in str(response.error("Acme", hidden=[key]))


def test_of_a_bearer_header_the_key_alone_is_hidden_too() -> None:
    error = said({"error": "The bearer tvly-123456789 is unknown"}).error(
        "Acme", hidden=[Secret("Bearer tvly-123456789")]
    )
    assert "tvly" not in str(error)
    assert "The bearer" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "٧"}, None),
        ({"retry-after": "1.2.3"}, None),
        ({}, None),
        ({"x-ratelimit-reset": "12"}, 12),
        ({"ratelimit-reset": "9", "x-ratelimit-reset": "12"}, 9),
        ({"x-ratelimit-reset": "12", "x-ratelimit-remaining": "3"}, None),
        ({"x-ratelimit-reset": "1, 86400", "x-ratelimit-remaining": "0, 1985"}, 1),
        ({"x-ratelimit-reset": "1, 86400", "x-ratelimit-remaining": "1, 0"}, 86400),
        ({"x-ratelimit-reset": "1, 86400", "x-ratelimit-remaining": "0, 0"}, 86400),
        ({"x-ratelimit-reset": "1, 86400"}, 86400),
        ({"x-ratelimit-reset": "tomorrow"}, None),
        ({"retry-after": "7", "x-ratelimit-reset": "12"}, 7),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert HttpResponse.retry_after(headers) == seconds


def test_a_date_and_a_time_of_day_are_counted_from_now() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    for headers in (
        {"retry-after": format_datetime(later, usegmt=True)},
        {"x-ratelimit-reset": str(int(later.timestamp()))},
    ):
        wait = HttpResponse.retry_after(headers)
        assert wait is not None
        assert 3000 < wait <= 3600


@pytest.mark.parametrize(
    "written",
    ["9" * 400, "1" + "0" * 30, str(int(time.time()) * 1000)],
    ids=["400 digits", "31 digits", "milliseconds"],
)
def test_a_wait_beyond_all_bounds_is_still_a_number(written: str) -> None:
    """Some services count in thousandths of a second, and some in jest."""
    for name in ("retry-after", "x-ratelimit-reset"):
        error = HttpResponse(429, b"", {name: written}).error("Acme")
        assert isinstance(error, RateLimited)
        assert error.retry_after is not None
        assert 0 < error.retry_after < 1e11
