"""The settings of the plan store, and of a function plugin made from a folder of plans."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

MOST_BYTES = 10_000_000
"""Bytes of one plan's file."""


@frozen
class PlanFolderSettings:
    """What can be set for the plan store `folder`, and for a function plugin that uses `plans`.

    >>> PlanFolderSettings(path=Path("plans")).path.name
    'plans'
    """

    path: Path = field(metadata={"doc": "The folder of the plans: a JSON file for each, or XML for `plans`."})
