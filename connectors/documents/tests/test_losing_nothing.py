"""What fails or is stopped half-way, here or in another process, loses nothing that was indexed."""

from __future__ import annotations

import os

import pytest

from portico_documents import scan as walking
from portico_documents.scan import Scan
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

OLD = 1_600_000_000


class Stopped(Exception):
    """Ends an update from within its progress."""


def write(file, text: str, time: int = OLD) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (time, time))


@pytest.fixture
def make_other(make_search, store):
    """Make a search of the same folder with another embedding model."""

    class OtherServices:
        def get(self, port, name=None):
            return HashingEmbeddings(64) if port.__name__ == "EmbeddingGenerator" else store

        def names(self, port):
            return ()

    return lambda: make_search(services=OtherServices())


async def test_a_stopped_update_with_another_model_leaves_no_passage_without_a_vector(make_search, make_other, folder):
    write(folder / "a.md", "Alpha.\n")
    write(folder / "b.md", "Beta.\n")
    await make_search().index.update()
    # One passage goes and one comes: the number of vectors says nothing.
    write(folder / "a.md", "Gamma.\n", OLD + 1)

    def stop(progress):
        if "lacks" in progress.current:
            raise Stopped

    with pytest.raises(Stopped):
        await make_other().index.update(progress=stop)
    search = make_search()
    assert (await search.index.update()).embedded == 1
    [hit] = await search.rank("gamma", 1)
    assert hit.vector > 0.9


async def test_a_search_object_notices_that_another_model_took_its_vectors(make_search, make_other, folder):
    write(folder / "a.md", "Alpha.\n")
    search = make_search()
    await search.index.update()
    await make_other().index.update()
    assert (await search.rank("alpha", 1))[0].vector > 0.9


async def test_vectors_that_were_filled_in_by_half_are_completed_by_the_next_search(make_search, folder, store):
    for number in range(3):
        write(folder / f"{number}.md", f"Document number{number}.\n")
    search = make_search()
    await search.index.update()
    mirror = search._mirror()
    await store.delete(mirror.namespace, [id async for id in mirror.store.ids(mirror.namespace)][:2])
    hits = await make_search().rank("document number0", 3)
    assert [hit.vector > 0.3 for hit in hits] == [True] * 3


@pytest.mark.parametrize("closed", ["b.md", "sub"])
async def test_what_cannot_be_read_for_now_is_kept_and_said(make_search, folder, monkeypatch, closed):
    names = ["a.md", "b.md", "sub/c.md", "sub/deep/d.md", "sub.md", "sub0.md"]
    for name in names:
        write(folder / name, f"All about {name}.\n")
    await make_search().index.update()
    judge = walking._judge

    def refuse(entry, relative, rules):
        return walking.Skipped(relative, "unreadable") if relative == closed else judge(entry, relative, rules)

    with monkeypatch.context() as patch:
        patch.setattr(walking, "_judge", refuse)
        search = make_search()
        report = await search.index.update()
        assert (report.removed, report.documents, report.skipped) == (0, 6, {"unreadable": 1}), report
        assert report.problems == (f"{closed} cannot be read. What is indexed of it is kept.",)
        assert sorted(hit.path for hit in await search.rank("about", 9)) == sorted(names)
    (folder / "b.md").unlink()
    report = await make_search().index.update()
    assert (report.removed, report.embedded, report.documents) == (1, 0, 5)


async def test_a_file_that_fails_while_it_is_read_is_kept_and_said(make_search, folder, monkeypatch):
    write(folder / "a.md", "Alpha.\n")
    await make_search().index.update()
    write(folder / "a.md", "Beta.\n", OLD + 1)

    def fail(self, path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Scan, "_read", fail)
    search = make_search()
    report = await search.index.update()
    assert (report.removed, report.documents, report.skipped) == (0, 1, {"unreadable": 1})
    assert report.problems == ("a.md cannot be read: Input/output error. What is indexed of it is kept.",)
    assert [hit.path for hit in await search.rank("alpha", 1)] == ["a.md"]
