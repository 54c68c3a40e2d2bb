"""The words of a text, in the form in which they are compared."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain

_RUN = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![A-Za-z]))[a-z])")
# Accents, and the points of Hebrew and Arabic, which most people leave out.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u064b-\u065f]")
# Scripts that put no space between words: Thai to Burmese, Khmer, kana, and Chinese characters. Korean has spaces, but
# glues particles to its words.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17d3\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Vowel signs of Indian scripts and those to the east of them are marks, no letters to `re`, and words go on after them.
_MARKED = re.compile("(?:[^\\W_]|[\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ece\u1000-\u109f\u1780-\u17d3])+")


def spaced(name: str) -> str:
    """Return a name as words.

    >>> spaced("getHTTPStatus_code"), spaced("Web-openURLs")
    ('get HTTP Status code', 'Web open URLs')
    """
    return " ".join(_RUN.findall(_HUMP.sub(" ", name)))


def words(text: str) -> list[str]:
    """Return the words of a text in order, in the form in which they are compared.

    >>> words("getForecasts for Zürich, 東京都")
    ['get', 'forecast', 'for', 'zurich', '東京', '京都']

    Those inside of names are their own words. Case and accents do not count, nor does an English plural. Of scripts
    that put no space between words, all pairs of neighbours are words: a pair is about as long as a word of Chinese.
    """
    if text.isascii():
        return list(chain.from_iterable(map(_words_of, _RUN.findall(text))))
    folded = _ACCENT.sub("", unicodedata.normalize("NFKD", text))
    return list(chain.from_iterable(map(_words_of, _MARKED.findall(unicodedata.normalize("NFC", folded)))))


@lru_cache(maxsize=65_536)
def _words_of(run: str) -> tuple[str, ...]:
    """Return the words of one run of letters and digits; cached, for texts are made of the same few thousand."""
    if run.isascii():
        return tuple(_singular(word.lower()) for word in _HUMP.sub(" ", run).split())
    found: list[str] = []
    start = 0
    for unspaced in _UNSPACED.finditer(run):
        found += _between(run[start : unspaced.start()])
        found += _pairs(unspaced.group())
        start = unspaced.end()
    return (*found, *_between(run[start:]))


def _between(run: str) -> list[str]:
    return [_singular(word.casefold()) for word in _HUMP.sub(" ", run).split()]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]


def _singular(word: str) -> str:
    """Return an English word without its plural's ending (after Harman 1991, "How effective is suffixing?").

    No more than that: cutting further endings off found as much here, and does harm to other languages.
    """
    if len(word) < 4 or not word.isascii():
        return word
    if word[-1] != "s":
        return word[:-2] + "y" if word.endswith("ie") and len(word) > 4 else word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]
