"""How well functions are chosen for queries: by words, by vectors, and as the selector does.

"lexical" and "vector" are the halves by themselves, as one knows them: the whole query as it is, the BM25 of the
functions' texts and nothing else, or the cosine of their vectors and nothing else, searched exactly. "fused" is what
`ContextualSelector` offers by default, which looks for each of a query's requests. Texts of functions are the same for
all three, the embeddings are wordllama's, and the store is FAISS in memory. recall@k is which part of a query's
functions is among the first k, in the mean over queries. With `--peer` there is "stemmed" as well: BM25 as others have
it, over the Snowball stems of the texts, each name once, with every word of the query as often as it stands there.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import snowballstemmer
from tests.eval.selection_format import Query, read_functions, read_queries

from portico import FunctionSpec
from portico.search import VectorRecord
from portico_basics.contextual import ContextualSelector, SelectionOptions
from portico_basics.contextual.lexical import LexicalIndex, function_text
from portico_eval.measures import recall
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_wordllama.embeddings import WordllamaEmbeddings

__all__ = ["add_arguments", "describe", "measure", "run"]

_DEPTHS = (1, 5, 10)
_HALVES = ("lexical", "vector", "fused")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tools", type=Path, help="the functions, as JSON lines", metavar="TOOLS")
    parser.add_argument("queries", type=Path, help="the queries, as JSON lines", metavar="QUERIES")
    parser.add_argument("--peer", action="store_true", help="measure a plain BM25 over stems, too")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one file of queries over one of functions."""
    functions, odd = read_functions(arguments.tools)
    queries, odd_queries = read_queries(arguments.queries, (spec.name for spec in functions))
    for sentence in (*odd, *odd_queries):
        _note(sentence)
    return asyncio.run(measure(functions, queries, peer=arguments.peer))


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['queries']} queries, {result['tools']} functions"
    for half in (each for each in result if isinstance(result[each], Mapping)):
        yield f"{half:8}" + "".join(f"  {name} {value:.4f}" for name, value in result[half].items())


class StemmedWords:
    """Okapi BM25 over stems, as `rank_bm25` or `bm25s` with a stemmer have it: k1 = 1.5, b = 0.75."""

    def __init__(self, functions: Sequence[FunctionSpec]) -> None:
        counted = {spec.name: Counter(self._stems(function_text(spec).partition(". ")[2])) for spec in functions}
        average = sum(counts.total() for counts in counted.values()) / len(counted)
        self._shares: dict[str, dict[str, float]] = {}
        for name, counts in counted.items():
            for stem, count in counts.items():
                share = count * 2.5 / (count + 1.5 * (0.25 + 0.75 * counts.total() / average))
                self._shares.setdefault(stem, {})[name] = share
        self._functions = len(counted)

    def rank(self, query: str) -> list[str]:
        scores: dict[str, float] = {}
        for stem in self._stems(query):
            shares = self._shares.get(stem, {})
            weight = math.log1p((self._functions - len(shares) + 0.5) / (len(shares) + 0.5))
            for name, share in shares.items():
                scores[name] = scores.get(name, 0.0) + weight * share
        return sorted(scores, key=lambda name: (-scores[name], name))

    @staticmethod
    def _stems(text: str) -> list[str]:
        return snowballstemmer.stemmer("english").stemWords(re.findall(r"[^\W_]+", text.lower()))


async def measure(functions: Sequence[FunctionSpec], queries: Sequence[Query], *, peer: bool = False) -> dict[str, Any]:
    """Rank the functions for each query in all three ways, and return the recalls."""
    started = time.perf_counter()
    embeddings, store = WordllamaEmbeddings(), FaissVectorStore(FaissSettings())
    texts = {spec.name: function_text(spec) for spec in functions}
    index = LexicalIndex(texts)
    await store.upsert("plain", list(map(VectorRecord, texts)), await embeddings.embed(list(texts.values())))
    # With a minimum, however low, functions are ranked also where there is room for all.
    options = SelectionOptions(limit=max(_DEPTHS), minimum_score=-math.inf)
    selector = ContextualSelector(store, embeddings, options=options)
    stemmed = StemmedWords(functions) if peer else None
    sums = {half: dict.fromkeys(_DEPTHS, 0.0) for half in (*_HALVES, *(["stemmed"] if peer else []))}
    try:
        for number, query in enumerate(queries, 1):
            vector = await embeddings.embed([query.text], purpose="query")
            (matches,) = await store.search("plain", vector, top=max(_DEPTHS))
            scores = index.score(query.text).lexical
            rankings = {
                "lexical": sorted(scores, key=lambda name: (-scores[name], name)),
                "vector": [match.id for match in matches],
                "fused": list((await selector.select(functions, [query.text])).names),
            }
            if stemmed is not None:
                rankings["stemmed"] = stemmed.rank(query.text)
            relevance = dict.fromkeys(query.functions, 1)
            for half, ranking in rankings.items():
                for depth in _DEPTHS:
                    sums[half][depth] += recall(ranking, relevance, depth)
            if number % 20 == 0:
                _note(f"\r{number} of {len(queries)} queries", end="")
    finally:
        await store.aclose()
    _note(f"\r{len(queries)} queries in {time.perf_counter() - started:.1f} s")
    recalls = {
        half: {f"recall@{depth}": round(total / len(queries), 4) for depth, total in of_half.items()}
        for half, of_half in sums.items()
    }
    return {"tools": len(functions), "queries": len(queries), **recalls}


def _note(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)
