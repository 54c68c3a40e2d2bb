"""Citation marks in answers: ``[1]`` refers to the source of that number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portico.chat import Citation, Source

__all__ = ["cited_numbers", "find_citations", "unbacked_citations"]

# One mark or several numbers in one: [1], [1, 2]. A bracket that is part of code or a link target, as in
# `items[1]` or `[1](url)`, is not a citation.
# Marks may follow one another ([1][2]) and a word of a script that is written without spaces.
_MARKS = re.compile(r"(?<![0-9A-Za-z_)\]])((?:\[\d{1,4}(?:\s*,\s*\d{1,4})*\])+)(?!\()")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def cited_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that an answer cites, in the order of their first mark.

    >>> cited_numbers("Ports are protocols [2]. They are async [1, 2]; `a[3]` is code.")
    (2, 1)
    """
    prose = _CODE.sub(" ", text)
    numbers = (int(number) for marks in _MARKS.finditer(prose) for number in re.findall(r"\d+", marks[1]))
    return tuple(dict.fromkeys(numbers))


def find_citations(text: str, sources: Sequence[Source]) -> tuple[Citation, ...]:
    """Return a citation for each source that an answer cites, in the order of the marks.

    The quote is the whole passage, since an answer's marks do not say which words they rely on.
    """
    by_number = {source.number: source for source in sources}
    return tuple(
        Citation(number, by_number[number].name, by_number[number].link, by_number[number].text)
        for number in cited_numbers(text)
        if number in by_number
    )


def unbacked_citations(text: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """Return the numbers that an answer cites and no source has."""
    known = {source.number for source in sources}
    return tuple(number for number in cited_numbers(text) if number not in known)
