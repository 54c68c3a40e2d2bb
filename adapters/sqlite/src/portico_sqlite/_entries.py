"""What the journal's file must know of entries: which end a run, and which are worth waiting for the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from portico.errors import StoreError

__all__ = ["EffectsUnderWay", "ends_run", "written"]

_MAXIMUM_CHARACTERS = 100_000_000
_ENDS = frozenset({"answer", "infeasible", "failed"})


def written(run: str, entry: Mapping[str, Any]) -> str:
    """Return an entry as JSON text. Raises ``StoreError`` for what has no such form or is too long."""
    try:
        text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"An entry of the run {run} is not JSON: {error}.") from error
    if len(text) > _MAXIMUM_CHARACTERS:
        raise StoreError(
            f"An entry of the run {run} has {len(text):,} characters; the journal takes {_MAXIMUM_CHARACTERS:,}. "
            "Let the step write a file and return its name."
        )
    return text


def ends_run(entry: Mapping[str, Any]) -> bool | None:
    """Tell whether an entry ends its run, or takes it up again; None for one that does neither.

    One that is held, uncertain or interrupted waits for somebody.
    """
    match entry.get("type"):
        case "outcome":
            return entry.get("kind") in _ENDS
        case "resumed":
            return False
        case _:
            return None


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
