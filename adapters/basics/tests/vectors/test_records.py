"""Records come out of a store as they went in, and are found by their fields."""

from __future__ import annotations

import enum
import json
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from portico.errors import ConfigurationError, SchemaUnsupported, StoreDamaged, StoreError, UnsupportedOption
from portico.plugins import Compiled
from portico.search import Equal, FilterSupport, Range, TextSearchOptions, VectorRecord, search_plugin
from portico_basics.config import VectorsSettings
from portico_basics.vectors.search import Hit, Records, VectorsTextSearch
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.hybrid_search import DictHybridStore
from portico_testkit.fakes.vector_store import DictVectorStore


class Kind(enum.Enum):
    NOTE = "note"
    LETTER = "letter"


@dataclass(frozen=True)
class Inner:
    name: str | None = None
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Everything:
    id: str
    text: str
    count: int
    share: float
    yes: bool
    kind: Kind
    day: date
    moment: datetime
    price: Decimal
    uuid: UUID
    maybe: int | None
    names: tuple[str, ...]
    inner: Inner
    inners: list[Inner]
    anything: dict[str, int]


PRINTABLE = st.text(string.printable, max_size=12)
INNERS = st.builds(Inner, st.none() | PRINTABLE, st.lists(st.integers(-5, 5), max_size=3))
EVERYTHING = st.builds(
    Everything,
    PRINTABLE,
    st.text(min_size=1),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from(Kind),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.uuids(),
    st.none() | st.integers(0, 9),
    st.lists(PRINTABLE, max_size=3).map(tuple),
    INNERS,
    st.lists(INNERS, max_size=2),
    st.dictionaries(PRINTABLE, st.integers(0, 9), max_size=3),
)


@given(EVERYTHING)
def test_a_record_comes_out_as_it_went_in(record: Everything) -> None:
    records = Records(Everything, ())
    metadata = records.metadata(record)
    for name, value in metadata.items():
        assert isinstance(name, str)
        elements = value if isinstance(value, list) else [value]
        assert all(isinstance(element, str | int | float) for element in elements), f"{name} is {value!r}"
    kept = json.loads(json.dumps(metadata))
    assert records.record("id", kept) == record


@given(EVERYTHING)
def test_fields_to_filter_by_are_those_that_are_kept(record: Everything) -> None:
    records = Records(Everything, ())
    support = records.support(FilterSupport.everything(), ())
    assert support.fields is not None
    kept = records.metadata(record)
    open_ended = {name for name in kept if name.startswith("anything.")} | {"portico:record", "inners"}
    assert set(kept) - open_ended <= set(support.fields)
    missing = set(support.fields) - set(kept)
    assert missing <= {"maybe", "inner.name"}, f"{missing} cannot be filtered by"


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.integers(0, 9) | PRINTABLE | st.booleans(),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab.c"), inner, max_size=2),
        ),
        max_size=4,
    )
)
def test_a_mapping_of_any_json_comes_out_as_it_went_in(record: dict[str, Any]) -> None:
    records = Records(dict[str, Any], ())
    assert records.record("id", json.loads(json.dumps(records.metadata(record)))) == record


@dataclass(frozen=True)
class Note:
    id: str
    text: str
    year: int = 2025


def notes(record_type: type[Any] = Note, **options: Any) -> VectorsTextSearch[Any]:
    given_options = {"namespace": "n", "key": "id", "text": "text", **options}
    return VectorsTextSearch(record_type, DictVectorStore(), HashingEmbeddings(), **given_options)


async def found(search: VectorsTextSearch[Any], query: str = "a door", **options: Any) -> list[Any]:
    return await (await search.get_search_results(query, TextSearchOptions(**options))).list()


async def test_types_of_other_libraries_come_with_their_codec() -> None:
    class Foreign:
        def __init__(self, id: str, text: str) -> None:
            self.id, self.text = id, text

    class ForeignCodec:
        name = "foreign"

        def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
            if hint is not Foreign:
                return None
            properties = {"id": {"type": "string"}, "text": {"type": "string"}}
            schema = {"type": "object", "properties": properties}
            return Compiled(schema, lambda value: Foreign(**value), vars)

    with pytest.raises(SchemaUnsupported):
        notes(Foreign)
    search = notes(Foreign, type_codecs=[ForeignCodec()])
    await search.add([Foreign("1", "a door")])
    [one] = await found(search)
    assert isinstance(one, Foreign)
    assert vars(one) == {"id": "1", "text": "a door"}


async def test_what_is_added_with_a_known_key_replaces_it() -> None:
    search = notes()
    assert await search.add([Note("1", "a door"), Note("2", "a roof"), Note("1", "a red door")]) == 2
    assert await search.add(iter([Note("2", "a blue roof")])) == 1
    assert {note.text for note in await found(search)} == {"a red door", "a blue roof"}
    assert await search.remove(["1", "none"]) == 1
    assert [note.id for note in await found(search)] == ["2"]
    assert await search.add([]) == 0


@pytest.mark.parametrize("text", ["", "  \n", None, 7])
async def test_a_record_without_text_is_refused_since_nothing_would_find_it(text: Any) -> None:
    search = notes()
    with pytest.raises(ValueError, match="the record '1' has no text"):
        await search.add([Note("0", "a door"), Note("1", text)])
    assert await search.store.count("n") == 0


@pytest.mark.parametrize("key", ["", None, True, 0.5])
async def test_a_key_is_a_text_or_a_whole_number(key: Any) -> None:
    with pytest.raises(ValueError, match="the key of a record"):
        await notes(key=lambda note: key).add([Note("1", "a door")])


async def test_hits_have_scores_and_weak_ones_can_be_left_out() -> None:
    search = notes()
    await search.add([Note("1", "a red door"), Note("2", "roof tiles")])
    hits = await (await search.get_hits("a red door")).list()
    assert [type(hit) for hit in hits] == [Hit, Hit]
    assert hits[0].record == Note("1", "a red door")
    assert hits[0].score == pytest.approx(1, abs=1e-5)
    assert hits[1].score < hits[0].score
    strict = VectorsTextSearch(
        Note, search.store, search.embeddings, namespace="n", key="id", text="text", minimum_score=0.99
    )
    assert [hit.record.id for hit in await (await strict.get_hits("a red door")).list()] == ["1"]
    assert await found(strict, "a red door", skip=1) == []
    assert await (await search.get_hits(" ")).list() == []


async def test_a_query_of_no_meaning_to_the_model_finds_nothing() -> None:
    class Speechless(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            return await super().embed([""] * len(texts) if purpose == "query" else texts, purpose=purpose)

    search = VectorsTextSearch(Note, DictVectorStore(), Speechless(), namespace="n", key="id", text="text")
    await search.add([Note("1", "a door")])
    assert await found(search) == []


async def test_a_field_that_a_record_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(UnsupportedOption, match=r"cannot filter by 'years'.*\byear\b"):
        await found(notes(), filter=Equal("years", 2025))


async def test_what_the_store_cannot_filter_by_is_refused() -> None:
    class Plain(DictVectorStore):
        filter_support = FilterSupport({"year": frozenset({"Equal"}), "other": frozenset({"Equal"})}, frozenset())

    search = VectorsTextSearch(Note, Plain(), HashingEmbeddings(), namespace="n", key="id", text="text")
    assert search.capabilities.filter == Plain.filter_support.__class__({"year": frozenset({"Equal"})}, frozenset())
    with pytest.raises(UnsupportedOption, match="cannot apply Range to 'year'"):
        await found(search, filter=Range("year", above=1))


def test_other_mistakes_are_told_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="Note has no field 'colour' to filter by"):
        notes(offered=("colour",))
    with pytest.raises(ValueError, match="str is not"):
        notes(str)
    with pytest.raises(ValueError, match="namespace"):
        VectorsSettings(namespace="")
    with pytest.raises(ValueError, match="minimum_score"):
        VectorsSettings(namespace="n", minimum_score=2)


async def test_what_is_no_record_is_told_with_its_id() -> None:
    search = notes()
    await search.add([Note("1", "a door")])
    vectors = await search.embeddings.embed(["a door"])
    await search.store.upsert("n", [VectorRecord("odd", {"id": "odd"})], vectors)
    with pytest.raises(StoreDamaged, match="namespace 'n': the content of 'odd' is not a Note"):
        await found(search)
    await search.remove(["odd"])
    await search.store.upsert("n", [VectorRecord("odd", {"portico:record": "{"})], vectors)
    with pytest.raises(StoreDamaged, match="'odd'"):
        await found(search)


async def test_a_namespace_of_another_model_is_told() -> None:
    search = notes()
    await search.add([Note("1", "a door")])
    other = VectorsTextSearch(
        Note, search.store, HashingEmbeddings(dimensions=16), namespace="n", key="id", text="text"
    )
    for call in (other.add([Note("2", "a roof")]), found(other)):
        with pytest.raises(StoreError, match="another embedding model"):
            await call


async def test_recursive_types_have_fields_too() -> None:
    search = notes(Tree)
    assert set(search.capabilities.filter.fields or ()) >= {"id", "text", "parent.id"}
    await search.add([Tree("1", "a door", Tree("0", "a house"))])
    assert await found(search, filter=Equal("parent.id", "0")) == [Tree("1", "a door", Tree("0", "a house"))]


@dataclass(frozen=True)
class Tree:
    id: str
    text: str
    parent: Tree | None = None


async def test_it_is_a_search_plugin_whose_records_are_described() -> None:
    plugin = search_plugin(notes(offered=("year",)), "Notes")
    returns = plugin["GetSearchResults"].spec.returns
    assert set(returns["items"]["properties"]) == {"id", "text", "year"}
    assert "year" in plugin["Search"].spec.parameters["properties"]


@dataclass(frozen=True)
class Letter:
    id: str
    body: str


async def test_with_the_words_of_the_store_a_record_is_found_by_them() -> None:
    store = DictHybridStore()
    search = VectorsTextSearch(
        Letter, store, HashingEmbeddings(), namespace="notes", key="id", text="body", words=True, minimum_score=0.2
    )
    await search.add([Letter("1", "Order QX-17 was sent."), Letter("2", "Nothing was sent today.")])
    assert store.texts["notes"] == {"1": "Order QX-17 was sent.", "2": "Nothing was sent today."}
    [hit] = await (await search.get_hits("QX-17", TextSearchOptions(top=3))).list()
    assert hit.record.id == "1"


def test_a_store_that_finds_by_vectors_only_has_no_words() -> None:
    with pytest.raises(ConfigurationError, match=r"'dict' does not find by words.*postgres"):
        VectorsTextSearch(
            Letter, DictVectorStore(), HashingEmbeddings(), namespace="notes", key="id", text="body", words=True
        )
