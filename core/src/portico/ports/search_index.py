"""What keeps an indexed text search up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["IndexProgress", "IndexReport", "SearchIndex"]


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an update is: ``done`` of ``total`` documents; ``total`` is None while they are counted.

    ``waiting`` is a sentence while others are waited for, ``workers`` how many of a queue have a part in it.
    """

    done: int
    total: int | None
    current: str = ""
    waiting: str | None = None
    workers: int = 0


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an update found and did, in documents; ``passages`` counts all that the index now holds.

    ``skipped`` maps a reason ("binary", "hidden", "undecodable", "too large") to a count; ``problems`` are
    sentences about single documents.
    """

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    passages: int = 0
    embedded: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def documents(self) -> int:
        """How many documents the index now holds."""
        return self.added + self.changed + self.renamed + self.unchanged


class SearchIndex(Protocol):
    """Brings a source's index in step with what it indexes."""

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
        """Apply additions, changes and removals; only what changed is embedded again.

        May be cancelled or killed at any moment: each document is then in its old or its new state, and the next
        update continues. A second process waits for the first. ``progress`` is called in the caller's event loop,
        often, and must be quick. Raises ``StoreError``, or ``ConfigurationError`` when there is nothing to index.
        """
        ...
