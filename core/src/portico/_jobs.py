"""Jobs: units of work for worker processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

STATES = ("waiting", "running", "done", "failed", "cancelled")
"""The states of a job."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do: ``kind`` says who can, ``name`` is unique in the queue, ``body`` is JSON."""

    name: str
    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How far a job is: "waiting", "running", "done", "failed" or "cancelled".

    ``attempts`` counts how often it was begun; times are UTC, ISO 8601, of the last change.

    ``worker`` is who has it or had it last, ``result`` what it gave, ``error`` why it failed. ``body`` is what was
    submitted, and None where that was not asked for: it may be large.
    """

    name: str
    kind: str
    state: str
    attempts: int = 0
    worker: str = ""
    submitted_at: str = ""
    updated_at: str = ""
    result: Any = None
    error: str | None = None
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A process at work: its name (``HOST:PID:RANDOM``), since when, when it was last heard of, what it has."""

    name: str
    since: str
    seen: str
    jobs: int = 0
