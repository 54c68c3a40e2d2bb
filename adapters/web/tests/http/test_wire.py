"""What goes on the wire is what was asked for, whatever is in it."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, strategies as st

from portico.errors import ConfigurationError, LimitExceeded, PorticoError
from portico.plugins import HttpRequest, HttpResponse, Secret
from portico_testkit.raw_server import RawServer
from portico_web._unpacking import unpack
from portico_web.http.client import HttpxHttpClient, build_url, encode_body, encode_headers, show_origin
from portico_web.http.config import HttpxSettings

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.fuzz
@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_parameters_come_back_from_the_url(params: dict[str, str]) -> None:
    for base in ("http://h.example/find", "https://h.example:8443/?fixed=1"):
        query = build_url(HttpRequest(base, params)).query.decode()
        found = parse_qsl(query, keep_blank_values=True)
        assert found == [*([("fixed", "1")] if "?" in base else []), *params.items()]


@pytest.mark.fuzz
@given(st.one_of(st.text(max_size=60), st.builds("http://{}{}".format, st.text(max_size=20), st.text(max_size=20))))
def test_any_text_is_an_address_or_a_mistake_in_the_configuration(text: str) -> None:
    try:
        url = build_url(HttpRequest(text, {"q": "a", "key": Secret("k3y")}))
    except ConfigurationError as error:
        assert "k3y" not in str(error)
        return
    assert url.host
    assert url.scheme in ("http", "https")
    assert show_origin(url).isascii()
    assert url.query.endswith(b"q=a&key=k3y"), url.query


@pytest.mark.fuzz
@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_url_shows_no_secret_and_no_password(key: str, user: str, word: str) -> None:
    secret = f"<{key}>"
    url = build_url(HttpRequest("http://me:p4ssw0rd@h.example/find", {"q": word, "key": Secret(secret)}))
    for shown in (str(url), repr(url), f"{url}"):
        assert shown.rstrip("')").endswith("&key=********"), shown
        assert "p4ssw0rd" not in shown
    assert "p4ssw0rd" not in show_origin(url)
    assert url.userinfo == b"me:p4ssw0rd", "the password does not reach the wire"


@pytest.mark.fuzz
@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=30), max_size=4))
def test_any_header_goes_whole_or_is_refused(headers: dict[str, str]) -> None:
    try:
        pairs = list(encode_headers(headers))
    except ConfigurationError:
        return
    for (name, value), (given_name, given_value) in zip(pairs, headers.items(), strict=True):
        assert name.decode() == given_name
        assert value.decode() == given_value.encode("utf-8", "replace").decode().strip()
        assert not set(value) & set(b"\r\n\0")


def test_a_value_of_another_type_is_the_programmers_mistake() -> None:
    with pytest.raises(TypeError, match="parameter 'ids' is list"):
        HttpRequest("http://h.example", {"ids": [1, 2]})
    with pytest.raises(TypeError, match="header 'X' is bytes"):
        HttpRequest("http://h.example", headers={"X": b"1"})
    with pytest.raises(TypeError, match="object is not JSON"):
        encode_body(HttpRequest("http://h.example", json={"a": object()}))
    with pytest.raises(ValueError, match="Out of range"):
        encode_body(HttpRequest("http://h.example", json={"a": float("nan")}))


def test_secrets_in_a_body_are_revealed_there() -> None:
    request = HttpRequest("http://h.example", json={"api_key": Secret("k3y"), "q": "ü"})
    assert encode_body(request) == b'{"api_key":"k3y","q":"\\u00fc"}'
    assert "k3y" not in repr(request)


def reading(body: bytes, encoding: str, most: int, cuts: Sequence[int] = ()) -> bytes:
    async def parts() -> AsyncIterator[bytes]:
        places = sorted(cut % (len(body) + 1) for cut in cuts)
        for start, stop in zip([0, *places], [*places, len(body)], strict=True):
            yield body[start:stop]

    return asyncio.run(unpack(parts(), encoding, most, "The answer of http://h.example"))


COMPRESSED = {
    "": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "GZIP": gzip.compress,
}


@given(st.binary(max_size=300), st.sampled_from(sorted(COMPRESSED)), st.lists(st.integers(0), max_size=6), st.data())
def test_a_body_is_whole_or_beyond_the_limit(body: bytes, encoding: str, cuts: list[int], data: st.DataObject) -> None:
    compressed = COMPRESSED[encoding](body)
    most = data.draw(st.integers(max(1, len(body) - 3), len(body) + 3))
    if len(body) > most:
        with pytest.raises(LimitExceeded, match=f"more than {most} bytes"):
            reading(compressed, encoding, most, cuts)
    else:
        assert reading(compressed, encoding, most, cuts) == body


@pytest.mark.fuzz
@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br", "gzip, gzip", "identity, gzip", ",", "\xff"]))
def test_any_bytes_are_a_body_or_an_error_of_ours(body: bytes, encoding: str) -> None:
    try:
        assert len(reading(body, encoding, 100)) <= 100
    except PorticoError as error:
        assert "http://h.example" in str(error)


@pytest.mark.fuzz
@given(st.integers(0), st.integers(0, 255), st.sampled_from(["gzip", "deflate"]))
def test_a_damaged_compression_is_an_error_of_ours(place: int, byte: int, encoding: str) -> None:
    damaged = bytearray(COMPRESSED[encoding](b"a body of some length, a body of some length" * 3))
    damaged[place % len(damaged)] = byte
    try:
        reading(bytes(damaged), encoding, 1_000)
    except PorticoError as error:
        assert "http://h.example" in str(error)


@pytest.mark.parametrize(
    ("encoding", "start", "piece"),
    [
        ("gzip", gzip.compress(b"door"), b"." * 65_536),
        ("deflate", zlib.compress(b"door"), b"." * 65_536),
        ("gzip", b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03", b"name" * 16_384),
    ],
    ids=["behind gzip", "behind deflate", "a name in the head of gzip"],
)
def test_what_unpacks_to_nothing_without_end_is_cut_and_not_kept(encoding: str, start: bytes, piece: bytes) -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        yield start
        while sent < 100_000_000:
            sent += len(piece)
            yield piece

    with pytest.raises(LimitExceeded, match="1,000,000 bytes"):
        asyncio.run(unpack(parts(), encoding, 1_000_000, "The answer of http://h.example"))
    assert sent < 2_000_000


def test_a_bomb_takes_no_more_memory_than_is_allowed() -> None:
    bomb = gzip.compress(bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match="1,000,000"):
            reading(bomb, "gzip", 1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000, f"{peak:,} bytes were held for an answer of at most 1,000,000"


WHOLE = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\nRetry-After: 0\r\n\r\n{"items": []}'
)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLocation: /b\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    answer = bytearray(draw(st.sampled_from([WHOLE, CHUNKED, CHUNKED.replace(b"200", b"302")])))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(answer)))
        answer[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(answer)


@pytest.fixture(scope="module")
def client() -> HttpxHttpClient:
    return HttpxHttpClient(
        HttpxSettings(read_timeout=0.5, total_timeout=1, retries=0, max_bytes=1_000, trust_env=False)
    )


@pytest.mark.fuzz
@given(st.one_of(damaged(), st.binary(max_size=100)))
def test_any_bytes_are_an_answer_or_an_error_of_ours(client: HttpxHttpClient, answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async def ask() -> HttpResponse:
        async with RawServer(say) as server:
            return await client.send(HttpRequest(server.url))

    try:
        response = asyncio.run(ask())
    except PorticoError as error:
        assert "127.0.0.1" in str(error), repr(error)
        return
    assert 100 <= response.status <= 999
    assert len(response.body) <= 1_000
    assert all(name == name.lower() for name in response.headers)
