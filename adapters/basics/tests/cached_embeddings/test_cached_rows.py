"""Whatever was asked before, the rows are those that the generator gives; what was asked once is not asked again."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from portico.errors import PluginNotInstalled, ResponseInvalid
from portico.ports import EmbeddingGenerator
from portico.search import Vectors
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings, from_services
from portico_basics.config import CachedEmbeddingsSettings
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.services import FixedServices

from .conftest import Asked

TEXTS = st.one_of(
    st.sampled_from(["", " ", "red", "Red", "blue door", "blue  door", "\ud800", "\x00"]),
    st.integers(0, 400).map(lambda number: f"text {number}"),
)
PURPOSES = st.sampled_from(["document", "query"])
STEPS = st.one_of(
    st.tuples(st.just("embed"), st.lists(TEXTS, max_size=40), PURPOSES),
    st.tuples(st.just("many"), st.integers(1, 400), PURPOSES),
    st.tuples(st.just("at once"), st.lists(st.lists(TEXTS, max_size=8), min_size=2, max_size=4), PURPOSES),
    st.tuples(st.just("stopped"), st.lists(st.lists(TEXTS, max_size=8), min_size=2, max_size=3), PURPOSES),
    st.tuples(st.just("restart")),
    st.tuples(st.just("another model"), st.sampled_from([("asked-1", 64), ("asked-2", 16)])),
    st.tuples(st.just("damage"), st.floats(0, 1), st.binary(min_size=1, max_size=300)),
    st.tuples(st.just("removed")),
)


class Trial:
    """A cache and a second one beside it on the same folder, and the generator that both stand on."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.generator = Asked()
        self.caches: list[CachedEmbeddings] = []

    async def __aenter__(self) -> Trial:
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def open(self) -> None:
        await self.close()
        self.caches = [
            CachedEmbeddings(self.generator, path=self.folder, max_bytes=self.max_bytes, wait=5) for _ in range(2)
        ]

    async def close(self) -> None:
        for cached in self.caches:
            await cached.aclose()

    async def check(self, texts: list[str], purpose: Any) -> None:
        expected = await self.generator.embed(texts, purpose=purpose)
        for number, cached in enumerate(self.caches):
            got = await cached.embed(texts, purpose=purpose)
            assert got == expected, f"cache {number} gives {texts} other rows than the generator"

    async def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("embed", texts, purpose):
                await self.check(texts, purpose)
            case ("many", count, purpose):
                await self.check([f"text {number}" for number in range(count)], purpose)
            case ("at once", calls, purpose):
                got = await asyncio.gather(
                    *(self.caches[number % 2].embed(texts, purpose=purpose) for number, texts in enumerate(calls))
                )
                for texts, rows in zip(calls, got, strict=True):
                    assert rows == await self.generator.embed(texts, purpose=purpose)
            case ("stopped", calls, purpose):
                tasks = [asyncio.create_task(self.caches[0].embed(texts, purpose=purpose)) for texts in calls]
                await asyncio.sleep(0.0005)
                tasks[0].cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for texts, task in zip(calls[1:], tasks[1:], strict=True):
                    assert task.result() == await self.generator.embed(texts, purpose=purpose)
            case ("restart",):
                await self.open()
            case ("another model", (model, dimensions)):
                self.generator = Asked(dimensions, model)
                await self.open()
            case ("damage", place, content):
                await self.close()
                for file in self.folder.glob("vectors-*"):
                    with file.open("r+b") as written:
                        written.seek(int(place * max(0, file.stat().st_size - len(content))))
                        written.write(content)
                await self.open()
            case ("removed",):
                for file in self.folder.glob("vectors-*"):
                    file.unlink()


@given(steps=st.lists(STEPS, max_size=12), max_bytes=st.sampled_from([100_000, 200_000, 50_000_000]))
@settings(max_examples=60)
def test_any_sequence_of_calls_gives_what_the_generator_gives(steps: list[tuple[Any, ...]], max_bytes: int) -> None:
    async def take() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with Trial(Path(folder) / "cache", max_bytes) as trial:
                for step in steps:
                    await trial.take(step)
                await trial.check(["red", "text 1", "blue door", "red"], "document")

    asyncio.run(take())


async def test_what_was_embedded_once_is_not_embedded_again_nor_after_a_restart(opened: Any) -> None:
    generator = Asked()
    first = opened(generator)
    one = await first.embed(["red", "blue", "red", "green"])
    assert generator.calls == [("red", "blue", "green")], "each text once, all in one call"
    two = await first.embed(["green", "white", "red", "black"])
    assert generator.calls[1:] == [("white", "black")]
    await first.aclose()
    again = opened(generator)
    three = await again.embed(["black", "red", "blue"])
    assert len(generator.calls) == 2, "after a restart, texts were embedded again"
    assert (three[0], three[1], three[2]) == (two[3], one[0], one[1])
    assert (again.found, again.embedded) == (3, 0)


async def test_a_thousand_texts_and_more_go_to_the_generator_in_one_call(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    texts = [f"text {number}" for number in range(2_500)]
    whole = await cached.embed(texts)
    assert [len(call) for call in generator.calls] == [2_500]
    assert await cached.embed(texts) == whole
    assert len(generator.calls) == 1


async def test_purposes_and_models_are_kept_apart(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    document = await cached.embed(["red"])
    query = await cached.embed(["red"], purpose="query")
    other = await opened(Asked(model="asked-2")).embed(["red"])
    assert document != query
    assert document != other
    assert len(generator.calls) == 2


async def test_a_model_whose_vectors_have_another_length_than_before_is_asked_for_all(opened: Any) -> None:
    await opened(Asked(64)).embed(["red", "blue"])
    generator = Asked(16)
    cached = opened(generator)
    rows = await cached.embed(["red", "green"])
    assert (rows.rows, rows.dimensions) == (2, 16), "vectors of two lengths were put together"
    assert generator.calls == [("green",), ("red", "green")]
    assert (await cached.embed(["red", "green"])) == rows
    assert len(generator.calls) == 2


async def test_the_oldest_are_removed_when_there_is_no_room(opened: Any, folder: Path) -> None:
    generator = Asked(256)
    cached = opened(generator, max_bytes=1_000_000)
    for number in range(0, 4_000, 40):
        await cached.embed([f"text {each}" for each in range(number, number + 40)])
    await cached.embed(["text 0", "text 3999"])
    assert generator.calls[-1] == ("text 0",)
    await cached.aclose()
    (file,) = folder.glob("*.sqlite3")
    assert 500_000 < file.stat().st_size <= 1_000_000, f"{file.stat().st_size:,} bytes"


async def test_a_row_that_is_not_finite_is_given_on_and_not_kept(opened: Any) -> None:
    class Odd(Asked):
        async def embed(self, texts: Any, *, purpose: Any = "document") -> Vectors:
            self.calls.append(tuple(texts))
            rows = {"nan": [float("nan"), 0.0], "inf": [float("inf"), float("-inf")], "long": [3e38, 3e38]}
            return Vectors.from_rows([rows.get(text, [0.6, 0.8]) for text in texts], dimensions=2)

    generator = Odd()
    cached = opened(generator)
    for _ in range(2):
        rows = await cached.embed(["nan", "fine", "inf", "long"])
        assert rows[1].buffer.tolist() == pytest.approx([0.6, 0.8])
    assert generator.calls[1:] == [("nan", "inf")]


async def test_a_generator_that_gives_too_few_vectors_is_named_and_nothing_is_kept(opened: Any) -> None:
    class Short(Asked):
        async def embed(self, texts: Any, *, purpose: Any = "document") -> Vectors:
            return await super().embed(texts[1:], purpose=purpose)

    with pytest.raises(ResponseInvalid, match=r"Embeddings 'asked' gave 1 vectors for 2 texts"):
        await opened(Short()).embed(["red", "blue"])
    generator = Asked()
    await opened(generator).embed(["red", "blue"])
    assert generator.calls == [("red", "blue")]


@pytest.mark.parametrize(("texts", "what"), [("red", "sequence of texts"), (["red", 1], "text 1 is int")])
async def test_what_is_no_text_is_refused_before_anything_is_asked(opened: Any, texts: Any, what: str) -> None:
    generator = Asked()
    with pytest.raises(TypeError, match=what):
        await opened(generator).embed(texts)
    assert generator.calls == []


async def test_nothing_is_opened_before_the_first_call_and_nobody_else_may_read_the_file(
    opened: Any, folder: Path
) -> None:
    cached = opened(Asked())
    await cached.aclose()
    assert not folder.exists()
    await cached.embed(["red"])
    if sys.platform != "win32":
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        assert folder.stat().st_mode & 0o777 == 0o700


async def test_without_a_path_it_lies_in_the_users_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    cached = CachedEmbeddings(Asked())
    await cached.embed(["red"])
    await cached.aclose()
    if sys.platform == "linux":
        assert list((tmp_path / "portico" / "embeddings").glob("vectors-*.sqlite3"))


async def test_vectors_are_kept_as_they_are(opened: Any, folder: Path) -> None:
    rows = await opened(Asked()).embed(["red"])
    (file,) = folder.glob("*.sqlite3")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT vector FROM vectors").fetchall() == [(bytes(rows.buffer.cast("B")),)]


async def test_the_factory_finds_the_generator_by_name(folder: Path) -> None:
    services = FixedServices({(EmbeddingGenerator, "hashing"): HashingEmbeddings()})
    cached = from_services(CachedEmbeddingsSettings(of="hashing", path=folder), services)
    assert (cached.name, cached.model) == ("hashing", "hashing-256"), "an index made without the cache stays valid"
    with pytest.raises(PluginNotInstalled, match="openai"):
        from_services(CachedEmbeddingsSettings(of="openai"), services)


@pytest.mark.parametrize("wrong", [{"of": ""}, {"of": "a", "max_bytes": 10}, {"of": "a", "wait": -1.0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=list(wrong)[-1]):
        CachedEmbeddingsSettings(**wrong)
