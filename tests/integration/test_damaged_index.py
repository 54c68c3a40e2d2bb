"""Damage of an index is never silent: a search names it, and an update makes anew what is derived and says so."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from portico import TextSearchOptions
from portico.errors import StoreError
from portico.ports import EmbeddingGenerator, VectorStore
from portico.search import Equal
from portico_documents.config import DocumentsSettings
from portico_documents.search import DocumentsSearch
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

QUERIES = ("what part 7 does", "rope", "a ladder of twelve rungs", "def part_9", "lamp oil anvil")
WORDS = ("anvil", "rope", "ladder", "lamp", "oil", "twelve", "rungs", "hinge", "door", "brass")


class Case:
    """A folder, its index and its vectors, and a copy of both as they were written."""

    def __init__(self, base: Path) -> None:
        self.base = base
        docs = base / "docs"
        docs.mkdir(parents=True)
        chance = random.Random(1)
        for number in range(21):
            words, more = (" ".join(chance.choices(WORDS, k=20)) for _ in range(2))
            text = f"# Part {number}\n\nThis is what part {number} does: {words}.\n\n## More\n\n{more}.\n"
            (docs / f"{number}.md").write_text(text)
            (docs / f"{number}.py").write_text(f"def part_{number}():\n    return '{more[::-1]}'\n")
        asyncio.run(self.update())
        self.expected = asyncio.run(self.found())
        for name in ("index", "vectors"):
            shutil.copytree(base / name, base / "whole" / name)

    def restore(self) -> list[Path]:
        """Put the index back as it was written; return its files."""
        for name in ("index", "vectors"):
            shutil.rmtree(self.base / name)
            shutil.copytree(self.base / "whole" / name, self.base / name)
        files = [*self.base.glob("index/**/*"), *self.base.glob("vectors/**/*")]
        return sorted(file for file in files if file.is_file() and file.name != "lock")

    @asynccontextmanager
    async def search(self) -> AsyncIterator[DocumentsSearch]:
        """Open all anew, as another process would, and close it."""
        store = FaissVectorStore(FaissSettings(path=self.base / "vectors"))
        services: Any = Mock(names=lambda port: ())
        services.get = {EmbeddingGenerator: HashingEmbeddings(), VectorStore: store}.get
        try:
            yield DocumentsSearch(DocumentsSettings(path=self.base / "docs", index=self.base / "index"), services)
        finally:
            await store.aclose()

    async def update(self) -> Any:
        async with self.search() as search:
            return await search.index.update()

    async def found(self) -> list[Any]:
        async with self.search() as search:
            some = [await search.get_search_results(query, TextSearchOptions(top=7)) for query in QUERIES]
            some.append(await search.get_search_results("rope", TextSearchOptions(top=9, filter=Equal("type", "py"))))
            return [hit for results in some for hit in await results.list()]

    async def check(self, what: str) -> None:
        """Search, update, search: nothing may differ without a word, and all is mended at the end."""
        try:
            assert await self.found() == self.expected, f"{what}: a search found something else"
        except StoreError as error:
            assert "is damaged" in str(error), f"{what}: {error}"
            assert "`portico index`" in str(error), f"{what}: {error}"
        report = await self.update()
        assert await self.found() == self.expected, f"{what}: it was not mended"
        assert report.repaired, f"{what}: nothing was said"
        again = await self.update()
        assert (again.repaired, again.unchanged, again.embedded) == ((), 42, 0), what


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("damage"))


def sweep(case: Case, flips: int, cuts: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(flips + cuts):
        files = case.restore()
        file = files[number % len(files)]
        data = bytearray(file.read_bytes())
        place = chance.randrange(len(data))
        if number < flips:
            data[place] ^= chance.randrange(1, 256)
            what = f"byte {place} of {file.name} is {data[place]}"
        else:
            place = chance.choice([0, place])
            del data[place:]
            what = f"{file.name} is cut off at {place}"
        file.write_bytes(data)
        asyncio.run(case.check(what))


def test_no_byte_and_no_end_of_a_file_is_lost_in_silence(case: Case) -> None:
    sweep(case, flips=10, cuts=5, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_hundreds_of_bytes_and_ends_are_not_lost_in_silence(case: Case) -> None:
    sweep(case, flips=400, cuts=80, seed=2)


def statement(pattern: str, *statements: str) -> Callable[[Path], None]:
    def damage(base: Path) -> None:
        [file] = base.glob(pattern)
        connection = sqlite3.connect(file)
        for each in statements:
            connection.execute(each)
        connection.commit()
        connection.close()

    return damage


def not_a_number(base: Path) -> None:
    [file] = base.glob("vectors/**/vectors-*.f32")
    rows = np.fromfile(file, np.float32)
    rows[::7] = np.nan
    rows.tofile(file)


def emptied(pattern: str) -> Callable[[Path], None]:
    def damage(base: Path) -> None:
        [file] = base.glob(pattern)
        file.write_bytes(b"")

    return damage


CATALOGUE, STORE = "index/**/catalogue.sqlite", "vectors/**/store.sqlite"
KINDS = {
    "text": statement(CATALOGUE, "UPDATE passages SET text = replace(text, 'rope', 'rape')"),
    "name": statement(CATALOGUE, "UPDATE files SET shown = 'other' WHERE id = 3"),
    "lines": statement(CATALOGUE, "UPDATE passages SET line = line + 1"),
    "passages gone": statement(CATALOGUE, "DELETE FROM passages WHERE number % 2"),
    "files gone": statement(CATALOGUE, "DELETE FROM files WHERE id % 2"),
    "words gone": statement(CATALOGUE, "DELETE FROM words_data WHERE id > 10"),
    "table gone": statement(CATALOGUE, "DROP TABLE passages"),
    "column gone": statement(CATALOGUE, "ALTER TABLE passages DROP COLUMN headings"),
    "revision": statement(CATALOGUE, "UPDATE meta SET value = 'x'"),
    "catalogue emptied": emptied(CATALOGUE),
    "seal emptied": emptied(f"{CATALOGUE}.seal"),
    "not a number": not_a_number,
    "vectors emptied": emptied("vectors/**/vectors-*.f32"),
    "records gone": statement(STORE, "INSERT INTO dead (slot) SELECT slot FROM records", "DELETE FROM records"),
    "metadata": statement(STORE, "UPDATE records SET metadata = replace(metadata, 'md', 'py')"),
    "ids": statement(STORE, "UPDATE records SET id = id || 'x'"),
    "checksum": statement(STORE, "UPDATE state SET checksum = 1"),
    "store emptied": emptied(STORE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_derived_is_made_anew(case: Case, kind: str) -> None:
    case.restore()
    KINDS[kind](case.base)
    asyncio.run(case.check(kind))


def test_what_a_killed_update_leaves_is_looked_through(case: Case) -> None:
    case.restore()
    for seal in case.base.glob("*/**/*.seal"):
        seal.unlink()
    KINDS["text"](case.base)
    asyncio.run(case.check("text without a seal"))


def test_an_index_of_an_earlier_version_is_read_and_updated(case: Case) -> None:
    case.restore()
    for seal in case.base.glob("*/**/*.seal"):
        seal.unlink()
    statement(STORE, "ALTER TABLE state DROP COLUMN checksum")(case.base)
    assert asyncio.run(case.found()) == case.expected
    report = asyncio.run(case.update())
    assert (report.unchanged, report.embedded, report.repaired) == (42, 0, ())
    KINDS["not a number"](case.base)
    asyncio.run(case.check("not a number"))
