"""The states of a run's steps, entry by entry of its journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

StepState: TypeAlias = dict[str, Any]
"""``{"state", "at"}``, with ``items`` and ``done`` of a step for each of a list, ``attempt`` of one retried."""

STEP_ENTRIES = frozenset({"step-called", "step-started", "step-retried", "step-finished", "step-failed", "step-held"})
"""The entries that change the state of a step and nothing else that a page shows."""

_ENDED = ("done", "failed", "skipped")
_AT_WORK = ("running", "retrying")


def outside(step: str) -> str:
    """Return the step that a page shows for a step: of one item of a list, that of the list.

    >>> outside("s1/a[3]/b"), outside("s1/a")
    ('s1/a', 's1/a')
    """
    return step.partition("[")[0]


class StepStates:
    """How far each step is, as far as the entries tell that were taken.

    >>> states = StepStates()
    >>> states.take({"type": "plan", "at": "", "plan": {"steps": [{"id": "s1"}]}})
    >>> states.take({"type": "step-started", "at": "", "step": "s1"})
    >>> states.by_id["s1"]["state"]
    'running'

    Calls for the items of a list are not listed; their step counts them.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, StepState] = {}

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> StepStates:
        """Return the states after all entries of a run."""
        states = cls()
        for each in entries:
            states.take(each)
        return states

    def take(self, entry: Mapping[str, Any]) -> None:
        """Take the next entry."""
        match entry["type"]:
            case "plan":
                self._drop_unbegun()
                for step in entry["plan"].get("steps", ()):
                    self.by_id.setdefault(step["id"], {"state": "waiting", "at": entry["at"]})
            case "refused" if "by" in entry:
                self._drop_unbegun()
            case "resumed":
                self._rest(entry["at"])
                for step in entry.get("retry", ()):
                    self._forget(step, entry["at"])
            case "interrupted" | "outcome":
                self._rest(entry["at"])
            case kind if kind in STEP_ENTRIES:
                self._take_step(kind, entry)

    def _take_step(self, kind: str, entry: Mapping[str, Any]) -> None:
        step, at = entry["step"], entry["at"]
        shown = outside(step)
        if entry.get("given"):
            self._forget(step, at)
        known = self.by_id.get(shown, {})
        if shown != step:
            if kind == "step-held":
                self.by_id[shown] = known | {"state": "held", "at": at}
            elif kind == "step-finished" and step.find("]") == len(step) - 1 and "items" in known:
                self.by_id[shown] = known | {"done": known["done"] + 1, "at": at}
            return
        counted = {key: known[key] for key in ("items", "done") if key in known}
        match kind:
            case "step-called":
                self.by_id[shown] = {"state": "waiting", "at": at}
            case "step-started":
                items = {"items": entry["items"], "done": known.get("done", 0)} if "items" in entry else {}
                self.by_id[shown] = {"state": "running", "at": at} | items
            case "step-retried":
                self.by_id[shown] = {"state": "retrying", "at": at, "attempt": entry["attempt"]} | counted
            case "step-finished":
                self.by_id[shown] = {"state": "skipped" if entry.get("skipped") else "done", "at": at} | counted
            case "step-failed":
                self.by_id[shown] = {"state": "failed", "at": at} | counted
            case _:
                self.by_id[shown] = {"state": "held", "at": at} | counted

    def _drop_unbegun(self) -> None:
        """Forget the steps of a plan that another one replaces."""
        self.by_id = {id: each for id, each in self.by_id.items() if each["state"] in _ENDED}

    def _rest(self, at: str) -> None:
        """Let no step be at work: the process that ran them is gone, or the run has ended."""
        for id, each in self.by_id.items():
            if each["state"] in _AT_WORK:
                counted = {key: each[key] for key in ("items", "done") if key in each}
                self.by_id[id] = {"state": "waiting", "at": at} | counted

    def _forget(self, step: str, at: str) -> None:
        """Let a failed step run again, with the failed steps inside it and around it."""
        for id, each in self.by_id.items():
            near = id == outside(step) or id.startswith(f"{step}/") or step.startswith((f"{id}/", f"{id}["))
            if near and each["state"] == "failed":
                self.by_id[id] = each | {"state": "waiting", "at": at}

    def shown(self, *, at_work: bool, uncertain: Collection[str] = ()) -> dict[str, StepState]:
        """Return the states for a page: of a run that is not ``at_work`` no step is running."""
        doubtful = set(map(outside, uncertain))
        return {
            id: each
            | ({"state": "waiting"} if each["state"] in _AT_WORK and not at_work else {})
            | ({"state": "uncertain"} if id in doubtful and not at_work else {})
            for id, each in self.by_id.items()
        }
