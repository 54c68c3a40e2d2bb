"""The rows of a journal in a database: an entry as text, a run's name as bytes, and whether a run has ended.

A name is bytes because PostgreSQL's and SQLite's text cannot hold every string. An entry is JSON in ASCII, so that the
encoding of the database makes no difference and its own functions for JSON can read it. Its last member is a checksum
of the rest: CRC-32 finds every change of up to 32 bits in a row, and takes less than a microsecond for an entry.
"""

from __future__ import annotations

import json
from operator import ne
from typing import TYPE_CHECKING, Any
from zlib import crc32

from portico.errors import StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from portico._ports.run_store import Lease

_MAXIMUM_CHARACTERS = 100_000_000
_MARK = ',"crc32":"'
_CHECKSUM = f'{_MARK}%08x"}}'
_TAIL = len(_CHECKSUM % 0)

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class Rows:
    """Reads and writes the rows of a journal."""

    @staticmethod
    def encode(run: str, entry: Mapping[str, Any]) -> str:
        r"""Return an entry as JSON text of one line, in ASCII, at most 100,000,000 characters and a checksum.

        >>> Rows.encode("r1", {"type": "step-finished", "step": "s1", "result": "hé"})
        '{"type":"step-finished","step":"s1","result":"h\\u00e9","crc32":"557f1e3d"}'

        Raises ``StoreError``, which names the run, for an entry that is not JSON or too long.
        """
        try:
            text = _encode(entry)
        except (TypeError, ValueError, RecursionError) as error:
            raise StoreError(f"An entry of the run {Rows.shown_name(run)} is not JSON: {error}.") from error
        if len(text) > _MAXIMUM_CHARACTERS:
            raise StoreError(
                f"An entry of the run {Rows.shown_name(run)} has {len(text):,} characters; the journal takes "
                f"{_MAXIMUM_CHARACTERS:,}. Let the step write a file and return its name."
            )
        return text[:-1] + _CHECKSUM % crc32(text.encode()) if entry else text

    @staticmethod
    def decode(text: object) -> dict[str, Any]:
        """Return the entry of its text, also of one that was written without a checksum.

        >>> Rows.decode('{"type":"interrupted"}')
        {'type': 'interrupted'}

        Raises ``ValueError`` for a text that `encode` never gives. Its message follows the words "the entry", as in
        "is no object"; a store makes a ``StoreDamaged`` of it.
        """
        # A mark with one wrong character is a damaged one.
        if isinstance(text, str) and len(text) > _TAIL and sum(map(ne, text[-_TAIL:], _MARK)) < 2:
            whole = text[:-_TAIL] + "}"
            if text[-_TAIL:] != _CHECKSUM % crc32(whole.encode("utf-8", "surrogatepass")):
                raise ValueError("is not as it was written: its checksum differs")
            text = whole
        try:
            entry = json.loads(text)  # type: ignore[arg-type]  # what is in a damaged row may be of any type
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError("is no JSON") from error
        if not isinstance(entry, dict):
            raise ValueError("is no object")
        return entry

    @staticmethod
    def ended(entries: Sequence[Mapping[str, Any]]) -> bool | None:
        """Return whether appended entries end their run (True) or resume it (False); None where they do neither.

        >>> Rows.ended([{"type": "step-finished"}, {"type": "outcome", "kind": "answer"}])
        True

        A store may remove runs that have ended. One that is paused, uncertain or interrupted has not.
        """
        for entry in reversed(entries):
            match entry.get("type"):
                case "outcome":
                    return bool(entry.get("kind") != "held")
                case "resumed":
                    return False
        return None

    @staticmethod
    def encode_name(name: str) -> bytes:
        r"""Return the bytes of a run's or an owner's name, for a column of bytes.

        >>> Rows.decode_name(Rows.encode_name("half \ud800 a pair")) == "half \ud800 a pair"
        True
        """
        return name.encode("utf-8", "surrogatepass")

    @staticmethod
    def decode_name(stored: bytes) -> str:
        """Return the name of its bytes; raises ``UnicodeDecodeError`` for what `encode_name` never gave."""
        return stored.decode("utf-8", "surrogatepass")

    @staticmethod
    def shown_name(name: str) -> str:
        r"""Return a name for a message, where it must stay on its line and be printed.

        >>> print(Rows.shown_name("r1"), Rows.shown_name("r\n1"))
        r1 'r\n1'
        """
        return name if name.isprintable() and name else ascii(name)

    @staticmethod
    def stale(lease: Lease) -> StoreBusy:
        """Return the error for a lease that is no longer in force, where nothing was written for it."""
        return StoreBusy(
            f"The run {Rows.shown_name(lease.run)} belongs to another process: the lease {lease.token} ran out, was "
            "given back or was taken over. Nothing was written."
        )
