"""Jobs and their names as workflows and identifiers of DBOS, and back.

A name is any text. DBOS and PostgreSQL take no empty or blank identifier, no NUL, no half of a surrogate pair and no
long identifier. Such characters are written as in a URI; the others stay readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from portico.ports import JobStatus

if TYPE_CHECKING:
    from dbos import WorkflowStatus


APPLICATION = "portico"
"""The name of our rows in DBOS, where several applications share a database."""
_LONGEST = 1_000
_ESCAPED = re.compile("[%#\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_EMPTY = "%"
_JOBS = "portico.job."
RUN_KIND = "portico.pursuit"
"""The name of the workflow of a run in an application."""


def id_of(name: str, what: str = "name of a job") -> str:
    """Return the identifier for a name. Raises ``ValueError`` for an empty or a very long one.

    >>> id_of("r-1/a b"), id_of("50% #1"), id_of(" ")
    ('r-1/a b', '50%25 %231', '%20')
    """
    if not name:
        raise ValueError(f"a {what} is not empty")
    escaped = step_name(name)
    if not name.strip():
        escaped = "".join(f"%{byte:02X}" for byte in name.encode())
    if len(escaped.encode()) > _LONGEST:
        raise ValueError(f"a {what} has at most {_LONGEST} bytes, and this one more: {name[:60]!r}…")
    return escaped


def name_of(id: str) -> str:
    """Return the name of an identifier; a foreign identifier is its own name.

    >>> name_of(id_of("50% #1")), name_of("50%ff")
    ('50% #1', '50%ff')
    """
    try:
        return "" if id == _EMPTY else unquote_to_bytes(id).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return id


def step_name(name: str) -> str:
    """Return the name of a step for DBOS, of any length; an empty name is escaped too."""
    return _ESCAPED.sub(_percent, name) or _EMPTY


def attempt_id(run: str, number: int) -> str:
    """Return the identifier of an attempt at a run in an application. No job has such an identifier.

    >>> attempt_id("r1", 2)
    'r1#2'
    """
    return f"{id_of(run, 'name of a run')}#{number}"


def workflow_of(kind: str) -> str:
    return _JOBS + id_of(kind, "kind of a job")


def queue_of(kind: str) -> str:
    """Return the name of the queue of a kind. A worker listens to the queues of its kinds."""
    return "portico." + id_of(kind, "kind of a job")


def kind_of(workflow: str) -> str | None:
    """Return the kind of a job's workflow; None for another workflow."""
    return name_of(workflow.removeprefix(_JOBS)) if workflow.startswith(_JOBS) else None


def _percent(letter: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in letter[0].encode("utf-8", "surrogatepass"))


def json_text(value: Any, what: str) -> str:
    """Return a value as JSON. Raises ``ValueError`` for a value that is not JSON.

    >>> json_text({"b": [1.0, None]}, "the result")
    '{"b":[1.0,null]}'
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error


def moment(seconds: float) -> str:
    """Return a moment in UTC as ISO 8601.

    >>> moment(0.0)
    '1970-01-01T00:00:00.000+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


PUT_BACK = "portico.put_back"
"""The attribute of a workflow that counts how often a worker put the job back when it stopped."""

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
    """Return DBOS's names of these states."""
    return [theirs for theirs, ours in _STATES.items() if ours in states]


def status_of(workflow: WorkflowStatus) -> JobStatus | None:
    """Return the status of a job; None for a workflow that is not a job."""
    kind = kind_of(workflow.name)
    if kind is None:
        return None
    state, given = _STATES[workflow.status], workflow.input
    error = None
    if state == "failed":
        error = getattr(workflow.error, "message", None) or str(workflow.error or "DBOS gave it up.")
    return JobStatus(
        name_of(workflow.workflow_id),
        kind,
        state,
        attempts=workflow.recovery_attempts or 0,
        worker=workflow.executor_id or "",
        submitted_at=moment((workflow.created_at or 0) / 1000),
        # In SQLite DBOS writes full seconds.
        updated_at=moment(max(workflow.updated_at or 0, workflow.created_at or 0) / 1000),
        result=json.loads(workflow.output) if isinstance(workflow.output, str) else None,
        error=error,
        body=body_of(given["args"][0]) if isinstance(given, dict) and given.get("args") else None,
    )


def body_of(text: object) -> dict[str, Any] | None:
    """Return the body of a job; None for a text that Portico did not write."""
    try:
        body = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None
