"""Undo content encodings piece by piece, never beyond a bound. Both pages and answers of services use this."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

from portico.errors import LimitExceeded, ResponseInvalid

ACCEPTED = "gzip, deflate"
"""What is asked for. br and zstd are not: their packages give no way to stop in the middle of a piece."""

_PIECE = 65_536
_MOST_ENCODINGS = 2
# Each member costs its own decompressor, and an empty one has 20 bytes.
_MOST_MEMBERS = 64


async def unpacked(
    pieces: AsyncIterator[bytes],
    encoding: str,
    *,
    packed: int,
    most: int,
    whose: str,
    setting: str,
    slack: int = 0,
    cut: bool = False,
) -> bytes:
    """Return a whole body. It is unpacked while it is read, so that a compression bomb is stopped early.

    ``packed`` and ``slack`` limit the bytes as sent, ``most`` the bytes of each layer after unpacking. Errors begin
    with ``whose`` ("The page X") and name the ``setting`` of ``most``. With ``cut``, a body that reaches a limit is
    cut there.
    Raises ``LimitExceeded``; ``ResponseInvalid`` for an encoding that was not asked for and for damaged data.
    """
    body = bytearray()
    try:
        await _unpack(body, pieces, encoding, packed=packed, most=most, whose=whose, setting=setting, slack=slack)
    except LimitExceeded:
        if not cut:
            raise
    return bytes(body[:most])


async def _unpack(
    body: bytearray,
    pieces: AsyncIterator[bytes],
    encoding: str,
    *,
    packed: int,
    most: int,
    whose: str,
    setting: str,
    slack: int,
) -> None:
    too_large = f"{whose} has more than {most:,} bytes once unpacked ({setting})."
    layers = [_Layer(name, most, whose, too_large) for name in _encodings(encoding, whose)]
    received = 0
    async for piece in pieces:
        received += len(piece)
        if received > packed + slack:
            raise LimitExceeded(f"{whose} has more than {packed:,} bytes (max_bytes).")
        for part in _through(layers, piece):
            body += part
            if len(body) > most:
                raise LimitExceeded(too_large)
    for layer in layers:
        layer.finish()


def _encodings(header: str, whose: str) -> list[str]:
    """Return the encodings in the order in which they are undone: the last applied first (RFC 9110 §8.4)."""
    names = [name for part in header.split(",") if (name := part.strip().lower()) not in {"", "identity"}]
    unknown = [name for name in names if name not in {"gzip", "x-gzip", "deflate"}]
    if unknown:
        raise ResponseInvalid(f"{whose} is packed as {unknown[0][:40]!r}, which was not asked for.")
    if len(names) > _MOST_ENCODINGS:
        raise LimitExceeded(f"{whose} is packed {len(names)} times over; {_MOST_ENCODINGS} are the most.")
    return names[::-1]


def _through(layers: list[_Layer], piece: bytes) -> Iterator[bytes]:
    if not layers:
        yield piece
        return
    for part in layers[0].undo(piece):
        yield from _through(layers[1:], part)


class _Layer:
    """One encoding being undone."""

    def __init__(self, name: str, most: int, whose: str, too_large: str) -> None:
        self._name = name
        self._most = most
        self._whose = whose
        self._too_large = too_large
        self._made = 0
        self._members = 0
        self._any = False
        self._over = False
        self._held = b""
        self._decompressor = self._fresh()

    def undo(self, data: bytes) -> Iterator[bytes]:
        if self._name == "deflate" and not self._any:
            # Two bytes tell with a zlib header from without.
            data, self._held = self._held + data, b""
            if len(data) < 2:
                self._held = data
                return
        while data and not self._over:
            if self._decompressor.eof:
                # Members one after another are one file (RFC 1952 §2.2); what follows deflate's end is not its.
                if self._name == "deflate" or not data.startswith(b"\x1f"):
                    self._over = True
                    return
                self._decompressor = self._fresh()
            made = self._decompressed(data)
            self._made += len(made)
            if self._made > self._most:
                raise LimitExceeded(self._too_large)
            rest = self._decompressor.unused_data if self._decompressor.eof else self._decompressor.unconsumed_tail
            if made:
                yield made
            elif rest == data:
                return
            data = rest

    def finish(self) -> None:
        if self._held or (self._any and not self._decompressor.eof):
            raise ResponseInvalid(f"{self._whose} ends in the middle of its {self._name} data.")

    def _fresh(self) -> zlib._Decompress:
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise LimitExceeded(f"{self._whose} is packed in more than {_MOST_MEMBERS} members.")
        return zlib.decompressobj(zlib.MAX_WBITS if self._name == "deflate" else zlib.MAX_WBITS | 16)

    def _decompressed(self, data: bytes) -> bytes:
        first, self._any = not self._any, True
        try:
            return self._decompressor.decompress(data, _PIECE)
        except zlib.error as error:
            if first and self._name == "deflate":
                # Some servers leave out the zlib header that the standard asks for.
                self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
                try:
                    return self._decompressor.decompress(data, _PIECE)
                except zlib.error:
                    pass
            raise ResponseInvalid(f"{self._whose} is no {self._name} data, as it says ({error}).") from error
