"""Records as the rows that Milvus keeps, and back, and filters as Milvus's expressions.

No text from outside is ever in an expression: fields and values are written as digests and in hexadecimal. Milvus has
template parameters for that purpose, but Milvus Lite refuses them, and they cannot stand for a field's name.

Two columns beside the metadata make that possible:

- ``terms``, a list of digests: one for each value of each field, and one for each field that has numbers, or texts. A
  bool, a number and a text differ in them, 1 and 1.0 do not.
- ``bounds``, a JSON object: for each field that has numbers, and for each that has texts, the least and the greatest,
  as texts that sort as the values do.

An expression keeps all records that the filter keeps. It may keep more for a range with two ends, for an end that is a
long text or an integer that is not a float, and for Not of these. So `portico.search.matches` is asked last.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from portico.errors import StoreError
from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, Scalar, VectorRecord, Vectors

Expression: TypeAlias = str | bool
"""An expression in Milvus's language, or True or False."""

TERM_LENGTH = 32
_NAME_LENGTH = 24
_KEY_BYTES = 32
"""Bytes of a text that its key holds. Longer texts with the same beginning have the same key."""


def terms(metadata: dict[str, Any]) -> list[str]:
    """Return the distinct digests by which equality and presence are looked up."""
    found: dict[str, None] = {}
    for field, value in metadata.items():
        for element in value if isinstance(value, tuple) else (value,):
            found[_term(field, element)] = None
            if (kind := _kind(element)) is not None:
                found[_presence(field, kind)] = None
    return list(found)


def bounds(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the smallest and the greatest key of each field, of its numbers and of its texts."""
    found: dict[str, str] = {}
    for field, value in metadata.items():
        keys: dict[str, list[str]] = {}
        for element in value if isinstance(value, tuple) else (value,):
            if (kind := _kind(element)) is not None:
                keys.setdefault(kind, []).append(_sort_key(element)[0])
        for kind, some in keys.items():
            name = _bound(field, kind)
            found[f"{name}l"] = min(some)
            found[f"{name}h"] = max(some)
    return found


def expression(filter: Filter) -> Expression:
    """Return an expression for every record that the filter keeps, and for few others."""
    return _translate(filter)[0]


def _translate(filter: Filter) -> tuple[Expression, bool]:
    """Return an expression for every record that the filter keeps, and whether it keeps no other."""
    match filter:
        case Equal(field, value):
            return _any_of(field, (value,)), True
        case AnyOf(field, values):
            return _any_of(field, values), True
        case Range():
            return _range(filter)
        case And(parts):
            return _join(" and ", [_translate(part) for part in parts], absorbing=False)
        case Or(parts):
            return _join(" or ", [_translate(part) for part in parts], absorbing=True)
        case Not(part):
            inner, exact = _translate(part)
            if not exact:
                return True, False
            return (not inner if isinstance(inner, bool) else f"(not {inner})"), True


def _any_of(field: str, values: Sequence[Scalar]) -> Expression:
    # A NaN equals nothing.
    wanted = dict.fromkeys(_term(field, value) for value in values if not _is_nan(value))
    if not wanted:
        return False
    return f"array_contains_any(terms, [{', '.join(map(_quote, wanted))}])"


def _range(filter: Range) -> tuple[Expression, bool]:
    ends: list[tuple[str, str, Any, bool]] = [
        ("h", ">", filter.at_least, False),
        ("h", ">", filter.above, True),
        ("l", "<", filter.at_most, False),
        ("l", "<", filter.below, True),
    ]
    given = [end for end in ends if end[2] is not None]
    kinds = {_kind(bound) for _, _, bound, _ in given}
    if len(kinds) != 1 or (kind := kinds.pop()) is None:
        return False, True
    exact = len({side for side, *_ in given}) == 1
    clauses = [f"array_contains(terms, {_quote(_presence(filter.field, kind))})"]
    for side, sign, bound, strict in given:
        key, sure = _sort_key(bound)
        exact = exact and sure
        # Values on both sides of an end that is not sure may have its key.
        equal = "" if strict and sure else "="
        clauses.append(f'bounds["{_bound(filter.field, kind)}{side}"] {sign}{equal} {_quote(key)}')
    return f"({' and '.join(clauses)})", exact


def _join(word: str, parts: list[tuple[Expression, bool]], *, absorbing: bool) -> tuple[Expression, bool]:
    """Join expressions. A part that is ``absorbing`` (True or False) decides; its contrary is left out."""
    exact = all(sure for _, sure in parts)
    if any(part is absorbing for part, _ in parts):
        return absorbing, exact
    kept = [part for part, _ in parts if isinstance(part, str)]
    return (f"({word.join(kept)})" if kept else not absorbing), exact


def _kind(value: object) -> str | None:
    """Return whether a value is a number or a text that ranges compare; None for a bool and a NaN."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_nan(value):
        return None
    return "number"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _term(field: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return _digest("bool", field, str(value))
    if isinstance(value, str):
        return _digest("text", field, value)
    # A float that is an integer is equal to it, however large.
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return _digest("number", field, hex(number) if isinstance(number, int) else repr(float(number)))


def _presence(field: str, kind: str) -> str:
    return _digest("presence", field, kind)


def _bound(field: str, kind: str) -> str:
    return _digest("bound", field, kind)[:_NAME_LENGTH]


def _digest(purpose: str, field: str, value: str) -> str:
    text = f"{purpose}:{len(field)}:{field}{value}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=TERM_LENGTH // 2).hexdigest()


def _sort_key(value: Scalar) -> tuple[str, bool]:
    """Return a text that sorts as the value does, and whether no other value has the same text."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        # UTF-8 sorts by code point. A "g" sorts after every digit, as longer texts do; the "a" is for the empty text.
        exact = len(data) <= _KEY_BYTES
        return f"a{data[:_KEY_BYTES].hex()}{'' if exact else 'g'}", exact
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if number > value:
        number = math.nextafter(number, -math.inf)
    # Zero has a sign in a float, and is the same with both.
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    ordered = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
    exact = number == value
    return f"{ordered:016x}{'0' if exact else '1'}", exact


def _quote(text: str) -> str:
    # What comes here is made of hexadecimal digits and "g".
    return f'"{text}"'


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
_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_LONGEST_NAME = 150
"""Characters of an encoded namespace. Milvus takes 255 in a collection's name, and a file name has no more."""
_ESCAPED = re.compile(r"[\\\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def collection_name(prefix: str, namespace: str) -> str:
    """Return the collection of a namespace, of small letters, digits and ``_``. Each namespace has another one.

    All other characters are written as ``_`` and the hexadecimal of their UTF-8. Capital letters are too, since Milvus
    Lite makes a folder of the name and some file systems ignore case. A long name becomes a digest after ``_long__``,
    which no encoded name contains. A prefix has no ``_``, so the collections of two prefixes differ.

    >>> collection_name("portico", "my-docs")
    'portico_my_2ddocs'
    """
    data = namespace.encode("utf-8", "surrogatepass")
    encoded = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in data)
    if len(encoded) > _LONGEST_NAME:
        encoded = f"_long__{hashlib.sha256(data).hexdigest()}"
    return f"{prefix}_{encoded}"


def key(id: str) -> str:
    """Return the primary key of an id: a digest of 160 bits, for any text of any length."""
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=KEY_LENGTH // 2).hexdigest()


def as_text(value: str) -> str:
    """Return a string in valid UTF-8, with backslashes, controls and half surrogates escaped."""
    return _ESCAPED.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


def encode(metadata: dict[str, Any]) -> str:
    """Return metadata as JSON in valid UTF-8, with a backslash before it where surrogates are escaped.

    Milvus's own JSON turns integers beyond 64 bits into floats, and has no NaN.
    """
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return f"\\{as_text(text)}" if re.search("[\ud800-\udfff]", text) else text


def decode(text: str) -> dict[str, Any]:
    """Return the metadata that `encode` wrote. Raises ``StoreError`` for anything else."""
    try:
        return VectorRecord.decode_metadata(from_text(text[1:]) if text.startswith("\\") else text)
    except ValueError as error:
        raise StoreError(f"The metadata {text[:80]!r} in Milvus cannot be read: {error}.") from error


def entry_of(record: VectorRecord) -> dict[str, Any]:
    """Return a record without its vector, as the fields of a row.

    Raises ``ValueError`` for what is longer than a field, ``TypeError`` for metadata of another kind.
    """
    metadata = record.plain_metadata()
    entry = {"id": as_text(record.id), "metadata": encode(metadata), "bounds": bounds(metadata)}
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
    """Return the id and the metadata of a row. Raises ``StoreError`` for metadata of another form."""
    return from_text(fields["id"]), decode(fields["metadata"])


def unit_rows(vectors: Vectors) -> Rows:
    """Return vectors at length one. Rows of zeros stay zeros, and unit rows stay bit for bit.

    Lengths are computed in float64, which holds the square of any float32; Milvus's own COSINE uses float32. Raises
    ``ValueError`` for a number that is not finite.
    """
    rows = np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    finite = np.isfinite(squares)
    if not finite.all():
        raise ValueError(f"vector {int(finite.argmin())} holds a number that is not finite")
    other = np.flatnonzero((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0))
    if len(other):
        rows = rows.copy()
        rows[other] = rows[other] / np.sqrt(squares[other])[:, None]
    return rows


def cosine(score: float) -> float:
    """Return a score within -1 and 1, which rounding may exceed."""
    return min(1.0, max(-1.0, score))
