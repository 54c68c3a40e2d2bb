"""The words of texts and questions, as PostgreSQL's text search is given them."""

from __future__ import annotations

import re
import unicodedata

# PostgreSQL's own parser takes "and/or" for a file and "a.example" for a host; what has only words has none of these.
_WORD = re.compile(r"[^\W_]+")
# aB, 1B, and the last capital of a run before a small letter (HTTPServer), as in PEP 8's mixedCase and CapWords.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MOST_CHARACTERS = 200_000
"""A text is known by the words of its first so many characters: what PostgreSQL keeps of them is bounded, at 1 MB."""
_MOST_ASKED = 64


def searched_words(text: str) -> list[str]:
    """Return the words by which a text is found, identifiers also by their parts.

    >>> searched_words("Call getUser() and/or load_all.")
    ['Call', 'getUser', 'and', 'or', 'load', 'all', 'get', 'User']
    """
    words = _WORD.findall(unicodedata.normalize("NFC", text[:_MOST_CHARACTERS]))
    parts = [part for word in words if not word.islower() and (split := _HUMP.split(word))[1:] for part in split]
    return words + parts


def asked_words(query: str) -> list[str]:
    """Return the distinct words of a question, at most 64.

    >>> asked_words("What is it? It is 'this' & !that.")
    ['What', 'is', 'it', 'It', 'this', 'that']
    """
    return list(dict.fromkeys(searched_words(query)))[:_MOST_ASKED]
