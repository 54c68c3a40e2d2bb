"""What a kill may leave in the vector store, noted in the catalogue beforehand.

Ids are noted in ``pending`` before vectors are written, and in ``garbage`` when their passages go. Writing a passage
takes its id out of both. So whatever an update that was stopped has left is known to the next: it uses what it still
needs, and removes the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from portico.plugins import Sqlite


def note_pending(connection: sqlite3.Connection, namespace: str, ids: Iterable[str]) -> None:
    """Note which vectors are about to be written."""
    with Sqlite.transaction(connection):
        connection.execute("INSERT OR IGNORE INTO namespaces VALUES (?)", (namespace,))
        connection.executemany("INSERT OR IGNORE INTO pending VALUES (?, ?)", ((namespace, id) for id in ids))


def has_pending(connection: sqlite3.Connection, namespace: str) -> bool:
    """Tell whether an update that was stopped has left vectors, or might have."""
    return bool(connection.execute("SELECT 1 FROM pending WHERE namespace = ? LIMIT 1", (namespace,)).fetchone())


def garbage(connection: sqlite3.Connection, namespace: str) -> list[str]:
    """Return ids of passages that are gone, whose vectors must go."""
    rows = connection.execute(
        "SELECT id FROM garbage WHERE namespace = ? AND id NOT IN (SELECT id FROM passages)", (namespace,)
    )
    return [id for (id,) in rows]


def forget_garbage(connection: sqlite3.Connection, namespace: str) -> None:
    """Forget them, once their vectors are gone."""
    with Sqlite.transaction(connection):
        connection.execute("DELETE FROM garbage WHERE namespace = ?", (namespace,))


def discarded(connection: sqlite3.Connection, namespace: str) -> list[str]:
    """Return ids whose vectors must go once no batch is under way: those of `garbage`, and what never came to be."""
    rows = connection.execute(
        "SELECT id FROM (SELECT id FROM pending WHERE namespace = :n UNION SELECT id FROM garbage WHERE namespace = :n)"
        " WHERE id NOT IN (SELECT id FROM passages)",
        {"n": namespace},
    )
    return [id for (id,) in rows]


def forget_discarded(connection: sqlite3.Connection, namespace: str) -> None:
    """Forget them, once their vectors are gone."""
    with Sqlite.transaction(connection):
        connection.execute("DELETE FROM pending WHERE namespace = ?", (namespace,))
        connection.execute("DELETE FROM garbage WHERE namespace = ?", (namespace,))
