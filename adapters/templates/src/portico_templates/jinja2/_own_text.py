"""The template's own text, told from values.

In a prompt with messages, a tag that the template wrote is markup and one in a value is not. Macros, set blocks and
call blocks capture both as one string, `OwnText`, which remembers its parts; `~`, `+`, `join` and `trim` keep them.
Whatever else is made of such a string is an ordinary string, and so a value when it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable

from portico_templates.handlebars._running import merge_pieces

Piece = tuple[str, bool]
"""A text, and whether it is a value."""


class Printed(str):
    """A value as it was printed; other plain strings in the output are the template's own text."""

    __slots__ = ()


class OwnText(str):
    """A text that the template made, with the pieces that it consists of."""

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> OwnText:
        """Return the text of pieces.

        >>> OwnText.of([("<b>", False), ("<i>", True)]).pieces
        (('<b>', False), ('<i>', True))
        """
        kept = tuple(pieces)
        text = cls("".join([piece for piece, _ in kept]))
        text.pieces = kept
        return text

    def trimmed(self, characters: str | None) -> OwnText:
        """Return the text without these characters, or blanks, at its ends."""
        start = len(self) - len(self.lstrip(characters))
        end = max(start, len(self.rstrip(characters)))
        pieces: list[Piece] = []
        position = 0
        for text, is_value in self.pieces:
            kept = text[max(0, start - position) : max(0, end - position)]
            pieces.append((kept, is_value))
            position += len(text)
        return OwnText.of(pieces)


def pieces_of(parts: Iterable[str]) -> list[Piece]:
    """Return the pieces of what was printed, neighbours that the template wrote as one."""
    pieces: list[Piece] = []
    for part in parts:
        pieces += part.pieces if isinstance(part, OwnText) else [(str(part), isinstance(part, Printed))]
    return merge_pieces(pieces)
