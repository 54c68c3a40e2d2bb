"""Whatever a file is made of, it is indexed in bounded time and memory, and what is left out is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePath

import pytest
from tests.support import hostile_files as hostile

from portico_documents import reading, scan
from portico_documents.chunking import cut
from portico_documents.reading import Unreadable, read_sections


@pytest.mark.skipif(sys.platform != "linux", reason="a process reads its peak from /proc")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", hostile.FILES)
def test_a_file_of_one_construct_takes_ten_seconds_and_300_megabytes(name: str, tmp_path: Path) -> None:
    command = [sys.executable, hostile.__file__, name, str(tmp_path)]
    took = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout)
    assert took["processor_seconds"] <= 10, took
    assert took["peak_mb"] <= 300, took


@pytest.mark.parametrize("name", hostile.FILES)
def test_a_file_of_one_construct_is_read(name: str) -> None:
    data = hostile.FILES[name](20_000)
    try:
        passages = list(cut(read_sections(PurePath(name), data), target=1_000, maximum=2_000))
    except Unreadable as error:
        assert error.reason in {"empty", "damaged", "no text", "too large"}
    else:
        assert all(0 < len(passage.text) <= 2_000 for passage in passages)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.md", "# h\na\n" * 100, "a.md has more than 10 passages: it is indexed up to line 20."),
        ("a.py", "a = 1\n" * 100, "a.py has more than 50 lines: it is indexed up to line 50."),
        ("a.rst", "a\n=\n\n" * 100, "a.rst has more than 50 lines: it is indexed up to line 50."),
        ("a.html", "<p>a</p>\n" * 100, "a.html has more than 50 tags: it is indexed up to line 25."),
        ("b.txt", "word \n\n" * 1_200, ""),
    ],
)
async def test_what_is_left_out_of_a_file_is_said(make_search, folder, monkeypatch, name, text, said) -> None:
    monkeypatch.setattr(reading, "_MOST", 50)
    monkeypatch.setattr(scan, "_MOST_PASSAGES", 10)
    (folder / name).write_text(text)
    search = make_search(maximum_bytes=len(text))
    report = await search.index.update()
    assert (report.added, list(report.problems)) == (1, [said] if said else [])
    assert report.passages <= max(10, 2 * len(text) // 1_000)


async def test_headings_beyond_a_dozen_levels_are_left_out(make_search, folder) -> None:
    (folder / "a.py").write_text("".join(f"{' ' * depth}class A{depth}:\n" for depth in range(60)))
    search = make_search()
    await search.index.update()
    assert {len(hit.headings) for hit in await search.rank("class", 60)} == set(range(1, 13))
