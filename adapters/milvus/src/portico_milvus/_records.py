"""Records as the rows that Milvus keeps, and back: names, ids, metadata and vectors of length one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from portico.errors import StoreError
from portico.search import VectorRecord, Vectors
from portico_milvus._filters import bounds, terms

Rows: TypeAlias = npt.NDArray[np.float32]

LONGEST_TEXT = 65_535
"""Bytes of a text or of a JSON object in a field, which is Milvus's own limit."""
MOST_TERMS = 4_096
"""Elements of a list in a field, which is Milvus's own limit."""
KEY_LENGTH = 40

_REQUEST_BYTES = 32 * 1024 * 1024
"""Bytes of one request at most, about. Servers take 64 MB."""
_OVERHEAD = 96
"""Bytes of a row that are neither text nor vector: its key, and what the wire adds."""
_BLOCK = 4_096
"""Rows handled at once, so that memory does not grow with the size of a call."""
_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST_NAME = 150
"""Characters of an encoded namespace. Milvus takes 255 in a collection's name, and a file name has no more."""
_ESCAPED = re.compile(r"[\\\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def collection_name(prefix: str, namespace: str) -> str:
    """Return the collection of a namespace: different for different ones, of small letters, digits and ``_``.

    Everything else is the hexadecimal of its UTF-8 after ``_``, capital letters too, since Milvus Lite makes a folder
    of the name and some file systems do not tell them from small ones. A long name has a digest instead, after what no
    encoded one has: a ``_`` that no hexadecimal follows. A prefix has no ``_``, so those of two prefixes differ too.

    >>> collection_name("portico", "my-docs")
    'portico_my_2ddocs'
    """
    data = namespace.encode("utf-8", "surrogatepass")
    encoded = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in data)
    if len(encoded) > _LONGEST_NAME:
        encoded = f"_long__{hashlib.sha256(data).hexdigest()}"
    return f"{prefix}_{encoded}"


def key(id: str) -> str:
    """Return the primary key of an id: a digest of 160 bits, so that any text of any length has one."""
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=KEY_LENGTH // 2).hexdigest()


def as_text(value: str) -> str:
    """Return a string in valid UTF-8: itself, with backslashes, controls and half surrogates escaped."""
    return _ESCAPED.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


def encoded(metadata: dict[str, Any]) -> str:
    """Return metadata as a text in valid UTF-8: JSON, with a backslash before it where surrogates are escaped.

    A text rather than Milvus's JSON, whose readers make floats of integers beyond 64 bits, and know no NaN.
    """
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return f"\\{as_text(text)}" if re.search("[\ud800-\udfff]", text) else text


def decoded(text: str) -> dict[str, Any]:
    """Return the metadata that `encoded` wrote. Raises ``StoreError`` for anything else."""
    try:
        return VectorRecord.decode_metadata(from_text(text[1:]) if text.startswith("\\") else text)
    except ValueError as error:
        raise StoreError(f"The metadata {text[:80]!r} in Milvus cannot be read: {error}.") from error


def entry_of(record: VectorRecord) -> dict[str, Any]:
    """Return a record without its vector, as the fields of a row.

    Raises ``ValueError`` for what is longer than a field, ``TypeError`` for metadata of another kind.
    """
    metadata = record.plain_metadata()
    entry = {"id": as_text(record.id), "metadata": encoded(metadata), "bounds": bounds(metadata)}
    for field, value in entry.items():
        size = len((value if isinstance(value, str) else json.dumps(value)).encode())
        if size > LONGEST_TEXT:
            raise ValueError(
                f"record {record.id[:80]!r}: its {field} take {size:,} bytes; Milvus keeps {LONGEST_TEXT:,} in a field"
            )
    found = terms(metadata)
    if len(found) > MOST_TERMS:
        raise ValueError(
            f"record {record.id[:80]!r}: its metadata have {len(found):,} different values, fields counted too; "
            f"Milvus filters by {MOST_TERMS:,}"
        )
    return {**entry, "pk": key(record.id), "terms": found}


def requests(entries: Sequence[Mapping[str, Any]], rows: Rows, field: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each request, of about 32 MB."""
    part: list[dict[str, Any]] = []
    size = 0
    for entry, row in zip(entries, rows, strict=True):
        texts = (entry["id"], entry["metadata"], str(entry["bounds"]), str(entry["terms"]))
        added = sum(len(text.encode()) for text in texts) + row.nbytes + _OVERHEAD
        if part and size + added > _REQUEST_BYTES:
            yield part
            part, size = [], 0
        part.append({**entry, field: row})
        size += added
    if part:
        yield part


def read(fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the id and the metadata of a row. Raises ``StoreError`` for metadata that were not written so."""
    return from_text(fields["id"]), decoded(fields["metadata"])


def unit_rows(vectors: Vectors) -> Rows:
    """Return vectors at length one; rows of zeros stay zeros, unit rows keep every bit and are not copied.

    Lengths are taken in float64, which holds the square of any float32. Milvus's own COSINE takes them in float32, and
    what it says of a row of zeros depends on its version. Raises ``ValueError`` for a number that is not finite.
    """
    rows = np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)
    made: Rows | None = None
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        squares = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        finite = np.isfinite(squares)
        if not finite.all():
            raise ValueError(f"vector {start + int(finite.argmin())} holds a number that is not finite")
        other = np.flatnonzero((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0))
        if len(other):
            made = rows.copy() if made is None else made
            made[start + other] = block[other] / np.sqrt(squares[other])[:, None]
    return rows if made is None else made


def padded(rows: Rows, dimensions: int) -> Rows:
    """Return rows with zeros behind, up to ``dimensions`` numbers: a Milvus server wants two of a vector with one."""
    if rows.shape[1] == dimensions:
        return rows
    result = np.zeros((len(rows), dimensions), np.float32)
    result[:, : rows.shape[1]] = rows
    return result


def cosine(score: float) -> float:
    """Return a score within its bounds, which rounding may pass."""
    return min(1.0, max(-1.0, score))
