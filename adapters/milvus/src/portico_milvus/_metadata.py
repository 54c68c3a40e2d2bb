"""Metadata on their way into Milvus and out of it."""

from __future__ import annotations

import json
from typing import Any

from portico.errors import StoreError
from portico_milvus._names import as_text, from_text, is_valid


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
