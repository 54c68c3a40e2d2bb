"""Names of ours as identifiers of DBOS, and back.

A name is any text. DBOS and PostgreSQL take no empty or blank identifier, no NUL and no half of a surrogate pair, and
an index of PostgreSQL takes no long one. What they do not take is written as in a URI; all else stays readable.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_LONGEST = 1_000
_ESCAPED = re.compile("[%#\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_EMPTY = "%"
_JOBS = "portico.job."
RUN_KIND = "portico.pursuit"
"""The name of the workflow of a run in an application."""


def id_of(name: str, what: str = "name of a job") -> str:
    """Return the identifier for a name; ``ValueError`` for an empty or a very long one.

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
    """Return the name that an identifier was made of; one that was not made here is its own name.

    >>> name_of(id_of("50% #1")), name_of("50%ff")
    ('50% #1', '50%ff')
    """
    try:
        return "" if id == _EMPTY else unquote_to_bytes(id).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return id


def step_name(name: str) -> str:
    """Return the name of a step as DBOS takes it; it may be of any length, and DBOS has its own for an empty one."""
    return _ESCAPED.sub(_percent, name) or _EMPTY


def attempt_id(run: str, number: int) -> str:
    """Return the identifier of a run of a run in an application; a job of that name is another one.

    >>> attempt_id("r1", 2)
    'r1#2'
    """
    return f"{id_of(run, 'name of a run')}#{number}"


def workflow_of(kind: str) -> str:
    """Return the name of the workflow that carries out jobs of a kind."""
    return _JOBS + id_of(kind, "kind of a job")


def queue_of(kind: str) -> str:
    """Return the name of the queue of a kind: a worker listens to those whose jobs it can carry out."""
    return "portico." + id_of(kind, "kind of a job")


def kind_of(workflow: str) -> str | None:
    """Return the kind of the jobs that a workflow carries out; None for another workflow."""
    return name_of(workflow.removeprefix(_JOBS)) if workflow.startswith(_JOBS) else None


def _percent(letter: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in letter[0].encode("utf-8", "surrogatepass"))
