"""What every store with hybrid search must do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from portico.errors import StoreError, UnsupportedOption
from portico.ports import HybridSearch, VectorStore
from portico.search import Equal, Filter, Range, VectorMatch, VectorRecord, Vectors
from portico_testkit._failing import fails_as
from portico_testkit.vector_checks import close, skip_without

__all__ = ["HybridSearchKit"]

_RIGHT, _UP, _LEFT = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)

_TEXTS = {
    "forge": ("The anvil stands beside the hearth.", _UP),
    "well": ("A cistern holds rain.", _RIGHT),
    "loft": ("The dovecote is empty.", _LEFT),
}

_AWKWARD = (
    "",
    " ",
    "!!! ??? ...",
    "anvil & | ! ( ) <-> :* ~",
    "anvil' OR '1'='1",
    'anvil"; DROP TABLE records; --',
    "anvil \\ %s %(words)s {0} $1 ?",
    "anvil\x00hearth",
    "anvil \ud800 half",
    "anvil AND NOT hearth^2 OR text:* NEAR/3",
    "é e\u0301 ß 中文 🙂 anvil",
    "anvil " * 2_000,
    "a" * 5_000 + " anvil",
    "snake_case camelCase HTTPServer /path/to/anvil a.example",
)


class HybridSearchKit:
    """Subclass it beside `VectorStoreKit` and give a fixture ``vector_store`` with hybrid search; a new one each::

        class TestAcmeHybrid(HybridSearchKit):
            @pytest.fixture
            async def vector_store(self, tmp_path):
                store = AcmeVectors(AcmeSettings(path=tmp_path), None)
                yield store
                await store.aclose()

            async def another(self, vector_store):
                return AcmeVectors(vector_store.settings, None)

    A persistent store also has `another`: a second store on the same data, while the first stays open. A fixture
    ``failing_store`` gives one that cannot read what it keeps. ``tolerance`` is by how much a cosine may be off. A
    store that filters by declared fields only declares ``a`` for the kit. The texts are English.
    """

    tolerance: ClassVar[float] = 1e-5

    async def another(self, vector_store: VectorStore) -> VectorStore:
        """Return another store on the data of ``vector_store``; only persistent stores need it."""
        pytest.fail("the kit of a persistent store needs `another`")

    @pytest.fixture
    def failing_store(self) -> VectorStore | None:
        """Nothing, for a store that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_texts_come_back(self, vector_store: VectorStore) -> None:
        texts = [*_AWKWARD, None]
        records = [VectorRecord(str(number), {"a": number}, text) for number, text in enumerate(texts)]
        await vector_store.upsert("n", records, Vectors.from_rows([(1, number) for number in range(len(texts))]))
        found, _ = await vector_store.get("n", [record.id for record in records])
        assert [record.text for record in found] == texts
        assert [dict(record.metadata) for record in found] == [dict(record.metadata) for record in records]

    @pytest.mark.asyncio
    async def test_words_find_what_the_vector_does_not(self, vector_store: VectorStore) -> None:
        await _put(vector_store, _TEXTS)
        by_words = await _find(vector_store, "anvil", _RIGHT, share=1.0)
        assert [match.id for match in by_words] == ["forge"], f"the word alone finds {_told(by_words)}"
        by_vector = await _find(vector_store, "anvil", _RIGHT, share=0.0)
        assert _first(by_vector) == "well", f"the vector alone finds {_told(by_vector)}"
        both = await _find(vector_store, "anvil", _RIGHT)
        assert {match.id for match in both} >= {"forge", "well"}, f"both together find {_told(both)}"

    @pytest.mark.asyncio
    async def test_one_half_is_enough(self, vector_store: VectorStore) -> None:
        await _put(vector_store, _TEXTS)
        found = await _find(vector_store, "the dovecote")
        assert _first(found) == "loft", f"words alone find {_told(found)}"
        assert {match.vector for match in found} == {0.0}, "a cosine where no vector was asked for"
        for text in ("", "  ", "?!"):
            found = await _find(vector_store, text, (0.1, 1.0))
            assert _first(found) == "forge", f"without words, the vector finds {_told(found)}"
            assert await _find(vector_store, text) == [], "something is found by nothing"

    @pytest.mark.asyncio
    async def test_never_more_than_top(self, vector_store: VectorStore) -> None:
        rows = {
            str(number): ("An anvil." if number % 2 else "A cistern.", (number, 30 - number)) for number in range(30)
        }
        await _put(vector_store, rows)
        everything = await _find(vector_store, "anvil", _RIGHT, top=30)
        for top in (1, 2, 7):
            found = await _find(vector_store, "anvil", _RIGHT, top=top)
            assert [match.id for match in found] == [match.id for match in everything[:top]]
        for namespace in ("n", "nowhere"):
            for top in (0, -1):
                with pytest.raises(ValueError):
                    await _hybrid(vector_store).search(namespace, "anvil", top=top)

    @pytest.mark.asyncio
    async def test_a_filter_is_applied_to_both_halves_before_top(self, vector_store: VectorStore) -> None:
        skip_without(vector_store, Equal("a", "kept"))
        records = [VectorRecord(f"near {number}", {"a": "dropped"}, "An anvil.") for number in range(60)]
        records += [VectorRecord("word", {"a": "kept"}, "An anvil, too."), VectorRecord("vector", {"a": "kept"})]
        rows = [_RIGHT] * 60 + [_UP, (0.1, 1.0)]
        await vector_store.upsert("n", records, Vectors.from_rows(rows))
        for share in (None, 0.5):
            found = await _find(vector_store, "anvil", _RIGHT, top=2, share=share, filter=Equal("a", "kept"))
            assert {match.id for match in found} == {"word", "vector"}, f"the filter keeps {_told(found)}"
        found = await _find(vector_store, "anvil", filter=Equal("a", "kept"))
        assert [match.id for match in found] == ["word"], f"by words alone it keeps {_told(found)}"
        assert len(await _find(vector_store, "anvil", _RIGHT, top=3)) == 3, "a filter reached the next call"

    @pytest.mark.asyncio
    async def test_a_filter_it_cannot_apply_is_refused(self, vector_store: VectorStore) -> None:
        await _put(vector_store, _TEXTS)
        for filter in (Equal("no such field", 1), Range("a", above=1)):
            try:
                vector_store.filter_support.check(filter, vector_store.name)
            except UnsupportedOption:
                with pytest.raises(UnsupportedOption):
                    await _find(vector_store, "anvil", filter=filter)
            else:
                assert await _find(vector_store, "anvil", _RIGHT, filter=filter) == []

    @pytest.mark.asyncio
    async def test_the_text_of_a_query_is_data(self, vector_store: VectorStore) -> None:
        await _put(vector_store, _TEXTS)
        for text in _AWKWARD:
            for vector in (None, _LEFT):
                found = await _find(vector_store, text, vector)
                assert len(found) <= 3
                if " anvil" in f" {text}".replace("\x00", " "):
                    ids = {match.id for match in found}
                    assert "forge" in ids, f"{text[:40]!r} has the word, and finds {_told(found)}"

    @pytest.mark.asyncio
    async def test_what_is_replaced_or_gone_is_not_found_by_its_words(self, vector_store: VectorStore) -> None:
        await _put(vector_store, _TEXTS)
        await _put(vector_store, {"forge": ("A hawthorn.", _UP)})
        assert await _ids(vector_store, "anvil") == []
        assert await _ids(vector_store, "hawthorn") == ["forge"]
        await _put(vector_store, {"forge": (None, _UP)})
        assert await _ids(vector_store, "hawthorn") == [], "a record without a text is found by the words it had"
        [record], _ = await vector_store.get("n", ["forge"])
        assert record.text is None
        await vector_store.delete("n", ["well"])
        assert await _ids(vector_store, "cistern") == [], "a deleted record is found by its words"
        await _put(vector_store, {"well": ("A gable.", _UP), "forge": ("An anvil.", _UP)})
        assert await _ids(vector_store, "cistern") == [], "a new record has the words of a deleted one"
        assert (await _ids(vector_store, "gable"), await _ids(vector_store, "anvil")) == (["well"], ["forge"])
        await vector_store.drop("n")
        assert await _ids(vector_store, "gable") == []

    @pytest.mark.asyncio
    async def test_what_was_written_is_found_by_another_store(self, vector_store: VectorStore) -> None:
        if not vector_store.persistent:
            pytest.skip("the store is not persistent")
        await _put(vector_store, _TEXTS)
        second = await self.another(vector_store)
        try:
            assert await _ids(second, "anvil") == ["forge"], "another store does not find it"
            await _put(second, {"forge": ("A hawthorn.", _UP)})
            assert await _ids(vector_store, "hawthorn") == ["forge"], "what another store wrote is not found"
            assert await _ids(vector_store, "anvil") == []
        finally:
            await close(second)

    @pytest.mark.asyncio
    async def test_what_cannot_be_read_is_a_store_error(self, failing_store: VectorStore | None) -> None:
        if failing_store is None:
            pytest.skip("there is no fixture `failing_store`: a store that cannot fail")
        await fails_as(StoreError, _find(failing_store, "anvil", _UP), "hybrid search")


def _hybrid(store: VectorStore) -> HybridSearch:
    hybrid = store.hybrid
    assert hybrid is not None, "the store has no attribute `hybrid`"
    return hybrid


async def _put(
    store: VectorStore, rows: Mapping[str, tuple[str | None, Sequence[float]]], namespace: str = "n"
) -> None:
    records = [VectorRecord(id, {}, text) for id, (text, _) in rows.items()]
    await store.upsert(namespace, records, Vectors.from_rows(row for _, row in rows.values()))


async def _find(
    store: VectorStore,
    text: str,
    vector: Sequence[float] | None = None,
    *,
    top: int = 10,
    share: float | None = None,
    filter: Filter | None = None,
) -> list[VectorMatch]:
    query = None if vector is None else Vectors.from_rows([vector])
    return await _hybrid(store).search("n", text, query, top=top, share=share, filter=filter)


async def _ids(store: VectorStore, word: str, namespace: str = "n") -> list[str]:
    return [match.id for match in await _hybrid(store).search(namespace, word)]


def _first(found: Sequence[VectorMatch]) -> str | None:
    return found[0].id if found else None


def _told(found: Sequence[VectorMatch]) -> str:
    return ", ".join(f"{match.id} ({match.score:.3f})" for match in found) or "nothing"
