"""Files of prompts and of plans: how they are read, and those that could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_LISTED = 10


def read_text(path: Path, most: int) -> str:
    """Return the text of a file in UTF-8 of at most ``most`` bytes, without a byte order mark.

    Raises ``OSError``, and ``ValueError`` with the reason.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error}") from error


@dataclass(frozen=True, slots=True)
class Lost:
    """A file or folder that could not be used, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"

    @staticmethod
    def report(lost: Sequence[Lost], usable: int, noun: str) -> str:
        """List what is lost for the log, with a line each and its further lines under it."""
        lines = [f"{len(lost)} of {usable + len(lost)} {noun} are lost."]
        lines += (f"  {str(one).replace(chr(10), chr(10) + '  ')}" for one in lost[:_MOST_LISTED])
        return "\n".join([*lines, f"  and {len(lost) - _MOST_LISTED} more"] if len(lost) > _MOST_LISTED else lines)
