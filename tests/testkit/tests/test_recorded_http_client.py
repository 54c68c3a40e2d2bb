"""The client of recorded answers gives what was recorded, and tells what was not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portico.errors import ServiceTimeout
from portico.plugins import HttpRequest, HttpResponse, Secret
from portico_testkit.fakes.http_client import RecordedHttpClient

FIND = "https://api.example/find"


def sent(client: RecordedHttpClient, url: str = FIND, **params: object) -> HttpResponse:
    return asyncio.run(client.send(HttpRequest(url, params)))  # type: ignore[arg-type]


def test_an_answer_is_a_value_bytes_a_file_a_response_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_bytes(b'{"from": "file"}')
    client = RecordedHttpClient(
        {
            f"{FIND}?q=value": {"a": [1]},
            f"{FIND}?q=list": [1, 2],
            f"{FIND}?q=bytes": b"\xff",
            f"{FIND}?q=file": tmp_path / "answer.json",
            f"{FIND}?q=response": HttpResponse(429, b"no", {"Retry-After": "3"}),
            f"{FIND}?q=error": ServiceTimeout("late"),
        }
    )
    assert sent(client, q="value").json() == {"a": [1]}
    assert sent(client, q="list").json() == [1, 2]
    assert sent(client, q="bytes").body == b"\xff"
    assert sent(client, q="file") == HttpResponse(200, b'{"from": "file"}', {"content-type": "application/json"})
    assert sent(client, q="response") == HttpResponse(429, b"no", {"retry-after": "3"})
    with pytest.raises(ServiceTimeout, match="late"):
        sent(client, q="error")


def test_the_address_with_the_most_parameters_of_a_request_answers_it() -> None:
    client = RecordedHttpClient({FIND: [0], f"{FIND}?a=1": [1], f"{FIND}?a=1&b=2": [2], f"{FIND}?b=2&c=x%20y": [3]})
    assert sent(client).json() == [0]
    assert sent(client, a=1, z="more").json() == [1]
    assert sent(client, b=2, a=1).json() == [2]
    assert sent(client, b=2, c="x y").json() == [3]
    assert sent(client, f"{FIND}?a=1", b=2).json() == [2]


def test_what_is_not_recorded_is_told_without_showing_a_secret() -> None:
    client = RecordedHttpClient({f"{FIND}?q=ports": []})
    with pytest.raises(LookupError) as raised:
        sent(client, q="doors", key=Secret("k3y"))
    assert "q=doors" in str(raised.value)
    assert f"{FIND}?q=ports" in str(raised.value)
    assert "k3y" not in str(raised.value)
    assert len(client.requests) == 1
