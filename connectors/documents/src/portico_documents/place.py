"""Where the index of a source lies and what names it has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from platformdirs import user_cache_path

from portico_documents.config import DocumentsSettings

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
            # What stands in the catalogue and in the store is another then.
            parts += ["lexical", settings.lexical]
        key = _hash(os.fsencode(root), *(part.encode("utf-8", "surrogatepass") for part in parts))
        indexes = (
            settings.index.expanduser() if settings.index else user_cache_path("portico", appauthor=False) / "documents"
        )
        return cls(
            root,
            Path(os.path.realpath(indexes)) / key,
            key,
            f"{_FORMAT}/{settings.passage_target}/{settings.passage_maximum}",
        )

    @property
    def catalogue(self) -> Path:
        """The database of files and passages."""
        return self.folder / "catalogue.sqlite"

    @property
    def lock(self) -> Path:
        """The file that the one writer holds."""
        return self.folder / "lock"

    def at(self, relative: bytes) -> Path:
        """Return the path of a file of the folder from the bytes of its relative path."""
        return self.root / os.fsdecode(relative)

    def namespace(self, model: str) -> str:
        """Return the vector store's namespace for the vectors of one embedding model."""
        return f"documents-{self.key}-{_hash(model.encode('utf-8', 'surrogatepass'))}"


def _hash(*parts: bytes) -> str:
    digest = blake2b(digest_size=10)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
