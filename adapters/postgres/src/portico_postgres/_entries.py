"""Names and entries as the tables hold them.

A name is bytes: any string is one, also with NUL or half a surrogate pair, which PostgreSQL's text cannot hold. An
entry is JSON in ASCII: what the server's encoding is makes no difference, and its own functions for JSON can read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from portico.errors import StoreError

__all__ = ["decoded", "encoded", "ends_run", "shown", "written"]

_MAXIMUM_CHARACTERS = 100_000_000
_ENDS = frozenset({"answer", "infeasible", "failed"})


def encoded(name: str) -> bytes:
    r"""Return the bytes of a name.

    >>> decoded(encoded("half \ud800 a pair")) == "half \ud800 a pair"
    True
    """
    return name.encode("utf-8", "surrogatepass")


def decoded(name: bytes) -> str:
    """Return the name of its bytes; raises ``UnicodeDecodeError`` for what `encoded` never gave."""
    return name.decode("utf-8", "surrogatepass")


def shown(name: str) -> str:
    r"""Return a name for a message, where it must stay on its line and be printed.

    >>> print(shown("r1"), shown("r\n1"))
    r1 'r\n1'
    """
    return name if name.isprintable() and name else ascii(name)


def written(run: str, entry: Mapping[str, Any]) -> str:
    """Return an entry as JSON text. Raises ``StoreError`` for what has no such form or is too long."""
    try:
        text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"An entry of the run {shown(run)} is not JSON: {error}.") from error
    if len(text) > _MAXIMUM_CHARACTERS:
        raise StoreError(
            f"An entry of the run {shown(run)} has {len(text):,} characters; the journal takes "
            f"{_MAXIMUM_CHARACTERS:,}. Let the step write a file and return its name."
        )
    return text


def ends_run(entry: Mapping[str, Any]) -> bool | None:
    """Tell whether an entry ends its run, or takes it up again; None for one that does neither.

    One that is held, uncertain or interrupted waits for somebody.
    """
    match entry.get("type"):
        case "outcome":
            return entry.get("kind") in _ENDS
        case "resumed":
            return False
        case _:
            return None
