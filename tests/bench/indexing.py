"""Indexing a folder: peak memory and speed for 2,000 and 20,000 documents, with the embedded default.

Each size is indexed by a separate process: `python -m tests.bench.indexing [SIZE...]`. The vectors lie in a file
and count to the peak as far as the system holds them. Ends with one JSON object on a line; fails when the largest
size takes more than 1.3 times the memory of the smallest.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SIZES = (2_000, 20_000)
LIMIT = 1.3
WORDS_IN_A_DOCUMENT = 250


def invented(chance: random.Random, count: int) -> list[str]:
    """Return words of an invented vocabulary, common ones more often."""
    vocabulary = ["".join(chance.choices("aeioubcdfglmnprst", k=chance.randint(3, 9))) for _ in range(20_000)]
    return chance.choices(vocabulary, [1 / rank for rank in range(1, len(vocabulary) + 1)], k=count)


def write_documents(folder: Path, count: int) -> None:
    """Write Markdown files of invented words, in two sections."""
    chance = random.Random(7)
    words = invented(chance, WORDS_IN_A_DOCUMENT * 1_000)
    for number in range(count):
        start = chance.randrange(len(words) - WORDS_IN_A_DOCUMENT)
        chosen = words[start : start + WORDS_IN_A_DOCUMENT]
        half = len(chosen) // 2
        text = f"# Document {number}\n\n{' '.join(chosen[:half])}.\n\n## More\n\n{' '.join(chosen[half:])}.\n"
        file = folder / f"{number // 1_000}" / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


async def index(folder: Path, base: Path) -> dict[str, Any]:
    """Index the folder and return what it took; runs in a separate process."""
    from portico.ports import EmbeddingGenerator, VectorStore
    from portico_documents.config import DocumentsSettings
    from portico_documents.search import DocumentsSearch
    from portico_faiss.config import FaissSettings
    from portico_faiss.store import FaissVectorStore
    from portico_wordllama.embeddings import WordllamaEmbeddings

    store = FaissVectorStore(FaissSettings(path=base / "vectors"))
    chosen = {EmbeddingGenerator: WordllamaEmbeddings(), VectorStore: store}

    class Services:
        def get(self, port: Any, name: str | None = None) -> Any:
            return chosen[port]

        def names(self, port: Any) -> tuple[str, ...]:
            return ()

    search = DocumentsSearch(DocumentsSettings(path=folder, index=base / "index"), Services())
    started = time.perf_counter()
    report = await search.index.update()
    first = time.perf_counter() - started
    started = time.perf_counter()
    await search.index.update()
    again = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    await store.aclose()
    return {
        "documents": report.documents,
        "passages": report.passages,
        "documents_per_second": round(report.documents / first),
        "unchanged_per_second": round(report.documents / again),
        "peak_mb": round(peak / 1e6, 1),
    }


def main(sizes: list[int]) -> int:
    """Measure each size, print a line each and the JSON object."""
    results = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="portico-bench-") as folder:
            write_documents(Path(folder) / "documents", size)
            command = [sys.executable, __file__, "--in", folder]
            result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(", ".join(f"{name} {value}" for name, value in result.items()), flush=True)
        results.append(result)
    ratio = results[-1]["peak_mb"] / results[0]["peak_mb"]
    print(json.dumps({"indexing": results, "memory_ratio": round(ratio, 3), "limit": LIMIT}))
    return int(ratio > LIMIT)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in"]:
        base = Path(sys.argv[2])
        print(json.dumps(asyncio.run(index(base / "documents", base))))
    else:
        sys.exit(main([int(size) for size in sys.argv[1:]] or list(SIZES)))
