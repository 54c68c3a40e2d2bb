"""Findings as they are noted, and the names of functions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from portico._functions.functions import FunctionSpec
from portico._plans.findings import Finding, Fix
from portico.errors import FunctionNotFound, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Set as AbstractSet

_FEW = 8
_HINTS = 20
"""How many names of one plan are looked for in the whole catalogue: a thousand in a large one would take minutes."""


class FunctionNames:
    """The functions of a catalogue, and how often it may still be looked through for one plan."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._meant: dict[str, str | None] = {}
        self._hints = _HINTS

    @cached_property
    def _endings(self) -> dict[str, list[str]]:
        """The functions by the end of their names, without case, by which any other spelling finds them."""
        found: dict[str, list[str]] = {}
        for name in self._known:
            found.setdefault(name.replace("-", "_").rpartition("_")[2].casefold(), []).append(name)
        return found

    def meant(self, name: str) -> str | None:
        """Return the function that a name means in another spelling; None when that is not certain."""
        if name not in self._meant:
            ending = name.strip().casefold()
            for separator in "-._:/ ":
                ending = ending.rpartition(separator)[2]
            try:
                self._meant[name] = FunctionSpec.find_name(name, self._endings.get(ending, ()), lenient=True)
            except FunctionNotFound:
                self._meant[name] = None
        return self._meant[name]

    def hint(self, near: tuple[str, ...]) -> str:
        """Return what to say after that a function is not there: those that may be meant, or all of a few."""
        if near:
            return f"; nearest: {', '.join(near)}"
        return f"; the functions are: {', '.join(self._known)}" if 0 < len(self._known) <= _FEW else ""

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return the functions most like a name, as long as the plan has not asked for too many."""
        self._hints -= 1
        return nearest(name, list(self._known)) if self._hints >= 0 else ()


Location = tuple[str | int, ...]
"""A place inside a step, as its JSON form has it: ``("arguments", "day", "list", 0)``."""

KEPT: Any = object()
"""Stands for no fix: None is one."""


class Notes:
    """Findings on a plan; ``within`` are the steps around it, ``twice`` the ids that more than one step has.

    Without ``clear`` no one knows which plan it is, since a step around it shares its id with another.
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
        unknown_function: str = "",
    ) -> None:
        """Note a finding; ``new`` is what belongs in the place instead, where that is certain: see `Fix`."""
        ids = self.within if self.step is None else (*self.within, self.step)
        words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
        where = " ".join([*ids[1:], words]).strip()
        certain = new is not KEPT and self.clear and self.step not in self.twice
        fix = Fix(ids, place, new) if certain else None
        step = ids[0] if ids else None
        self.found.append(Finding(message, step, where, severity, nearest, fix, hint, unknown_function))
