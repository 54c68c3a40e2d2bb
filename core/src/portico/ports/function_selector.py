"""The FunctionSelector port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from portico.functions import FunctionManual
from portico.selection.selection import Considered, Selection

__all__ = ["Considered", "FunctionSelector", "Selection"]


class FunctionSelector(Protocol):
    """Chooses, of many functions, the few that a model is told of.

    Behaviour: only functions that were given are offered, each once. Equal functions and equal context give an equal
    selection, whatever was asked before. Texts that are blank count for nothing; without any other text, those that
    are always offered are, and none besides. When there are no more functions than may be offered, all are, unless a
    selector is set to leave out what fits badly. A function that is always offered, and not among those given, is not.
    Calls may run concurrently, with different functions too.
    Errors: ``StoreError``, and a subclass of ``ServiceError`` of what it stands on; ``ValueError`` for ``limit`` < 0.
    """

    name: str

    @property
    def limit(self) -> int:
        """How many functions are offered where a caller does not say, besides those that always are."""
        ...

    async def select(
        self, functions: Sequence[FunctionManual], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose for a conversation's ``context``: its texts, oldest first.

        ``limit`` is how many functions may be offered, those that always are not counted; None is the selector's own.
        """
        ...
