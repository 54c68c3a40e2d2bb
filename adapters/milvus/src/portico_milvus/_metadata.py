"""Metadata on their way into Milvus and out of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from portico.errors import StoreError
from portico.filter import Scalar
from portico_milvus._names import as_text, from_text, is_valid

Metadata: TypeAlias = dict[str, Scalar | tuple[Scalar, ...]]


def copied(record: str, metadata: Mapping[str, Scalar | Sequence[Scalar]]) -> Metadata:
    """Return metadata that their giver cannot change any more, lists as tuples.

    Raises ``TypeError`` for what is neither a string, a number, a bool nor a list of them.
    """
    result: Metadata = {}
    for field, value in metadata.items():
        if not isinstance(field, str):
            raise TypeError(f"record {record!r}: metadata fields are strings, not {field!r}")
        if isinstance(value, list | tuple):
            result[str.__str__(field)] = tuple(_scalar(record, field, element) for element in value)
        else:
            result[str.__str__(field)] = _scalar(record, field, value)
    return result


def encoded(metadata: Metadata) -> str:
    """Return metadata as a text in valid UTF-8: JSON, with a backslash before it where surrogates are escaped.

    A text rather than Milvus's JSON, whose readers make floats of integers beyond 64 bits, and know no NaN.
    """
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return text if is_valid(text) else f"\\{as_text(text)}"


def decoded(text: str) -> Metadata:
    """Return the metadata that `encoded` wrote. Raises ``StoreError`` for anything else."""
    try:
        metadata = json.loads(from_text(text[1:]) if text.startswith("\\") else text)
        return {field: tuple(value) if isinstance(value, list) else value for field, value in metadata.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"The metadata {str(text)[:80]!r} in Milvus are not what was written: {error}.") from error


def _scalar(record: str, field: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    # Enumerations and other subclasses become plain, as they would on the way through JSON.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(
        f"record {record!r}: the metadata field {field!r} holds a {type(value).__name__}; "
        "a field holds a str, int, float or bool, or a list of them"
    )
