"""Indexing and searching 100,000 short passages beside SQLite's FTS5 alone, in the same run.

    python -m tests.bench.search_speed                       100,000 passages; the limits are checked
    python -m tests.bench.search_speed --passages 10000      a small form, without limits

The passages are Markdown sections of 20 to 60 invented words, few of them often, as in texts (Zipf). FTS5 indexes the
same words in one transaction and is asked for the best ten of `a OR b OR …`. The 200 queries have 2 to 8 words: half
are drawn as texts have them, without the 50 most frequent, which stand for "the" and "of", half from the whole
vocabulary. Both are asked in turn, first with words that neither was asked for before (`first`), then the same again.

Words indexed a second leave out embedding on both sides; `embedded` is the index with the embedded default and vectors
in a folder, which `fused` is asked of. Memory is the most that a process by itself takes to index and to search, Python
and what it imports included; `index_mb` and `mb` are above what it had imported. Milliseconds of the processor
(`cpu_ms`, all threads) are beside those that pass, which on a busy machine say more of it than of the search.
`bm25s` and `tantivy` are further rows where they are installed; they keep the words, but neither text nor place.

Ends with one JSON object on a line; fails where a limit is not held.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import AsyncIterator, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

LIMITS = {"lexical_ratio": 2.0, "fused_ms": 8.0, "indexing_ratio": 3.0, "memory_ratio": 2.0}
PASSAGES_IN_A_FILE = 50
QUERIES = 200
FREQUENT = 50
_CHANCE = random.Random(7)
VOCABULARY = ["".join(_CHANCE.choices("aeioubcdfglmnprst", k=_CHANCE.randint(3, 9))) for _ in range(20_000)]
_WEIGHTS = list(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))
_TELLING = list(accumulate(1 / rank for rank in range(FREQUENT + 1, len(VOCABULARY) + 1)))


def passages(count: int) -> Iterator[str]:
    """Yield texts of 20 to 60 words, always the same."""
    chance = random.Random(8)
    for _ in range(count):
        yield " ".join(chance.choices(VOCABULARY, cum_weights=_WEIGHTS, k=chance.randint(20, 60)))


def queries() -> list[str]:
    """Return queries of rare and of common words."""
    chance = random.Random(9)
    common = chance.choices(VOCABULARY[FREQUENT:], cum_weights=_TELLING, k=10 * QUERIES)
    words = [chance.choice((word, chance.choice(VOCABULARY))) for word in common]
    return [" ".join(words[10 * number : 10 * number + chance.randint(2, 8)]) for number in range(QUERIES)]


def write_documents(folder: Path, count: int) -> None:
    """Write the passages as sections of Markdown files, and as lines of one file for the others."""
    texts = list(passages(count))
    sections = [f"## {number}\n\n{text}\n" for number, text in enumerate(texts)]
    for start in range(0, count, PASSAGES_IN_A_FILE):
        file = folder / f"{start // 10_000}" / f"{start}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(sections[start : start + PASSAGES_IN_A_FILE]), "utf-8")
    (folder / "lines").write_text("".join(f"{text}\n" for text in texts), "utf-8")


class Fts5:
    """FTS5 alone, with the tokenizer of the index."""

    def __init__(self, base: Path) -> None:
        self._connection = sqlite3.connect(base / "fts5.sqlite", isolation_level=None)
        self._lines = base / "documents" / "lines"

    def fill(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter unicode61')")
        self._connection.execute("BEGIN")
        with self._lines.open(encoding="utf-8") as lines:
            self._connection.executemany("INSERT INTO words VALUES (?)", ((line,) for line in lines))
        self._connection.execute("COMMIT")

    async def search(self, query: str) -> object:
        found = " OR ".join(f'"{word}"' for word in query.split())
        statement = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10"
        return self._connection.execute(statement, (found,)).fetchall()


class Portico:
    """The index of `documents`; without ``embedded`` every text has the same vector, and no store keeps it."""

    def __init__(self, base: Path, *, embedded: bool) -> None:
        from portico.ports import EmbeddingGenerator, VectorStore
        from portico.search import Vectors
        from portico_documents.config import DocumentsSettings
        from portico_documents.search import LEXICAL, DocumentsSearch
        from portico_faiss.config import FaissSettings
        from portico_faiss.store import FaissVectorStore
        from portico_wordllama.embeddings import WordllamaEmbeddings

        index = base / ("embedded" if embedded else "words")

        class Same:
            model = "same"

            async def embed(self, texts: Any, *, purpose: str = "document") -> Vectors:
                return Vectors(array("f", [1.0] * len(texts)), len(texts), 1)

        class Nowhere(FaissVectorStore):
            persistent, kept = True, 0

            async def upsert(self, namespace: str, records: Any, vectors: Vectors) -> None:
                self.kept += len(records)

            async def count(self, namespace: str) -> int:
                return self.kept

            async def ids(self, namespace: str) -> AsyncIterator[str]:
                connection = sqlite3.connect(next(index.glob("*/catalogue.sqlite")))
                for (id,) in connection.execute("SELECT id FROM passages"):
                    yield id
                connection.close()

        self.store = FaissVectorStore(FaissSettings(path=base / "vectors")) if embedded else Nowhere()
        chosen: Any = {EmbeddingGenerator: WordllamaEmbeddings() if embedded else Same(), VectorStore: self.store}

        class Services:
            def get(self, port: Any, name: str | None = None) -> Any:
                return chosen[port]

            def names(self, port: Any) -> tuple[str, ...]:
                return ()

        settings = DocumentsSettings(path=base / "documents", index=index, include=("*.md",))
        self._search, self._lexical = DocumentsSearch(settings, Services()), LEXICAL

    async def fill(self) -> None:
        await self._search.index.update()

    async def fused(self, query: str) -> object:
        return await self._search.rank(query, 10)

    async def lexical(self, query: str) -> object:
        return await self._search.rank(query, 10, weights=self._lexical)


class Bm25s:
    """The package `bm25s` with its defaults."""

    def __init__(self, base: Path) -> None:
        self._texts = (base / "documents" / "lines").read_text("utf-8").splitlines()

    def fill(self) -> None:
        import bm25s

        self._bm25s, self._index = bm25s, bm25s.BM25()
        self._index.index(bm25s.tokenize(self._texts, show_progress=False), show_progress=False)

    async def search(self, query: str) -> object:
        tokens = self._bm25s.tokenize([query], show_progress=False)
        return self._index.retrieve(tokens, k=10, show_progress=False)


class Tantivy:
    """The package `tantivy`, with its stemmer for English."""

    def __init__(self, base: Path) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem").build()
        self._tantivy, self._index = tantivy, tantivy.Index(schema)
        self._texts = (base / "documents" / "lines").read_text("utf-8").splitlines()

    def fill(self) -> None:
        writer = self._index.writer()
        for text in self._texts:
            writer.add_document(self._tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    async def search(self, query: str) -> object:
        return self._index.searcher().search(self._index.parse_query(query, ["text"]), 10)


def peak() -> float:
    """Return the most memory that this process has had, in MB; `ru_maxrss` begins with that of the parent."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


async def alone(side: str, base: Path) -> dict[str, Any]:
    """Index and search with one side and return its words a second and its memory; a separate process does it."""
    made: Any
    if side in ("words", "embedded"):
        made = Portico(base, embedded=side == "embedded")
    else:
        made = {"fts5": Fts5, "bm25s": Bm25s, "tantivy": Tantivy}[side](base)
    with (base / "documents" / "lines").open(encoding="utf-8") as lines:
        words = sum(len(line.split()) for line in lines)
    imported, started, used = peak(), time.perf_counter(), time.process_time()
    filling = made.fill()
    if filling is not None:
        await filling
    taken, used = time.perf_counter() - started, time.process_time() - used
    indexed = peak()
    search = made.search if not isinstance(made, Portico) else made.lexical if side == "words" else made.fused
    for query in queries()[:50]:
        await search(query)
    if isinstance(made, Portico):
        await made.store.aclose()
    figures = {"seconds": taken, "cpu_seconds": used, "imported_mb": imported, "index_mb": indexed - imported}
    return {"words_per_second": round(words / taken)} | {
        name: round(value, 1) for name, value in (figures | {"mb": peak() - imported}).items()
    }


async def ask(base: Path, sides: list[str]) -> dict[str, Any]:
    """Return what a query takes of each side, in milliseconds; all are asked in turn."""
    portico, fts5 = Portico(base, embedded=True), Fts5(base)
    calls: dict[str, Any] = {"fts5": fts5.search, "lexical": portico.lexical, "fused": portico.fused}
    for side, made in (("bm25s", Bm25s), ("tantivy", Tantivy)):
        if side in sides:
            other = made(base)
            other.fill()
            calls[side] = other.search
    for call in calls.values():
        for word in VOCABULARY[:5]:
            await call(word)
    result: dict[str, Any] = {}
    for when in ("first", "again"):
        times: dict[str, list[float]] = {name: [] for name in calls}
        cpu: dict[str, list[float]] = {name: [] for name in calls}
        for number, query in enumerate(queries()):
            order = list(calls)
            for name in order[number % len(order) :] + order[: number % len(order)]:
                started, used = time.perf_counter(), time.process_time()
                await calls[name](query)
                times[name].append((time.perf_counter() - started) * 1e3)
                cpu[name].append((time.process_time() - used) * 1e3)
        result[when] = {
            name: {
                "ms": round(statistics.median(taken), 2),
                "p95": round(statistics.quantiles(taken, n=20)[-1], 2),
                "cpu_ms": round(statistics.median(cpu[name]), 2),
            }
            for name, taken in times.items()
        }
        for name in ("lexical", "fused"):
            ratios = [ours / own for ours, own in zip(times[name], times["fts5"], strict=True)]
            result[when][name]["ratio"] = round(statistics.median(ratios), 2)
    await portico.store.aclose()
    return result


def main() -> int:
    """Measure all, print a line for each figure and the JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3, help="of indexing, in turn; the median counts")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        sides = given.side.split(",")
        done = ask(given.base, sides) if sides[0] == "ask" else alone(given.side, given.base)
        print(json.dumps(asyncio.run(done)))
        return 0
    others = [name for name in ("bm25s", "tantivy") if importlib.util.find_spec(name)]
    measured: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="portico-bench-") as first:
        write_documents(Path(first) / "documents", given.passages)

        def run(side: str, base: Path) -> dict[str, Any]:
            command = [sys.executable, "-m", "tests.bench.search_speed", "--passages", str(given.passages)]
            command += ["--side", side, "--base", str(base)]
            return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))

        for number in range(given.rounds):
            with tempfile.TemporaryDirectory(prefix="portico-bench-") as folder:
                (Path(folder) / "documents").symlink_to(Path(first) / "documents")
                for side in ("fts5", "words", *(others if number == 0 else ())):
                    measured.setdefault(side, []).append(run(side, Path(folder)))
                    print(side, measured[side][-1], flush=True)
        run("fts5", Path(first))
        measured["embedded"] = [run("embedded", Path(first))]
        print("embedded", measured["embedded"][-1], flush=True)
        asked = run(",".join(["ask", *others]), Path(first))
    for when, sides in asked.items():
        for side, figures in sides.items():
            print(f"{when} {side:8}", figures)

    def middle(side: str, name: str) -> float:
        return statistics.median(run[name] for run in measured[side])

    def total(side: str) -> float:
        return middle(side, "imported_mb") + middle(side, "mb")

    figures = {
        "lexical_ratio": asked["first"]["lexical"]["ms"] / asked["first"]["fts5"]["ms"],
        "fused_ms": asked["first"]["fused"]["ms"],
        "indexing_ratio": middle("fts5", "words_per_second") / middle("words", "words_per_second"),
        "memory_ratio": total("words") / total("fts5"),
    }
    figures = {name: round(value, 2) for name, value in figures.items()}
    print(
        json.dumps(
            {
                "bench": "search_speed",
                "passages": given.passages,
                **figures,
                "limits": LIMITS,
                "asked": asked,
                "indexed": measured,
            }
        )
    )
    return int(given.passages >= 100_000 and any(figures[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
