"""Words of questions and sources, brought to the forms in which they are compared."""

from __future__ import annotations

import re

import snowballstemmer

from portico_basics.extractive._word_lists import IRREGULAR_ENGLISH, STOP_WORDS

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class Words:
    """Turns text into comparable terms in one language; for one call, since stemmers keep state.

    A term is a Snowball stem. Irregular English forms are led to their base first, names such as
    ``get_text_search_results`` and ``SearchConnector`` give their parts, and scripts without spaces between words
    give pairs of characters.
    """

    def __init__(self, language: str) -> None:
        self._stemmer = snowballstemmer.stemmer(language)
        self._stop = _stop_words(language)
        self._irregular = self._bases() if language == "english" else {}
        self._known: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        """Return the terms of ``text`` in order, small words left out."""
        found: list[str] = []
        for match in _WORD.finditer(text):
            word = match.group()
            terms = self._known.get(word)
            if terms is None:
                terms = self._known[word] = tuple(self._terms_of(word))
            found.extend(terms)
        return found

    def _terms_of(self, word: str) -> list[str]:
        if len(word) > 80:
            return []
        if _UNSPACED.search(word):
            return [pair for run in _UNSPACED.findall(word) for pair in _pairs(run)]
        found = []
        for part in _HUMP.split(word):
            folded = part.casefold().replace("’", "'")
            if folded in self._stop:
                continue
            head, _, tail = folded.partition("'")
            folded = head if len(head) > 2 or not tail else tail
            if tail == "t" and head.endswith("n"):
                continue
            if folded not in self._stop:
                stem = self._stemmer.stemWord(folded)
                found.append(self._irregular.get(folded) or self._irregular.get(stem, stem))
        return found

    def _bases(self) -> dict[str, str]:
        """Return the stem of the base by each irregular form and by its stem: "failures" has that of "failure"."""
        bases = {}
        for group in IRREGULAR_ENGLISH.strip().splitlines():
            *forms, base = group.split()
            stem = self._stemmer.stemWord(base)
            for form in forms:
                bases[form] = bases[self._stemmer.stemWord(form)] = stem
        return bases


def language_of(question: str) -> str:
    """Return the language whose small words the question has the most of; English when none stands out."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(question[:2_000])]
    best, most = "english", sum(word in _stop_words("english") for word in words)
    for language in STOP_WORDS:
        hits = sum(word in _stop_words(language) for word in words)
        if hits > most:
            best, most = language, hits
    return best


def _stop_words(language: str) -> frozenset[str]:
    return frozenset(STOP_WORDS[language].split())


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[place : place + 2] for place in range(len(run) - 1)]
