"""Amazon's form of a stream of events, ``application/vnd.amazon.eventstream``, in which Bedrock wraps Anthropic's.

A message is its length, the length of its headers, a checksum of these two, the headers, the payload, and a checksum of
it all. Amazon's own reader is a part of botocore, which cannot be installed beside every other package of Portico.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from portico_wire.errors import Peer, invalid
from portico_wire.events import EventReader

_PRELUDE = struct.Struct("!III")
_CHECKSUM = struct.Struct("!I")
_LARGEST = 24 * 1024 * 1024
"""Bytes of a message at most, as Amazon has it."""
_TEXT = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The bytes of a header's value, by the number of its type; bytes and text say their lengths."""


class BedrockEvents(EventReader):
    """Collect the data of the events. What goes wrong in the middle has the form of Anthropic's errors."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self._peer = peer
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that ``piece`` completes; raises ``ResponseInvalid``."""
        self._bytes += piece
        return list(self._messages())

    def end(self) -> list[bytes]:
        """Return nothing: a message that is cut off cannot be read."""
        return []

    def _messages(self) -> Iterator[bytes]:
        while len(self._bytes) >= _PRELUDE.size:
            length, headers, checksum = _PRELUDE.unpack_from(self._bytes)
            sound = _PRELUDE.size + headers + _CHECKSUM.size <= length <= _LARGEST
            if not sound or zlib.crc32(self._bytes[: _PRELUDE.size - _CHECKSUM.size]) != checksum:
                raise invalid(self._peer, "sent no stream of events", bytes(self._bytes))
            if len(self._bytes) < length:
                return
            message, end = bytes(self._bytes[:length]), length - _CHECKSUM.size
            del self._bytes[:length]
            if zlib.crc32(message[:end]) != _CHECKSUM.unpack_from(message, end)[0]:
                raise invalid(self._peer, "sent an event that was damaged on its way.")
            begin = _PRELUDE.size + headers
            yield self._read_message(_read_headers(message[_PRELUDE.size : begin]), message[begin:end])

    def _read_message(self, headers: dict[str, str], payload: bytes) -> bytes:
        try:
            read: dict[str, Any] = msgspec.json.decode(payload or b"{}", type=dict[str, Any])
            if headers.get(":message-type") == "event":
                return base64.b64decode(read.get("bytes", ""))
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise invalid(self._peer, "sent an event that is not JSON", payload) from error
        kind = headers.get(":exception-type") or headers.get(":error-code")
        words = read.get("message") or headers.get(":error-message") or kind
        return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": words}})


def _read_headers(data: bytes) -> dict[str, str]:
    """Return the headers that are text."""
    read: dict[str, str] = {}
    at = 0
    while at < len(data):
        start = at + 1 + data[at]
        name, kind, at = data[at + 1 : start].decode(), data[start], start + 1
        size = _SIZES.get(kind)
        if size is None:
            size, at = int.from_bytes(data[at : at + 2], "big"), at + 2
        if kind == _TEXT:
            read[name] = data[at : at + size].decode()
        at += size
    return read
