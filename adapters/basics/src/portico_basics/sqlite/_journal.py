"""The journal as it blocks: one connection, used by one thread at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from portico.errors import StoreBusy, StoreError
from portico.plugins import Rows, Sqlite
from portico.ports import Lease
from portico_basics.sqlite._database import connect
from portico_basics.sqlite._errors import damaged, mapped_errors
from portico_basics.sqlite._presence import Presence, is_gone, sweep
from portico_basics.sqlite.config import SqliteSettings

_REMOVED_AT_ONCE = 10
_SWEPT_AT_ONCE = 20


class Journal:
    """The RunStore port without the waiting: every call is one transaction.

    A lease is in force while it is the newest on its run and has not run out. ``clock`` gives seconds since 1970,
    which processes agree on; one that goes wrong gives a run away too early or too late, and the token of the lease
    still keeps two processes from writing to it.
    """

    def __init__(self, file: Path, settings: SqliteSettings, clock: Callable[[], float]) -> None:
        self.file = file
        self._settings = settings
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._presence: Presence | None = None
        self._synchronous = False
        self._processes = file.with_name(f"{file.name}-processes")

    def acquire(self, run: str, owner: str, seconds: float) -> Lease:
        """Take a run; raise ``StoreBusy`` while a process that is there holds it."""
        connection = self._open()
        if self._presence is None:
            self._presence = Presence(self._processes)
        with mapped_errors(self.file), self._writing(connection, synchronous=False):
            now = self._clock()
            row = connection.execute(
                "SELECT owner, expires, presence FROM runs WHERE name = ?", (Rows.encode_name(run),)
            ).fetchone()
            if row is not None and row[0] not in (None, Rows.encode_name(owner)) and row[1] > now:
                if not is_gone(self._processes, row[2]):
                    raise self._held(run, row[1] - now, known=bool(row[2]))
            elif row is None:
                connection.execute("INSERT INTO runs (name, created) VALUES (?, ?)", (Rows.encode_name(run), now))
            connection.execute("UPDATE tokens SET last = last + 1")
            (token,) = connection.execute("SELECT last FROM tokens").fetchone()
            connection.execute(
                "UPDATE runs SET token = ?, owner = ?, presence = ?, expires = ? WHERE name = ?",
                (token, Rows.encode_name(owner), self._presence.name, now + seconds, Rows.encode_name(run)),
            )
        return Lease(run, owner, token)

    def renew(self, lease: Lease, seconds: float) -> None:
        """Lengthen a lease that no newer one has followed."""
        connection = self._open()
        presence = self._presence.name if self._presence else None
        with mapped_errors(self.file), self._writing(connection, synchronous=False):
            changed = connection.execute(
                "UPDATE runs SET owner = ?, presence = ?, expires = ? WHERE name = ? AND token = ?",
                (
                    Rows.encode_name(lease.owner),
                    presence,
                    self._clock() + seconds,
                    Rows.encode_name(lease.run),
                    lease.token,
                ),
            )
            if not changed.rowcount:
                raise Rows.stale(lease)

    def release(self, lease: Lease) -> None:
        """Give a run back, unless there was a newer lease; then remove a few of the runs that are too many."""
        connection = self._open()
        with mapped_errors(self.file), self._writing(connection, synchronous=False):
            given = connection.execute(
                "UPDATE runs SET owner = NULL, presence = NULL, expires = 0 WHERE name = ? AND token = ? "
                "RETURNING finished",
                (Rows.encode_name(lease.run), lease.token),
            ).fetchone()
        if given is not None and given[0]:
            # The run has ended well; that there is too much of others is no failure of it.
            with suppress(StoreError):
                self._clean(connection)

    def append(self, lease: Lease, entries: Sequence[str], *, synchronous: bool, finished: bool | None) -> None:
        """Add entries, all or none; ``finished`` says whether the run is now, None that it is as it was."""
        connection = self._open()
        with mapped_errors(self.file), self._writing(connection, synchronous=synchronous):
            row = connection.execute(
                "SELECT id, token, expires FROM runs WHERE name = ?", (Rows.encode_name(lease.run),)
            ).fetchone()
            if row is None or row[1] != lease.token or row[2] <= self._clock():
                raise Rows.stale(lease)
            (last,) = connection.execute("SELECT max(number) FROM entries WHERE run = ?", (row[0],)).fetchone()
            first = (last or 0) + 1
            connection.executemany(
                "INSERT INTO entries VALUES (?, ?, ?)",
                [(row[0], number, entry) for number, entry in enumerate(entries, first)],
            )
            if finished is not None:
                connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (finished, row[0]))

    def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return a run's entries in order; raise ``StoreDamaged`` for one that is no JSON object."""
        if not self._is_begun():
            return []
        connection = self._open()
        with mapped_errors(self.file):
            rows = connection.execute(
                "SELECT number, entry FROM entries WHERE run = (SELECT id FROM runs WHERE name = ?) ORDER BY number",
                (Rows.encode_name(run),),
            ).fetchall()
        return [self._entry(run, number, entry) for number, entry in rows]

    def held(self, run: str) -> bool:
        """Tell whether a process that is there holds a run."""
        if not self._is_begun():
            return False
        connection = self._open()
        with mapped_errors(self.file):
            row = connection.execute(
                "SELECT expires, presence FROM runs WHERE name = ? AND owner IS NOT NULL", (Rows.encode_name(run),)
            ).fetchone()
            return row is not None and row[0] > self._clock() and not is_gone(self._processes, row[1])

    def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        if not self._is_begun():
            return []
        connection = self._open()
        with mapped_errors(self.file):
            return [Rows.decode_name(name) for (name,) in connection.execute("SELECT name FROM runs ORDER BY id")]

    def _clean(self, connection: sqlite3.Connection) -> None:
        with mapped_errors(self.file):
            rows = connection.execute(
                "SELECT id FROM runs WHERE finished ORDER BY id DESC LIMIT ? OFFSET ?",
                (_REMOVED_AT_ONCE, self._settings.keep),
            ).fetchall()
            if rows:
                with self._writing(connection, synchronous=False):
                    for (run,) in rows:
                        self._remove(connection, run)
                    sweep(self._processes, _SWEPT_AT_ONCE)

    def _remove(self, connection: sqlite3.Connection, run: int) -> None:
        # It may have been taken up again since; its holder goes on with it.
        gone = connection.execute(
            "DELETE FROM entries WHERE run IN (SELECT id FROM runs WHERE id = ? AND finished AND expires <= ?)",
            (run, self._clock()),
        )
        if gone.rowcount:
            connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        if self._presence is not None:
            self._presence.close()
            self._presence = None
        if self._connection is not None:
            with closing(self._connection), mapped_errors(self.file):
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with mapped_errors(self.file):
                self._connection = connect(self.file, self._settings.wait)
            self._synchronous = False
        return self._connection

    def _is_begun(self) -> bool:
        return self._connection is not None or self.file.exists()

    def _writing(self, connection: sqlite3.Connection, *, synchronous: bool) -> Any:
        # What follows a lost entry was not synchronised either, so leases need not wait for the disk.
        if synchronous != self._synchronous:
            connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'NORMAL'}")
            self._synchronous = synchronous
        return Sqlite.transaction(connection)

    def _entry(self, run: str, number: int, text: object) -> Mapping[str, Any]:
        try:
            return Rows.decode(text)
        except ValueError as error:
            raise damaged(self.file, f"entry {number} of the run {Rows.shown_name(run)} {error}") from error

    def _held(self, run: str, seconds: float, *, known: bool) -> StoreBusy:
        end = "or stop it" if known else f"or for its lease to run out, in {seconds:.0f} s"
        return StoreBusy(f"Another process is at work on the run {Rows.shown_name(run)}. Wait until it is done, {end}.")
