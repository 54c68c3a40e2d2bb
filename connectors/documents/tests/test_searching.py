"""Searching: words and vectors, filters, links, and queries of any kind."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from portico.search import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, TextSearchOptions
from portico_documents import catalogue
from portico_documents.catalogue import FileEntry, PassageEntry
from portico_documents.conditions import metadata_of, to_sql
from portico_documents.config import DocumentsSettings
from portico_documents.lexicon import Lexicon
from portico_documents.search import LEXICAL, VECTOR, DocumentsSearch, score_words, weights_for
from portico_documents.terms import query_terms


@pytest.fixture
def filled(folder: Path) -> Path:
    (folder / "http.md").write_text("# Server\n\nparseHTTPHeader reads a header. See max_line_length.\n")
    (folder / "walls.md").write_text("# Walls\n\nBricks and mortar make a wall; walls stand on footings.\n")
    (folder / "sub").mkdir()
    for number in range(20):
        (folder / "sub" / f"{number}.txt").write_text(f"Filler text of number {number} about nothing in particular.\n")
    return folder


def test_making_a_search_opens_nothing(tmp_path: Path) -> None:
    class Nothing:
        def get(self, port, name=None):
            raise AssertionError("asked for a service")

    search = DocumentsSearch(DocumentsSettings(path=tmp_path / "docs", index=tmp_path / "index"), Nothing())
    assert (search.name, search.capabilities.total_count) == ("documents", False)
    assert list(tmp_path.iterdir()) == []


async def test_a_search_without_an_index_builds_it_once(make_search, filled, embeddings) -> None:
    search = make_search()
    found = await asyncio.gather(*(search.rank("brick wall", 3) for _ in range(4)))
    assert {hits[0].path for hits in found} == {"walls.md"}
    assert embeddings.embedded == 22 + 4


async def test_what_a_search_compares_its_best_with_has_each_text_once(make_search, folder) -> None:
    for number in range(330):
        (folder / f"{number}.txt").write_text("The same.\n" if number >= 30 else f"Text {number}.\n")
    search = make_search()
    await search.index.update()
    with search.index.readers.lend() as connection:
        _, rows = await search._mirror().sample(connection)
    assert len(rows) == len(np.unique(rows, axis=0)) == 31


async def test_a_search_of_an_outdated_index_just_searches(make_search, filled, embeddings) -> None:
    await make_search().index.update()
    (filled / "new.md").write_text("A brick wall is new here.\n")
    assert [hit.path for hit in await make_search().rank("brick wall", 1)] == ["walls.md"]


@pytest.mark.parametrize(
    ("word", "query"),
    [
        ("Straße", "straße"),
        ("Straße", "STRAßE"),
        ("Grüße", "Gru\u0308ße"),
        ("Gru\u0308ße", "GRÜßE"),
        ("\ufb01nal", "\ufb01nal"),
        ("İstanbul", "İstanbul"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("привет", "ПРИВЕТ"),
    ],
)
async def test_a_word_is_found_as_it_is_written_in_its_language(make_search, folder, word, query) -> None:
    (folder / "a.txt").write_text(f"Before {word} after.\n", "utf-8")
    (folder / "b.txt").write_text("Something else entirely.\n")
    [hit, *_] = await make_search().rank(query, 2)
    assert (hit.path, hit.lexical > 0) == ("a.txt", True)


async def test_scores_are_within_bounds_and_explain_the_order(make_search, filled) -> None:
    hits = await make_search().rank("walls of brick", 22)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert 0 <= hit.lexical <= 1, hit
        assert -1.001 <= hit.vector <= 1.001, hit
        assert 0 < hit.score <= 1, hit


@pytest.mark.parametrize(
    "query", ["parseHTTPHeader", "http header", "max_line_length", "line length", "PARSEHTTPHEADER"]
)
async def test_identifiers_are_found_whole_and_by_their_parts(make_search, filled, query: str) -> None:
    [hit, *_] = await make_search().rank(query, 3, weights=LEXICAL)
    assert hit.path == "http.md"
    assert hit.name == "http.md › Server"


async def test_a_whole_identifier_counts_more_than_its_parts_in_a_row(make_search, folder) -> None:
    (folder / "a.txt").write_text("The main thread and further words.\n")
    (folder / "b.txt").write_text("The main_thread and further words.\n")
    assert [hit.path for hit in await make_search().rank("main_thread", 2, weights=LEXICAL)] == ["b.txt", "a.txt"]


async def test_the_result_does_not_depend_on_how_many_are_asked_for(make_search, filled, monkeypatch) -> None:
    from portico_documents import search as module

    search = make_search()
    every = await search.rank("number of walls in text 7", 30)
    monkeypatch.setattr(module, "_FIRST_DEPTH", 1)
    for count in (1, 2, 3, 7, 15):
        assert await search.rank("number of walls in text 7", count) == every[:count]


async def test_a_search_goes_on_where_its_index_was_made_anew(make_search, filled) -> None:
    search = make_search()
    assert [hit.path for hit in await search.rank("bricks and mortar", 1)] == ["walls.md"]
    catalogue.remove(search._place.catalogue)
    (filled / "walls.md").rename(filled / "stones.md")
    await make_search().index.update()
    assert [hit.path for hit in await search.rank("bricks and mortar", 1)] == ["stones.md"]


async def test_searches_at_once_find_what_each_finds_alone(make_search, filled) -> None:
    search = make_search()
    queries = [f"number of walls in text {number}" for number in range(20)]
    alone = [await search.rank(query, 5) for query in queries]
    assert await asyncio.gather(*(search.rank(query, 5) for query in queries)) == alone


async def test_words_find_while_another_process_fills_a_store_that_lost_its_vectors(make_search, filled, store) -> None:
    writer, search = make_search(), make_search()
    await writer.index.update()
    before = await make_search().rank("text of number 7", 5)
    await store.drop(writer._mirror().namespace)
    async with writer.index._lock_at_once():
        assert (await search.rank("text of number 7", 5))[0].lexical > 0
    await writer.index.update()
    assert await search.rank("text of number 7", 5) == before


def test_what_searches_keep_of_the_words_does_not_grow_with_updates(tmp_path: Path) -> None:
    writer = catalogue.connect(tmp_path / "catalogue.db", create=True)
    lexicon: Lexicon | None = None
    for run in range(10):
        passages = tuple(PassageEntry(f"{run} {n}", "red door", (), "", "", 1, 1, None) for n in range(20))
        catalogue.write(writer, [FileEntry(b"a", "a", "text", bytes([run]), 1, run, "", None, passages)], run)
        lexicon = Lexicon.of(writer, lexicon)
        assert len(score_words(writer, ["red"], None, lexicon).numbers) == 20
        assert len(lexicon.lengths[0]) <= 60
    writer.close()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="others drop objects later")
async def test_a_search_that_is_dropped_leaves_no_log_beside_its_index(make_search, filled) -> None:
    search = make_search()
    await search.rank("bricks and mortar", 1)
    folder = search._place.folder
    del search
    for _ in range(500):  # a thread of the pool may hold its last call a moment longer
        if not list(folder.glob("*-wal")):
            break
        await asyncio.sleep(0.01)
    assert not list(folder.glob("*-wal"))


async def test_each_half_alone_orders_by_its_own_score(make_search, filled) -> None:
    search = make_search()
    lexical = await search.rank("walls text", 22, weights=LEXICAL)
    assert [hit.lexical for hit in lexical] == sorted((hit.lexical for hit in lexical), reverse=True)
    vector = await search.rank("walls text", 22, weights=VECTOR)
    assert [hit.vector for hit in vector] == sorted((hit.vector for hit in vector), reverse=True)


async def test_filters_reach_beyond_the_best_of_both_halves(make_search, filled, monkeypatch) -> None:
    from portico_documents import search as module

    monkeypatch.setattr(module, "_FIRST_DEPTH", 2)
    results = await make_search().get_search_results(
        "filler text about nothing", TextSearchOptions(top=5, filter=Equal("path", "walls.md"))
    )
    assert {hit.path for hit in await results.list()} <= {"walls.md"}
    results = await make_search().get_search_results("wall", TextSearchOptions(filter=Equal("path", "walls.md")))
    assert len(await results.list()) == 1


async def test_an_empty_folder_finds_nothing(make_search, folder) -> None:
    assert await make_search().rank("anything", 5) == []


@pytest.mark.parametrize(
    "known",
    [
        [(0.0, 0.5, 0.0), (5.0, 0.5, 0.0), (20.0, 0.5, 0.0), (100.0, 0.5, 0.0)],
        [(20.0, 0.0, 0.0), (20.0, 0.1, 0.0), (20.0, 0.5, 0.0), (20.0, 1.0, 0.0)],
        [(20.0, 0.5, -0.1), (20.0, 0.5, 0.1), (20.0, 0.5, 0.5), (20.0, 0.5, 1.0)],
        [(20.0, 0.5, 0.1, 3.0), (20.0, 0.5, 0.1, 0.5), (20.0, 0.5, 0.1, 0.1), (20.0, 0.5, 0.1, -9.0)],
    ],
    ids=["words that weigh more", "words that stand together", "texts that are all alike", "vectors that disagree"],
)
def test_words_count_more_with(known: list[tuple[float, ...]]) -> None:
    shares = [weights_for(*each).lexical for each in known]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 1


def test_a_term_is_scored_as_fts5_scores_it(words: sqlite3.Connection) -> None:
    for term in ("red", "door", "wall", "cafe", "near and"):
        scores = score_words(words, [term], None)
        rows = words.execute("SELECT rowid, bm25(words) FROM words WHERE words MATCH ?", (f'"{term}"',)).fetchall()
        assert scores.numbers.tolist() == [number for number, _ in rows]
        ratios = [score / -own for score, (_, own) in zip(scores.scores, rows, strict=True)]
        assert ratios == pytest.approx([ratios[0]] * len(ratios)), term


@pytest.fixture(scope="module")
def words() -> sqlite3.Connection:
    """Give a catalogue of a few passages in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in catalogue._SCHEMA.split(";\n"):
        connection.execute(statement)
    for number, text in enumerate(["red door", "blue door door", "a red wall", "NEAR AND OR NOT", "naïve café"], 1):
        connection.execute(
            "INSERT INTO passages VALUES (?, ?, 1, 1, ?, '[]', '', '', 1, 1, NULL)", (number, str(number), text)
        )
        connection.execute("INSERT INTO words (rowid, text, trail, parts) VALUES (?, ?, '', '')", (number, text))
    yield connection
    connection.close()


@given(
    query=st.text(max_size=60)
    | st.lists(st.sampled_from(['"', "*", "NEAR(", "red", "door^2", "AND", "-"])).map(" ".join)
)
@settings(max_examples=200)
def test_no_query_is_syntax(words: sqlite3.Connection, query: str) -> None:
    scores = score_words(words, query_terms(query), None)
    assert ((scores.scores >= 0) & (scores.scores <= 1)).all()
    assert (np.diff(scores.scores[scores.best(len(scores.scores))]) <= 0).all()


@pytest.mark.parametrize(
    ("query", "best"), [("near and", 4), ("cafe naive", 5), ("doors", 2), ("red doors", 1), ("zebra red wall", 3)]
)
def test_words_find_what_has_them(words: sqlite3.Connection, query: str, best: int) -> None:
    scores = score_words(words, query_terms(query), None)
    assert scores.numbers[scores.best(1)[0]] == best


def test_a_term_in_every_passage_still_counts(words: sqlite3.Connection) -> None:
    allowed = np.array([1, 2], dtype=np.int64)
    scores = score_words(words, ["door"], allowed)
    assert scores.numbers[scores.best(2)].tolist() == [2, 1]
    assert scores.of(np.array([1, 2, 3])).tolist() == [*scores.scores, 0.0]


PATHS = [
    "a.md",
    "b.txt",
    "sub/a.md",
    "sub/deep/c.PY",
    "subway/d.md",
    "100%/x_y.md",
    "README",
    ".md",
    "s'q\"/e.md",
    "ü/文.md",
]
VALUES = st.sampled_from(
    ["md", "txt", "py", "", "sub", "sub/deep", "subway", "100%", "a.md", "sub/a.md", "s'q\"", "\ud800", "%", 1, True]
)
CLAUSES = st.builds(Equal, st.sampled_from(["path", "type", "folder"]), VALUES) | st.builds(
    AnyOf, st.sampled_from(["path", "type", "folder"]), st.lists(VALUES, max_size=3).map(tuple)
)
FILTERS = st.recursive(
    CLAUSES,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


@given(filter=FILTERS)
def test_a_filter_in_sql_means_what_it_means_elsewhere(filter: Filter) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE files (shown TEXT, type TEXT)")
    connection.executemany("INSERT INTO files VALUES (?, ?)", [(path, metadata_of(path)["type"]) for path in PATHS])
    condition, values = to_sql(filter)
    kept = {path for (path,) in connection.execute(f"SELECT shown FROM files WHERE {condition}", values)}
    connection.close()
    assert kept == {path for path in PATHS if FilterSupport.matches(filter, metadata_of(path))}


def test_every_setting_is_documented() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    for field in attrs.fields(DocumentsSettings):
        assert field.metadata["doc"], field.name
        assert f"| `{field.name}` |" in readme, f"the README does not list {field.name}"


@pytest.mark.parametrize(
    "wrong", [{"maximum_bytes": 0}, {"passage_target": 5}, {"passage_target": 900, "passage_maximum": 800}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        DocumentsSettings(path=Path("docs"), **wrong)


@pytest.mark.skipif(sys.platform == "win32", reason="absolute paths look different")
def test_listing_the_package_imports_no_library() -> None:
    import subprocess

    libraries = {"attr", "attrs", "numpy", "filelock", "lxml", "pypdfium2", "sqlite3"}
    code = (
        "import sys, portico_documents._plugin as plugin; plugin.portico_text_searches();"
        f"print({libraries} & sys.modules.keys() or 'none')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "none\n"
