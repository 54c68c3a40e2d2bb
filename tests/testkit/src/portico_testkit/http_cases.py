"""What HTTP clients are given: odd addresses and values, and servers that are slow, boundless or no servers at all."""

from __future__ import annotations

import asyncio
import traceback
import zlib

from portico_testkit.raw_server import Play

__all__ = [
    "SECRET",
    "SLOW",
    "VALUES",
    "bomb",
    "dripping_body",
    "dripping_head",
    "endless",
    "hanging",
    "seen_of",
    "silent",
]

VALUES = ("a b", "a&b=c#d", "100%", "+", "中文 ü", "line\nbreak\r\n", "'\"<>\\", "", "/?:@", "..", "%20")
SECRET = "k3y-0f-the-4ccount"
"""What is passed as a secret, with nothing in it that a URL would encode."""

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client has gone."""
    await reader.read()
    writer.close()


async def hanging(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer and say no more."""
    writer.write(_HEAD + b"Content-Length: 10\r\n\r\nhalf")
    await silent(reader, writer)


async def dripping_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a header for ever, a letter every twentieth of a second."""
    writer.write(_HEAD + b"X-Long: ")
    await _drip(writer, b"x")


async def dripping_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a body for ever, a letter every twentieth of a second."""
    writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    await _drip(writer, b"1\r\nx\r\n")


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a body as fast as it is taken, for ever."""
    writer.write(_HEAD + b"\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65_536)
        await writer.drain()


async def bomb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a gigabyte in a megabyte, as long as it is taken."""
    deflate = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    writer.write(_HEAD + b"Content-Encoding: gzip\r\n\r\n")
    for _ in range(1_000):
        if writer.is_closing():
            return
        writer.write(deflate.compress(bytes(1_000_000)))
        await writer.drain()
        await asyncio.sleep(0)
    writer.write(deflate.flush())
    writer.close()


async def _drip(writer: asyncio.StreamWriter, drop: bytes) -> None:
    while not writer.is_closing():
        writer.write(drop)
        await writer.drain()
        await asyncio.sleep(0.05)


SLOW: tuple[Play, ...] = (silent, hanging, dripping_head, dripping_body)
"""What takes for ever, each in another way."""


def seen_of(error: BaseException) -> str:
    """Return all that can be seen of an error and what caused it."""
    seen = "".join(traceback.format_exception(error))
    cause: BaseException | None = error
    while cause is not None:
        seen += f" {cause!r} {cause.args!r}"
        for value in vars(cause).values():
            held = getattr(value, "__dict__", {})
            seen += f" {value!r} {held!r} {getattr(value, 'url', '')} {getattr(value, 'headers', '')!r}"
        cause = cause.__cause__ or cause.__context__
    return seen
