"""What happens in a worker, one value for each thing that does, and their form for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

__all__ = [
    "JobBegun",
    "JobEnded",
    "Ready",
    "StepBegun",
    "StepEnded",
    "Stopped",
    "Stopping",
    "Tell",
    "WorkerEvent",
    "event_to_json",
]


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker takes jobs from now on. ``place`` is where its queue is, as far as the runner says that."""

    host: str
    pid: int
    runner: str
    place: str
    kinds: tuple[str, ...]
    concurrency: int | None


@dataclass(frozen=True, slots=True)
class JobBegun:
    """A job was taken. ``about`` is a pursuit's goal; ``attempt`` counts from 1, over all workers."""

    job: str
    kind: str
    about: str
    attempt: int


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A step of a job's pursuit began."""

    job: str
    step: str
    function: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of a job's pursuit ended; ``error`` says why it failed."""

    job: str
    step: str
    function: str
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job ended, or was given back: ``state`` is then "waiting".

    Of a pursuit the state is how that ended: "done", "failed", "infeasible", "held" or "uncertain".
    """

    job: str
    kind: str
    state: str
    seconds: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Stopping:
    """The worker was told to stop; ``jobs`` are those that it still has."""

    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The worker is at its end, with how many jobs ended in each state, and how many wait again."""

    ended: dict[str, int]
    given_back: int


WorkerEvent: TypeAlias = Ready | JobBegun | StepBegun | StepEnded | JobEnded | Stopping | Stopped
Tell: TypeAlias = Callable[[WorkerEvent], None]

_NAMES: dict[type[Any], str] = {
    Ready: "ready",
    JobBegun: "job-begun",
    StepBegun: "step-begun",
    StepEnded: "step-ended",
    JobEnded: "job-ended",
    Stopping: "stopping",
    Stopped: "stopped",
}


def event_to_json(event: WorkerEvent) -> dict[str, Any]:
    """Return an event of now as JSON values; neither arguments nor results are in it.

    >>> list(event_to_json(StepBegun("r1", "s1", "Mail-Send")))
    ['event', 'at', 'job', 'step', 'function']
    """
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"event": _NAMES[type(event)], "at": at, **asdict(event)}
