"""With `lexical = "store"` the vector store finds by words too, and the index holds none."""

from __future__ import annotations

import os

import pytest

from portico.errors import ConfigurationError
from portico.search import Equal, FilterSupport
from portico_documents import catalogue
from portico_documents.search import LEXICAL, VECTOR
from portico_testkit.fakes.hybrid_search import DictHybridStore

OLD = 1_600_000_000


@pytest.fixture
def store():
    store = DictHybridStore()
    store.persistent = True
    return store


def write(file, text: str, time: int = OLD) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (time, time))


def words_of_catalogue(search) -> int:
    connection = catalogue.connect(search._place.catalogue)
    try:
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
        return connection.execute("SELECT count(*) FROM words_docsize").fetchone()[0]
    finally:
        connection.close()


async def test_records_carry_what_is_searched(make_search, folder, store) -> None:
    write(folder / "guide" / "a.md", "# Doors\n\nCall openDoor for it.\n")
    search = make_search(lexical="store")
    await search.index.update()
    namespace = search._mirror().namespace
    [text] = store.texts[namespace].values()
    assert text == "guide/a.md Doors\nCall openDoor for it.\nopen Door"
    assert words_of_catalogue(search) == 0
    for query in ("guide", "Doors", "openDoor", "call"):
        [hit] = await search.rank(query, 3, weights=LEXICAL)
        assert (hit.path, hit.text) == ("guide/a.md", "Call openDoor for it.")
        assert hit.score == hit.lexical > 0
    [hit] = await search.rank("call opendoor for it doors", 1, weights=VECTOR)
    assert hit.score == pytest.approx(hit.vector)


async def test_a_store_without_words_is_refused_and_it_is_said_what_to_do(make_search, folder, store) -> None:
    write(folder / "a.md", "Alpha.\n")
    store.hybrid = None
    for call in (lambda s: s.index.update(), lambda s: s.rank("alpha", 1)):
        with pytest.raises(ConfigurationError, match=r"'dict' does not find by words.*Leave `lexical` out.*postgres"):
            await call(make_search(lexical="store"))
    assert await make_search().rank("alpha", 1)


async def test_changes_and_removals_reach_the_store(make_search, folder, store) -> None:
    for name in ("a", "b", "c"):
        write(folder / f"{name}.md", f"All about {name}{name}.\n")
    await make_search(lexical="store").index.update()
    write(folder / "a.md", "All about zz.\n", OLD + 1)
    (folder / "b.md").unlink()
    (folder / "c.md").rename(folder / "d.md")
    search = make_search(lexical="store")
    report = await search.index.update()
    assert (report.changed, report.removed, report.renamed, report.embedded) == (1, 1, 1, 1)
    assert await search.rank("bb", 3, weights=LEXICAL) == []
    assert [hit.path for hit in await search.rank("zz", 3, weights=LEXICAL)] == ["a.md"]
    # A vector that was copied has the words of its new place.
    assert [hit.path for hit in await search.rank("d.md", 1, weights=LEXICAL)] == ["d.md"]


async def test_both_ways_live_beside_each_other(make_search, folder, store) -> None:
    write(folder / "a.md", "Alpha.\n")
    own, other = make_search(), make_search(lexical="store")
    for _ in range(2):
        await own.index.update()
        await other.index.update()
        assert await own.rank("alpha", 1)
        assert await other.rank("alpha", 1)
    assert own._mirror().namespace != other._mirror().namespace


async def test_what_the_store_has_and_the_catalogue_has_not_is_passed_over(make_search, folder, store) -> None:
    from portico.search import VectorRecord

    for number in range(3):
        write(folder / f"{number}.md", f"Alpha {number}.\n")
    search = make_search(lexical="store")
    await search.index.update()
    mirror = search._mirror()
    for number in range(40):
        record = VectorRecord(f"stray{number}", {}, "alpha alpha")
        await store.upsert(mirror.namespace, [record], await mirror.embeddings.embed(["alpha alpha"]))
    assert [hit.path for hit in await search.rank("alpha", 3)] == ["0.md", "1.md", "2.md"]


async def test_filters_that_the_store_cannot_apply_are_applied_here(make_search, folder, store) -> None:
    for number in range(60):
        write(folder / f"{number}.md", "The same in all.\n")
    write(folder / "last.txt", "The same in some.\n")
    store.filter_support = FilterSupport.nothing()
    search = make_search(lexical="store")
    assert [hit.path for hit in await search.rank("the same", 3, filter=Equal("type", "txt"))] == ["last.txt"]


async def test_a_query_of_signs_and_one_of_unknown_words_find_by_meaning_or_nothing(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    search = make_search(lexical="store")
    assert await search.rank("?! ()", 3) == []
    assert await search.rank("zebra", 3, weights=LEXICAL) == []
