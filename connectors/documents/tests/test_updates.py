"""An update brings the index in step, embeds only what is new, and may stop anywhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from portico.errors import ConfigurationError, ServiceUnavailable, StoreError
from portico.plugins import Sqlite
from portico.ports import EmbeddingGenerator, IndexProgress, IndexReport, VectorStore
from portico_documents import catalogue, scan
from portico_documents.config import DocumentsSettings
from portico_documents.search import DocumentsSearch
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.vector_store import DictVectorStore

LONG = "\n\n".join(f"Paragraph {number} of a long text, with words enough to fill it up." for number in range(40))
OLD = 1_600_000_000


def write(file: Path, text: str, time: int = OLD) -> None:
    """Write a file that was changed long ago, so that its time is trusted."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8", errors="surrogateescape")
    os.utime(file, (time, time))


def done(report: IndexReport) -> tuple[int, int, int, int, int, int]:
    return (report.added, report.changed, report.renamed, report.removed, report.unchanged, report.embedded)


def contents(search: DocumentsSearch) -> list[tuple]:
    """Return everything that the catalogue holds of documents and passages."""
    connection = catalogue.connect(search._place.catalogue)
    try:
        return connection.execute(
            "SELECT path, ordinal, passages.id, text, trail, parts, headings, line, end_line, page,"
            " files.hash, type, skipped FROM files LEFT JOIN passages ON file = files.id ORDER BY path, ordinal"
        ).fetchall()
    finally:
        connection.close()


async def vectors(search: DocumentsSearch) -> dict[str, list[float]]:
    mirror = search._mirror()
    ids = sorted([id async for id in mirror.store.ids(mirror.namespace)])
    records, rows = await mirror.store.get(mirror.namespace, ids)
    return {record.id: row.buffer.tolist() for record, row in zip(records, rows or [], strict=True)}


async def test_a_new_folder_is_added_and_a_second_run_does_nothing(make_search, folder, embeddings) -> None:
    write(folder / "a.md", "# A\n\nAlpha.\n")
    write(folder / "sub" / "b.txt", "Beta.\n")
    report = await make_search().index.update()
    assert done(report) == (2, 0, 0, 0, 0, 2)
    assert (report.documents, report.passages) == (2, 2)
    calls = embeddings.calls
    assert done(await make_search().index.update()) == (0, 0, 0, 0, 2, 0)
    assert embeddings.calls == calls


async def test_only_changed_passages_are_embedded(make_search, folder, embeddings) -> None:
    write(folder / "long.txt", LONG)
    first = await make_search(passage_target=200, passage_maximum=400).index.update()
    assert first.embedded > 10
    write(folder / "long.txt", LONG.replace("Paragraph 20 ", "Section 20 "), OLD + 1)
    report = await make_search(passage_target=200, passage_maximum=400).index.update()
    assert (report.changed, report.embedded) == (1, 1), report
    assert embeddings.embedded == first.embedded + 1


async def test_a_paragraph_put_in_front_moves_the_others_without_embedding_them(make_search, folder) -> None:
    write(folder / "a.md", "# One\n\nFirst.\n\n# Two\n\nSecond.\n")
    await make_search().index.update()
    write(folder / "a.md", "# Zero\n\nNew.\n\n# One\n\nFirst.\n\n# Two\n\nSecond.\n", OLD + 1)
    search = make_search()
    assert done(await search.index.update()) == (0, 1, 0, 0, 0, 1)
    [hit] = [hit for hit in await search.rank("second", 5) if hit.text == "Second."]
    assert (hit.line, hit.link.rpartition("#")[2]) == (11, "L11")
    assert hit.vector > 0.5


async def test_a_rename_embeds_nothing(make_search, folder, embeddings) -> None:
    write(folder / "a.md", "# A\n\nAlpha.\n")
    write(folder / "b.md", "# B\n\nBeta.\n")
    await make_search().index.update()
    (folder / "a.md").rename(folder / "c.md")
    search = make_search()
    assert done(await search.index.update()) == (0, 0, 1, 0, 1, 0)
    assert [hit.path for hit in await search.rank("alpha", 1)] == ["c.md"]


async def test_a_copy_embeds_nothing_and_is_no_rename(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    await make_search().index.update()
    write(folder / "b.md", "Alpha.\n")
    assert done(await make_search().index.update()) == (1, 0, 0, 0, 1, 0)


async def test_a_removed_file_is_not_found_any_more(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    write(folder / "b.md", "Beta.\n")
    await make_search().index.update()
    (folder / "a.md").unlink()
    search = make_search()
    report = await search.index.update()
    assert done(report) == (0, 0, 0, 1, 1, 0)
    assert report.passages == 1
    assert [hit.path for hit in await search.rank("alpha", 5)] in ([], ["b.md"])
    assert len(await vectors(search)) == 1


async def test_a_touched_file_is_unchanged(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    await make_search().index.update()
    write(folder / "a.md", "Alpha.\n", OLD + 5)
    assert done(await make_search().index.update()) == (0, 0, 0, 0, 1, 0)


async def test_a_change_within_one_tick_of_the_clock_is_seen(make_search, folder) -> None:
    file = folder / "a.md"
    file.write_text("Alpha.\n")
    state = file.stat()
    await make_search().index.update()
    file.write_text("Gamma.\n")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert done(await make_search().index.update()) == (0, 1, 0, 0, 0, 1)


async def test_what_cannot_be_read_is_counted_and_not_fatal(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    write(folder / ".hidden.md", "Hidden.\n")
    write(folder / "large.txt", "x " * 1_000)
    for _ in range(2):
        report = await make_search(maximum_bytes=1_000).index.update()
        assert report.documents == 1
        assert report.skipped == {"binary": 1, "empty": 1, "damaged": 1, "hidden": 1, "too large": 1}


async def test_a_file_that_became_unreadable_leaves_the_index(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    await make_search().index.update()
    (folder / "a.md").write_bytes(b"\0\1\2\3" * 10)
    search = make_search()
    report = await search.index.update()
    assert (report.documents, report.passages, report.skipped) == (0, 0, {"binary": 1})
    assert await search.rank("alpha", 5) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
async def test_strange_names_are_indexed_found_and_linked(make_search, folder) -> None:
    names = [b"a b#c?.md", b"100%.md", b"\xff\xfe.md", b"line\nbreak.md", "ünï/çödé 文.md".encode(), b"'; DROP.md"]
    for number, name in enumerate(names):
        write(folder / os.fsdecode(name), f"Document number{number}.\n")
    search = make_search()
    assert (await search.index.update()).added == len(names)
    for number, name in enumerate(names):
        [hit, *_] = await search.rank(f"number{number}", 1)
        assert hit.text == f"Document number{number}."
        hit.name.encode()
        from urllib.parse import unquote_to_bytes, urlsplit

        assert unquote_to_bytes(urlsplit(hit.link).path) == os.fsencode(folder) + b"/" + name
        assert urlsplit(hit.link).fragment == "L1"
    assert done(await make_search().index.update()) == (0, 0, 0, 0, len(names), 0)


async def test_a_single_file_is_a_source_too(make_search, folder) -> None:
    write(folder / "a.md", "# Alpha\n\nBeta.\n")
    search = make_search(path=folder / "a.md")
    assert (await search.index.update()).added == 1
    [hit] = await search.rank("beta", 5)
    assert (hit.name, hit.link) == ("a.md › Alpha", f"{(folder / 'a.md').as_uri()}#L3")


async def test_a_missing_folder_is_an_error_and_no_deletion(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    await make_search().index.update()
    folder.rename(folder.with_name("elsewhere"))
    search = make_search()
    with pytest.raises(ConfigurationError, match="nothing to index"):
        await search.index.update()
    assert [hit.path for hit in await search.rank("alpha", 5)] == ["a.md"]


async def test_a_folder_that_vanishes_on_the_way_is_no_deletion(make_search, folder, monkeypatch) -> None:
    write(folder / "a.md", "Alpha.\n")
    write(folder / "b.md", "Beta.\n")
    await make_search().index.update()
    search = make_search()
    look = scan.Scan.next_batch

    def vanish(self):
        if folder.exists():
            folder.rename(folder.with_name("elsewhere"))
        return look(self)

    monkeypatch.setattr(scan.Scan, "next_batch", vanish)
    with pytest.raises(ConfigurationError):
        await search.index.update()
    assert len(await search.rank("alpha beta", 5)) == 2


async def test_another_model_embeds_all_again_and_drops_the_old_vectors(make_search, folder, store) -> None:
    from_texts = ["Alpha.\n", "Beta.\n", "Gamma.\n"]
    for number, text in enumerate(from_texts):
        write(folder / f"{number}.md", text)
    old = make_search()
    await old.index.update()

    new = make_search(services=Given(HashingEmbeddings(64), store))
    # A search alone sees to it that there is something to search in.
    assert (await new.rank("alpha", 1))[0].vector > 0.9
    assert await store.count(old._mirror().namespace) == 3
    report = await new.index.update()
    assert report.unchanged == 3
    assert await store.count(old._mirror().namespace) == 0
    assert await store.count(new._mirror().namespace) == 3


async def test_other_passage_sizes_cut_again(make_search, folder) -> None:
    write(folder / "long.txt", LONG)
    large = await make_search().index.update()
    small = await make_search(passage_target=100, passage_maximum=200).index.update()
    assert small.changed == 1
    assert small.passages > large.passages


async def test_other_patterns_are_another_index(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    write(folder / "b.txt", "Beta.\n")
    every, some = make_search(), make_search(include=("*.md",))
    assert (await every.index.update()).documents == 2
    assert (await some.index.update()).documents == 1
    assert (await every.index.update()).unchanged == 2


async def test_a_store_that_lost_its_vectors_is_filled_again(make_search, folder, store) -> None:
    write(folder / "a.md", "Alpha.\n")
    write(folder / "b.md", "Beta.\n")
    search = make_search()
    await search.index.update()
    before = await search.rank("alpha", 5)
    await store.drop(search._mirror().namespace)
    assert (await make_search().index.update()).embedded == 2
    await store.drop(search._mirror().namespace)
    assert await make_search().rank("alpha", 5) == before


async def test_vectors_that_nobody_knows_are_removed(make_search, folder, store) -> None:
    write(folder / "a.md", "Alpha.\n")
    search = make_search()
    await search.index.update()
    before = await vectors(search)
    mirror = search._mirror()
    from portico.search import VectorRecord

    await store.upsert(mirror.namespace, [VectorRecord("stray")], await mirror.embeddings.embed(["alpha"]))
    assert [hit.path for hit in await search.rank("alpha", 5)] == ["a.md"]
    await make_search().index.update()
    assert await vectors(search) == before


async def test_a_text_that_many_documents_have_is_embedded_once(make_search, folder, monkeypatch) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 1)
    for number in range(20):
        write(folder / f"{number:02}.md", "The very same text.\n")
    assert (await make_search().index.update()).embedded == 1


async def test_an_interrupted_run_continues(make_search, folder, embeddings, monkeypatch) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 5)
    for number in range(40):
        write(folder / f"{number:02}.md", f"Document {number}.\n")

    class Stop(Exception):
        pass

    def stop(progress: IndexProgress) -> None:
        if progress.done >= 20:
            raise Stop

    with pytest.raises(Stop):
        await make_search().index.update(progress=stop)
    before = embeddings.embedded
    report = await make_search().index.update()
    assert 20 <= before <= 30
    assert report.embedded == 40 - before
    assert report.documents == 40


async def test_a_failing_generator_leaves_a_state_that_the_next_update_completes(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    search = make_search()

    class Failing(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            raise ServiceUnavailable("no connection")

    failing = Failing()
    search._mirror().embeddings = failing
    with pytest.raises(ServiceUnavailable):
        await search.index.update()
    assert done(await make_search().index.update()) == (1, 0, 0, 0, 0, 1)


async def test_a_cancelled_update_can_be_run_again(make_search, folder, embeddings, monkeypatch) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 3)
    for number in range(30):
        write(folder / f"{number:02}.md", f"Document {number}.\n")
    for steps in (1, 5, 20, 60, 150):
        task = asyncio.ensure_future(make_search().index.update())
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.wait({task})
    search = make_search()
    report = await search.index.update()
    assert (report.documents, report.passages) == (30, 30)
    assert len(await vectors(search)) == 30


async def test_progress_is_told_with_a_total(make_search, folder, monkeypatch) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 2)
    for number in range(7):
        write(folder / f"{number}.md", f"Document {number}.\n")
    told: list[IndexProgress] = []
    await make_search().index.update(progress=told.append)
    assert told[0] == IndexProgress(0, None)
    assert [progress.done for progress in told[1:]] == [0, 2, 4, 6, 7]
    assert {progress.total for progress in told[1:]} == {7}


async def test_an_index_that_the_store_trains_is_told_while_it_takes(make_search, folder, store, monkeypatch) -> None:
    write(folder / "a.md", "Alpha.\n")
    training, told = IndexProgress(0, None, waiting="Training IVF16,Flat"), []
    heard, upsert = asyncio.Event(), store.upsert

    async def slow(*arguments) -> None:
        store.activity = training
        await asyncio.wait_for(heard.wait(), 20)
        store.activity = None
        await upsert(*arguments)

    def note(progress: IndexProgress) -> None:
        told.append(progress)
        if progress == training:
            heard.set()

    monkeypatch.setattr(store, "upsert", slow)
    await make_search().index.update(progress=note)
    assert training in told
    assert told[-1].waiting is None


async def test_every_update_names_the_files_that_are_skipped(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    (folder / "b.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    first, again = [await make_search().index.update() for _ in range(2)]
    assert (first.added, again.unchanged) == (1, 1)
    for report in (first, again):
        assert report.skipped["damaged"] == 1
        assert [problem.startswith("b.pdf is skipped: damaged") for problem in report.problems] == [True]


async def test_two_updates_of_one_index_take_turns(make_search, folder, monkeypatch, embeddings) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 2)
    for number in range(20):
        write(folder / f"{number}.md", f"Document {number}.\n")
    told: list[IndexProgress] = []
    one, two = make_search(), make_search()
    reports = await asyncio.gather(one.index.update(progress=told.append), two.index.update(progress=told.append))
    assert sorted(report.added for report in reports) == [0, 20]
    assert embeddings.embedded == 20
    assert any(progress.waiting and str(folder) in progress.waiting for progress in told)


async def test_a_search_beside_an_update_sees_whole_documents(make_search, folder, monkeypatch) -> None:
    monkeypatch.setattr(scan, "_BATCH_FILES", 1)
    for number in range(12):
        write(folder / f"{number}.md", f"# One\n\nShared old{number}.\n\n# Two\n\nShared old{number}.\n")
    await make_search().index.update()
    for number in range(12):
        write(folder / f"{number}.md", f"# One\n\nShared new{number}.\n\n# Two\n\nShared new{number}.\n", OLD + 1)
    search = make_search()
    update = asyncio.ensure_future(make_search().index.update())
    seen = set()
    while not update.done():
        hits = await search.rank("shared", 50)
        versions: dict[str, list[str]] = {}
        for hit in hits:
            versions.setdefault(hit.path, []).append(hit.text)
        assert len(versions) == 12, sorted(versions)
        for path, texts in versions.items():
            assert len(texts) == 2, f"{path} has {texts}"
            assert len(set(texts)) == 1, f"{path} has passages of two states: {texts}"
        seen.add(sum("new" in texts[0] for texts in versions.values()))
    assert (await update).changed == 12
    assert len(seen) > 1


def no_database(content: bytes) -> bytes:
    return b"no database at all" * 100


def no_unicode_in_the_schema(content: bytes) -> bytes:
    assert b"CREATE TABLE meta" in content
    return content.replace(b"CREATE TABLE meta", b"CREATE TABL\xff meta")


@pytest.mark.parametrize("damage", [no_database, no_unicode_in_the_schema])
async def test_a_damaged_database_is_made_anew_by_an_update(make_search, folder, damage) -> None:
    write(folder / "a.md", "Alpha.\n")
    search = make_search()
    await search.index.update()
    database = search._place.catalogue
    database.write_bytes(damage(database.read_bytes()))
    with pytest.raises(StoreError, match=str(database.parent)):
        await make_search().rank("alpha", 5)
    search = make_search()
    report = await search.index.update()
    assert report.added == 1
    assert "damaged" in report.repaired[0]
    assert [hit.path for hit in await search.rank("alpha", 5)] == ["a.md"]
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    Sqlite.unseal(database)
    assert [hit.path for hit in await make_search().rank("alpha", 5)] == ["a.md"]


async def test_an_index_inside_the_folder_does_not_index_itself(make_search, folder) -> None:
    write(folder / "a.md", "Alpha.\n")
    search = make_search(index=folder / "cache")
    assert (await search.index.update()).documents == 1
    (search._place.folder / "note.txt").write_text("A note.\n")
    assert (await search.index.update()).documents == 1


async def test_a_folder_that_cannot_be_written_is_named(make_search, folder, tmp_path) -> None:
    write(folder / "a.md", "Alpha.\n")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="Set `index`"):
        await make_search(index=tmp_path / "file").index.update()
    with pytest.raises(StoreError, match="can be written; `index` of the source"):
        catalogue.connect(tmp_path / "missing" / "catalogue.sqlite")


class Flaky(HashingEmbeddings):
    """Fails after so many calls; never by itself."""

    calls_left = 10**9

    async def embed(self, texts, *, purpose="document"):
        self.calls_left -= 1
        if self.calls_left < 0:
            raise ServiceUnavailable("gone")
        return await super().embed(texts, purpose=purpose)


class Given:
    def __init__(self, embeddings: HashingEmbeddings, store: DictVectorStore) -> None:
        self.services = {EmbeddingGenerator: embeddings, VectorStore: store}

    def get(self, port, name=None):
        return self.services[port]

    def names(self, port):
        return ()


NAMES = st.sampled_from(["a.md", "b.md", "c.txt", "sub/a.md", "sub/deep/d.py", "e.html"])
BODIES = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), min_size=0, max_size=3).map(
    lambda words: "".join(f"# {word}\n\nAll about {word}.\n\n" for word in words)
)


class Folder(RuleBasedStateMachine):
    """Whatever happens to a folder, an updated index equals a fresh one."""

    @initialize()
    def start(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="portico-"))
        self.root = self.base / "docs"
        self.root.mkdir()
        self.clock = OLD
        self.embeddings = Flaky()
        self.store = DictVectorStore()
        self.store.persistent = True
        self.steady = False
        self.held: dict[str, list[tuple]] = {}

    def teardown(self) -> None:
        if hasattr(self, "base"):
            shutil.rmtree(self.base)

    def search(self, index: str = "index", store: DictVectorStore | None = None) -> DocumentsSearch:
        services = Given(self.embeddings, store or self.store)
        return DocumentsSearch(DocumentsSettings(path=self.root, index=self.base / index), services)

    @rule(name=NAMES, body=BODIES)
    def write(self, name: str, body: str) -> None:
        self.clock += 10
        write(self.root / name, body, self.clock)
        self.steady = False

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)
        self.steady = False

    @rule(name=NAMES, target_name=NAMES)
    def rename(self, name: str, target_name: str) -> None:
        if (self.root / name).exists():
            (self.root / target_name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).replace(self.root / target_name)
            self.steady = False

    @rule()
    def lose_the_vectors(self) -> None:
        self.store = DictVectorStore()
        self.store.persistent = True
        self.steady = False

    @rule(calls=st.integers(0, 3))
    def fail_to_update(self, calls: int) -> None:
        self.embeddings.calls_left = calls
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(scan, "_BATCH_FILES", 1)
                asyncio.run(self.search().index.update())
            self.steady = True
        except ServiceUnavailable:
            self.steady = False
        finally:
            self.embeddings.calls_left = 10**9

    @rule(batch=st.sampled_from([1, 2, 500]))
    def update(self, batch: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scan, "_BATCH_FILES", batch)
            report = asyncio.run(self.search().index.update())
        held = contents(self.search())
        assert self.held.setdefault(report.revision, held) == held, "a revision is that of one state"
        self.steady = True

    @invariant()
    def equals_a_fresh_index(self) -> None:
        if not getattr(self, "steady", False):
            return
        fresh = self.search("fresh", DictVectorStore())
        used = self.search()
        shutil.rmtree(self.base / "fresh", ignore_errors=True)
        asyncio.run(fresh.index.update())
        assert contents(used) == contents(fresh)
        assert asyncio.run(vectors(used)) == asyncio.run(vectors(fresh))
        for query in ("alpha", "all about gamma delta", "sub"):
            found = asyncio.run(used.rank(query, 20))
            expected = asyncio.run(fresh.rank(query, 20))
            assert sorted(found, key=repr) == sorted(expected, key=repr)
            assert [hit.score for hit in found] == [hit.score for hit in expected]


TestFolder = Folder.TestCase
TestFolder.settings = settings(
    max_examples=20,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
