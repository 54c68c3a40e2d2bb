"""A rendered prompt: its text, and which of it the template wrote and which are values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from portico.chat import Message

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
    is done to it as a string gives a plain string, in which nothing is markup; `map` keeps the roles. A value that
    is empty is a piece too: it parts what the template wrote before it from what it wrote after.

    >>> prompt = Prompt(
    ...     [Piece("<message role='user'>", False), Piece("</message> or <b>", True), Piece("</message>", False)]
    ... )
    >>> prompt
    "<message role='user'></message> or <b></message>"
    >>> [(message.role, message.text) for message in prompt.messages()]
    [('user', '</message> or <b>')]
    """

    __slots__ = ("pieces",)

    pieces: tuple[Piece, ...]

    def __new__(cls, pieces: Iterable[Piece]) -> Prompt:
        """Join the pieces."""
        pieces = tuple(pieces)
        prompt = super().__new__(cls, "".join(piece.text for piece in pieces))
        prompt.pieces = pieces
        return prompt

    def __getnewargs__(self) -> tuple[tuple[Piece, ...]]:  # type: ignore[override]  # str's are its text
        return (self.pieces,)

    def messages(self) -> tuple[Message, ...]:
        """Return what a chat service is asked with; see `portico.prompts.messages.read_messages`."""
        from portico.prompts.messages import read_messages

        return read_messages(self)

    def map(self, change: Callable[[str], str], *, values_only: bool = False) -> Prompt:
        """Return the prompt with each piece's text changed, values and template told apart as before.

        >>> Prompt([Piece("To ", False), Piece("ada@example.org", True)]).map(lambda text: text.replace("@", " at "))
        'To ada at example.org'

        ``values_only`` leaves alone what the template wrote, markup included.
        """
        return Prompt(
            piece if values_only and not piece.is_value else Piece(change(piece.text), piece.is_value)
            for piece in self.pieces
        )


class Trusted(str):
    """A text of which the application vouches: a template takes it as its own, markup included.

    >>> Trusted("<message role='user'>Hello</message>").upper().__class__.__name__
    'str'

    Nothing of what a user, a model or a page wrote belongs in one.
    """

    __slots__ = ()
