"""The functions in a vector store."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import mul
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from portico._functions.functions import FunctionManual
from portico._search.vectors import VectorMatch, VectorRecord, Vectors
from portico._selection.lexical import LexicalIndex
from portico._selection.selection import Changes
from portico.errors import ResponseInvalid, StoreBusy, StoreDamaged, StoreError

if TYPE_CHECKING:
    from portico._ports.embedding_generator import EmbeddingGenerator
    from portico._ports.vector_store import VectorStore


_DIGITS = 32


def record_key(name: str, text: str) -> str:
    """Return the id of a function's record: its name and a hash of its text.

    >>> record_key("Mail-Send", "Send a mail.")
    'Mail-Send#31cd49fef671b8161a6c75fb6ca9f711'

    Another text is another record, so that a record never changes and means the same to every process.
    """
    return f"{name}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


class KnownFunctions:
    """One set of functions, with the text of each and the key of its record. Never changes, but for the index.

    ``index`` scores their texts. It moves on to the next set, which it is changed into; a set that is asked about
    again makes it anew.
    """

    __slots__ = ("_index", "keys", "manuals", "names", "texts")

    def __init__(
        self,
        manuals: Sequence[FunctionManual],
        text: Callable[[FunctionManual], str],
        before: KnownFunctions | None = None,
    ) -> None:
        """Read functions, all but those that are as they were ``before``; that set gives its index away."""
        self.manuals: dict[str, FunctionManual] = _by_name(manuals)
        self.texts: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        new: list[str] = []
        for name, manual in self.manuals.items():
            if before is not None and name in before.manuals and _same(before.manuals[name], manual):
                self.texts[name], self.keys[name] = before.texts[name], before.keys[name]
            else:
                self.texts[name] = made = _text(manual, text)
                self.keys[name] = record_key(name, made)
                new.append(name)
        self.names: dict[str, str] = {key: name for name, key in self.keys.items()}
        self._index = None if before is None else before.taken_index()
        if before is not None and self._index is not None:
            for name in before.manuals.keys() - self.manuals.keys():
                self._index.remove(name)
            for name in new:
                self._index.put(name, self.texts[name])

    def taken_index(self) -> LexicalIndex | None:
        """Return the index, where it was made, and have it no more."""
        index, self._index = self._index, None
        return index

    @property
    def index(self) -> LexicalIndex:
        """The lexical index of the texts: to be used at once, since the next set may take it."""
        if self._index is None:
            self._index = LexicalIndex()
            for name, text in self.texts.items():
                self._index.put(name, text)
        return self._index


class RecentFunctions:
    """The sets of functions that were asked about last, and those that a selection is at work on.

    ``keep`` is how many sets are remembered: one, where functions that are not given any more are gone for good; some,
    where selections are made from parts of a catalogue in turn.
    """

    def __init__(self, text: Callable[[FunctionManual], str], *, keep: int) -> None:
        self._text = text
        self._keep = keep
        self._sets: list[tuple[tuple[FunctionManual, ...], KnownFunctions]] = []
        self._in_use: list[KnownFunctions] = []

    def of(self, functions: Sequence[FunctionManual]) -> KnownFunctions:
        """Return the set of these functions. Equal ones are found again, at once where they are the same objects.

        Raises ``ValueError`` for two different functions of one name, and what the callback for texts raises.
        """
        given = tuple(functions)  # a tuple stays the object that it is
        for place, (manuals, known) in enumerate(self._sets):
            if manuals is given or manuals == given:
                if place:
                    self._sets.insert(0, self._sets.pop(place))
                return known
        if len(self._sets) < self._keep:
            known = KnownFunctions(given, self._text)
        else:
            known = KnownFunctions(given, self._text, self._sets[-1][1])
            self._sets.pop()
        self._sets.insert(0, (given, known))
        return known

    @contextmanager
    def using(self, known: KnownFunctions) -> Iterator[None]:
        """Keep a set while a selection is at work on it, whatever else is asked meanwhile."""
        self._in_use.append(known)
        try:
            yield
        finally:
            self._in_use.remove(known)

    def sets(self) -> tuple[KnownFunctions, ...]:
        """Return the sets that are remembered, and those in use."""
        remembered = [known for _, known in self._sets]
        return (*remembered, *self.left_over())

    def left_over(self) -> tuple[KnownFunctions, ...]:
        """Return the sets that are in use and not remembered any more."""
        remembered = {id(known) for _, known in self._sets}
        return tuple({id(known): known for known in self._in_use if id(known) not in remembered}.values())


def _by_name(manuals: Iterable[FunctionManual]) -> dict[str, FunctionManual]:
    found: dict[str, FunctionManual] = {}
    for manual in manuals:
        if not _same(found.setdefault(manual.name, manual), manual):
            raise ValueError(f"two functions are called {manual.name!r}")
    return found


def _same(one: FunctionManual, other: FunctionManual) -> bool:
    return one is other or one == other


def _text(manual: FunctionManual, text: Callable[[FunctionManual], str]) -> str:
    made = text(manual)
    if not isinstance(made, str):
        raise TypeError(f"the text of the function {manual.name!r} is {type(made).__name__}, not str")
    return made


Near: TypeAlias = dict[str, float]
"""Cosines of functions with one request, by name."""

_GRID = 2.0**32
"""What has this added and taken away again is a multiple of 2**-20: rounding to decimals takes ten times as long."""
_TIE = 2e-6
"""Cosines nearer to each other than this are equal: stores sum in different orders."""
_MANY_OTHERS = 4


async def nearest(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    *,
    ids: Mapping[str, str],
    top: int,
    also: Sequence[Collection[str]],
    foreign: int = 0,
) -> tuple[list[Near], bool]:
    """Search once for all queries; then read the vectors of those in ``also`` that this did not find, all at once.

    Return what was found for each query, and whether it was as much as there must be. ``ids`` are those of the
    records, by key. ``foreign`` is how many records of others are about: so many more are asked for, within reason.
    Where others crowd the functions out all the same, the search is made again, for more.
    """
    top = min(top, len(known.names))
    if not queries.rows or not top:
        return [{} for _ in range(queries.rows)], True
    # One more than wanted shows whether the last is as near as further ones.
    asked = top + 1 + min(foreign, _MANY_OTHERS * top)
    found: list[Near] = []
    while not found:
        for matches in await store.search(namespace, queries, top=asked):
            near = _own(matches, known.names, top, asked)
            if near is None:
                found.clear()
                break
            found.append(near)
        asked *= 4
    complete = all(len(near) >= top for near in found)
    if any(also):
        complete &= await _added(store, namespace, known, queries, found, ids=ids, also=also)
    return [_above_zero(near) for near in found], complete


def _own(matches: Sequence[VectorMatch], names: Mapping[str, str], top: int, asked: int) -> Near | None:
    """Return the cosines of the ``top`` first functions, and of those as near as the last of them.

    What else comes depends on what was asked. A record of the same text is as good under any id. None where more has
    to be asked for.
    """
    near: Near = {}
    least = -2.0
    for match in matches:
        score = match.score
        if score < least:
            return near
        name = names.get(match.id) or names.get(match.id.rpartition("~")[0])
        if name is not None and name not in near:
            near[name] = cosine = score + _GRID - _GRID
            if len(near) == top:
                least = cosine - _TIE
    return near if len(matches) < asked or -2.0 < least <= -_TIE else None


async def _added(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    found: Sequence[Near],
    *,
    ids: Mapping[str, str],
    also: Sequence[Collection[str]],
) -> bool:
    """Add the cosines of those in ``also`` that are missing; return whether all their records were there."""
    names = dict.fromkeys(name for some, near in zip(also, found, strict=True) for name in some if name not in near)
    if not names:
        return True
    wanted = {ids.get(known.keys[name], known.keys[name]): name for name in names}
    records, vectors = await store.get(namespace, list(wanted))
    if vectors is not None:
        rows = {wanted[record.id]: row.buffer.tolist() for record, row in zip(records, vectors, strict=True)}
        for query, some, near in zip(queries, also, found, strict=True):
            numbers = query.buffer.tolist()
            for name in some:
                if name not in near and name in rows:
                    near[name] = sum(map(mul, rows[name], numbers)) + _GRID - _GRID
    return len(records) == len(wanted)


def _above_zero(near: Near) -> Near:
    if min(near.values(), default=1.0) > 0:
        return near
    return {name: cosine for name, cosine in near.items() if cosine > 0}


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
