"""The records of functions in a vector store: kept in step with the functions, and searched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from portico.errors import ResponseInvalid, StoreError
from portico.ports.vector_store import VectorRecord
from portico.selection.claims import Claim, Claims, Said
from portico.selection.known_functions import KnownFunctions, RecentFunctions
from portico.selection.nearest import Near, nearest
from portico.selection.selection import Changes
from portico.selection.store_errors import ToldWhose
from portico.vectors import Vectors

if TYPE_CHECKING:
    from portico.ports.embedding_generator import EmbeddingGenerator
    from portico.ports.vector_store import VectorStore

__all__ = ["LEASE", "FunctionRecords"]

LEASE = 600.0
"""Seconds. Long enough that a claim is seldom renewed, short enough that what a killed process left goes soon."""

_ATTEMPTS = 4
_NONE = Changes()
_SHOWN = 300
"""Characters of a text that its record shows to whoever looks into the store."""


@dataclass(slots=True, eq=False)
class _Held:
    """What is in the store for certain, by this provider's claim."""

    namespace: str
    ids: dict[str, str]
    """The id of each key's record: the key itself, unless that was doomed."""
    claim: Claim
    renew_at: float
    sets: set[KnownFunctions]
    left_over: tuple[KnownFunctions, ...]
    foreign: int = 0
    """How many records of others there are about."""
    looked: bool = False
    """Whether a search found too few, and yet all that must be there is there: the store's search misses some."""


@dataclass(slots=True)
class _Step:
    """One synchronisation: what is wanted, what was found, what is to be done."""

    namespace: str
    wanted: dict[str, tuple[str, str]]
    """Name and text of each key."""
    ids: dict[str, str]
    held: _Held | None
    """What was certain before, where that still is."""
    begun: float
    listing: bool
    """Whether to look at all that is in the store, and not only at what is new."""
    missing: list[str] = field(default_factory=list)
    others: dict[str, set[str]] = field(default_factory=dict)
    """Ids of records that are not wanted here, by namespace."""
    embedded: int = 0


class FunctionRecords:
    """Keep a record of each function in a vector store, and find the nearest to a request.

    The records of one embedding model are in the namespace ``NAMESPACE/vectors/MODEL``: another model begins another
    one. A record's id is the function's name and a hash of its text, so that what was embedded once stays so. Records
    that no provider uses are removed, those of former models too. `Claims` says how several providers and processes do
    that on one store. A provider renews its claim with its first selection after half of the ``lease``, in seconds of
    ``clock``; when it did not in time, it looks whether all is there before anything is chosen.
    """

    def __init__(
        self,
        store: VectorStore,
        embeddings: EmbeddingGenerator,
        namespace: str,
        recent: RecentFunctions,
        *,
        clock: Callable[[], float] = time.time,
        lease: float = LEASE,
    ) -> None:
        if not lease > 0:
            raise ValueError(f"a lease is a number of seconds above 0, not {lease!r}")
        self.namespace = namespace
        self._store = store
        self._embeddings = embeddings
        self._recent = recent
        self._clock = clock
        self._lease = lease
        self._claims = Claims(store, f"{namespace}/claims", clock=clock, lease=lease)
        self._told = ToldWhose(store, namespace)
        self._said: list[str] = []
        """The records of claims that may be in the store, those of a step that was cut short among them."""
        self._held: _Held | None = None
        self._found_too_few = False
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def vectors_namespace(self) -> str:
        """The namespace of the present model's vectors."""
        return f"{self.namespace}/vectors/{self._embeddings.model}"

    async def embedded(self, requests: Sequence[str]) -> Vectors:
        """Embed requests, all in one call."""
        return self._checked(await self._embeddings.embed(requests, purpose="query"), len(requests))

    async def in_step(self, known: KnownFunctions) -> Changes:
        """Bring the store in step with the functions that were asked about last, these among them.

        At once where it is. Calls that come meanwhile wait for the one that is at it. Raises ``StoreError`` and what
        embedding raises; what was done until then stays done, and the next call goes on with it.
        """
        if self._is_in_step(known):
            return _NONE
        async with self._one_at_a_time():
            return _NONE if self._is_in_step(known) else await self._synchronised()

    async def cosines(
        self, known: KnownFunctions, queries: Vectors, top: int, also: Sequence[Collection[str]]
    ) -> tuple[list[Near], Changes]:
        """Return for each query the cosines of the ``top`` nearest functions, and of those named in ``also`` for it.

        Cosines that are not above 0 are left out. Functions as near as the last one come too, so that no order of
        writing decides. With them comes what bringing the store in step changed. Raises as `in_step` does.
        """
        changes = _NONE
        for _ in range(_ATTEMPTS):
            if not self._is_in_step(known):
                changes = _sum(changes, await self.in_step(known))
            held = self._held
            assert held is not None  # noqa: S101 - nothing was awaited since it was made
            with self._told:
                cosines, complete = await nearest(
                    self._store,
                    held.namespace,
                    known,
                    queries,
                    ids=held.ids,
                    top=top,
                    also=also,
                    foreign=held.foreign,
                )
            in_time = self._clock() < held.claim.until
            if in_time and (complete or held.looked):
                return cosines, changes
            self._found_too_few = in_time
            if self._held is held:
                self._held = None
        raise StoreError(
            f"The functions of {self.namespace!r} cannot be chosen: what is written to the vector store "
            f"{self._store.name!r} is gone again at once, or a search there takes longer than {self._lease:g} seconds."
        )

    async def aclose(self) -> None:
        """Take back what this provider claims, so that others may remove what nobody needs. It can be used again."""
        self._held = None
        with self._told:
            await self._withdraw_all_but(())

    def _one_at_a_time(self) -> asyncio.Lock:
        # A lock belongs to the event loop in which it was waited for first.
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = loop, asyncio.Lock()
        return self._turn[1]

    def _is_in_step(self, known: KnownFunctions) -> bool:
        held = self._held
        if held is None or held.namespace != self.vectors_namespace or self._clock() >= held.renew_at:
            return False
        if held.left_over and set(held.left_over) - set(self._recent.left_over()):
            return False
        if known in held.sets:
            return True
        if not held.ids.keys() >= known.names.keys():
            return False
        if held.ids.keys() - {key for each in self._recent.sets() for key in each.names}:
            return False
        held.sets.add(known)
        held.left_over = self._recent.left_over()
        return True

    async def _synchronised(self) -> Changes:
        before, sets, left_over = self._held, self._recent.sets(), self._recent.left_over()
        step = self._step(sets)
        with self._told:
            claim, said = await self._claimed(step)
            await self._look(step)
        texts = dict.fromkeys(step.wanted[key][1] for key in step.missing)
        if texts:
            vectors = self._checked(await self._embeddings.embed(list(texts)), len(texts))
            step.embedded = len(texts)
        with self._told:
            if texts:
                await self._write(step, list(texts), vectors)
            foreign = (
                len(step.others.get(step.namespace, ())) if step.listing or step.held is None else step.held.foreign
            )
            looked = self._found_too_few and step.listing and not step.missing
            self._held = held = _Held(
                step.namespace, step.ids, claim, step.begun + self._lease / 2, set(sets), left_over, foreign, looked
            )
            self._found_too_few = False
            await self._withdraw_all_but(claim.records)
            removed = await self._taken_away(step, said)
            if step.listing:
                held.foreign -= len(removed.get(step.namespace, ()))
        return _changes(step, before, removed)

    def _step(self, sets: Sequence[KnownFunctions]) -> _Step:
        namespace, now, held = self.vectors_namespace, self._clock(), self._held
        if held is not None and (held.namespace != namespace or now >= held.claim.until):
            held = None
        wanted = {key: (name, each.texts[name]) for each in sets for key, name in each.names.items()}
        ids = {key: key if held is None else held.ids.get(key, key) for key in wanted}
        return _Step(namespace, wanted, ids, held, now, listing=held is None or now >= held.renew_at)

    async def _claimed(self, step: _Step) -> tuple[Claim, Said]:
        """Claim the records, under ids that nobody is about to remove."""
        new = [key for key in step.ids if step.held is None or key not in step.held.ids]
        while True:
            claim = await self._claims.use(step.namespace, list(step.ids.values()), self._said)
            said = await self._claims.read(self._said)
            doomed = said.doomed.get(step.namespace, set())
            again = [key for key in new if step.ids[key] in doomed]
            if not again:
                return claim, said
            for key in again:
                step.ids[key] = f"{key}~{int(step.ids[key][len(key) + 1 :] or 0) + 1}"

    async def _look(self, step: _Step) -> None:
        """Find out which records are missing, and which there are besides. They are claimed by now."""
        held, namespace = step.held, step.namespace
        if step.listing or held is None:
            present = {id async for id in self._store.ids(namespace)}
            step.others[namespace] = present - set(step.ids.values())
        else:
            new = [id for key, id in step.ids.items() if key not in held.ids]
            records = (await self._store.get(namespace, new))[0] if new else ()
            present = {record.id for record in records} | set(held.ids.values())
            step.others[namespace] = set(held.ids.values()) - set(step.ids.values())
        step.missing = [key for key, id in step.ids.items() if id not in present]

    async def _write(self, step: _Step, texts: Sequence[str], vectors: Vectors) -> None:
        if len(texts) < len(step.missing):
            rows = {text: vectors[row].buffer.cast("B") for row, text in enumerate(texts)}
            buffer = b"".join(rows[step.wanted[key][1]] for key in step.missing)
            vectors = Vectors(buffer, len(step.missing), vectors.dimensions)
        records = [
            VectorRecord(step.ids[key], {"function": name, "text": text[:_SHOWN]})
            for key, (name, text) in ((key, step.wanted[key]) for key in step.missing)
        ]
        await self._store.upsert(step.namespace, records, vectors)

    async def _taken_away(self, step: _Step, said: Said) -> dict[str, set[str]]:
        """Remove records that nobody uses, all of them where all were looked at; return which."""
        if step.listing:
            await self._claims.withdraw(said.outdated)
            for other in said.namespaces - {step.namespace}:
                step.others[other] = {id async for id in self._store.ids(other)}
        unused = {where: ids - said.used.get(where, set()) for where, ids in step.others.items()}
        unused = {where: ids for where, ids in unused.items() if ids}
        if not unused:
            return {}
        doom = await self._claims.doom(unused)
        said = await self._claims.read(self._said)
        unused = {where: ids - said.used.get(where, set()) for where, ids in unused.items()}
        for where, ids in unused.items():
            if ids and self._clock() < doom.until:
                await self._store.delete(where, list(ids))
        await self._claims.withdraw(doom.records)
        return unused

    async def _withdraw_all_but(self, records: Collection[str]) -> None:
        older = [record for record in self._said if record not in records]
        await self._claims.withdraw(older)
        self._said = [record for record in self._said if record not in older]

    def _checked(self, vectors: Vectors, texts: int) -> Vectors:
        if vectors.rows != texts:
            raise ResponseInvalid(
                f"The embedding generator {self._embeddings.name!r} gave {vectors.rows} vectors for {texts} texts."
            )
        return vectors


def _changes(step: _Step, before: _Held | None, removed: Mapping[str, set[str]]) -> Changes:
    written = {step.wanted[key][0] for key in step.missing}
    wanted = {name for name, _ in step.wanted.values()}
    known = set().union(*step.others.values())
    if before is not None:
        known.update(before.ids if before.namespace != step.namespace else before.ids.keys() - step.wanted.keys())
    earlier = {id.rpartition("#")[0] for id in known}
    gone = {id.rpartition("#")[0] for ids in removed.values() for id in ids}
    return Changes(len(written - earlier), len(written & earlier), len(gone - wanted), step.embedded)


def _sum(one: Changes, other: Changes) -> Changes:
    return Changes(
        one.added + other.added,
        one.changed + other.changed,
        one.removed + other.removed,
        one.embedded + other.embedded,
    )
