"""The settings of a plugin made from a directory of prompts."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen, validators


@frozen
class PromptFilesSettings:
    """What can be set for a function plugin that uses `prompts`.

    >>> PromptFilesSettings(path=Path("prompts")).maximum_file_bytes
    1000000

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path = field(metadata={"doc": "The directory that holds the prompts: a folder or a file for each."})
    maximum_file_bytes: int = field(
        default=1_000_000, validator=validators.ge(1), metadata={"doc": "Bytes of one file at most."}
    )
