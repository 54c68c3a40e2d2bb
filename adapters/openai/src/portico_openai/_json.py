"""JSON as it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def encoded(value: dict[str, Any]) -> bytes:
    """Write an object; half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_mended(value))


def _mended(value: Any) -> Any:
    """Put U+FFFD for halves of surrogate pairs: they come from text that was cut or misread."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {_mended(key): _mended(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(part) for part in value]
    return value
