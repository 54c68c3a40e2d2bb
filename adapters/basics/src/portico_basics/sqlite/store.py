"""The run store in SQLite."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zlib import crc32

from portico.errors import StoreBusy, StoreDamaged, StoreError
from portico.plugins import Rows, Services, Sqlite
from portico.ports import Lease, RunStore
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.log import lost_frames

try:
    import fcntl
except ImportError:
    _LOCKS = False
    """Windows has other locks, which keep a file from being removed."""
else:
    _LOCKS = True


class Presence:
    """A locked file that shows that this process runs. ``name`` is empty if the file could not be locked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self.name = ""
        if _LOCKS:
            with suppress(OSError):
                folder.mkdir(exist_ok=True, mode=0o700)
                hidden = folder / f".{(name := uuid.uuid4().hex)}"
                self._descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Other processes look at the name that it gets now, when it is locked.
                hidden.rename(folder / name)
                self.name = name

    def close(self) -> None:
        """Remove the file."""
        if self.name:
            (self._folder / self.name).unlink(missing_ok=True)
            self.name = ""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_gone(folder: Path, name: str | None) -> bool:
    """Return whether the process that locked this file has certainly ended, and remove the file then."""
    if not name or not _LOCKS:
        return False
    file = folder / name
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def sweep(folder: Path, most: int) -> None:
    """Remove the files of killed processes, looking at ``most`` files at a time."""
    names = os.listdir(folder) if folder.is_dir() else ()  # noqa: PTH208 - names are enough
    for name in islice(names, most):
        if not name.startswith("."):
            is_gone(folder, name)


_SWITCH = 'set another `path` in [runs.sqlite] of portico.toml, or `use = "none"` in [runs] to keep no journal'


def _map_errors(file: Path) -> AbstractContextManager[None]:
    """Raise ``StoreBusy``, ``StoreDamaged`` or ``StoreError`` for errors of SQLite and the file system."""
    return Sqlite.errors(f"The journal {file}", damaged=_mend(file), advice=f"Make it writable, or {_SWITCH}.")


def _describe_damage(file: Path, why: str, advice: str = "") -> StoreDamaged:
    return StoreDamaged(f"The journal {file} is damaged: {why}. {advice or _mend(file)}")


def _mend(file: Path) -> str:
    return (
        f"Move it away, with all files {file.name}-*, and a new one is begun; the runs in it cannot be resumed then. "
        f"`sqlite3 {file} .recover` shows what can still be read."
    )


_ONE_RUN = "Other runs are not concerned. Restore the journal from a backup, or begin this run's goal again."

VERSION = 2
_APPLICATION = 0x506F7274
"""How `file` and SQLite recognise the journal: "Port"."""

_TABLES = (
    # Names are bytes: any string is a name, also one that is not valid Unicode. `token` is that of the newest lease;
    # `owner` is none when the run is free, and `presence` the file that the owner's process holds locked.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name BLOB NOT NULL UNIQUE,
        created REAL NOT NULL,
        finished INTEGER NOT NULL DEFAULT 0,
        token INTEGER NOT NULL DEFAULT 0,
        owner BLOB,
        presence TEXT,
        expires REAL NOT NULL DEFAULT 0)""",
    "CREATE INDEX finished_runs ON runs (id) WHERE finished",
    """CREATE TABLE entries (
        run INTEGER NOT NULL REFERENCES runs (id),
        number INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (run, number)) WITHOUT ROWID""",
    # One row: the last token given, so that none comes again when a run was removed.
    "CREATE TABLE tokens (last INTEGER NOT NULL)",
    "INSERT INTO tokens VALUES (0)",
)
_SEALED = "id, name, created, finished, token, owner, CAST(presence AS BLOB), expires, length"
_SEAL = f"UPDATE runs SET seal = seal({_SEALED})"
_LAST = "(SELECT max(number) FROM entries WHERE run = (SELECT id FROM runs WHERE name = ?1))"
_READ = f"""SELECT (SELECT seal = seal({_SEALED}) FROM runs WHERE name = ?1), presence, owner, length, id, {_LAST},
    run, number, entry FROM runs LEFT JOIN entries ON run = id {{}} WHERE name = ?1 ORDER BY number"""
_OUTLINE = f"""AND (number = {_LAST} OR json_extract(entry, '$.type') NOT GLOB 'step-*'
    OR json_extract(entry, '$.step') NOT GLOB '*[[/]*')"""
"""The condition for the entries that do not concern steps inside others, and for the last one."""
_ENDS = """SELECT before, last FROM
    (SELECT run, number, lag(run, 1, 0) OVER () AS before, lag(number) OVER () AS last FROM entries)
    WHERE run IS NOT before AND (number = 1 AND run > before AND run IN (SELECT id FROM runs)) IS NOT TRUE"""
"""Run and number of the entries after which no other run begins, in the order of the file: the next may be changed."""
_APPENDED = """SELECT id, token, expires, (SELECT coalesce(max(number), 0) FROM entries WHERE run = id)
    FROM runs WHERE name = ?"""
_COUNT = "length = (SELECT count(*) FROM entries WHERE run = id)"
_UPGRADE = (
    # Since version 2: the checksum of the row, and how many entries the run has while no process holds it.
    "ALTER TABLE runs ADD COLUMN length INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN seal INTEGER",
    f"UPDATE runs SET {_COUNT}",
    _SEAL,
    f"PRAGMA user_version = {VERSION}",
)

_log = logging.getLogger("portico_basics.sqlite")
_opening = threading.Lock()
_opened: set[Path] = set()
"""The journals that this process has opened."""


def connect(file: Path, wait: float) -> sqlite3.Connection:
    """Open the journal, or create it. ``wait`` is in seconds.

    Raises ``OSError`` and ``sqlite3.Error`` as they come, ``StoreError`` for a file of another kind or version, and
    ``StoreDamaged`` for a journal that is gone or whose log is not whole.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    real = file.resolve()
    with _opening:
        if real not in _opened:
            _require_whole_log(real)
        if not is_there(file):
            # Results may be private; the log beside it gets the same permissions from SQLite.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(file, timeout=wait, isolation_level=None)
        _opened.add(real)
    try:
        # What is no text any more is told with its entry.
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        connection.create_function("seal", -1, lambda *row: crc32(repr(row).encode()), deterministic=True)
        _prepare(connection, file, wait)
    except BaseException:
        connection.close()
        raise
    return connection


def is_there(file: Path, *, empty: bool = False) -> bool:
    """Return whether the journal is there; raise ``StoreDamaged`` if it was begun, and is now gone or ``empty``."""
    # The mark is looked at first: another process may begin the journal between the two looks.
    begun = (mark := _beside(file, "begun")).exists()
    there = file.exists() and not empty
    if begun and not there:
        advice = f"Restore it from a backup. Or delete {mark}, and a new one is begun."
        raise StoreDamaged(f"The journal {file} is gone or empty. {advice}")
    return there


def _beside(file: Path, what: str) -> Path:
    real = file.resolve()  # as SQLite does: others may open it by another path
    return real.with_name(f"{real.name}-{what}")


def _require_whole_log(file: Path) -> None:
    lost, written = lost_frames(file)
    if not lost:
        return
    log = _beside(file, "wal")
    why = f"{lost} of the {written} pages that were written to {log.name} are not there, or changed"
    up = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
    if log.exists() and log.stat().st_mtime < time.time() - up:
        # After a power failure, the newest entries may be missing: the setting `sync` allows that.
        _log.warning("The journal %s: %s, since the system was restarted. The rest is used.", file, why)
        return
    shm = _beside(file, "shm")
    advice = f"Restore both from a backup. Or delete {shm}, as in a copy of it: then the newest entries may be lost."
    raise _describe_damage(file, why, advice)


def _prepare(connection: sqlite3.Connection, file: Path, wait: float) -> None:
    if _is_empty(connection):
        Sqlite.use_log(connection, wait)
        with Sqlite.transaction(connection):
            # Two processes may begin it at once; the second finds it made.
            if _is_empty(connection):
                is_there(file, empty=True)
                for statement in (*_TABLES, f"PRAGMA application_id = {_APPLICATION}", *_UPGRADE):
                    connection.execute(statement)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise StoreError(f"{file} is not a journal of Portico but another database; {_SWITCH}.")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"The journal {file} is of version {version}, and this portico-basics knows up to {VERSION}. "
            "Run `pip install --upgrade portico-basics`."
        )
    if version < VERSION:
        with Sqlite.transaction(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for statement in _UPGRADE if version < VERSION else ():
                connection.execute(statement)
    connection.execute("PRAGMA synchronous = NORMAL")
    if not (mark := _beside(file, "begun")).exists():
        mark.write_text(f"{file.name} was begun. Without this file, an empty one would be taken for a new one.\n")


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


_REMOVED_AT_ONCE = 10
_SWEPT_AT_ONCE = 20
_THREAD = "portico-basics"


P = ParamSpec("P")
T = TypeVar("T")


class SqliteRunStore(RunStore):
    """The RunStore port in one SQLite file, which several processes may share.

    >>> from tempfile import TemporaryDirectory
    >>> async def write(folder):
    ...     store = SqliteRunStore(SqliteSettings(path=Path(folder) / "runs.sqlite3"))
    ...     lease = await store.acquire("r1", owner="me", seconds=60)
    ...     await store.append(lease, [{"type": "pursuit", "goal": "Shout"}])
    ...     await store.release(lease)
    ...     entries = await store.read("r1")
    ...     await store.aclose()
    ...     return entries
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(write(folder))
    [{'type': 'pursuit', 'goal': 'Shout'}]

    One thread does all the work, in the order of the calls, so that the event loop never waits for the disk. Nothing is
    opened before the first call. A cancelled call has happened as a whole or not at all.

    A lease is valid while it is the newest of its run and has not expired, and it ends with the process that holds it.
    ``clock`` gives seconds since 1970, the same in all processes. If a clock is wrong, a run is given away too early or
    too late, but the token of the lease still prevents that two processes write to it.
    """

    name = "sqlite"

    def __init__(
        self,
        settings: SqliteSettings | None = None,
        services: Services | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or SqliteSettings()
        self._clock = clock
        self._file = self._settings.path or _default_path()
        self._processes = _beside(self._file, "processes")
        self._thread = ThreadPoolExecutor(1, _THREAD)
        self._connection: sqlite3.Connection | None = None
        self._presence: Presence | None = None
        self._synchronous = False
        self._faults: str | list[tuple[object, object]] | None = None
        """What SQLite's check of the file found, or the ends that are not whole; none before it is needed."""
        self._effects: set[tuple[str, str]] = set()
        """Run and step of each step with effects that has begun and not ended."""

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run for ``seconds``. Raises ``StoreBusy`` while another running process holds it."""
        return await self._do(self._acquire, run, owner, seconds)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Extend a lease. Raises ``StoreBusy`` if there is a newer one."""
        await self._do(self._renew, lease, seconds)

    async def release(self, lease: Lease) -> None:
        """Give the run back, unless the lease is stale. If it is finished, a few of the oldest runs are removed."""
        self._effects = {step for step in self._effects if step[0] != lease.run}
        await self._do(self._release, lease)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries at the end. Raises ``StoreBusy`` for a stale lease, ``StoreError`` for what is no JSON.

        They survive a kill of this process at once. The setting ``sync`` decides when they survive a power failure.
        """
        # Not in the thread: the caller may change the entries afterwards.
        texts = [Rows.encode(lease.run, entry) for entry in entries]
        concerned = [self._concerns_effects(lease.run, entry) for entry in entries]
        sync = self._settings.sync
        synchronous = sync == "always" or (sync == "effects" and any(concerned))
        await self._do(self._append, lease, texts, synchronous=synchronous, finished=Rows.ended(entries))

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order, none for an unknown run."""
        return await self._do(self._read, run)

    async def outline(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order, without those of steps inside others but the last."""
        return await self._do(self._read, run, _OUTLINE)

    async def held(self, run: str) -> bool:
        """Return whether a running process holds the run."""
        return await self._do(self._held, run)

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        return await self._do(self._runs)

    async def aclose(self) -> None:
        """Close the file and end the thread. The next call opens it again."""
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        # The next thread waits until this one has closed the file.
        self._thread = ThreadPoolExecutor(1, _THREAD, initializer=futures.wait, initargs=([closed],))
        await asyncio.wrap_future(closed)

    async def _do(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.wrap_future(self._thread.submit(call, *arguments, **options))

    def _concerns_effects(self, run: str, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry is the start or the end of a step with effects.

        The start must be on the disk before the effect happens: after a power failure it would otherwise happen again.
        """
        step = (run, str(entry.get("step")))
        match entry.get("type"):
            case "step-started" if entry.get("effects"):
                self._effects.add(step)
                return True
            case "step-finished" | "step-failed" if step in self._effects:
                self._effects.discard(step)
                return True
            case _:
                return False

    # The methods below run in the thread. Each is one transaction.

    def _acquire(self, run: str, owner: str, seconds: float) -> Lease:
        with self._writing() as connection:
            if self._presence is None:
                self._presence = Presence(self._processes)
            now = self._clock()
            name = Rows.encode_name(run)
            row = connection.execute("SELECT owner, expires, presence FROM runs WHERE name = ?", (name,)).fetchone()
            if row is not None:
                held = row[0] not in (None, Rows.encode_name(owner)) and row[1] > now
                if held and not is_gone(self._processes, row[2]):
                    end = "or stop it" if row[2] else f"or for its lease to run out, in {row[1] - now:.0f} s"
                    what = f"Another process is at work on the run {Rows.shown_name(run)}."
                    raise StoreBusy(f"{what} Wait until it is done, {end}.")
            else:
                connection.execute("INSERT INTO runs (name, created) VALUES (?, ?)", (name, now))
                connection.execute(f"{_SEAL} WHERE name = ?", (name,))
            connection.execute("UPDATE tokens SET last = last + 1")
            (token,) = connection.execute("SELECT last FROM tokens").fetchone()
            values = (token, Rows.encode_name(owner), self._presence.name, now + seconds, name)
            if not _change(connection, "token = ?, owner = ?, presence = ?, expires = ? WHERE name = ?", *values):
                raise self._damaged_run(run)
        return Lease(run, owner, token)

    def _renew(self, lease: Lease, seconds: float) -> None:
        presence = self._presence.name if self._presence else None
        owner, name = Rows.encode_name(lease.owner), Rows.encode_name(lease.run)
        with self._writing() as connection:
            values = (owner, presence, self._clock() + seconds, name, lease.token)
            if not _change(connection, "owner = ?, presence = ?, expires = ? WHERE name = ? AND token = ?", *values):
                raise Rows.stale(lease)

    def _release(self, lease: Lease) -> None:
        with self._writing() as connection:
            given = _change(
                connection,
                f"owner = NULL, presence = NULL, expires = 0, {_COUNT} WHERE name = ? AND token = ?",
                Rows.encode_name(lease.run),
                lease.token,
            )
        if given and given[0][1]:
            # The run has ended well, also if old runs cannot be removed.
            with suppress(StoreError):
                self._clean()

    def _append(self, lease: Lease, entries: Sequence[str], *, synchronous: bool, finished: bool | None) -> None:
        with self._writing(synchronous=synchronous) as connection:
            row = connection.execute(_APPENDED, (Rows.encode_name(lease.run),)).fetchone()
            if row is None or row[1] != lease.token or row[2] <= self._clock():
                raise Rows.stale(lease)
            connection.executemany(
                "INSERT INTO entries VALUES (?, ?, ?)",
                [(row[0], number, entry) for number, entry in enumerate(entries, row[3] + 1)],
            )
            if finished is not None:
                _change(connection, "finished = ? WHERE id = ?", finished, row[0])

    def _read(self, run: str, only: str = "") -> list[Mapping[str, Any]]:
        rows = self._select(_READ.format(only), Rows.encode_name(run))
        if not rows and run not in self._runs():
            return []
        if not rows or not rows[0][0]:
            raise self._damaged_run(run)
        _, presence, owner, length, id, last = rows[0][:6]
        numbers = (row[7] for row in rows) if only else count(1)
        entries = [self._entry(run, next(numbers), row[7:]) for row in rows if row[6] is not None]
        there = (last or 0) if only else len(entries)
        if there < length or (owner is None and there > length):
            raise self._damaged_run(run, f"the run {Rows.shown_name(run)} had {length} entries and has {there}")
        own = self._presence is not None and presence == self._presence.name != ""
        # Of a run that another process has, or had when it was killed, the length is not known.
        if owner is not None and not own:
            self._require_end(run, id, there)
        return entries

    def _require_end(self, run: str, id: int, last: int) -> None:
        """Raise ``StoreDamaged`` if the last entries of a run, or all of them, may be lost or be another run's now."""
        what = f"entries of the run {Rows.shown_name(run)} may be missing"
        if self._faults is None:
            [(found,)] = self._select("PRAGMA integrity_check(1)")
            # Faults of the pages are found first, and have this head. Others are those of single rows.
            self._faults = found if found.startswith("***") else self._select(_ENDS)
        if isinstance(self._faults, str):
            raise _describe_damage(self._file, f"{what}: {self._faults}")
        if (id, last) in self._faults or (self._faults and not last):
            raise self._damaged_run(run, what)

    def _held(self, run: str) -> bool:
        rows = self._select(
            "SELECT expires, presence FROM runs WHERE name = ? AND owner IS NOT NULL", Rows.encode_name(run)
        )
        return any(expires > self._clock() and not is_gone(self._processes, presence) for expires, presence in rows)

    def _runs(self) -> list[str]:
        rows = self._select(f"SELECT name, seal = seal({_SEALED}) FROM runs ORDER BY id")
        if all(sealed for _, sealed in rows):
            for (found,) in self._select("PRAGMA integrity_check('runs')"):
                if found != "ok":
                    raise _describe_damage(self._file, f"runs may be missing: {found}")
        return [Rows.decode_name(name) if sealed else ascii(name)[2:-1] for name, sealed in rows]

    def _clean(self) -> None:
        """Remove a few of the oldest runs, unless another process has resumed one since."""
        rows = self._select(
            "SELECT id FROM runs WHERE finished ORDER BY id DESC LIMIT ? OFFSET ?",
            _REMOVED_AT_ONCE,
            self._settings.keep,
        )
        if not rows:
            return
        with self._writing() as connection:
            for (run,) in rows:
                whole = f"id = ? AND finished AND expires <= ? AND seal = seal({_SEALED})"
                if connection.execute(f"DELETE FROM runs WHERE {whole}", (run, self._clock())).rowcount:
                    connection.execute("DELETE FROM entries WHERE run = ?", (run,))
            sweep(self._processes, _SWEPT_AT_ONCE)

    def _close(self) -> None:
        if self._presence is not None:
            self._presence.close()
            self._presence = None
        if self._connection is not None:
            with closing(self._connection), _map_errors(self._file):
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._file, self._settings.wait)
            self._synchronous, self._faults = False, None
        return self._connection

    def _select(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query; none where there is no file yet."""
        if self._connection is None and not is_there(self._file):
            return []
        with _map_errors(self._file):
            return self._open().execute(query, values).fetchall()

    @contextmanager
    def _writing(self, *, synchronous: bool = False) -> Iterator[sqlite3.Connection]:
        # What follows a lost entry is lost too, so leases need not wait for the disk.
        with _map_errors(self._file):
            connection = self._open()
            if synchronous != self._synchronous:
                connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'NORMAL'}")
                self._synchronous = synchronous
            with Sqlite.transaction(connection):
                yield connection

    def _entry(self, run: str, expected: int, row: tuple[object, object]) -> Mapping[str, Any]:
        number, text = row
        try:
            if number != expected:
                raise ValueError("is missing")
            return Rows.decode(text)
        except ValueError as error:
            what = f"entry {expected} of the run {Rows.shown_name(run)} {error}"
            raise self._damaged_run(run, what) from error

    def _damaged_run(self, run: str, what: str = "") -> StoreDamaged:
        what = what or f"what it has of the run {Rows.shown_name(run)} is not what was written"
        return _describe_damage(self._file, what, _ONE_RUN)


def _change(connection: sqlite3.Connection, change: str, *values: Any) -> list[tuple[int, int]]:
    """Change the row of a run if it is whole, seal it, and return its number and whether it is finished."""
    rows = connection.execute(
        f"UPDATE runs SET {change} AND seal = seal({_SEALED}) RETURNING id, finished", values
    ).fetchall()
    for number, _ in rows:
        connection.execute(f"{_SEAL} WHERE id = ?", (number,))
    return rows


def _default_path() -> Path:
    from platformdirs import user_state_path

    return user_state_path("portico", appauthor=False) / "runs.sqlite3"
