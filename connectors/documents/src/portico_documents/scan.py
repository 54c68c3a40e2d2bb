"""Comparing a folder with the catalogue, a bounded batch of documents at a time."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from portico.errors import ConfigurationError
from portico_documents.catalogue import CatalogueDamaged, FileEntry, PassageEntry
from portico_documents.chunking import Passage, cut
from portico_documents.conditions import metadata_of
from portico_documents.config import DocumentsSettings, Place
from portico_documents.reading import Unreadable, read_sections
from portico_documents.terms import identifier_parts

_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file to read.

    ``relative`` is its path below the root with ``/`` between the names, ``size`` is in bytes, ``modified_ns`` in
    nanoseconds since 1970. A name that is not UTF-8 holds surrogate escapes, as everywhere in Python.
    """

    path: str
    relative: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why; nothing inside a skipped folder is listed.

    The reasons are ``hidden`` (the name starts with a dot), ``excluded`` (by a pattern), ``link``, ``special`` (a
    pipe, a socket, a device), ``too large`` and ``unreadable`` (by its permissions, or its path is too long or deep).
    """

    relative: str
    reason: str


def walk(
    root: Path, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), maximum_bytes: int
) -> Iterator[Found | Skipped]:
    """Yield what lies in ``root``: each file to read, and each file or folder that is skipped.

    ``root`` may be a file, which is then yielded whatever its name, or a link to either. No link below it is
    followed: what it points to inside the root is found in its own place, and the rest is not ours to read.

    A pattern without ``/`` is compared with the name of every file and folder, any other with the path below the
    root. ``*`` and ``?`` stop at ``/``, ``**`` does not, ``[ab]`` and ``[!ab]`` take one character. A folder that
    matches stands for all that is in it. ``exclude`` wins over ``include``; an empty ``include`` takes every file.

    What vanishes on the way is left out. Raises ``OSError`` at once when there is no ``root`` or it cannot be listed:
    that must not look like a folder from which everything was deleted.
    """
    state = root.stat()
    if stat.S_ISDIR(state.st_mode):
        rules = _Rules(_pattern(include), _pattern(exclude), maximum_bytes)
        return _walk_folder(_sorted_entries(str(root)), "", rules)
    if stat.S_ISREG(state.st_mode):
        return iter((_judge_file(str(root), root.name, state, maximum_bytes),))
    return iter((Skipped(root.name, "special"),))


@dataclass(frozen=True, slots=True)
class _Rules:
    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    maximum_bytes: int


def _walk_folder(entries: list[os.DirEntry[str]], prefix: str, rules: _Rules) -> Iterator[Found | Skipped]:
    for entry in entries:
        found = _judge(entry, prefix + entry.name, rules)
        if isinstance(found, list):
            yield from _walk_folder(found, f"{prefix}{entry.name}/", rules)
        elif found is not None:
            yield found


def _sorted_entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _judge(entry: os.DirEntry[str], relative: str, rules: _Rules) -> Found | Skipped | list[os.DirEntry[str]] | None:
    """Say what an entry is: the entries inside for a folder to go into, None when it has vanished."""
    if entry.name.startswith("."):
        return Skipped(relative, "hidden")
    try:
        if entry.is_symlink():
            return Skipped(relative, "link")
        is_folder = entry.is_dir(follow_symlinks=False)
        path = f"{relative}/" if is_folder else relative
        if rules.exclude is not None and rules.exclude.fullmatch(path):
            return Skipped(relative, "excluded")
        if is_folder:
            deep = relative.count("/") >= _DEEPEST
            return Skipped(relative, "unreadable") if deep else _sorted_entries(entry.path)
        if not entry.is_file(follow_symlinks=False):
            return Skipped(relative, "special")
        if rules.include is not None and not rules.include.fullmatch(path):
            return Skipped(relative, "excluded")
        return _judge_file(entry.path, relative, entry.stat(follow_symlinks=False), rules.maximum_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Skipped(relative, "unreadable")


def _judge_file(path: str, relative: str, state: os.stat_result, maximum_bytes: int) -> Found | Skipped:
    if state.st_size > maximum_bytes:
        return Skipped(relative, "too large")
    if not os.access(path, os.R_OK):
        return Skipped(relative, "unreadable")
    return Found(path, relative, state.st_size, state.st_mtime_ns)


def _pattern(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    """Compile globs into one expression for paths below the root, in which a folder ends with ``/``."""
    alternatives = []
    for glob in globs:
        body = glob.removeprefix("./")
        only_folders = body.endswith(("/", "/**"))
        body = body.removesuffix("**") if only_folders else body
        body = body.rstrip("/") if only_folders else body
        anchored = "/" in body
        inside = "/.*" if only_folders else "(?:/.*)?"
        if body.strip("/"):
            alternatives.append(("" if anchored else "(?:.*/)?") + _translate(body.lstrip("/")) + inside)
    return re.compile("|".join(alternatives), re.DOTALL) if alternatives else None


_GLOB = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?[^\]/]+\])")
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _translate(glob: str) -> str:
    # Every second part is a wildcard. What is in brackets is only characters, without ranges.
    return "".join(
        _WILDCARDS.get(part) or (_one_of(part[1:-1]) if place % 2 else re.escape(part))
        for place, part in enumerate(_GLOB.split(glob))
    )


def _one_of(characters: str) -> str:
    negated = len(characters) > 1 and characters.startswith("!")
    return f"[^/{re.escape(characters[1:])}]" if negated else f"[{re.escape(characters)}]"


_MOST_PASSAGES = 10_000
_DEEPEST_HEADINGS = 12
_BATCH_PASSAGES = 2_048
_BATCH_CHARACTERS = 1_000_000
_BATCH_FILES = 500
_BATCH_SECONDS = 0.25
_MAXIMUM_PROBLEMS = 100
# A file may change once more within one tick of its file system's clock (2 s on FAT) and look the same.
_RACY_NS = 2_000_000_000
_UNTRUSTED = -1


@dataclass(slots=True)
class Batch:
    """What a stretch of the walk found: files to write anew, and counts of the rest."""

    entries: list[FileEntry] = field(default_factory=list)
    touched: list[tuple[int, int, bytes]] = field(default_factory=list)
    looked: int = 0
    unchanged: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    current: str = ""
    last: bool = False


class Scan:
    """One pass over the folder. Blocking: its methods belong into a thread, one at a time.

    The connection is the scan's own. Paths seen go into a temporary table of it, which SQLite keeps in a file when
    it grows, so that memory does not depend on the number of documents.
    """

    def __init__(self, settings: DocumentsSettings, place: Place, connection: sqlite3.Connection) -> None:
        self._settings = settings
        self._place = place
        self._connection = connection
        self._problems = 0
        connection.execute("CREATE TEMP TABLE seen (path BLOB PRIMARY KEY) WITHOUT ROWID")
        self._walk = self._entries()

    def count(self) -> int:
        """Return how many files a walk finds to read."""
        return sum(isinstance(entry, Found) for entry in self._entries())

    def next_batch(self) -> Batch:
        """Continue the walk until there is enough to write, or a moment has passed."""
        batch = Batch(last=True)
        passages = characters = 0
        until = time.monotonic() + _BATCH_SECONDS
        for entry in self._walk:
            if isinstance(entry, Skipped):
                batch.skipped[entry.reason] += 1
                if entry.reason == "unreadable":
                    self._keep(entry.relative, "", batch)
                continue
            batch.looked += 1
            batch.current = show_path(entry.relative)
            document = self._look(entry, batch)
            if document is not None:
                batch.entries.append(document)
                passages += len(document.passages)
                characters += sum(len(passage.text) for passage in document.passages)
            full = passages >= _BATCH_PASSAGES or characters >= _BATCH_CHARACTERS or batch.looked >= _BATCH_FILES
            if full or time.monotonic() > until:
                batch.last = False
                break
        return batch

    def count_renamed(self, run: int) -> int:
        """Return how many files of the catalogue are gone of which this run has added the same content."""
        row = self._connection.execute(
            "SELECT sum(min(gone.n, added.n)) FROM"
            " (SELECT hash, count(*) AS n FROM files WHERE skipped IS NULL AND path NOT IN seen GROUP BY hash) AS gone"
            " JOIN (SELECT hash, count(*) AS n FROM files WHERE skipped IS NULL AND run = ? GROUP BY hash) AS added"
            " USING (hash)",
            (run,),
        ).fetchone()
        return row[0] or 0

    def find_gone(self, after: int, count: int = 200) -> list[tuple[int, bool]]:
        """Return the next files of the catalogue that the walk has not seen, and whether each was a document."""
        self.check_root()
        rows = self._connection.execute(
            "SELECT id, skipped IS NULL FROM files WHERE id > ? AND path NOT IN seen ORDER BY id LIMIT ?",
            (after, count),
        )
        return [(file, bool(document)) for file, document in rows]

    def check_root(self) -> None:
        """Raise ``ConfigurationError`` unless what is to be indexed can be read: absence is no deletion."""
        root = self._place.root
        try:
            if root.is_dir():
                with os.scandir(root):
                    return
            root.stat()
        except OSError as error:
            raise ConfigurationError(
                f"There is nothing to index at {root}: {error.strerror or error}. "
                "Correct `path` of the source; what was indexed before is kept."
            ) from error

    def _entries(self) -> Iterator[Found | Skipped]:
        settings, root, folder = self._settings, self._place.root, self._place.folder
        self.check_root()
        own = f"{folder.relative_to(root).as_posix()}/" if folder.is_relative_to(root) else None
        for entry in walk(
            root, include=settings.include, exclude=settings.exclude, maximum_bytes=settings.maximum_bytes
        ):
            if own is None or not entry.relative.startswith(own):
                yield entry

    def _keep(self, relative: str, why: str, batch: Batch) -> None:
        """Keep what is indexed of a file or folder that cannot be read now: it is there, and so not deleted."""
        path = os.fsencode(relative)
        # "0" is the character after "/": between the two lie the paths inside a folder.
        inside = (path, path + b"/", path + b"0")
        (documents,) = self._connection.execute(
            "SELECT count(*) FROM files WHERE skipped IS NULL AND (path = ? OR path > ? AND path < ?)", inside
        ).fetchone()
        self._connection.execute(
            "INSERT OR IGNORE INTO seen SELECT path FROM files WHERE path = ? OR path > ? AND path < ?", inside
        )
        batch.unchanged += documents
        kept = " What is indexed of it is kept." if documents else ""
        self._note(batch, f"{show_path(relative)} cannot be read{why and f': {why}'}.{kept}")

    def _look(self, found: Found, batch: Batch) -> FileEntry | None:
        """Return the new state of a file; None for one that is as it was, or cannot be read."""
        path = os.fsencode(found.relative)
        known = self._connection.execute(
            "SELECT size, modified_ns, hash, skipped FROM files WHERE path = ? AND cut = ?", (path, self._place.cut)
        ).fetchone()
        if known is None or known[:2] != (found.size, found.modified_ns):
            try:
                data, modified_ns = self._read(found.path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                batch.skipped["unreadable"] += 1
                self._keep(found.relative, error.strerror or str(error), batch)
                return None
            if len(data) > self._settings.maximum_bytes:
                batch.skipped["too large"] += 1
                return None
            hash = blake2b(data, digest_size=20).digest()
            if known is None or known[2] != hash:
                self._note_seen(path)
                passages, skipped = self._passages(found, path, data, batch)
                type = str(metadata_of(batch.current)["type"])
                state = (len(data), modified_ns, self._place.cut)
                return FileEntry(path, batch.current, type, hash, *state, skipped, passages)
            batch.touched.append((len(data), modified_ns, path))
        self._note_seen(path)
        if known[3] is None:
            batch.unchanged += 1
        else:
            self._note_skipped(batch, known[3])
        return None

    def _note_seen(self, path: bytes) -> None:
        self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?)", (path,))

    def _read(self, path: str) -> tuple[bytes, int]:
        """Return the content with its time; an untrusted time has the file compared again."""
        with Path(path).open("rb") as file:
            data = file.read(self._settings.maximum_bytes + 1)
            state = os.fstat(file.fileno())
        old_enough = abs(time.time_ns() - state.st_mtime_ns) > _RACY_NS
        return data, state.st_mtime_ns if old_enough and len(data) == state.st_size else _UNTRUSTED

    def _passages(
        self, found: Found, path: bytes, data: bytes, batch: Batch
    ) -> tuple[tuple[PassageEntry, ...], str | None]:
        """Return a file's passages, or why it has none."""
        settings = self._settings
        reason, detail = "empty", ""
        ends: list[tuple[int, str]] = []
        try:
            sections = read_sections(PurePath(found.relative), data, ends)
            pieces = cut(sections, target=settings.passage_target, maximum=settings.passage_maximum)
            most = max(_MOST_PASSAGES, 2 * settings.maximum_bytes // settings.passage_target)
            entries = tuple(_entry(path, batch.current, *numbered) for numbered in enumerate(islice(pieces, most)))
            if entries:
                if next(pieces, None) is not None:
                    ends.append((entries[-1].end_line, f"{most:,} passages"))
                for line, what in sorted(ends)[:1]:
                    self._note(batch, f"{batch.current} has more than {what}: it is indexed up to line {line}.")
                return entries, None
        except Unreadable as error:
            reason, detail = error.reason, error.detail
        except Exception as error:  # noqa: BLE001 - one odd file must never stop the rest
            reason, detail = "damaged", f"{type(error).__name__}: {error}"
        self._note_skipped(batch, reason, detail)
        return (), reason

    def _note_skipped(self, batch: Batch, reason: str, detail: str = "") -> None:
        batch.skipped[reason] += 1
        if reason not in {"binary", "empty"}:
            self._note(batch, f"{batch.current} is skipped: {reason}{detail and f' ({detail})'}.")

    def _note(self, batch: Batch, problem: str) -> None:
        self._problems += 1
        if self._problems <= _MAXIMUM_PROBLEMS:
            batch.problems.append(problem)


COLUMNS = "path, shown, passages.id, ordinal, headings, text"
"""What `is_whole` looks at, of ``passages JOIN files``."""


def is_whole(row: Sequence[Any]) -> bool:
    """Tell whether a passage and its document's name are as `Scan` made them, whose hashes are in the id."""
    try:
        path, shown, id, ordinal, headings, text = row
        whole = embedded_text(tuple(json.loads(headings)), text)
        return (show_path(os.fsdecode(path)), _identity(whole, ordinal, path)) == (shown, id)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return False


def check(connection: sqlite3.Connection, file: Path) -> None:
    """Look through a whole catalogue; raise ``CatalogueDamaged`` unless all is as it was written."""
    whole = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
    rows = connection.execute(f"SELECT {COLUMNS} FROM passages JOIN files ON files.id = file")
    if not whole or not all(is_whole(row) for row in rows):
        raise CatalogueDamaged.of(file)


def embedded_text(headings: tuple[str, ...], text: str) -> str:
    """Return what is embedded for a passage: its headings give it the context that its text leaves out."""
    return "\n".join((*headings, text))


def _entry(path: bytes, shown_path: str, ordinal: int, passage: Passage) -> PassageEntry:
    text = _storable(passage.text)
    headings = tuple(map(_storable, passage.headings[:_DEEPEST_HEADINGS]))
    id = _identity(embedded_text(headings, text), ordinal, path)
    trail = " ".join((shown_path, *headings))
    parts = identifier_parts(f"{trail} {text}")
    place = (passage.line, passage.end_line, passage.page)
    return PassageEntry(id, text, headings, trail, parts, *place)


def hash_of_text(id: str) -> str:
    """Return the part of a passage's id that those of other passages with the same text have too."""
    return id[:20]


def _identity(text: str, ordinal: int, path: bytes) -> str:
    return _hash(text.encode()) + _hash(ordinal.to_bytes(4, "big") + path)


def _hash(data: bytes) -> str:
    # 120 bits in 20 characters: a document must not be able to have the id of another one.
    return urlsafe_b64encode(blake2b(data, digest_size=15).digest()).decode()


def _storable(text: str) -> str:
    """Replace lone surrogates, which neither SQLite nor an embedding model takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def show_path(relative: str) -> str:
    """Return a path as it can be printed and stored: bytes that are no UTF-8 become U+FFFD."""
    return relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
