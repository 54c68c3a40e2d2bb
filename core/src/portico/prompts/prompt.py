"""A rendered prompt: its text, and which of it the template wrote and which are values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Piece", "Prompt", "Trusted"]


class Piece(NamedTuple):
    """A part of a rendered prompt: the template's own text, or a value that was put in.

    Where a prompt is read further, for chat roles, a value is data: nothing in it counts as markup.
    """

    text: str
    is_value: bool


class Prompt(str):
    """The text of a rendered prompt that remembers which of it are values.

    A template language returns one where its template may have markup, a plain string where it has none. Whatever
    is done to it as a string gives a plain string, in which nothing is markup.

    >>> Prompt([Piece("Hello ", False), Piece("<message>", True)])
    'Hello <message>'
    """

    __slots__ = ("pieces",)

    pieces: tuple[Piece, ...]

    def __new__(cls, pieces: Iterable[Piece]) -> Prompt:
        """Join the pieces."""
        pieces = tuple(pieces)
        prompt = super().__new__(cls, "".join(piece.text for piece in pieces))
        prompt.pieces = pieces
        return prompt


class Trusted(str):
    """A text of which the application vouches: a template takes it as its own, markup included.

    >>> Trusted("<message role='user'>Hello</message>").upper().__class__.__name__
    'str'
    """

    __slots__ = ()
