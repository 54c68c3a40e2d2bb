"""Words as the lexical half sees them: identifiers are also known by their parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

WORD = re.compile(r"\w+")
# aB, 1B, and the last capital of a run before a small letter (HTTPServer), as in PEP 8's mixedCase and CapWords.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Says quickly that a text has no such place, which is so of most prose: it begins with a capital, and those are few.
_ANY_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])", re.DOTALL)
_MAXIMUM_TERMS = 64

# English words that stand in questions and say nothing of the subject. They count when a query has no others.
_FUNCTION_WORDS = """
    a about am an and any are as at be been but by can could did do does for from had has have how i if in
    into is it its me my of on or our shall should so some such than that the their them then there these they
    this those to us was we were what when where which who whom whose why will with would you your
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


def identifier_parts(text: str) -> str:
    """Return the parts of the identifiers in ``text`` that no space or underscore separates, each once.

    >>> identifier_parts("Call getHealthWorkforce or HTTPServer on load_all.")
    'get Health Workforce HTTP Server'
    """
    if _ANY_HUMP.search(text) is None:
        return ""
    # Nine tenths of an index's time in Python would go into splitting words that have no parts.
    words = (word for word in WORD.findall(text) if not (word.islower() or word[1:].islower()))
    return " ".join(dict.fromkeys(part for word in words for part in _humps(word)))


def query_terms(query: str) -> list[str]:
    """Return the distinct words that a query is searched by, at most 64; identifiers whole and in parts.

    In small letters and with accents composed, no more: FTS5 folds words as it folded those of the text, and what
    `str.casefold` makes of "Straße" stands in no text.

    >>> query_terms("How is snake_case split?")
    ['snake_case', 'snake', 'case', 'split']
    >>> query_terms("to be or not to be")
    ['not']
    >>> query_terms("What is it?")
    ['what', 'is', 'it']
    """
    found = WORD.findall(unicodedata.normalize("NFC", query))
    words = [term.lower() for word in found for term in _with_parts(word)]
    telling = [word for word in words if word not in _STOP_WORDS]
    return list(dict.fromkeys(telling or words))[:_MAXIMUM_TERMS]


def _with_parts(word: str) -> Iterator[str]:
    yield word
    pieces = [piece for piece in word.split("_") if piece]
    if len(pieces) > 1:
        yield from pieces
    for piece in pieces:
        yield from _humps(piece)


def _humps(word: str) -> list[str]:
    parts = _HUMP.split(word)
    return parts if len(parts) > 1 else []
