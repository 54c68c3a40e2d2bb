"""The settings of the recorded planner."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen


@frozen
class RecordedSettings:
    """``[planner.recorded]`` in `portico.toml`: one of the two.

    >>> RecordedSettings(plan=Path("poem.json")).plan.name
    'poem.json'

    Which one is missing, or that both are there, is said when something is to be replayed.
    """

    plan: Path | None = field(
        default=None,
        metadata={"doc": "The plan to replay: a file in JSON or XML, or what `portico ask --json` printed."},
    )
    run: str | None = field(
        default=None, metadata={"doc": "The run of the journal to replay, by its name; `portico runs` lists them."}
    )
