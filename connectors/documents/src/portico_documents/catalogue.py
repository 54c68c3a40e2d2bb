"""The catalogue: which files are indexed, their passages, and the words in them, in one SQLite database.

Vectors lie in the vector store. The two cannot commit together, so the catalogue is what counts: a vector whose
passage it does not have is ignored. What a kill leaves in the store, the next update removes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Sqlite

_VERSION = 3

# `path` is the name's bytes, `shown` its text: a name need not be UTF-8. `run` is the update that added the file.
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('made', hex(randomblob(8)));
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, shown TEXT NOT NULL, type TEXT NOT NULL, hash BLOB NOT NULL,
    size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, cut TEXT NOT NULL, skipped TEXT, run INTEGER NOT NULL
);
CREATE INDEX files_by_hash ON files (hash);
CREATE TABLE passages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, file INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    text TEXT NOT NULL, headings TEXT NOT NULL, trail TEXT NOT NULL, parts TEXT NOT NULL,
    line INTEGER NOT NULL, end_line INTEGER NOT NULL, page INTEGER
);
CREATE INDEX passages_by_file ON passages (file);
CREATE VIRTUAL TABLE words USING fts5 (
    text, trail, parts, content='passages', content_rowid='number', tokenize='porter unicode61'
);
INSERT INTO words (words, rank) VALUES ('hashsize', 2097152);
CREATE TABLE namespaces (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""


P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` in a thread; when cancelled, wait for it to end first.

    `asyncio.to_thread` alone leaves the thread running, which would go on using a connection that is being closed,
    or write after its lock is released.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # so that it counts as seen
        raise


class CatalogueDamaged(StoreDamaged):
    """The database is not what was written; it is a cache, and an update makes it anew."""

    @classmethod
    def of(cls, file: Path) -> CatalogueDamaged:
        """Return the error for this database."""
        return cls(f"The index in {file.parent} is damaged. Update it (`portico index`): it is made anew.")


class CatalogueOutdated(CatalogueDamaged):
    """The database is of another version, or was never finished."""


class PassageEntry(NamedTuple):
    """A passage as it is kept. Its id begins with the hash of the text that is embedded, headings included."""

    id: str
    text: str
    headings: tuple[str, ...]
    trail: str
    parts: str
    line: int
    end_line: int
    page: int | None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as it is kept, with its passages; ``skipped`` says why it has none."""

    path: bytes
    shown: str
    type: str
    hash: bytes
    size: int
    modified_ns: int
    cut: str
    skipped: str | None
    passages: tuple[PassageEntry, ...]


@contextmanager
def store_errors(file: Path) -> Iterator[None]:
    """Map SQLite's errors to ours, naming the database."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # any statement reads the whole schema first
        found = Sqlite.error(
            error,
            f"The index in {file.parent}",
            damaged="Update it (`portico index`): it is made anew.",
            advice="Searching, too, needs a folder that can be written; `index` of the source says which.",
        )
        if isinstance(found, StoreDamaged):
            raise CatalogueDamaged(str(found)) from error
        raise found from error


def connect(file: Path, *, create: bool = False) -> sqlite3.Connection:
    """Open the database; without ``create`` a missing one is a ``StoreError``.

    Raises ``CatalogueOutdated`` for the database of another version of this package. The connection may move
    between threads but serves one at a time.
    """
    with store_errors(file):
        address = f"{file.as_uri()}?mode={'rwc' if create else 'rw'}"
        # Few statements are kept: those that write many rows are large.
        connection = sqlite3.connect(
            address, uri=True, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if create:
                # Ids are hashes: the passages of a batch lie anywhere in the index of ids. With SQLite's own 2 MB and
                # 4 MB such a page is read and written many times over.
                connection.execute("PRAGMA cache_size = -4000")
                connection.execute("PRAGMA wal_autocheckpoint = 16000")
            if version == 0 and create:
                connection.execute("PRAGMA journal_mode = WAL")
                with Sqlite.transaction(connection):
                    for statement in _SCHEMA.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise CatalogueOutdated(
                    f"The index in {file.parent} is of another version. Update it (`portico index`): it is made anew."
                )
        except BaseException:
            connection.close()
            raise
        return connection


_MOST_IDLE = 4


class Readers:
    """Connections of searches, kept open: opening one takes as long as many searches. Each serves one at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._idle: list[_Reader] = []
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction, which reads one state of the database; map its errors to ours.

        Blocks, and raises what `connect` raises. One whose file was replaced or written is not given again.
        """
        with store_errors(self._file):
            identity, connection = reader = self._take()
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            if identity and len(self._idle) < _MOST_IDLE:
                self._idle.append(reader)
            else:
                connection.close()

    def close(self) -> None:
        """Close those that no search has."""
        _close_all(self._idle)

    def _take(self) -> _Reader:
        identity = _identity(self._file)
        with suppress(IndexError):
            while True:
                known, connection = self._idle.pop()
                if known == identity:
                    return known, connection
                connection.close()
        return identity, connect(self._file)


_Reader: TypeAlias = tuple[tuple[int, ...], sqlite3.Connection]


def _close_all(idle: list[_Reader]) -> None:
    while idle:
        idle.pop()[1].close()


def _identity(file: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written; nothing where there is none."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def is_sealed(file: Path) -> bool:
    """Tell whether the database is as an update left it; raise ``CatalogueDamaged`` where it is not.

    Without a seal are one that is being written, one whose writer was killed, and those of earlier versions.
    """
    with store_errors(file):
        return Sqlite.is_sealed(file)


def remove(file: Path) -> None:
    """Delete the database with what lies beside it."""
    try:
        for suffix in (".seal", "-wal", "-shm", "-journal", ""):
            Path(f"{file}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"The damaged index {file} cannot be removed: {error}. Delete its folder.") from error


def get_meta(connection: sqlite3.Connection, key: str) -> str | None:
    """Return a note, or None."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Make a note."""
    connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))


def revision(connection: sqlite3.Connection) -> int:
    """Return a number that grows whenever passages change."""
    return int(get_meta(connection, "revision") or 0)


def state(connection: sqlite3.Connection) -> tuple[str | None, int]:
    """Return which database it is, and its revision."""
    return get_meta(connection, "made"), revision(connection)


def count_passages(connection: sqlite3.Connection) -> int:
    """Return how many passages there are."""
    return int(connection.execute("SELECT count(*) FROM passages").fetchone()[0])


def write(
    connection: sqlite3.Connection, entries: Sequence[FileEntry], run: int, *, words: bool = True
) -> tuple[list[bool], list[str]]:
    """Replace files and their passages; return for each whether it is new, and the ids of passages that are gone.

    ``words`` says whether the catalogue finds passages by their words, and must be the same each time.
    """
    gone: set[str] = set()
    with Sqlite.transaction(connection):
        query = "SELECT path, id, run FROM files WHERE path IN (VALUES {})"
        known = {path: kept for path, *kept in _ask(connection, query, [entry.path for entry in entries])}
        for file, _ in known.values():
            gone |= _delete_passages(connection, file, words)
        last = connection.execute("SELECT coalesce(max(id), 0) FROM files").fetchone()[0]
        files: list[tuple[object, ...]] = []
        passages: list[tuple[object, ...]] = []
        for number, entry in enumerate(entries, last + 1):
            file, added_by = known.get(entry.path, (number, run))
            content = (entry.hash, entry.size, entry.modified_ns, entry.cut, entry.skipped)
            files.append((file, entry.path, entry.shown, entry.type, *content, added_by))
            for ordinal, (id, text, headings, *rest) in enumerate(entry.passages):
                passages.append((None, id, file, ordinal, text, _json(headings), *rest))
        sequence = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'passages'"
        (before,) = connection.execute(sequence).fetchone()
        _insert(connection, "INSERT OR REPLACE INTO files", files)
        # The transaction goes back as a whole; without OR FAIL, SQLite copies each page to undo the statement alone.
        _insert(connection, "INSERT OR FAIL INTO passages", passages)
        if words:
            found_by = "SELECT number, text, trail, parts FROM passages WHERE number > ?"
            connection.execute(f"INSERT INTO words (rowid, text, trail, parts) {found_by}", (before,))
        bump_revision(connection)
    gone -= {passage.id for entry in entries for passage in entry.passages}
    return [entry.path not in known for entry in entries], sorted(gone)


def delete_files(connection: sqlite3.Connection, files: Sequence[int], *, words: bool = True) -> list[str]:
    """Remove files with their passages, whose ids are returned."""
    gone: set[str] = set()
    with Sqlite.transaction(connection):
        for file in files:
            gone |= _delete_passages(connection, file, words)
            connection.execute("DELETE FROM files WHERE id = ?", (file,))
        bump_revision(connection)
    return sorted(gone)


def touch(connection: sqlite3.Connection, stats: Sequence[tuple[int, int, bytes]]) -> None:
    """Note new sizes and times of files whose content is as it was."""
    with Sqlite.transaction(connection):
        connection.executemany("UPDATE files SET size = ?, modified_ns = ? WHERE path = ?", stats)


def ids_of_texts(connection: sqlite3.Connection, hashes: Sequence[str]) -> list[str]:
    """Return, for each hash of a text that passages have, the id of one of them."""
    first = "SELECT id FROM passages WHERE id >= hash AND id < hash || '~' ORDER BY id LIMIT 1"
    query = f"WITH texts (hash) AS (VALUES {{}}) SELECT group_concat(({first})) FROM texts"
    return [id for (ids,) in _ask(connection, query, hashes) if ids for id in ids.split(",")]


# Beside other threads, Python waits for its turn with each statement and with each row that it is given: so there are
# few statements, with many rows each.
_MOST_VALUES = 4_000


def _ask(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> Iterator[Sequence[Any]]:
    """Yield what a query finds; ``{}`` in it stands for the values."""
    step = _most_values(connection)
    for start in range(0, len(values), step):
        some = values[start : start + step]
        yield from connection.execute(query.format(", ".join(["(?)"] * len(some))), some).fetchall()


def _insert(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    if rows:
        row = f"({', '.join('?' * len(rows[0]))})"
        step = _most_values(connection) // len(rows[0])
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            values = ", ".join([row] * len(some))
            connection.execute(f"{statement} VALUES {values}", list(chain.from_iterable(some)))


def _most_values(connection: sqlite3.Connection) -> int:
    return min(_MOST_VALUES, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))


def _json(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(encode_basestring, texts))}]"  # in a fifth of the time that `json.dumps` takes


def _delete_passages(connection: sqlite3.Connection, file: int, words: bool) -> set[str]:
    if words:
        # A table of words without its own content must be told what to forget.
        connection.execute(
            "INSERT INTO words (words, rowid, text, trail, parts)"
            " SELECT 'delete', number, text, trail, parts FROM passages WHERE file = ?",
            (file,),
        )
    ids = {id for (id,) in connection.execute("SELECT id FROM passages WHERE file = ?", (file,))}
    connection.execute("DELETE FROM passages WHERE file = ?", (file,))
    return ids


def bump_revision(connection: sqlite3.Connection) -> None:
    """Make the revision another one, as a part of the transaction under way."""
    set_meta(connection, "revision", str(revision(connection) + 1))
