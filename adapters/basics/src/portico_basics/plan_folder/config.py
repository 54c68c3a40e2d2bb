"""The settings of the plan store, and of a function plugin made from a folder of plans."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen, validators

_BYTES = 10_000_000


@frozen
class PlanFolderSettings:
    """What can be set for the plan store `folder`.

    >>> PlanFolderSettings(path=Path("plans")).maximum_file_bytes
    10000000

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path = field(metadata={"doc": "The folder of the plans. It is created with the first one."})
    maximum_file_bytes: int = field(
        default=_BYTES, validator=validators.ge(1), metadata={"doc": "Bytes of one plan's file at most."}
    )


@frozen
class PlanFilesSettings:
    """What can be set for a function plugin that uses `plans`.

    >>> PlanFilesSettings(path=Path("recipes")).maximum_file_bytes
    10000000

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path = field(metadata={"doc": "The folder that holds the plans: a JSON or XML file for each."})
    maximum_file_bytes: int = field(
        default=_BYTES, validator=validators.ge(1), metadata={"doc": "Bytes of one plan's file at most."}
    )
