"""Quotations in answers, and whether they stand in a source."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from portico.chat import Source
from portico.links import without_code

__all__ = ["find_quotations", "unfound_quotations"]

_LONGEST = 4_000
_MARKS = (("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("»", "«"), ("「", "」"), ("『", "』"), ('"', '"'))
_QUOTED = re.compile(
    "|".join(
        rf"{opening}(?P<q{n}>[^{opening}{closing}]{{1,{_LONGEST}}}){closing}"
        for n, (opening, closing) in enumerate(_MARKS)
    )
    + r"|(?:^|\n)[ ]{0,3}>[ ]?(?P<block>[^\n]*(?:\n[ ]{0,3}>[^\n]*)*)"
)
_PARAGRAPH = re.compile(r"\n\s*\n")
# What a quotation leaves out or puts in: "…", "[...]", "[the planner]"; and the marks that point to its source.
_GAP = re.compile(r"\[[^\[\]\n]{0,100}\]|【[^【】\n]{0,100}】|\(?(?:\.\.\.|…)\)?")
_EVERY_SCRIPT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "–": "-", "—": "-", "−": "-", "\u00ad": None})


def find_quotations(text: str) -> Iterator[str]:
    r"""Yield what an answer quotes: between quotation marks of any language, and as a block quote of Markdown.

    >>> list(find_quotations("It says “ports are protocols” and\n\n> Plans are\n> data.\n"))
    ['ports are protocols', 'Plans are data.']
    """
    for paragraph in _PARAGRAPH.split(without_code(text)):
        for match in _QUOTED.finditer(paragraph):
            quoted = match[match.lastgroup or 0]
            yield " ".join(re.sub(r"\n[ ]{0,3}>", "\n", quoted).split())


def unfound_quotations(text: str, sources: Sequence[Source], *, words: int = 4) -> tuple[str, ...]:
    """Return what an answer quotes and no source says, in order.

    >>> source = Source(1, "Ports are protocols, and asynchronous.")
    >>> unfound_quotations("“Ports are … asynchronous”, and “ports are always very fast” [1].", [source])
    ('ports are always very fast',)

    Compared are letters, numbers and their order; case, white space, punctuation at the ends and the shape of
    apostrophes and dashes make no difference, and what a quotation leaves out (``…``) or adds (``[the port]``) may be
    anything. A quotation of fewer than ``words`` words is a name or a word that is meant otherwise, and passes; in a
    script without spaces, two characters count as a word.
    """
    said = [_plain(f"{source.name or ''}\n{source.text}") for source in sources]
    found = dict.fromkeys(quotation for quotation in find_quotations(text) if _words(quotation) >= words)
    return tuple(quotation for quotation in found if not any(_stands_in(quotation, passage) for passage in said))


def _words(quotation: str) -> int:
    return sum(1 if word.isascii() else max(1, _wide(word) // 2) for word in quotation.split())


def _wide(word: str) -> int:
    return sum(unicodedata.east_asian_width(letter) in "WF" for letter in word)


def _stands_in(quotation: str, passage: str) -> bool:
    """Tell whether the pieces of a quotation stand in a passage one after another."""
    place = 0
    for piece in _GAP.split(quotation):
        wanted = _plain(piece).strip(" .,;:!?\"'()-")
        place = passage.find(wanted, place)
        if place < 0:
            return False
        place += len(wanted)
    return True


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).translate(_EVERY_SCRIPT).casefold().split())
