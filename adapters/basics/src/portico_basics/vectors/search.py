"""The TextSearch port over a vector store, embeddings and an application's records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from portico.errors import ConfigurationError, StoreDamaged, StoreError
from portico.plugins import JsonSchema, Mismatch, Services, compile_type
from portico.ports import EmbeddingGenerator, HybridSearch, TypeCodec, VectorStore
from portico.search import (
    FilterSupport,
    Scalar,
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
    VectorMatch,
    VectorRecord,
    search_method,
)
from portico_basics.config import VectorsSettings

Record = TypeVar("Record")
Metadata = Mapping[str, Scalar | Sequence[Scalar]]

_WHOLE = "portico:record"
_CLAUSES = frozenset({"Equal", "AnyOf", "Range"})


class Records(Generic[Record]):
    """Turns records of one type into metadata and back.

    Fields with text, a number, a bool, or a list of these become fields to filter by. Fields of an object in the record
    have dotted names. A record with other fields is also stored whole, as JSON.
    """

    def __init__(self, record_type: type[Record], codecs: Iterable[TypeCodec]) -> None:
        self._compiled = compile_type(record_type, codecs)
        self._name = getattr(record_type, "__name__", str(record_type))
        schema = _resolve_part(self._compiled.schema, self._compiled.schema)
        if schema.get("type") != "object":
            raise ValueError(f"a record is an object with fields, such as a dataclass; {self._name} is not")
        self.properties: frozenset[str] | None = None
        """The fields of a record; None where any field is allowed."""
        self._filterable: frozenset[str] | None = None
        if "properties" in schema:
            self.properties = frozenset(schema["properties"])
            self._filterable = frozenset(_filterable(schema, self._compiled.schema))

    def support(self, store: FilterSupport, offered: Iterable[str]) -> FilterSupport:
        """Return the filters that the store supports on the fields of a record."""
        fields = store.fields
        if self._filterable is not None:
            known = dict.fromkeys(sorted(self._filterable), _CLAUSES) if fields is None else fields
            fields = {name: kinds for name, kinds in known.items() if name in self._filterable}
        offered = tuple(offered)
        unknown = [] if fields is None else [name for name in offered if name not in fields]
        if unknown:
            known_ones = ", ".join(sorted(fields or ())) or "none"
            raise ValueError(f"{self._name} has no field {unknown[0]!r} to filter by; there are {known_ones}")
        return FilterSupport(fields, store.combine, offered)

    def metadata(self, record: Record) -> Metadata:
        """Return the metadata for a record."""
        written = self._compiled.unstructure(record)
        metadata = dict(_flat(written, ""))
        if metadata != written or _WHOLE in metadata:
            metadata[_WHOLE] = json.dumps(written, separators=(",", ":"))
        return metadata

    def record(self, id: str, metadata: Metadata) -> Record:
        """Return the record of stored metadata; ``StoreDamaged`` if it is not a record."""
        whole = metadata.get(_WHOLE)
        try:
            value = json.loads(whole) if isinstance(whole, str) else dict(metadata)
            found: Record = self._compiled.structure(value)
        except (Mismatch, ValueError) as error:
            raise StoreDamaged(f"the content of {id!r} is not a {self._name}: {error}") from error
        return found


def _reader(
    field: str | Callable[[Any], Any], record_type: type[Any], known: frozenset[str] | None
) -> Callable[..., Any]:
    """Return a function that reads a field of a record; ``ValueError`` for an unknown field.

    A function stays as it is. A missing field of a mapping is None.
    """
    if callable(field):
        return field
    attributes = {name for kind in getattr(record_type, "__mro__", ()) for name in getattr(kind, "__annotations__", ())}
    if known is not None and field not in known | attributes and not hasattr(record_type, field):
        raise ValueError(f"{record_type.__name__} has no field {field!r}; there are {', '.join(sorted(known))}")

    def read(record: Any) -> Any:
        return record.get(field) if isinstance(record, Mapping) else getattr(record, field)

    return read


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar | list[Scalar]]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{prefix}{name}.")
        elif all(isinstance(element, str | int | float) for element in (part if isinstance(part, list) else [part])):
            yield prefix + name, part


def _filterable(schema: Mapping[str, Any], root: Mapping[str, Any], within: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the dotted names of the fields to filter by: all but lists of objects, and objects of any keys."""
    for name, part in schema["properties"].items():
        for choice in part.get("anyOf", [part]):
            reference = choice.get("$ref", "")
            resolved = _resolve_part(choice, root)
            if "properties" in resolved and (not reference or reference not in within):
                yield from (f"{name}.{inner}" for inner in _filterable(resolved, root, (*within, reference)))
            elif resolved.get("type") not in ("null", "object") and not _resolve_part(
                resolved.get("items") or {}, root
            ).get("properties"):
                yield name


def _resolve_part(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = JsonSchema.resolve(schema["$ref"], root) if "$ref" in schema else schema
    return found


_BATCH = 500


@dataclass(frozen=True, slots=True)
class Hit(Generic[Record]):
    """A record with its score: the cosine of its text and the query, at most 1; higher is better.

    Where the store finds by words too, it is the score of the store.
    """

    record: Record
    score: float


class VectorsTextSearch(SearchConnector[Record]):
    """Store records in a vector store, and find them by the meaning of their text.

    >>> import asyncio
    >>> from portico_testkit.fakes.embedding_generator import HashingEmbeddings
    >>> from portico_testkit.fakes.vector_store import DictVectorStore
    >>> @dataclass(frozen=True)
    ... class Note:
    ...     id: str
    ...     text: str
    ...     year: int
    >>> notes = VectorsTextSearch(
    ...     Note, DictVectorStore(), HashingEmbeddings(), namespace="notes", key="id", text="text"
    ... )
    >>> async def find():
    ...     await notes.add([Note("a", "a red door", 2025), Note("b", "a blue roof", 2026)])
    ...     return await (await notes.get_search_results("doors that are red", TextSearchOptions(top=1))).list()
    >>> asyncio.run(find())
    [Note(id='a', text='a red door', year=2025)]

    ``record_type`` is a dataclass, a TypedDict, or a type of ``type_codecs`` (attrs, pydantic, msgspec). ``key``,
    ``text``, ``title`` and ``link`` are each the name of a field or a function of a record: the unique key, the text to
    embed, and name and link of a `TextSearchResult`. Filters use the fields of a record, with dotted names for inner
    objects (``author.name``), as far as the store supports them; ``offered`` are the fields for models.
    ``minimum_score`` leaves out results with a lower cosine. With ``words``, the store also finds records by words, in
    one query; it must have hybrid search. One namespace has vectors of one embedding model.

    Raises ``ValueError`` for an unknown field, ``SchemaUnsupported`` for a type without a JSON form, and
    ``ConfigurationError`` for ``words`` with a store without hybrid search. Searching and adding raise ``StoreError``,
    and what the store and the embedding generator raise.
    """

    def __init__(
        self,
        record_type: type[Record],
        store: VectorStore,
        embeddings: EmbeddingGenerator,
        *,
        namespace: str,
        key: str | Callable[[Record], str],
        text: str | Callable[[Record], str],
        title: str | Callable[[Record], str | None] | None = None,
        link: str | Callable[[Record], str | None] | None = None,
        name: str = "vectors",
        minimum_score: float | None = None,
        words: bool = False,
        offered: Iterable[str] = (),
        type_codecs: Iterable[TypeCodec] = (),
    ) -> None:
        self.name = name
        self.record_type = record_type
        self.store = store
        self.embeddings = embeddings
        self.namespace = namespace
        self._records = Records(record_type, type_codecs)
        self.capabilities = SearchCapabilities(self._records.support(store.filter_support, offered), local=True)
        self._minimum_score = minimum_score
        self._hybrid = _hybrid_of(store) if words else None
        known = self._records.properties
        self._key = _reader(key, record_type, known)
        self._text = _reader(text, record_type, known)
        self._title = None if title is None else _reader(title, record_type, known)
        self._link = None if link is None else _reader(link, record_type, known)

    async def add(self, records: Iterable[Record]) -> int:
        """Embed and store records, replace those with equal keys, and return how many there are.

        500 records are written at a time, all or none. Of several with one key the last counts.
        """
        count = 0
        pending = iter(records)
        while batch := {self._id(record): record for record in islice(pending, _BATCH)}:
            texts = [self._text_to_embed(id, record) for id, record in batch.items()]
            vectors = await self.embeddings.embed(texts)
            written = [
                VectorRecord(id, self._records.metadata(record), text if self._hybrid is not None else None)
                for (id, record), text in zip(batch.items(), texts, strict=True)
            ]
            try:
                await self.store.upsert(self.namespace, written, vectors)
            except ValueError as error:
                raise self._wrong_model(error) from error
            count += len(batch)
        return count

    async def remove(self, keys: Iterable[str]) -> int:
        """Remove the records with these keys; return how many there were."""
        return await self.store.delete(self.namespace, list(keys))

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[Record]:
        """Return the records whose texts are nearest to the query."""
        return SearchResults(hit.record for hit in await self._hits(query, options))

    @search_method
    async def get_hits(self, query: str, options: TextSearchOptions) -> SearchResults[Hit[Record]]:
        """Find records and return each with its score."""
        return SearchResults(await self._hits(query, options))

    def to_text(self, record: Record) -> str:
        """Return the record's text."""
        text = self._text(record)
        if not isinstance(text, str):
            raise StoreDamaged(f"{self._label}: the text of a record is {type(text).__name__}, not str")
        return text

    def to_result(self, record: Record) -> TextSearchResult:
        """Return the record's text with name and link, if it has them."""
        name = None if self._title is None else self._title(record)
        link = None if self._link is None else self._link(record)
        return TextSearchResult(self.to_text(record), name or None, link or None)

    async def _hits(self, query: str, options: TextSearchOptions) -> list[Hit[Record]]:
        embedded = await self.embeddings.embed([query], purpose="query")
        question = embedded if any(embedded.buffer) else None
        count = options.skip + options.top
        matches: Sequence[VectorMatch] = ()
        try:
            if self._hybrid is not None:
                matches = await self._hybrid.search(self.namespace, query, question, top=count, filter=options.filter)
            elif question is not None:
                [matches] = await self.store.search(self.namespace, question, top=count, filter=options.filter)
        except ValueError as error:
            raise self._wrong_model(error) from error
        if (least := self._minimum_score) is not None:
            matches = [match for match in matches if (match.vector if self._hybrid else match.score) >= least]
        return [self._hit(match) for match in matches[options.skip :]]

    def _hit(self, match: VectorMatch) -> Hit[Record]:
        try:
            return Hit(self._records.record(match.id, match.metadata), match.score)
        except StoreDamaged as error:
            raise StoreDamaged(f"{self._label}: {error}. Add it again, or remove it.") from error

    def _id(self, record: Record) -> str:
        id = self._key(record)
        if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
            raise ValueError(f"{self._label}: the key of a record is {id!r}, not a text or a whole number")
        return str(id)

    def _text_to_embed(self, id: str, record: Record) -> str:
        text = self._text(record)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{self._label}: the record {id!r} has no text, so nothing would find it")
        return text

    def _wrong_model(self, error: ValueError) -> StoreError:
        return StoreError(
            f"{self._label} does not fit the vectors of {self.embeddings.model!r}: {error}. If it was filled with "
            "another embedding model, drop the namespace and add the records again."
        )

    @property
    def _label(self) -> str:
        return f"Text search {self.name!r}, namespace {self.namespace!r}"


def make_search(settings: VectorsSettings, services: Services) -> VectorsTextSearch[dict[str, Any]]:
    """Make the search of `portico.toml`, with mappings as records."""
    return VectorsTextSearch(
        cast("type[dict[str, Any]]", dict[str, Any]),
        services.get(VectorStore),
        services.get(EmbeddingGenerator, settings.embeddings),
        namespace=settings.namespace,
        key=settings.key,
        text=settings.text,
        title=settings.title,
        link=settings.link,
        minimum_score=settings.minimum_score,
        words=settings.lexical == "store",
        offered=settings.offered,
    )


def _hybrid_of(store: VectorStore) -> HybridSearch:
    hybrid = store.hybrid
    if hybrid is None:
        raise ConfigurationError(
            f'The vector store {store.name!r} does not find by words, which `lexical = "store"` asks of it. Leave '
            "`lexical` out of the source, or set `use` in [vectors] to a store with hybrid search, such as postgres."
        )
    return hybrid
