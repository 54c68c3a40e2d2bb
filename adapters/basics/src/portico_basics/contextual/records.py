"""The functions in a vector store."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from operator import mul
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from portico import FunctionSpec
from portico.errors import ResponseInvalid, StoreBusy, StoreDamaged, StoreError
from portico.search import VectorMatch, VectorRecord, Vectors
from portico_basics.contextual.lexical import LexicalIndex

if TYPE_CHECKING:
    from portico.ports import EmbeddingGenerator, VectorStore


FunctionText: TypeAlias = Callable[[FunctionSpec], str | Awaitable[str]]
"""Makes the text of a function that is searched."""

_DIGITS = 32


def record_key(name: str, text: str) -> str:
    """Return the id of a function's record: its name and a hash of its text.

    >>> record_key("Mail-Send", "Send a mail.")
    'Mail-Send#31cd49fef671b8161a6c75fb6ca9f711'

    A changed text is another record: a record never changes, and means the same to every process.
    """
    return f"{name}#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


class KnownFunctions:
    """One set of functions, with the text of each, the key of its record, and an index of the texts."""

    def __init__(self, specs: Mapping[str, FunctionSpec], texts: Mapping[str, str]) -> None:
        self.specs, self.texts = specs, texts
        self.keys = {name: record_key(name, made) for name, made in self.texts.items()}
        self.names = {key: name for name, key in self.keys.items()}

    @cached_property
    def index(self) -> LexicalIndex:
        """The lexical index of the texts."""
        return LexicalIndex(self.texts)

    @classmethod
    async def make(cls, functions: Sequence[FunctionSpec], text: FunctionText, made: Sequence[KnownFunctions]) -> Self:
        """Make the texts that none of the sets ``made`` before has; asynchronous ones at the same time.

        Raises ``ValueError`` for two different functions of one name, and what ``text`` raises.
        """
        specs: dict[str, FunctionSpec] = {}
        for spec in functions:
            if specs.setdefault(spec.name, spec) != spec:
                raise ValueError(f"two functions are called {spec.name!r}")
        texts: dict[str, Any] = {}
        for name, spec in specs.items():
            known = next((each for each in made if each.specs.get(name) == spec), None)
            texts[name] = text(spec) if known is None else known.texts[name]
        later = {name: each for name, each in texts.items() if inspect.isawaitable(each)}
        if later:
            texts |= zip(later, await asyncio.gather(*later.values()), strict=True)
        for name, each in texts.items():
            if not isinstance(each, str):
                raise TypeError(f"the text of the function {name!r} is {type(each).__name__}, not str")
        return cls(specs, texts)


Near: TypeAlias = dict[str, float]
"""Cosines of functions with one request, by name."""

_GRID = 2.0**32
"""Adding and subtracting this rounds to a multiple of 2**-20: stores sum in different orders."""
_ATTEMPTS = 4
_MOST_OTHERS = 10
_SHOWN = 300
"""Characters of the text in a record, for people who look into the store."""


class FunctionRecords:
    """Keep a record of each function in a vector store, and find the nearest ones to a request.

    The records of an embedding model are in the namespace ``NAMESPACE/vectors/MODEL``. The id of a record is the name
    of the function and a hash of its text, so that a text is embedded once, also by several processes. Records of other
    functions stay, since another process may use them. They are deleted when they are far more than the functions; a
    process that misses one embeds it again.
    """

    def __init__(self, store: VectorStore, embeddings: EmbeddingGenerator, namespace: str) -> None:
        self.namespace = namespace
        self._store = store
        self._embeddings = embeddings
        self._vectors = f"{namespace}/vectors/{embeddings.model}"
        self._present: set[str] | None = None  # ids in the store; None where the store is to be read
        self._in_store: KnownFunctions | None = None  # the functions that were all present the last time
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def embed_requests(self, requests: Sequence[str]) -> Vectors:
        """Embed requests, all in one call."""
        return self._require_count(await self._embeddings.embed(requests, purpose="query"), len(requests))

    async def cosines(
        self, known: KnownFunctions, queries: Vectors, top: int, also: Sequence[Collection[str]]
    ) -> tuple[list[Near], int]:
        """Bring the store up to date, and return the cosines for each query and how many texts were embedded.

        A query has the cosines above 0 of its ``top`` nearest functions and of those named in ``also`` for it. Raises
        ``StoreError`` and what embedding raises.
        """
        embedded = 0
        try:
            for attempt in range(_ATTEMPTS):
                made = await self._in_step(known)
                embedded += made
                cosines, complete = await self._nearest(known, queries, min(top, len(known.names)), also)
                # When nothing is missing, the store's search is an approximate one.
                if complete or (attempt and not made):
                    return cosines, embedded
                self._present = None
        except (StoreError, ValueError) as error:
            raise self._make_error(error) from error
        raise StoreError(
            f"The functions of {self.namespace!r} cannot be chosen: another process deletes the records in "
            f"the vector store {self._store.name!r}. Give each its own namespace."
        )

    async def _in_step(self, known: KnownFunctions) -> int:
        """Write the records that are missing; return how many texts were embedded."""
        if self._present is not None and self._in_store is known:
            return 0
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:  # a lock belongs to one event loop
            self._lock = loop, asyncio.Lock()
        async with self._lock[1]:
            present = self._present
            if present is None:
                present = {id async for id in self._store.ids(self._vectors)}
                others = present - known.names.keys()
                if len(others) > _MOST_OTHERS * (len(known.names) + 100):
                    await self._store.delete(self._vectors, list(others))
                    present -= others
            missing = [name for key, name in known.names.items() if key not in present]
            if missing:
                texts = [known.texts[name] for name in missing]
                vectors = self._require_count(await self._embeddings.embed(texts), len(texts))
                records = [
                    VectorRecord(known.keys[name], {"function": name, "text": known.texts[name][:_SHOWN]})
                    for name in missing
                ]
                await self._store.upsert(self._vectors, records, vectors)
            self._present, self._in_store = present | known.names.keys(), known
            return len(missing)

    async def _nearest(
        self, known: KnownFunctions, queries: Vectors, top: int, also: Sequence[Collection[str]]
    ) -> tuple[list[Near], bool]:
        """Search once for all queries, then read the vectors of those in ``also`` that were not found.

        Return the cosines for each query, and whether they are complete. When records of other functions take the
        places, the search is repeated for more.
        """
        if not top:
            return [{} for _ in queries], True
        asked = top
        while True:
            results = await self._store.search(self._vectors, queries, top=asked)
            found = [_own(matches, known.names, top) for matches in results]
            complete = all(len(near) == top for near in found)
            if complete or all(len(matches) < asked for matches in results):
                break
            asked *= 4
        names = {name for some, near in zip(also, found, strict=True) for name in some if name not in near}
        if names:
            records, vectors = await self._store.get(self._vectors, [known.keys[name] for name in names])
            complete &= len(records) == len(names)
            if vectors is not None:
                read = {known.names[each.id]: row.buffer.tolist() for each, row in zip(records, vectors, strict=True)}
                for query, some, near in zip(queries, also, found, strict=True):
                    numbers = query.buffer.tolist()
                    for name in some:
                        if name not in near and name in read:
                            near[name] = sum(map(mul, read[name], numbers)) + _GRID - _GRID
        return [{name: cosine for name, cosine in near.items() if cosine > 0} for near in found], complete

    def _make_error(self, error: Exception) -> StoreError:
        """Return an error that names the store. A ``ValueError`` means vectors of another length."""
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

    def _require_count(self, vectors: Vectors, texts: int) -> Vectors:
        if vectors.rows != texts:
            raise ResponseInvalid(
                f"The embedding generator {self._embeddings.name!r} gave {vectors.rows} vectors for {texts} texts."
            )
        return vectors


def _own(matches: Sequence[VectorMatch], names: Mapping[str, str], top: int) -> Near:
    """Return the cosines of the ``top`` first functions."""
    near: Near = {}
    for match in matches:
        if match.id in names:
            near[names[match.id]] = match.score + _GRID - _GRID
            if len(near) == top:
                break
    return near
