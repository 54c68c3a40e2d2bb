"""What `portico doctor` says of each thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a state, what it is about, what was found, what mends it, and what a package raised, if any did."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    message: str = ""
    mend: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)
