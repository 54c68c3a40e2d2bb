"""An answer's body, read no further than allowed, whatever its compression says."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from portico.errors import LimitExceeded, ResponseInvalid

__all__ = ["ACCEPTED", "read_body"]

ACCEPTED = "gzip, deflate"
"""What is asked for: what the standard library decompresses piece by piece."""

# What is sent may be so much longer than what it unpacks to: the heads of a few small members.
_AROUND = 65_536
# Each costs an inflater, and an empty one has 20 bytes.
_MOST_MEMBERS = 64
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def read_body(parts: AsyncIterator[bytes], encoding: str, most: int, service: str) -> bytes:
    """Return the whole body, decompressed; at most ``most`` bytes are ever held, and little more are read.

    httpx decompresses what it has read as a whole: 64 KB of gzip may be 66 MB. Raises ``LimitExceeded``, and
    ``ResponseInvalid`` for a compression that was not asked for or is damaged.
    """
    kinds = [kind for part in encoding.split(",") if (kind := part.strip().lower()) not in ("", "identity")]
    if len(kinds) > 1 or not set(kinds) <= set(_WINDOWS):
        raise ResponseInvalid(f"{service} answered compressed as {encoding[:60]!r}, which was not asked for.")
    reader = _Plain() if not kinds else _Inflating(_WINDOWS[kinds[0]])
    body = bytearray()
    received = 0
    try:
        async for part in parts:
            received += len(part)
            body += reader.read(part, most + 1 - len(body))
            if len(body) > most or received > most + _AROUND:
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
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._raw_tried = window < 0 or window > zlib.MAX_WBITS
        self._begun = False
        self._members = 1
        self._over = False
        self._held = b""

    @property
    def whole(self) -> bool:
        return self._inflate.eof or not (self._begun or self._held)

    def read(self, part: bytes, most: int) -> bytes:
        """Return what ``part`` holds, up to ``most`` bytes, at least one.

        Several members of gzip are one body (RFC 1952 §2.2). What stands behind the end is dropped at once: given to
        an inflater that has ended, it would be kept, and copied each time that more of it comes.
        """
        made = b""
        if not self._begun:
            # Two bytes tell deflate with a zlib header from deflate without.
            part, self._held = self._held + part, b""
            if len(part) < 2:
                self._held = part
                return made
        while part and len(made) < most and not self._over:
            if self._inflate.eof:
                if self._window <= zlib.MAX_WBITS or not part.startswith(b"\x1f"):
                    self._over = True
                    break
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise zlib.error(f"it has more than {_MOST_MEMBERS} members")
                self._inflate = zlib.decompressobj(self._window)
            made += self._inflated(part, most - len(made))
            part = self._inflate.unused_data
        return made

    def _inflated(self, part: bytes, most: int) -> bytes:
        self._begun = True
        try:
            return self._inflate.decompress(part, most)
        except zlib.error:
            if self._raw_tried:
                raise
            # "deflate" means zlib (RFC 9110, 8.4.1.2), and some servers send it bare.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(part, most)
        finally:
            self._raw_tried = True
