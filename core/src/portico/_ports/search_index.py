"""The SearchIndex port: it keeps an indexed text search up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The progress of an update: ``done`` of ``total`` documents; ``total`` is None while they are counted.

    ``waiting`` is a sentence while the update waits for others; ``workers`` is how many workers of a queue help.
    """

    done: int
    total: int | None
    current: str = ""
    waiting: str | None = None
    workers: int = 0


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an update, in documents; ``passages`` is how many the index has now.

    ``skipped`` maps a reason ("binary", "too large") to a count; ``problems`` and ``repaired`` are sentences.
    ``revision`` is another one after every change of what is indexed; "" where that is not known.
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
    repaired: tuple[str, ...] = ()
    revision: str = ""

    @property
    def documents(self) -> int:
        """How many documents the index has now."""
        return self.added + self.changed + self.renamed + self.unchanged


class SearchIndex(Protocol):
    """Updates the index of a source."""

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
        """Apply additions, changes and removals; only changed texts are embedded again.

        It may be cancelled or killed at any moment: each document is then in its old or its new state, and the next
        update continues. A second process waits for the first. ``progress`` is called often, in the caller's event
        loop, and must be quick. Raises ``StoreError``, or ``ConfigurationError`` when there is nothing to index.
        """
        ...
