"""The settings of a documents source, and where its index lies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators
from platformdirs import user_cache_path

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


# Part of every passage's identity: raise it when the same file would be cut or embedded differently.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Place:
    """The folder that is indexed, the folder of its index, and the names derived from both.

    Two sources share an index when they take the same files of the same folder and have their words found by the same:
    ``key`` is a hash of the real path, of the patterns and of that. ``cut`` names how files become passages; documents
    cut otherwise are cut again.

    >>> place = Place.of(DocumentsSettings(path=Path("docs"), index=Path("/indexes")))
    >>> place.folder.parent == Path("/indexes").resolve()
    True
    """

    root: Path
    folder: Path
    key: str
    cut: str

    @classmethod
    def of(cls, settings: DocumentsSettings) -> Place:
        """Derive the place from the settings; touches nothing but the names of links."""
        root = Path(os.path.realpath(settings.path.expanduser()))
        parts = ["include", *settings.include, "exclude", *settings.exclude]
        if settings.lexical != "own":
            parts += ["lexical", settings.lexical]  # catalogue and store have other contents then
        key = _hash(os.fsencode(root), *(part.encode("utf-8", "surrogatepass") for part in parts))
        indexes = settings.index or user_cache_path("portico", appauthor=False) / "documents"
        folder = Path(os.path.realpath(indexes.expanduser())) / key
        return cls(root, folder, key, f"{_FORMAT}/{settings.passage_target}/{settings.passage_maximum}")

    @property
    def catalogue(self) -> Path:
        """The database of files and passages."""
        return self.folder / "catalogue.sqlite"

    def namespace(self, model: str) -> str:
        """Return the vector store's namespace for the vectors of one embedding model."""
        return f"documents-{self.key}-{_hash(model.encode('utf-8', 'surrogatepass'))}"


def _hash(*parts: bytes) -> str:
    digest = blake2b(digest_size=10)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
