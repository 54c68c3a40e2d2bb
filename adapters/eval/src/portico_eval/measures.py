"""Measures of a ranking, as trec_eval computes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

__all__ = ["ndcg", "recall"]


def recall(ranking: Sequence[str], relevance: Mapping[str, int], depth: int) -> float:
    """Return which part of the relevant documents stands in the first ``depth`` (recall_5 in trec_eval).

    >>> recall(["a", "b", "c"], {"a": 1, "c": 2, "d": 0}, depth=2)
    0.5
    """
    relevant = {document for document, grade in relevance.items() if grade > 0}
    return len(relevant & set(ranking[:depth])) / len(relevant)


def ndcg(ranking: Sequence[str], relevance: Mapping[str, int], depth: int) -> float:
    """Return the discounted gain of the first ``depth`` by that of the best ranking (ndcg_cut_10 in trec_eval).

    The gain is the grade itself, discounted by log2(rank + 1) (Järvelin and Kekäläinen 2002).

    >>> ndcg(["a", "b"], {"a": 2, "b": 1}, depth=10)
    1.0
    """
    gains = [max(relevance.get(document, 0), 0) for document in ranking[:depth]]
    best = sorted((grade for grade in relevance.values() if grade > 0), reverse=True)[:depth]
    return _discounted(gains) / _discounted(best)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
