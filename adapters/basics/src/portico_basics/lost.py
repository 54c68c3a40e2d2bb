"""Files of a folder that could not be used: those of prompts and of plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Lost:
    """A file or folder that could not be used, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"

    @staticmethod
    def listed(lost: Sequence[Lost], usable: int, noun: str) -> str:
        """List what is lost for the log, with a line each and its further lines under it."""
        lines = [f"{len(lost)} of {usable + len(lost)} {noun} are lost."]
        lines += (f"  {str(one).replace(chr(10), chr(10) + '  ')}" for one in lost[:_MOST_LISTED])
        return "\n".join([*lines, f"  and {len(lost) - _MOST_LISTED} more"] if len(lost) > _MOST_LISTED else lines)
