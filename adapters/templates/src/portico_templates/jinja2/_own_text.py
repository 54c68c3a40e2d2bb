"""The template's own text, told from values through everything that a template can do with it.

In a prompt with messages, a tag that the template wrote is markup and one in a value is not. Macros, set blocks and
filters mix both into one string, so the own text is marked inside the string: its tags and punctuation are written
in characters of private use, each for one, and `read` writes them back. What is not marked is a value. A value never
gets a mark: only a text of the class `OwnText` has them, and what is put into one loses those that it came with. The
characters are drawn for each environment, so that a value does not hold them but by chance; one that does is still
printed as it is, and where a filter goes over both it gets a wrong character, no markup.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from portico import Trusted

_MARKED = "\t\n\r" + "".join(map(chr, range(0x20, 0x7F)))
_BLANKS = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())
_BLOCK = 0x100
_BLOCKS = (0x10FFFD - 0x100000) // _BLOCK
_OWN = re.compile(r"""\A[^<>]*>|<[^<>]*>?|&#?\w*;?|[>/="'#;!\[\]]""")
_READ = 1_024


class Printed(str):
    """A value as it was printed, where all of it is one."""

    __slots__ = ()


class OwnText(Markup):
    """A text that the template made: a macro's, a block's, one that it calls safe.

    What is put into one by its methods, by ``%`` and ``+`` is a value there. ``parts`` is what it was made of, as
    long as nothing was done to it.
    """

    marks: Marks
    parts: tuple[str, ...] | None = None

    @classmethod
    def escape(cls, s: Any, /) -> Any:
        """Return a text that can be put into one: a value loses its marks, if it came with some."""
        if isinstance(s, OwnText):
            return s
        if isinstance(s, Trusted):
            return cls.marks.own(s)
        return cls(cls.marks.value(str(s)))

    def __add__(self, value: Any) -> Any:
        return self.marks.joined("", (self, value)) if isinstance(value, str) else NotImplemented

    def __radd__(self, value: Any) -> Any:
        return self.marks.joined("", (value, self)) if isinstance(value, str) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.marks.plain(self) == (self.marks.plain(other) if isinstance(other, str) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: str) -> bool:
        return self.marks.plain(self) < self.marks.plain(other)

    def __gt__(self, other: str) -> bool:
        return self.marks.plain(self) > self.marks.plain(other)

    def __contains__(self, other: object) -> bool:
        return isinstance(other, str) and self.marks.plain(other) in self.marks.plain(self)

    def __iter__(self) -> Iterator[Any]:
        return map(type(self), super().__iter__())

    def __hash__(self) -> int:
        return hash(self.marks.plain(self))


class Marks:
    """One environment's marks, and its class of `OwnText`.

    >>> marks = Marks()
    >>> text = marks.own("<b>") + "<i>"
    >>> [(text, is_value) for text, is_value in marks.pieces([text])]
    [('<b>', False), ('<i>', True)]
    """

    def __init__(self) -> None:
        base = 0x100000 + _BLOCK * random.randrange(_BLOCKS)
        self._to = {ord(letter): base + ord(letter) for letter in _MARKED}
        self._blanks = {ord(letter): base + 0x80 + index for index, letter in enumerate(_BLANKS)}
        self._from = {mark: letter for letters in (self._to, self._blanks) for letter, mark in letters.items()}
        self._own = re.compile(f"[{chr(base)}-{chr(base + 0x7F)}]+")
        self._some = re.compile(f"[{chr(base)}-{chr(base + _BLOCK - 1)}]")
        # What is not marked and has no meaning is taken for the template's, but where it would get one.
        self._plain = re.compile(rf"""[^<>/="'&#;!\[\]\0{chr(base + 0x80)}-{chr(base + _BLOCK - 1)}]+""")
        self._read = lru_cache(_READ)(self.plain)
        self.OwnText: type[OwnText] = type("OwnText", (OwnText,), {"marks": self})

    def own(self, text: str) -> OwnText:
        """Take a text for the template's own, all of it."""
        return self.captured([self.data(str(text))])

    def value(self, text: str) -> str:
        """Return a value as it stands inside own text: blanks at its ends are told from the template's layout."""
        text = self.plain(text)
        inner = text.strip()
        if len(inner) == len(text):
            return text
        start = len(text) - len(text.lstrip())
        return text[:start].translate(self._blanks) + inner + text[start + len(inner) :].translate(self._blanks)

    def data(self, text: str) -> str:
        """Mark what of a template's plain text may be markup: tags, entities, punctuation."""
        return _OWN.sub(lambda found: found[0].translate(self._to), text)

    def plain(self, text: str) -> str:
        """Return a text without marks."""
        if text.isascii() or not self._some.search(text):
            return str.__str__(text)
        return str.translate(text, self._from)

    def captured(self, parts: Iterable[str]) -> OwnText:
        """Join what a macro or block printed; plain strings are the template's own text, marked as `data`."""
        flat: list[str] = []
        for part in parts:
            if isinstance(part, OwnText) and part.parts is not None:
                flat += part.parts
            elif part:
                flat.append(part)
        text = self.OwnText("".join([self.value(part) if type(part) is Printed else part for part in flat]))
        text.parts = tuple(flat)
        return text

    def joined(self, between: str, texts: Iterable[str]) -> OwnText:
        """Join texts: of the class `OwnText` as such, others as values."""
        parts: list[str] = []
        for text in texts:
            parts += (between, text)
        return self.captured([part if isinstance(part, OwnText) else Printed(part) for part in parts[1:]])

    def replaced(self, text: OwnText, old: str, new: str, count: int) -> OwnText:
        """Replace a text, be it the template's own or a value there."""
        if not count:
            return text
        sought = "".join(f"[{re.escape(''.join(self._spellings(letter)))}]" for letter in old)
        put_in = str.__str__(text.escape(new))
        return self.OwnText(re.sub(sought, lambda _: put_in, str.__str__(text), count=max(0, count)))

    def _spellings(self, letter: str) -> Iterator[str]:
        yield letter
        for marks in (self._to, self._blanks):
            if ord(letter) in marks:
                yield chr(marks[ord(letter)])

    def pieces(self, parts: Iterable[str]) -> list[tuple[str, bool]]:
        """Tell values from own text in what was printed; plain strings are the template's own, marked as `data`."""
        pieces: list[tuple[str, bool]] = []
        add = pieces.append
        for part in parts:
            kind = type(part)
            if kind is Printed:
                add((str.__str__(part), True))
            elif kind is str:
                add((self._read(part), False))
            elif isinstance(part, OwnText) and part.parts is not None:
                pieces += self.pieces(part.parts)
            else:
                pieces += self._mixed(part)
        return pieces

    def _mixed(self, text: str) -> Iterator[tuple[str, bool]]:
        """Read the marks of a text that filters went over.

        Plain letters may be the template's or a value's. They count as the template's, as far as that gives them no
        meaning: not at the beginning, where a tag may be open, not inside a tag and not in an entity.
        """
        text = str.__str__(text)
        position = 0
        opened = True
        before = "<"
        for found in self._own.finditer(text):
            yield from self._unmarked(text[position : found.start()], opened, before)
            own = found[0].translate(self._from)
            yield (own, False)
            if "<" in own or ">" in own:
                opened = own.rfind("<") > own.rfind(">")
            before = own[-1]
            position = found.end()
        yield from self._unmarked(text[position:], opened, before)

    def _unmarked(self, text: str, opened: bool, before: str) -> Iterator[tuple[str, bool]]:
        position = 0
        for found in self._plain.finditer(text):
            if found.start() > position:
                yield (text[position : found.start()].translate(self._from), True)
            yield (found[0], opened or (found.start() == 0 and before in "&#"))
            position = found.end()
        if position < len(text):
            yield (text[position:].translate(self._from), True)
