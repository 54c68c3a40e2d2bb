"""What readers yield and what is indexed: stretches of text that know their place in the file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    r"""A stretch of text under one heading path, as a reader yields it.

    ``line`` is the line of the file, from 1, on which ``text`` starts; every newline inside ``text`` is a newline
    of the file, so the line of any character follows. In a PDF there are no lines: ``line`` and ``page`` are both
    the page, from 1. ``headings`` goes from the outermost inwards. ``code`` marks literal text, which may be cut
    only between lines. ``continues`` says that the text carries straight on from the section before, under the
    same heading, so that the two may share a passage; that section then ends with a newline.

    >>> Section("Install it:\n\n", line=3, headings=("Guide",)).headings
    ('Guide',)
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    code: bool = False
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of text that is indexed, found and quoted as one.

    It starts on ``line`` and ends on ``end_line`` of the file, both counted from 1 and inclusive. In a PDF both
    are the page.

    >>> Passage("Install it.", line=3, end_line=3, headings=("Guide",)).page is None
    True
    """

    text: str
    line: int
    end_line: int
    headings: tuple[str, ...]
    page: int | None = None
