"""The settings of a plugin made from a directory of prompts."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen


@frozen
class PromptFilesSettings:
    """What can be set for a function plugin that uses `prompts`.

    >>> PromptFilesSettings(path=Path("prompts")).path.name
    'prompts'
    """

    path: Path = field(metadata={"doc": "The directory of the prompts: a folder or a file for each."})
