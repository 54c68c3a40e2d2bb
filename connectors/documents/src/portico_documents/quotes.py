"""Whether a passage that is quoted still stands in its file."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from portico_documents.reading import Unreadable
from portico_documents.reading.decoding import decode

_SINCE = "since it was indexed: run `portico index`."
_GROWTH = 1_000_000


def line_now(file: Path, read: dict[Path, str | None], *, hash: bytes, size: int, text: str, line: int) -> int | str:
    """Return the line on which a passage stands now, or a sentence that says why it cannot be quoted.

    ``hash`` and ``size`` are those of the file when it was indexed. In a file that has changed the passage is looked
    for from its line on, then anywhere; the text of a PDF is not found there. A file that cannot be read is taken to be
    as it was. ``read`` keeps the texts of files that have changed, for further passages.
    """
    if file not in read:
        try:
            if file.exists() and not file.is_file():  # a pipe would be waited for
                raise FileNotFoundError
            with file.open("rb") as stream:
                data = stream.read(2 * size + _GROWTH)  # of a file that has grown much only a part
            read[file] = None if blake2b(data, digest_size=20).digest() == hash else decode(data)
        except (FileNotFoundError, NotADirectoryError):
            return f"This file is gone {_SINCE}"
        except OSError:
            read[file] = None
        except Unreadable:
            read[file] = ""
    content = read[file]
    if content is None:
        return line
    start = 0
    for _ in range(line - 1):
        start = content.find("\n", start) + 1 or len(content)
    found = content.find(text, start)
    found = content.find(text) if found < 0 else found
    return f"This file has changed {_SINCE}" if found < 0 else content.count("\n", 0, found) + 1
