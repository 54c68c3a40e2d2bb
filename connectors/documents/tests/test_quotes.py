"""A passage that is quoted stands in its file, or says that it does no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ALPHA = "# One\n\nAlpha is the first.\n\n# Two\n\nBeta is the second.\n"


async def found(search, query: str):
    return (await search.rank(query, 1))[0]


@pytest.fixture
async def search(make_search, folder):
    (folder / "a.md").write_text(ALPHA)
    (folder / "b.html").write_text("<h1>Three</h1>\n<p>Gamma &amp; the\nthird.</p>\n")
    search = make_search()
    await search.index.update()
    return search


def keep_time(file: Path, text: str) -> None:
    state = file.stat()
    file.write_text(text)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


async def test_what_has_not_changed_is_quoted(search) -> None:
    hit = await found(search, "gamma third")
    assert (hit.text, hit.line, hit.changed) == ("Gamma & the\nthird.", 2, False)


async def test_a_changed_passage_says_so_instead_of_a_wrong_quote(search, folder) -> None:
    keep_time(folder / "a.md", ALPHA.replace("second", "secind"))
    hit = await found(search, "beta second")
    assert hit.changed
    assert hit.text == "This file has changed since it was indexed: run `portico index`."
    assert (hit.path, hit.line) == ("a.md", 7)
    assert not (await found(search, "alpha first")).changed, "another passage of the file stands as it was"
    await search.index.update()
    result = (await (await search.get_text_search_results("beta secind")).list())[0]
    assert result.value == "Beta is the secind."


async def test_a_passage_that_has_moved_is_quoted_at_its_new_line(search, folder) -> None:
    (folder / "a.md").write_text("One more line.\n\n" + ALPHA)
    hit = await found(search, "beta second")
    assert (hit.text, hit.line, hit.end_line, hit.changed) == ("Beta is the second.", 9, 9, False)
    assert hit.link.endswith("a.md#L9")


async def test_a_changed_page_says_so(search, folder) -> None:
    (folder / "b.html").write_text("<h1>Three</h1>\n<p>Gamma &amp; the\nthird!</p>\n")
    assert (await found(search, "gamma third")).changed


async def test_a_file_that_is_gone_says_so(search, folder) -> None:
    (folder / "a.md").unlink()
    hit = await found(search, "beta second")
    assert hit.text == "This file is gone since it was indexed: run `portico index`."


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\xff\xfe", b"x" * 3_000_000])
async def test_whatever_a_file_has_become_is_no_error(search, folder, data: bytes) -> None:
    (folder / "a.md").write_bytes(data)
    assert (await found(search, "beta second")).changed


async def test_without_the_folder_the_index_is_quoted_as_it_is(search, folder) -> None:
    folder.rename(folder.with_name("away"))
    assert (await found(search, "beta second")).text == "Beta is the second."
