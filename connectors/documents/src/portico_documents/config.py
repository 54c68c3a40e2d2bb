"""The settings of a documents source."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators

_EXCLUDE = (
    "node_modules/",
    "bower_components/",
    "__pycache__/",
    "site-packages/",
    "venv/",
    "*.egg-info/",
    "*.min.js",
    "*.min.css",
    "*.map",
    "*.lock",
    "package-lock.json",
)


@frozen
class DocumentsSettings:
    """What can be set for a source that uses `documents`.

    >>> DocumentsSettings(path=Path("docs")).maximum_bytes
    5000000

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path = field(metadata={"doc": "The folder to search, or a single file."})
    index: Path | None = field(
        default=None,
        metadata={"doc": "Where indexes lie; each gets its own folder in it. Default: the user's cache folder."},
    )
    include: tuple[str, ...] = field(
        default=(), metadata={"doc": "Patterns of the files to take, such as `*.md` or `guide/**`; none takes all."}
    )
    exclude: tuple[str, ...] = field(
        default=_EXCLUDE, metadata={"doc": "Patterns of files and folders to leave out; they win over `include`."}
    )
    maximum_bytes: int = field(
        default=5_000_000, validator=validators.ge(1), metadata={"doc": "Larger files are skipped and counted."}
    )
    passage_target: int = field(
        default=1_000,
        validator=validators.ge(50),
        metadata={"doc": "Characters that a passage should have; it ends where the text allows."},
    )
    passage_maximum: int = field(
        default=2_000,
        validator=validators.ge(50),
        metadata={"doc": "Characters that no passage exceeds; at least `passage_target`."},
    )

    lexical: Literal["own", "store"] = field(
        default="own",
        validator=validators.in_(("own", "store")),
        metadata={
            "doc": "Who finds passages by their words: the index itself, or a vector store with hybrid search, which "
            "then ranks by words and meaning in one query."
        },
    )

    def __attrs_post_init__(self) -> None:
        if self.passage_maximum < self.passage_target:
            raise ValueError(
                f"passage_maximum is {self.passage_maximum}; it must be at least passage_target, {self.passage_target}"
            )
