"""Nothing in the database is unpickled, whoever wrote it.

What is written here is JSON. But DBOS reads a row by the format that the row itself names, and one of those is pickle:
who can write to the database could run code in every worker.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_inside: set[object] = set()


@contextmanager
def no_pickle() -> Iterator[None]:
    """Have DBOS refuse pickles within the block; several may be open at once, in any order."""
    from dbos._serialization import DBOSDefaultSerializer

    block = object()
    with _lock:
        _inside.add(block)
        # On the one instance that DBOS reads pickles by, in front of the method of its class.
        vars(DBOSDefaultSerializer)["deserialize"] = _refuse
    try:
        yield
    finally:
        with _lock:
            _inside.discard(block)
            if not _inside:
                vars(DBOSDefaultSerializer).pop("deserialize", None)


def _refuse(text: str) -> Any:
    raise ValueError("a pickle is in the database, which is never read")
