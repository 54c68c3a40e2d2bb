"""The PlanStore on a folder: one file for each plan."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Services
from portico.ports import SavedPlan
from portico_basics.config import MOST_BYTES, PlanFolderSettings

SAVED_NAME = re.compile(r"[a-z0-9-]{1,41}-[0-9a-f]{24}\.json")
_SLUG = 40
_DIGITS = 24
_SURROGATES = re.compile("[\ud800-\udfff]")


def file_name(goal: str, catalogue: str) -> str:
    """Return the name of the file for a goal and a catalogue: words for people, a digest that tells them apart.

    >>> file_name("Tell the weather in Zürich!", "c1")
    'tell-the-weather-in-zurich-c3c754c8714b43240f9946bb.json'

    Only small ASCII letters, digits and '-': file systems differ in what else they take, and in what they hold equal.
    A goal that has no such words is called ``plan``. The digest is of 96 bits; names reserved on Windows never are
    a whole name here.
    """
    words = unicodedata.normalize("NFKD", goal[:1_000]).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:_SLUG].strip("-") or "plan"
    # Lengths first: no two pairs are joined to one text.
    key = f"{len(goal)} {goal}{catalogue}".encode("utf-8", "surrogatepass")
    return f"{slug}-{hashlib.sha256(key).hexdigest()[:_DIGITS]}.json"


def encode_saved(saved: SavedPlan) -> bytes:
    """Return the contents of a saved plan's file. Raises ``TypeError`` or ``ValueError`` for what is not JSON."""
    parse_time(saved.saved_at)
    saved = replace(saved, goal=saved.goal.strip())
    text = json.dumps(saved.to_json(), ensure_ascii=False, allow_nan=False, indent=2)
    # Half a pair of surrogates has no UTF-8; in JSON it can only stand inside a string, where it has an escape.
    return (_SURROGATES.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n").encode()


def read_saved(contents: bytes) -> SavedPlan:
    """Read a saved plan's file, also one without a digest. Raises ``ValueError`` that says what is wrong with it."""
    try:
        document = json.loads(contents)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    return SavedPlan.from_json(document)


def parse_time(text: str) -> datetime:
    """Return the time of a text in ISO form, in UTC if it has no zone. Raises ``ValueError``."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _describe_damage(path: Path, reason: object) -> StoreDamaged:
    """Return the error of a file that is no saved plan."""
    return StoreDamaged(f"The saved plan in {path} cannot be read: {reason}. Mend the file, or delete it.")


@contextmanager
def _map_errors(verb: str, path: Path) -> Iterator[None]:
    """Raise ``StoreError`` for errors of the file system."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"The plan store cannot {verb} {path}: {error.strerror or error}.") from error


class FolderPlanStore:
    """Save each plan as a JSON file, named after its goal.

    >>> store = FolderPlanStore(PlanFolderSettings(path=Path(tempfile.mkdtemp())))
    >>> saved = SavedPlan("Greet", "c1", {"version": 1, "goal": "Greet", "steps": []}, "2026-01-01T00:00:00+00:00")
    >>> async def keep():
    ...     await store.put(saved)
    ...     return await store.get("Greet", "c1")
    >>> asyncio.run(keep()) == saved
    True

    There is no lock: a temporary file is written and then replaces the plan's file, so that any number of processes may
    read and write the same folder, and the last one wins. A killed writer may leave its temporary file, with a dot at
    the beginning of its name. Files of other names are left alone. Threads do the work with files.
    """

    name = "folder"

    def __init__(self, settings: PlanFolderSettings, services: Services | None = None) -> None:
        self.settings = settings

    async def get(self, goal: str, catalogue: str) -> SavedPlan | None:
        """Return the plan of a goal for a catalogue, or None. Raises ``StoreDamaged`` for a damaged file."""
        goal = goal.strip()
        path = self.settings.path / file_name(goal, catalogue)
        saved = await asyncio.to_thread(self._read, path)
        if saved is not None and (saved.goal, saved.catalogue) != (goal, catalogue):
            raise _describe_damage(path, "its goal and catalogue do not fit its name")
        return saved

    async def put(self, saved: SavedPlan) -> None:
        """Save a plan. Raises ``StoreError`` if it is not JSON, too large, or cannot be written."""
        try:
            contents = encode_saved(saved)
        except (TypeError, ValueError, RecursionError) as error:
            raise StoreError(f"The plan for {saved.goal[:60]!r} cannot be saved: {error}.") from error
        if len(contents) > MOST_BYTES:
            raise StoreError(
                f"The plan for {saved.goal[:60]!r} cannot be saved: its file would have {len(contents):,} bytes, "
                f"and at most {MOST_BYTES:,} are allowed."
            )
        await asyncio.to_thread(self._write, file_name(saved.goal.strip(), saved.catalogue), contents)

    async def remove(self, goal: str, catalogue: str) -> bool:
        """Remove a plan, also a damaged one. Return False if there was none."""
        return await asyncio.to_thread(self._remove, self.settings.path / file_name(goal.strip(), catalogue))

    async def plans(self) -> list[SavedPlan]:
        """Return all plans, the newest first. Raises ``StoreDamaged`` for a damaged file."""
        return await asyncio.to_thread(self._all)

    def _all(self) -> list[SavedPlan]:
        folder = self.settings.path
        with _map_errors("read", folder):
            try:
                names = sorted(path.name for path in folder.iterdir() if SAVED_NAME.fullmatch(path.name))
            except FileNotFoundError:
                return []
        found = [saved for name in names if (saved := self._read(folder / name)) is not None]
        return sorted(found, key=lambda saved: parse_time(saved.saved_at), reverse=True)

    def _read(self, path: Path) -> SavedPlan | None:
        with _map_errors("read", path):
            try:
                with path.open("rb") as stream:
                    contents = stream.read(MOST_BYTES + 1)
            except FileNotFoundError:
                return None
        if len(contents) > MOST_BYTES:
            raise _describe_damage(path, f"it has more than {MOST_BYTES:,} bytes")
        try:
            return read_saved(contents)
        except ValueError as error:
            raise _describe_damage(path, error) from error

    def _write(self, name: str, contents: bytes) -> None:
        folder = self.settings.path
        with _map_errors("write to", folder):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, beside = tempfile.mkstemp(prefix=".portico-plan-", suffix=".tmp", dir=folder)
        try:
            with _map_errors("write to", folder / name):
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(contents)
                    stream.flush()
                    os.fsync(stream.fileno())
                Path(beside).replace(folder / name)
        finally:
            Path(beside).unlink(missing_ok=True)
        # The name must last, too. A folder may not be readable, and some file systems and Windows cannot do this.
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _remove(self, path: Path) -> bool:
        with _map_errors("write to", path):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
        return True
