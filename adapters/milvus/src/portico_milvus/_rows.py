"""Records as the rows that Milvus keeps, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portico.errors import StoreError
from portico.search import VectorRecord
from portico_milvus._filters import bounds, terms
from portico_milvus._names import as_text, from_text, is_valid, key
from portico_milvus._shape import LONGEST_TEXT, MOST_TERMS
from portico_milvus._vectors import Rows


def encoded(metadata: dict[str, Any]) -> str:
    """Return metadata as a text in valid UTF-8: JSON, with a backslash before it where surrogates are escaped.

    A text rather than Milvus's JSON, whose readers make floats of integers beyond 64 bits, and know no NaN.
    """
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return text if is_valid(text) else f"\\{as_text(text)}"


def decoded(text: str) -> dict[str, Any]:
    """Return the metadata that `encoded` wrote. Raises ``StoreError`` for anything else."""
    try:
        metadata = json.loads(from_text(text[1:]) if text.startswith("\\") else text)
        return {field: tuple(value) if isinstance(value, list) else value for field, value in metadata.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"The metadata {str(text)[:80]!r} in Milvus are not what was written: {error}.") from error


_OVERHEAD = 96
"""Bytes of a row that are neither text nor vector: its key, and what the wire adds."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A record without its vector, as the fields of a row."""

    fields: Mapping[str, Any]
    size: int
    """Bytes that it takes on the wire, about."""


def entries(records: Sequence[VectorRecord]) -> list[Entry]:
    """Return records as Milvus keeps them.

    Raises ``ValueError`` for an id that stands twice and for what is longer than a field, ``TypeError`` for metadata of
    another kind.
    """
    seen: set[str] = set()
    result = []
    for record in records:
        if record.id in seen:
            raise ValueError(f"the id {record.id!r} stands twice in one upsert")
        seen.add(record.id)
        result.append(_entry(record.id, record.plain_metadata()))
    return result


def requests(entries: Sequence[Entry], rows: Rows, field: str, most: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each request, of about ``most`` bytes."""
    part: list[dict[str, Any]] = []
    size = 0
    for entry, row in zip(entries, rows, strict=True):
        added = entry.size + row.nbytes
        if part and size + added > most:
            yield part
            part, size = [], 0
        part.append({**entry.fields, field: row})
        size += added
    if part:
        yield part


def read(fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the id and the metadata of a row. Raises ``StoreError`` for metadata that were not written so."""
    return read_id(fields), decoded(fields["metadata"])


def read_id(fields: Mapping[str, Any]) -> str:
    """Return the id of a row."""
    return from_text(fields["id"])


def _entry(id: str, metadata: dict[str, Any]) -> Entry:
    texts = {"id": as_text(id), "metadata": encoded(metadata)}
    ends = bounds(metadata)
    sizes = {what: len(text.encode()) for what, text in texts.items()}
    sizes["bounds"] = sum(len(name) + len(end) + 6 for name, end in ends.items()) + 2
    for what, size in sizes.items():
        if size > LONGEST_TEXT:
            of = {
                "id": "id takes",
                "metadata": "metadata take",
                "bounds": "metadata have so many fields that they take",
            }
            raise ValueError(
                f"record {id[:80]!r}: its {of[what]} {size:,} bytes; Milvus keeps {LONGEST_TEXT:,} in a field"
            )
    found = terms(metadata)
    if len(found) > MOST_TERMS:
        raise ValueError(
            f"record {id[:80]!r}: its metadata have {len(found):,} different values, fields counted too; "
            f"Milvus filters by {MOST_TERMS:,}"
        )
    size = sum(sizes.values()) + sum(len(term) + 2 for term in found) + _OVERHEAD
    return Entry({"pk": key(id), **texts, "terms": found, "bounds": ends}, size)
