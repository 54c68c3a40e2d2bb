"""The functions in a vector store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from portico import FunctionSpec
from portico.errors import ResponseInvalid, StoreBusy, StoreDamaged, StoreError
from portico.search import VectorMatch, VectorRecord, Vectors
from portico_basics.contextual.lexical import LexicalIndex

if TYPE_CHECKING:
    from portico.ports import EmbeddingGenerator, VectorStore


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

    __slots__ = ("_index", "keys", "names", "specs", "texts")

    def __init__(
        self, specs: Sequence[FunctionSpec], text: Callable[[FunctionSpec], str], before: KnownFunctions | None = None
    ) -> None:
        """Read functions, all but those that are as they were ``before``; that set gives its index away."""
        self.specs: dict[str, FunctionSpec] = _by_name(specs)
        self.texts: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        new: list[str] = []
        for name, spec in self.specs.items():
            if before is not None and name in before.specs and _same(before.specs[name], spec):
                self.texts[name], self.keys[name] = before.texts[name], before.keys[name]
            else:
                self.texts[name] = made = _text(spec, text)
                self.keys[name] = record_key(name, made)
                new.append(name)
        self.names: dict[str, str] = {key: name for name, key in self.keys.items()}
        self._index = None if before is None else before.taken_index()
        if before is not None and self._index is not None:
            for name in before.specs.keys() - self.specs.keys():
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
    """The sets of functions that were given last.

    ``keep`` is how many sets are remembered: one, where functions that are not given any more are gone for good; more,
    where selections are made from parts of a catalogue in turn.
    """

    def __init__(self, text: Callable[[FunctionSpec], str], *, keep: int) -> None:
        self._text = text
        self._keep = keep
        self._sets: list[tuple[tuple[FunctionSpec, ...], KnownFunctions]] = []

    def of(self, functions: Sequence[FunctionSpec]) -> KnownFunctions:
        """Return the set of these functions. Equal ones are found again, at once where they are the same objects.

        Raises ``ValueError`` for two different functions of one name, and what the callback for texts raises.
        """
        given = tuple(functions)  # a tuple stays the object that it is
        for place, (specs, known) in enumerate(self._sets):
            if specs is given or specs == given:
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

    def sets(self) -> tuple[KnownFunctions, ...]:
        """Return the sets that are remembered."""
        return tuple(known for _, known in self._sets)


def _by_name(specs: Iterable[FunctionSpec]) -> dict[str, FunctionSpec]:
    found: dict[str, FunctionSpec] = {}
    for spec in specs:
        if not _same(found.setdefault(spec.name, spec), spec):
            raise ValueError(f"two functions are called {spec.name!r}")
    return found


def _same(one: FunctionSpec, other: FunctionSpec) -> bool:
    return one is other or one == other


def _text(spec: FunctionSpec, text: Callable[[FunctionSpec], str]) -> str:
    made = text(spec)
    if not isinstance(made, str):
        raise TypeError(f"the text of the function {spec.name!r} is {type(made).__name__}, not str")
    return made


Near: TypeAlias = dict[str, float]
"""Cosines of functions with one request, by name."""

_GRID = 2.0**32
"""What has this added and taken away again is a multiple of 2**-20: rounding to decimals takes ten times as long."""
_TIE = 2e-6
"""Cosines nearer to each other than this are equal: stores sum in different orders."""
_ATTEMPTS = 4
_MOST_OTHERS = 10
_SHOWN = 300
"""Characters of a text that its record shows to whoever looks into the store."""


class FunctionRecords:
    """Keep a record of each function in a vector store, and find the nearest to a request.

    The records of one embedding model are in the namespace ``NAMESPACE/vectors/MODEL``. A record's id is the function's
    name and a hash of its text: a text is embedded once, and processes that share a store share its records. A record
    that is not needed any more stays, since another process may use it. Only where a store has far more of these than
    of its own functions are they deleted; a process that misses one embeds it again.
    """

    def __init__(
        self, store: VectorStore, embeddings: EmbeddingGenerator, namespace: str, recent: RecentFunctions
    ) -> None:
        self.namespace = namespace
        self._store = store
        self._embeddings = embeddings
        self._recent = recent
        self._vectors = ""  # the namespace that the next two are about
        self._present: set[str] | None = None  # ids in the store; None where the store is to be read
        self._wanted: dict[str, str] = {}  # functions by id
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def vectors_namespace(self) -> str:
        """The namespace of the present model's vectors."""
        return f"{self.namespace}/vectors/{self._embeddings.model}"

    async def embedded(self, requests: Sequence[str]) -> Vectors:
        """Embed requests, all in one call."""
        return self._checked(await self._embeddings.embed(requests, purpose="query"), len(requests))

    async def cosines(
        self, known: KnownFunctions, queries: Vectors, top: int, also: Sequence[Collection[str]]
    ) -> tuple[list[Near], int]:
        """Return for each query the cosines of the ``top`` nearest functions, and of those named in ``also`` for it.

        Cosines that are not above 0 are left out. Functions as near as the last one come too, so that no order of
        writing decides. The store is brought in step with the functions before; how many texts were embedded is
        returned too. Raises ``StoreError`` and what embedding raises. What was written until then stays, and the next
        call continues.
        """
        embedded = 0
        for attempt in range(_ATTEMPTS):
            made = await self._in_step(known)
            embedded += made
            try:
                cosines, complete = await nearest(
                    self._store, self._vectors, known, queries, top=min(top, len(known.names)), also=also
                )
            except (StoreError, ValueError) as error:
                raise self._failed(error) from error
            # Where nothing was missing, the store's search is an approximate one.
            if complete or (attempt and not made):
                return cosines, embedded
            self._present = None
        raise StoreError(
            f"The functions of {self.namespace!r} cannot be chosen: another process deletes at once what is written to "
            f"the vector store {self._store.name!r}. Give each its own namespace."
        )

    async def _in_step(self, known: KnownFunctions) -> int:
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:  # a lock belongs to one event loop
            self._lock = loop, asyncio.Lock()
        async with self._lock[1]:
            wanted = {key: (name, known.texts[name]) for key, name in known.names.items()}
            for each in self._recent.sets():
                wanted |= {key: (name, each.texts[name]) for key, name in each.names.items()}
            namespace = self.vectors_namespace
            if self._present is not None and self._vectors == namespace and self._wanted.keys() == wanted.keys():
                return 0
            try:
                return await self._synchronize(namespace, wanted)
            except ResponseInvalid:
                raise
            except (StoreError, ValueError) as error:
                raise self._failed(error) from error

    async def _synchronize(self, namespace: str, wanted: Mapping[str, tuple[str, str]]) -> int:
        """Write the records that are missing; return how many texts were embedded."""
        present = self._present if self._vectors == namespace else None
        if present is None:
            present = {id async for id in self._store.ids(namespace)}
            others = present - wanted.keys()
            if len(others) > _MOST_OTHERS * (len(wanted) + 100):
                await self._store.delete(namespace, list(others))
                present -= others
        missing = [key for key in wanted if key not in present]
        texts = {text: row for row, text in enumerate(dict.fromkeys(wanted[key][1] for key in missing))}
        if texts:
            vectors = self._checked(await self._embeddings.embed(list(texts)), len(texts))
            if len(texts) < len(missing):
                rows = [vectors[texts[wanted[key][1]]].buffer.cast("B") for key in missing]
                vectors = Vectors(b"".join(rows), len(missing), vectors.dimensions)
            records = [
                VectorRecord(key, {"function": name, "text": text[:_SHOWN]})
                for key, (name, text) in ((key, wanted[key]) for key in missing)
            ]
            await self._store.upsert(namespace, records, vectors)
        self._vectors, self._present = namespace, present | wanted.keys()
        self._wanted = {key: name for key, (name, _) in wanted.items()}
        return len(texts)

    def _failed(self, error: Exception) -> StoreError:
        """Return an error that names the store. A ``ValueError`` comes from vectors of another length."""
        self._present = None
        message = (
            f"The functions of {self.namespace!r} cannot be chosen, since the vector store {self._store.name!r} "
            f"failed: {error}"
        )
        if isinstance(error, ValueError):
            message += (
                " All vectors of an embedding model have one length. Where the model has changed, give it another "
                "name, or the functions another namespace."
            )
        kind = next((known for known in (StoreBusy, StoreDamaged) if isinstance(error, known)), StoreError)
        return kind(message)

    def _checked(self, vectors: Vectors, texts: int) -> Vectors:
        if vectors.rows != texts:
            raise ResponseInvalid(
                f"The embedding generator {self._embeddings.name!r} gave {vectors.rows} vectors for {texts} texts."
            )
        return vectors


async def nearest(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    *,
    top: int,
    also: Sequence[Collection[str]],
) -> tuple[list[Near], bool]:
    """Search once for all queries; then read the vectors of those in ``also`` that this did not find, all at once.

    Return what was found for each query, and whether it was as much as there must be. Where records of others take
    the places, the search is made again, for more.
    """
    if not queries.rows or not top:
        return [{} for _ in range(queries.rows)], True
    asked = top + 1  # one more than wanted shows whether the last is as near as further ones
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
        complete &= await _add_missing(store, namespace, known, queries, found=found, also=also)
    return [{name: cosine for name, cosine in near.items() if cosine > 0} for near in found], complete


def _own(matches: Sequence[VectorMatch], names: Mapping[str, str], top: int, asked: int) -> Near | None:
    """Return the cosines of the ``top`` first functions, and of those as near as the last of them.

    None where more has to be asked for.
    """
    near: Near = {}
    least = -2.0
    for match in matches:
        score = match.score
        if score < least:
            return near
        name = names.get(match.id)
        if name is not None:
            near[name] = cosine = score + _GRID - _GRID
            if len(near) == top:
                least = cosine - _TIE
    return near if len(matches) < asked or -2.0 < least <= -_TIE else None


async def _add_missing(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    *,
    found: Sequence[Near],
    also: Sequence[Collection[str]],
) -> bool:
    """Add the cosines of those in ``also`` that are missing; return whether all their records were there."""
    names = dict.fromkeys(name for some, near in zip(also, found, strict=True) for name in some if name not in near)
    if not names:
        return True
    records, vectors = await store.get(namespace, [known.keys[name] for name in names])
    if vectors is not None:
        rows = {known.names[record.id]: row.buffer.tolist() for record, row in zip(records, vectors, strict=True)}
        for query, some, near in zip(queries, also, found, strict=True):
            numbers = query.buffer.tolist()
            for name in some:
                if name not in near and name in rows:
                    near[name] = sum(map(mul, rows[name], numbers)) + _GRID - _GRID
    return len(records) == len(names)
