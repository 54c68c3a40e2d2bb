"""Which records of a vector store somebody relies on, said in the store itself: so that nobody takes another's away."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from portico.ports.vector_store import VectorMatch, VectorRecord
from portico.vectors import Vectors

if TYPE_CHECKING:
    from portico.ports.vector_store import VectorStore

__all__ = ["Claim", "Claims", "Said"]

_IDS_IN_A_RECORD = 1_000
"""So that a record stays below the 64 KiB that some stores allow for a field."""

_ALIKE = Vectors.from_rows([(1.0,)])
"""The vector of all that is said: a store keeps vectors, and this needs none."""

_READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Claim:
    """Something said of the records of one namespace: the names of the records that say so, and until when it holds."""

    records: tuple[str, ...]
    until: float


@dataclass(slots=True)
class Said:
    """What all providers say just now: which ids are ``used``, and which are ``doomed``, by namespace."""

    used: dict[str, set[str]] = field(default_factory=dict)
    doomed: dict[str, set[str]] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    """All namespaces of vectors that were ever made here."""
    outdated: list[str] = field(default_factory=list)
    """The records that hold no longer; anybody may remove them."""


class Claims:
    """Claim records, doom records, and read what others say.

    A vector store has no transactions over several calls, and this does without. Whoever uses records says so first
    and looks then whether somebody dooms them. Whoever takes records away says so first and looks then whether
    somebody uses them; it spares those. So one of two that come at the same moment sees the other, in whatever order
    their calls come (as in Dekker's algorithm for mutual exclusion). A user that finds its record doomed
    writes it anew under another id.

    What is said is never changed, only said anew and withdrawn, so that nobody overwrites what another says. It holds
    for ``lease`` seconds of the ``clock``, which is the same for all; others wait a tenth longer, should their clocks
    differ. So what processes said that are gone does not hold for ever.
    """

    def __init__(self, store: VectorStore, namespace: str, *, clock: Callable[[], float], lease: float) -> None:
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._lease = lease

    async def use(self, namespace: str, ids: Collection[str], said: list[str]) -> Claim:
        """Say that records are used. What says so is put into ``said`` before, should the writing be cut short."""
        until = self._clock() + self._lease
        made = self._records("use", {namespace: ids}, until)
        names = tuple(record.id for record in made)
        said.extend(names)
        known = VectorRecord(f"namespace {namespace}", {"kind": "namespace", "namespace": namespace})
        await self._write([*made, known])
        return Claim(names, until)

    async def doom(self, ids: Mapping[str, Collection[str]]) -> Claim:
        """Say that records are about to be taken away, by namespace.

        This is to be withdrawn when they are. Where taking them away was cut short, it stays until it is outdated: a
        store may be at it still.
        """
        until = self._clock() + self._lease
        made = self._records("doom", ids, until)
        await self._write(made)
        return Claim(tuple(record.id for record in made), until)

    async def withdraw(self, records: Sequence[str]) -> None:
        """Say something no longer."""
        if records:
            await self._store.delete(self._namespace, list(records))

    async def read(self, ignoring: Collection[str] = ()) -> Said:
        """Return what all say, but for some records: one's own."""
        said = Said()
        found = await self._everything()
        now = self._clock()
        for record in found:
            if record.id in ignoring:
                continue
            known: Mapping[str, Any] = record.metadata
            kind, namespace = known.get("kind"), str(known.get("namespace"))
            if kind == "namespace":
                said.namespaces.add(namespace)
            elif kind not in ("use", "doom") or now > float(known.get("until", 0)) + self._lease / 10:
                said.outdated.append(record.id)
            else:
                said_of = said.used if kind == "use" else said.doomed
                said_of.setdefault(namespace, set()).update(known.get("ids", ()))
        return said

    async def _everything(self) -> list[VectorMatch]:
        # By a search, since that is one call: between two, somebody may say a thing anew and withdraw the older saying.
        top = _READ_AT_ONCE
        while True:
            [found] = await self._store.search(self._namespace, _ALIKE, top=top)
            if len(found) < top:
                return found
            top *= 8

    def _records(self, kind: str, ids: Mapping[str, Collection[str]], until: float) -> list[VectorRecord]:
        name = uuid4().hex
        return [
            VectorRecord(
                f"{kind} {name} {number}", {"kind": kind, "namespace": namespace, "until": until, "ids": chunk}
            )
            for number, (namespace, chunk) in enumerate(
                (namespace, chunk) for namespace, some in ids.items() for chunk in _chunks(some)
            )
        ]

    async def _write(self, records: Sequence[VectorRecord]) -> None:
        rows = Vectors(bytes(_ALIKE.buffer) * len(records), len(records), _ALIKE.dimensions)
        await self._store.upsert(self._namespace, records, rows)


def _chunks(ids: Iterable[str]) -> list[tuple[str, ...]]:
    every = tuple(ids)
    return [every[start : start + _IDS_IN_A_RECORD] for start in range(0, len(every), _IDS_IN_A_RECORD)]
