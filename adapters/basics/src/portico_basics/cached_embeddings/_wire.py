"""Texts as keys and vectors as rows: what the cache's file holds of both."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple
from zlib import crc32

Purpose = Literal["document", "query"]
_KEY_BYTES = 8
_DIGEST_BYTES = 24


class Key(NamedTuple):
    """What a text is found by: ``number`` leads to a row, and ``rest`` tells whether it is the text's own.

    Together they are 192 bits of a hash of model, purpose and text.
    """

    number: int
    rest: bytes


def model_name(model: str) -> bytes:
    """Return a model's name as bytes; any string has a name."""
    return model.encode("utf-8", "surrogatepass")


def keys_of(model: bytes, purpose: Purpose, texts: Sequence[str]) -> list[Key]:
    """Return the texts' keys in order, whatever is in the texts.

    >>> one, other = keys_of(b"m", "query", ["a red door", "a red roof"])
    >>> one == other, [one] == keys_of(b"m", "query", ["a red door"]), [one] == keys_of(b"n", "query", ["a red door"])
    (False, True, False)
    """
    beginning = blake2b(digest_size=_DIGEST_BYTES, person=b"portico-embed")
    for part in (model, purpose.encode()):
        # The length keeps the parts apart.
        beginning.update(len(part).to_bytes(8, "big") + part)
    keys = []
    for text in texts:
        state = beginning.copy()
        state.update(text.encode("utf-8", "surrogatepass"))
        digest = state.digest()
        keys.append(Key(int.from_bytes(digest[:_KEY_BYTES], "big", signed=True), digest[_KEY_BYTES:]))
    return keys


def row_checksum(key: Key, vector: Any) -> int:
    """Return a number that tells a row whose bytes have changed, or that belongs to another key: CRC-32 of both."""
    return crc32(vector, crc32(key.rest))


def finite_rows(rows: memoryview[float], dimensions: int) -> Iterator[int]:
    """Yield the numbers of the rows that are finite throughout.

    A sum is finite when all its terms are: as 64-bit numbers, float32 ones cannot overflow in it.
    """
    count = len(rows) // dimensions
    # An array is summed in half the time of a view.
    if math.isfinite(sum(array("f", rows.cast("B").tobytes()))):
        yield from range(count)
        return
    for row in range(count):
        if math.isfinite(sum(rows[row * dimensions : (row + 1) * dimensions])):
            yield row
