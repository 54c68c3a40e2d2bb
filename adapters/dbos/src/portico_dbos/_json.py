"""JSON as text, all of it ASCII: no database refuses that, whatever half characters a model may have made."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any, what: str) -> str:
    """Return a value as JSON; ``ValueError`` for what is none, so that nothing else is ever recorded.

    >>> json_text({"b": [1.0, None]}, "the result")
    '{"b":[1.0,null]}'
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
    return text
