"""What `portico doctor` says of each thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a state, what it is about, what was found, and what mends it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    message: str = ""
    mend: str = ""
