"""What choosing a few of many functions costs: words, vectors, and the whole selection.

    python -m tests.bench.selection [--full]

prints one JSON line, for 1,000 and 10,000 functions, with `--full` for 100,000 too; `selection_vectors.py` has the
vectors alone, beside NumPy. Times are medians, in milliseconds, of a context of one sentence and of three requests; the
set of functions is known, its vectors lie in the store, and the context is a new one each time.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from portico import FunctionSpec
from portico_basics.contextual import ContextualSelector
from portico_basics.contextual.lexical import LexicalIndex, function_text, fuse
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_wordllama.embeddings import WordllamaEmbeddings

__all__ = ["fused", "measure", "some_functions"]

_SYLLABLES = (
    *("ba", "co", "du", "fe", "gi", "ha", "jo", "ku", "la"),
    *("me", "ni", "po", "ri", "su", "ta", "ve", "wo", "zu"),
)
_LIMIT = 5
_LOOKED_AT = 24


def some_functions(count: int, *, seed: int = 0) -> list[FunctionSpec]:
    """Return functions whose words are spread as words of texts are: the n-th has a share of about 1/n."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(20_000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    found = []
    for number in range(count):
        chosen = draw.choices(vocabulary, weights, k=24)
        properties = {f"{chosen[21]}_{place}": {"description": " ".join(chosen[12:20])} for place in range(2)}
        name = f"{chosen[22].title()}-{chosen[23]}{number}"
        found.append(FunctionSpec(name, " ".join(chosen[:12]), {"type": "object", "properties": properties}, {}))
    return found


def fused(count: int, rounds: int) -> dict[str, float]:
    """Measure the words alone, the fusion alone, and a selection from beginning to end."""
    functions = some_functions(count)
    started = time.perf_counter()
    index = LexicalIndex({spec.name: function_text(spec) for spec in functions})
    result = {"index_s": time.perf_counter() - started}
    draw = random.Random(1)
    sentences = [" ".join(draw.choice(functions).description.split()[:8]) + "." for _ in range(3 * rounds)]
    result["words_ms"] = _median([_timed(index, sentence) for sentence in sentences[:rounds]])
    found = [list(index.score(sentence, top=_LOOKED_AT).lexical)[:_LOOKED_AT] for sentence in sentences[:3]]
    candidates = [name for names in found for name in names]
    scores = [index.score_of(sentence, candidates) for sentence in sentences[:3]]
    requests = [replace(each, cosines=dict.fromkeys(candidates, 0.5)) for each in scores]
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        fuse(requests)
        taken.append(time.perf_counter() - started)
    result["fusion_ms"] = _median(taken)
    result |= asyncio.run(_selections(functions, sentences))
    return {name: round(value, 3) for name, value in result.items()}


def _timed(index: LexicalIndex, sentence: str) -> float:
    started = time.perf_counter()
    index.score(sentence, top=_LOOKED_AT)
    return time.perf_counter() - started


async def _selections(functions: Sequence[FunctionSpec], sentences: Sequence[str]) -> dict[str, float]:
    store = FaissVectorStore(FaissSettings())
    selector = ContextualSelector(store, WordllamaEmbeddings())
    # A tuple stays the object that it is, as a kernel's manuals do from turn to turn.
    given = tuple(functions)
    try:
        started = time.perf_counter()
        await selector.select(given, [sentences[0]], limit=_LIMIT)
        result = {"first_selection_s": time.perf_counter() - started}
        for name, texts in (("one_request_ms", 1), ("three_requests_ms", 3)):
            taken = []
            for place in range(0, len(sentences) - 2, 3):
                context = [" ".join(sentences[place : place + texts])]
                started = time.perf_counter()
                await selector.select(given, context, limit=_LIMIT)
                taken.append(time.perf_counter() - started)
            result[name] = _median(taken)
    finally:
        await store.aclose()
    return result


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1e3


def measure(sizes: tuple[int, ...] = (1_000, 10_000), *, rounds: int = 60) -> dict[str, Any]:
    """Return the times at each size."""
    return {str(count): fused(count, rounds if count <= 10_000 else rounds // 6) for count in sizes}


if __name__ == "__main__":
    sizes = (1_000, 10_000, 100_000) if "--full" in sys.argv[1:] else (1_000, 10_000)
    print(json.dumps({"bench": "selection", "limit": _LIMIT, "sizes": measure(sizes)}))
