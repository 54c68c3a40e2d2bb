"""Workflows of DBOS as jobs."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from portico.ports import JobStatus
from portico_dbos._names import kind_of, name_of
from portico_dbos._workers_table import moment

if TYPE_CHECKING:
    from dbos import WorkflowStatus


PUT_BACK = "portico.put_back"
"""The attribute of a workflow that counts how often a worker gave the job back in order."""

_STATES: dict[str, str] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}


def statuses_of(states: Collection[str]) -> list[str]:
    """Return what DBOS calls these states."""
    return [theirs for theirs, ours in _STATES.items() if ours in states]


def status_of(workflow: WorkflowStatus) -> JobStatus | None:
    """Return how a job is; None for a workflow that is no job."""
    kind = kind_of(workflow.name)
    if kind is None:
        return None
    state = _STATES[workflow.status]
    error = None
    if state == "failed":
        error = getattr(workflow.error, "message", None) or str(workflow.error or "DBOS gave it up.")
    return JobStatus(
        name_of(workflow.workflow_id),
        kind,
        state,
        attempts=workflow.recovery_attempts or 0,
        worker=workflow.executor_id or "",
        submitted_at=_moment(workflow.created_at),
        # In SQLite DBOS writes full seconds.
        updated_at=_moment(max(workflow.updated_at or 0, workflow.created_at or 0)),
        result=json.loads(workflow.output) if isinstance(workflow.output, str) else None,
        error=error,
        body=_body(workflow.input),
    )


def _body(given: object) -> dict[str, Any] | None:
    """Return what was submitted; None where it was not read, and for what is none."""
    match given:
        case {"args": [str(text), *_]}:
            body = json.loads(text)
            return body if isinstance(body, dict) else None
    return None


def _moment(milliseconds: int | None) -> str:
    return moment(None if milliseconds is None else milliseconds / 1000)
