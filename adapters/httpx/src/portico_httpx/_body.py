"""An answer's body, read no further than allowed, whatever its compression says."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from portico.errors import LimitExceeded, ResponseInvalid

__all__ = ["ACCEPTED", "read_body"]

ACCEPTED = "gzip, deflate"
"""What is asked for: what the standard library decompresses piece by piece."""

_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def read_body(parts: AsyncIterator[bytes], encoding: str, most: int, service: str) -> bytes:
    """Return the whole body, decompressed; at most ``most`` bytes are ever held.

    httpx decompresses what it has read as a whole: 64 KB of gzip may be 66 MB. Raises ``LimitExceeded``, and
    ``ResponseInvalid`` for a compression that was not asked for or is damaged.
    """
    kinds = [kind for part in encoding.split(",") if (kind := part.strip().lower()) not in ("", "identity")]
    if len(kinds) > 1 or not set(kinds) <= set(_WINDOWS):
        raise ResponseInvalid(f"{service} answered compressed as {encoding[:60]!r}, which was not asked for.")
    reader = _Plain() if not kinds else _Inflating(_WINDOWS[kinds[0]])
    body = bytearray()
    try:
        async for part in parts:
            body += reader.read(part, most + 1 - len(body))
            if len(body) > most:
                raise LimitExceeded(f"The answer of {service} has more than {most:,} bytes, the most allowed.")
        whole = reader.whole
    except zlib.error as error:
        raise ResponseInvalid(f"{service} answered with {kinds[0]} that is damaged: {error}.") from error
    if not whole:
        raise ResponseInvalid(f"{service} answered with {kinds[0]} that is cut short.")
    return bytes(body)


class _Plain:
    whole = True

    def read(self, part: bytes, most: int) -> bytes:
        return part[:most]


class _Inflating:
    def __init__(self, window: int) -> None:
        self._inflate = zlib.decompressobj(window)
        self._raw_tried = window < 0 or window > zlib.MAX_WBITS
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._inflate.eof or not self._begun

    def read(self, part: bytes, most: int) -> bytes:
        """Return what ``part`` holds; what stands behind the end of the compressed data is left alone."""
        self._begun = True
        try:
            return self._inflate.decompress(part, most)
        except zlib.error:
            if self._raw_tried:
                raise
            # "deflate" means zlib (RFC 9110, 8.4.1.2), and some servers send it bare.
            self._raw_tried = True
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(part, most)
        finally:
            self._raw_tried = True
