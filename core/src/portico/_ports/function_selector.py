"""The FunctionSelector port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portico._functions.functions import FunctionSpec
    from portico._selection.selection import Selection


class FunctionSelector(Protocol):
    """Chooses a few of many functions for a model.

    Behaviour: it offers only given functions, each once. Equal functions and equal context give an equal selection.
    Blank texts do not count; without other texts, only functions that are always offered are. If there are no more
    functions than the limit, all are offered, unless the selector is set to leave out bad matches. Calls may run
    concurrently, also with different functions. With ``each_round = True`` it is asked again after calls and steps.
    Errors: ``StoreError``, a ``ServiceError`` of a service that it uses; ``ValueError`` for ``limit`` < 0.
    """

    name: str

    @property
    def limit(self) -> int:
        """The default limit, besides functions that are always offered."""
        ...

    async def select(
        self, functions: Sequence[FunctionSpec], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose for the texts of a conversation, ``context``, oldest first.

        ``limit`` is the most functions to offer, besides those that are always offered; None is the selector's default.
        """
        ...
