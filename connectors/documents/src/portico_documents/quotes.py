"""Whether a passage that is quoted still stands in its file."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from portico_documents.reading import Unreadable
from portico_documents.reading.decoding import decode

CHANGED = "This file has changed since it was indexed: run `portico index`."
GONE = "This file is gone since it was indexed: run `portico index`."
_GROWTH = 1_000_000


class Quotes:
    """Compares passages with their files, each of which is read once; the texts of those that have changed are kept."""

    def __init__(self) -> None:
        self._changed: dict[Path, str | None] = {}

    def find(self, file: Path, hash: bytes, size: int, text: str, line: int) -> int | str:
        """Return the line on which a passage stands now, or a sentence that says why it cannot be quoted.

        ``hash`` and ``size`` are those of the file when it was indexed. In a file that has changed the passage is
        looked for from its line on, then anywhere; what is not there as it was indexed, as the text of a PDF, is not
        found. A file that cannot be read is taken to be as it was.
        """
        try:
            if file not in self._changed:
                self._changed[file] = _text_if_changed(file, hash, size)
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except OSError:
            return line
        content = self._changed[file]
        if content is None:
            return line
        start = 0
        for _ in range(line - 1):
            start = content.find("\n", start) + 1 or len(content)
        found = content.find(text, start)
        found = content.find(text) if found < 0 else found
        return CHANGED if found < 0 else content.count("\n", 0, found) + 1


def _text_if_changed(file: Path, hash: bytes, size: int) -> str | None:
    """Return None for a file that is as it was, else its text; a file that has grown much is read in part."""
    with file.open("rb") as stream:
        data = stream.read(2 * size + _GROWTH)
    if blake2b(data, digest_size=20).digest() == hash:
        return None
    try:
        return decode(data)
    except Unreadable:
        return ""
