"""What is derived from documents is made anew when its files are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico.ports import TextSearch


@pytest.fixture
def application(tmp_path: Path) -> portico_host.Application:
    (tmp_path / "docs").mkdir()
    for number in range(30):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Part {number}\n\nThis is what part {number} does.\n")
    (tmp_path / "portico.toml").touch()
    source = {"use": "documents", "path": str(tmp_path / "docs"), "index": str(tmp_path / "index")}
    store = {"use": "faiss", "faiss": {"path": str(tmp_path / "vectors")}}
    return portico_host.load(tmp_path / "portico.toml", {"search": {"docs": source}, "vectors": store})


async def update(application: portico_host.Application) -> Any:
    async with application.services() as services:
        return await services.get(TextSearch, "docs").index.update()


async def best(application: portico_host.Application, query: str) -> Any:
    async with application.services() as services:
        return await anext(aiter(await services.get(TextSearch, "docs").get_search_results(query)))


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("**/vectors-*.f32", "noise"),
        ("**/vectors-*.f32", "cut off"),
        ("**/vectors-*.f32", "missing"),
        ("**/store.sqlite", "cut off"),
        ("**/store.sqlite", "noise"),
        ("**/store.sqlite", "missing"),
    ],
)
async def test_an_update_mends_a_damaged_vector_store(application, tmp_path, pattern, damage):
    await update(application)
    before = await best(application, "what part 7 does")
    [file] = (tmp_path / "vectors").glob(pattern)
    match damage:
        case "cut off":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
        case "noise":
            file.write_bytes(bytes(range(256)) * 64)
        case "missing":
            file.unlink()
    for leftover in ("-wal", "-shm"):
        file.with_name(file.name + leftover).unlink(missing_ok=True)
    report = await update(application)
    assert report.embedded == 30, report
    assert await best(application, "what part 7 does") == before
    assert (await update(application)).problems == ()
