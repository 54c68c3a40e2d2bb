"""The findings of a check, as they come."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from portico.plans.findings import Finding, Fix

__all__ = ["KEPT", "Location", "Notes"]

Location = tuple[str | int, ...]
"""A place inside a step, as its JSON form has it: ``("arguments", "day", "list", 0)``."""

KEPT: Any = object()
"""Stands for no fix: None is one."""


class Notes:
    """Findings on a plan; ``within`` are the steps around it, ``twice`` the ids that more than one step has.

    Without ``clear`` nobody knows which plan it is, since a step around it shares its id with another.
    """

    def __init__(
        self, found: list[Finding], within: tuple[str, ...], twice: AbstractSet[str], *, clear: bool = True
    ) -> None:
        self.found = found
        self.within = within
        self.twice = twice
        self.clear = clear
        self.step: str | None = None
        """The step at hand; None for the plan itself."""

    def add(
        self,
        message: str,
        place: Location = (),
        *,
        severity: str = "error",
        nearest: tuple[str, ...] = (),
        new: Any = KEPT,
        hint: str = "",
    ) -> None:
        """Note a finding; ``new`` is what belongs in the place instead, where that is certain: see `Fix`."""
        ids = self.within if self.step is None else (*self.within, self.step)
        words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
        where = " ".join([*ids[1:], words]).strip()
        certain = new is not KEPT and self.clear and self.step not in self.twice
        fix = Fix(ids, place, new) if certain else None
        self.found.append(Finding(message, ids[0] if ids else None, where, severity, nearest, fix, hint))
