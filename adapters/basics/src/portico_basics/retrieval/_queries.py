"""A goal as a query of a source that takes short ones only."""

from __future__ import annotations

import re

from portico.search import SearchCapabilities

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# A filter that the application fixed may become a part of the query.
_SHARE = 0.75


def query_for(goal: str, capabilities: SearchCapabilities) -> str:
    """Return the goal, or what of it a source takes: whole sentences, the questions first, or else its first words.

    >>> query_for("I have a door. It is red. How do I oil it?", SearchCapabilities(query_words=15))
    'I have a door. It is red. How do I oil it?'
    >>> query_for("I have a door. It is red. How do I oil it?", SearchCapabilities(query_words=11))
    'It is red. How do I oil it?'
    """
    if _fits(goal, capabilities, 1.0):
        return goal
    sentences = [sentence for part in _SENTENCE.split(goal) if (sentence := part.strip())]
    questions = [place for place, sentence in enumerate(sentences) if sentence.endswith(("?", "？"))]
    kept: list[int] = []
    for place in (*questions, *(place for place in range(len(sentences)) if place not in questions)):
        with_it = sorted([*kept, place])
        if _fits(" ".join(sentences[each] for each in with_it), capabilities, _SHARE):
            kept = with_it
    if kept:
        return " ".join(sentences[place] for place in kept)
    return _first_words(sentences[questions[0]] if questions else goal, capabilities)


def _first_words(text: str, capabilities: SearchCapabilities) -> str:
    most = capabilities.query_characters
    text = " ".join(text.split())
    bound = len(text) if most is None else max(1, int(most * _SHARE))
    words = text[: bound + 1].split()
    if len(words) > 1 and len(" ".join(words)) > bound:
        words.pop()
    if capabilities.query_words is not None:
        words = words[: max(1, int(capabilities.query_words * _SHARE))]
    return " ".join(words)[:bound]


def _fits(query: str, capabilities: SearchCapabilities, share: float) -> bool:
    bounds = ((len(query), capabilities.query_characters), (len(query.split()), capabilities.query_words))
    return all(most is None or count <= most * share for count, most in bounds)
