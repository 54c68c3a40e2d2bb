"""Which entries of the journal are worth waiting for the disk: those around a step with effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class EffectsUnderWay:
    """Which steps with effects have begun, so that their ends are told from those of others.

    Before an effect happens, the disk must have that it begins: forgotten in a power failure, it would happen again.
    """

    def __init__(self) -> None:
        self._steps: set[tuple[str, str]] = set()

    def concerns(self, run: str, entry: Mapping[str, Any]) -> bool:
        """Take note of an entry, and tell whether it is the beginning or the end of a step with effects."""
        step = (run, str(entry.get("step")))
        match entry.get("type"):
            case "step-started" if entry.get("effects"):
                self._steps.add(step)
                return True
            case "step-finished" | "step-failed" if step in self._steps:
                self._steps.discard(step)
                return True
            case _:
                return False

    def forget(self, run: str) -> None:
        """Forget the steps of a run that is given back."""
        if self._steps:
            self._steps = {step for step in self._steps if step[0] != run}
