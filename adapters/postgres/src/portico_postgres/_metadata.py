"""Metadata in two forms: a text that gives back what was put in, and a jsonb that filters ask.

The jsonb has a list for each field, whose elements compare as `portico.search.matches` compares: numbers exactly, texts
by code point. A jsonb alone could not do both: it takes no NUL, no NaN and no infinity, and makes 1e300 a whole number.
"""

from __future__ import annotations

import json
import math
from typing import Any

from portico.errors import StoreDamaged
from portico.search import Scalar, VectorRecord
from portico_postgres._texts import stored

_LONGEST_NUMBER = 13_000
"""Bits of a whole number: some 3,900 digits. Python itself writes no more than 4,300."""
_INFINITE = "1e5000"
"""Stands for infinity in the jsonb, which has none: greater than every number that is taken."""

# Made once: `json.dumps` with options makes an encoder for each call, which takes longer than encoding.
_compact = json.JSONEncoder(separators=(",", ":")).encode
_readable = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().raw_decode


def encoded(record: VectorRecord) -> tuple[str, str]:
    """Return a record's metadata as the text that gives them back, and as the jsonb that is filtered.

    Raises ``TypeError`` for what is neither a string, a number, a bool nor a list of them, and ``ValueError`` for a
    whole number of more than 13,000 bits.
    """
    if not record.metadata:
        return "{}", "{}"
    metadata = record.plain_metadata()
    parts: list[str] = []
    for field, value in metadata.items():
        elements = value if isinstance(value, tuple) else (value,)
        try:
            inside = ",".join(text for element in elements if (text := comparable(element)) is not None)
        except ValueError as error:
            raise ValueError(f"record {record.id!r}: the metadata field {field!r} holds {error}") from None
        parts.append(f"{_readable(stored(field))}:[{inside}]")
    return _compact(metadata), "{" + ",".join(parts) + "}"


def decoded(text: str) -> dict[str, Any]:
    """Return the metadata that `encoded` wrote. Raises ``StoreDamaged`` for anything else."""
    try:
        metadata, end = _decode(text)
        if end != len(text):
            raise ValueError("there is more behind them")
        if "[" not in text and type(metadata) is dict:
            return metadata
        return {field: tuple(value) if isinstance(value, list) else value for field, value in metadata.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreDamaged(
            f"The metadata {str(text)[:80]!r} of a record are not what was written: {error}. Drop the namespace; what "
            "is derived from documents is then built again."
        ) from error


def fields_of(field: str, value: Scalar) -> str | None:
    """Return the jsonb that is contained in that of a record which has the value in the field; None where nothing is.

    >>> fields_of("year", 2025.0), fields_of("year", float("nan"))
    ('{"year":[2025.0]}', None)
    """
    text = comparable(value, clipped=True)
    return None if text is None else f"{{{_readable(stored(field))}:[{text}]}}"


def comparable(value: Scalar, *, clipped: bool = False) -> str | None:
    """Return a value in JSON, as it compares in a jsonb; None for a NaN, which compares with nothing.

    A float is written with all that it is worth, since a jsonb compares decimal numbers: whole ones as the integer that
    they are, with a point; the shortest form of others lies between the same floats. ``clipped`` puts a number that is
    too long for a record beyond all records; otherwise it is a ``ValueError``.
    """
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _readable(stored(value))
    if isinstance(value, int):
        if value.bit_length() <= _LONGEST_NUMBER:
            return str(int(value))
        if not clipped:
            raise ValueError(f"a whole number of {value.bit_length():,} bits; {_LONGEST_NUMBER:,} are the most")
        return "1e4500" if value > 0 else "-1e4500"
    if math.isfinite(value):
        return f"{int(value)}.0" if value.is_integer() else repr(float(value))
    if math.isnan(value):
        return None
    return _INFINITE if value > 0 else f"-{_INFINITE}"
