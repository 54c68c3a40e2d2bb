"""What a pursuit is begun with, and what is refused before anything is written."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any

from portico.plans.task import Budget

__all__ = ["LONGEST_RUN", "checked_budget", "checked_goal", "checked_input", "checked_run", "new_run"]

LONGEST_RUN = 200
"""The most characters of a run's name that every store takes."""


def new_run() -> str:
    """Return a name that no other run has, and that sorts by time: ``20261121-233000-5f3a9c21d04e``."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"


def checked_run(run: str) -> str:
    r"""Return a run's name that somebody chose; ``TypeError`` and ``ValueError`` for what not every store takes.

    >>> checked_run("order 17"), checked_run("a\0b")
    Traceback (most recent call last):
    ValueError: 'a\x00b' names no run: not every store takes the character '\x00'
    """
    if not isinstance(run, str):
        raise TypeError(f"the name of a run is text, not {run!r}")
    if not run.strip():
        raise ValueError("the name of the run is blank")
    if len(run) > LONGEST_RUN:
        raise ValueError(f"the name of a run has {LONGEST_RUN} characters at most, not {len(run)}: {run[:40]!r}…")
    for letter in run:
        # A lone surrogate cannot be written as UTF-8, and no text of PostgreSQL has a NUL.
        if letter == "\0" or "\ud800" <= letter <= "\udfff":
            raise ValueError(f"{run!r} names no run: not every store takes the character {letter!r}")
    return run


def checked_goal(goal: str) -> str:
    """Return a goal; ``ValueError`` for a blank one."""
    if not goal.strip():
        raise ValueError("the goal is blank")
    return goal


def checked_budget(budget: Budget) -> Budget:
    """Return a budget; ``ValueError`` where its seconds are none."""
    for name in ("seconds", "step_seconds"):
        seconds = getattr(budget, name)
        if seconds is not None and not 0 <= seconds < math.inf:
            raise ValueError(f"the budget's {name} are {seconds}: give a number of seconds, or None for no bound")
    return budget


def checked_input(value: Any, what: str = "the input") -> Any:
    """Return a JSON value as it will be read again; ``ValueError`` for any other."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
