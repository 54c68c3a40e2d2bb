"""Failures of a vector store, told as what they are to those whose functions are chosen."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from portico.errors import StoreBusy, StoreDamaged, StoreError

if TYPE_CHECKING:
    from portico.ports.vector_store import VectorStore

__all__ = ["ToldWhose"]


class ToldWhose:
    """Say of a failure of the store which one it is, and for what it was needed: ``with`` this around its calls.

    ``StoreBusy`` and ``StoreDamaged`` stay what they are. A ``ValueError`` of the store comes from vectors of another
    length than those that are there, and becomes a ``StoreError``. Made once and entered often, since a search takes
    some microseconds only.
    """

    __slots__ = ("_namespace", "_store")

    def __init__(self, store: VectorStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, StoreError | ValueError):
            return
        told = (
            f"The functions of {self._namespace!r} cannot be chosen, since the vector store {self._store.name!r} "
            f"failed: {error}"
        )
        if isinstance(error, ValueError):
            told += (
                " All vectors of an embedding model have one length. Where the model has changed, give it another "
                "name, or the functions another namespace."
            )
        made = next((known for known in (StoreBusy, StoreDamaged) if isinstance(error, known)), StoreError)
        raise made(told) from error
