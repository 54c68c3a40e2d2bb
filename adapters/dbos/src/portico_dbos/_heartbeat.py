"""What a worker does beside its jobs: it says that it lives, looks after them, and takes over those of the gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from portico_dbos._database import Opened
from portico_dbos._names import RUN_KIND
from portico_dbos._statuses import PUT_BACK, status_of

_REMOVED_AT_ONCE = 500
_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a worker saw of its jobs: those it has by the database, and what became of those that it has no more."""

    mine: frozenset[str]
    others: dict[str, str]


def beat(opened: Opened, worker: str, carrying: Collection[str]) -> Seen:
    """Say that the worker is there, and see which of the workflows that it carries out are still its own."""
    opened.workers.beat(worker, len(carrying))
    mine = frozenset(each.workflow_id for each in _running(opened, executor_id=worker))
    gone = [id for id in carrying if id not in mine]
    # What is not there any more was cancelled and removed.
    others: dict[str, str] = dict.fromkeys(gone, "cancelled")
    if gone:
        for each in opened.client.list_workflows(workflow_ids=gone, load_input=False, load_output=False):
            status = status_of(each)
            if status is not None:
                others[each.workflow_id] = status.state
    return Seen(mine, others)


def take_over(opened: Opened, timeout: float) -> list[str]:
    """Put the jobs of workers that are gone back into their queues, and return their names.

    A job that was begun just now is left alone: its worker may be one that was away and is about to be heard again.
    """
    workers, now = opened.workers.living_at()
    living = {worker.name for worker in workers}
    taken = []
    for each in _running(opened):
        executor, queue, since = each.executor_id, each.queue_name, each.dequeued_at
        if executor is None or queue is None or executor in living or since is None:
            continue
        if since < (now - timeout) * 1000 and opened.requeue(each.workflow_id, executor, queue):
            taken.append(each.workflow_id)
    return taken


def put_back(opened: Opened, worker: str, ids: Collection[str] | None = None) -> None:
    """Put what this worker has back into the queues: it gives it up in order, which does not count as its death."""
    for each in _running(opened, executor_id=worker):
        if each.queue_name is None or (ids is not None and each.workflow_id not in ids):
            continue
        count = (each.attributes or {}).get(PUT_BACK, 0) + 1
        opened.client.update_workflow_attributes(each.workflow_id, {PUT_BACK: count}, merge=True)
        opened.requeue(each.workflow_id, worker, each.queue_name)


def tidy(opened: Opened, keep_days: float) -> int:
    """Remove workflows of ours that ended long ago, some at a time; return how many."""
    _, now = opened.workers.living_at()
    before = datetime.fromtimestamp(now - keep_days * 86_400, UTC).isoformat()
    options: dict[str, Any] = {"limit": _REMOVED_AT_ONCE, "load_input": False, "load_output": False}
    found = opened.client.list_workflows(status=_ENDED, completed_before=before, **options)
    # A run whose process was killed has no end; another attempt at the run is another workflow.
    found += opened.client.list_workflows(status="PENDING", name=RUN_KIND, end_time=before, **options)
    ids = [each.workflow_id for each in found if each.name.startswith("portico.")]
    if ids:
        opened.client.delete_workflows(ids)
    opened.workers.sweep()
    return len(ids)


def remove_ended(opened: Opened, ids: Sequence[str]) -> None:
    """Remove those of these workflows that have ended."""
    for at in range(0, len(ids), _REMOVED_AT_ONCE):
        some = opened.client.list_workflows(
            workflow_ids=list(ids[at : at + _REMOVED_AT_ONCE]), status=_ENDED, load_input=False, load_output=False
        )
        if some:
            opened.client.delete_workflows([each.workflow_id for each in some])


def _running(opened: Opened, **filters: Any) -> list[Any]:
    """Return the jobs that are carried out; runs of applications are in no queue."""
    return opened.client.list_workflows(
        status="PENDING", queues_only=True, load_input=False, load_output=False, **filters
    )
