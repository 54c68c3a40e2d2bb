"""Undo content encodings piece by piece, never beyond a limit. The page reader and the HTTP client use this."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from portico.errors import LimitExceeded, ResponseInvalid

ACCEPTED = "gzip"
"""What is asked for. br and zstd are not: their packages cannot stop in the middle of a piece. Servers mean different
things by deflate; it is read with the zlib header that the standard asks for."""

_PIECE = 65_536
# A small gzip body is longer as sent than after unpacking.
_SLACK = 65_536


async def unpack(
    pieces: AsyncIterator[bytes], encoding: str, most: int, subject: str, *, truncate: bool = False
) -> bytes:
    """Return a whole body of at most ``most`` bytes. It is unpacked while it is read, so a bomb is stopped early.

    Errors begin with ``subject`` ("The page X"). With ``truncate``, a body that reaches the limit is cut there.
    What follows the first gzip member is ignored. Raises ``LimitExceeded``; ``ResponseInvalid`` for an encoding that
    was not asked for and for damaged data.
    """
    name = encoding.strip().lower()
    if name not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise ResponseInvalid(f"{subject} is encoded as {name[:40]!r}, which was not asked for.")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32) if name not in {"", "identity"} else None
    body = bytearray()
    received = 0
    try:
        async for piece in pieces:
            received += len(piece)
            body += piece if decoder is None else decoder.decompress(piece, most + 1 - len(body))
            if len(body) > most or received > most + _SLACK:
                if truncate:
                    return bytes(body[:most])
                raise LimitExceeded(f"{subject} has more than {most:,} bytes (max_bytes).")
        if decoder is not None and received and not decoder.eof:
            raise ResponseInvalid(f"{subject} ends in the middle of its {name} data.")
    except zlib.error as error:
        raise ResponseInvalid(f"{subject} is no {name} data ({error}).") from error
    return bytes(body)
