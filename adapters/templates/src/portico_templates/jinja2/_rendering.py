"""One rendering: how it reaches functions, what it may use up, and what is the template's own text in its output.

In a prompt with messages, a tag that the template wrote is markup and one in a value is not. Macros, set blocks and
call blocks capture both as one string, `OwnText`, which remembers its parts; `~`, `+`, `join` and `trim` keep them.
Whatever else is made of such a string is an ordinary string, and so a value when it is printed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence, Sized
from contextvars import ContextVar
from typing import Any, TypeVar

from jinja2.runtime import AsyncLoopContext

from portico.errors import ArgumentsInvalid, FunctionNotFound, LimitExceeded
from portico.ports import CallFunction
from portico_templates.handlebars._running import join_own_text
from portico_templates.jinja2._data import Refused
from portico_templates.jinja2.config import Jinja2Settings

_CHECKED_EVERY = 16
_SOURCE_A_STEP = 2_048
_LETTERS_A_STEP = 16
_BYTES_A_STEP = 128
_SMALL = 512
_BYTES_COPIED_A_STEP = 65_536
_PIECES_A_STEP = 16
_BYTES_A_PIECE = 64
_MOST_UNSEEN = 2**20
_MOST_HELD = 128 * 2**20
_LETTERS_SEARCHED_A_STEP = 1_024
_LETTERS_COMPARED_A_STEP = 16_384
_ELEMENTS_COMPARED_A_STEP = 128
_DEEPEST = 64
_DEEPEST_VALUE = 200
T = TypeVar("T")
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_WORD = re.compile(r"\S+")
_WIDE = re.compile(r"\d{4}")


class Rendering:
    """What one rendering holds: the functions, the bounds, and the failure of a function, if one failed.

    A round of a loop counts more the longer the template is, since its body may be that long.
    """

    def __init__(self, call: CallFunction, settings: Jinja2Settings, length: int) -> None:
        self._call = call
        self.settings = settings
        self.round = 1 + length // _SOURCE_A_STEP
        self.steps = 0
        self.depth = 0
        self.printed = 0
        self.most_printed = 2 * settings.max_characters
        self.failure: BaseException | None = None
        self._made: dict[int, str | int] = {}
        self._bytes = 0
        self._next_sweep = _MOST_UNSEEN
        self._next_check = _CHECKED_EVERY
        self._deadline = time.monotonic() + settings.max_seconds

    def step(self, count: int) -> None:
        """Count work; raises ``LimitExceeded`` when there was too much of it, or it took too long."""
        self.steps += count
        if self.steps >= self._next_check:
            self._next_check = self.steps + _CHECKED_EVERY
            if self.steps > self.settings.max_steps:
                raise LimitExceeded(
                    f"The template takes more than {self.settings.max_steps:,} steps: rounds of its loops, and "
                    "elements and texts that it makes or goes through. max_steps sets how many it may take."
                )
            if time.monotonic() > self._deadline:
                raise LimitExceeded(
                    f"The template takes more than {self.settings.max_seconds:g} seconds, without its functions; "
                    "max_seconds sets how long it may take."
                )

    def hold(self, value: str | int, size: int) -> None:
        """Count the ``size`` bytes of a text or number for as long as the template has it."""
        if id(value) in self._made:
            return
        self.step(size // _BYTES_COPIED_A_STEP)
        self._made[id(value)] = value
        self._bytes += size
        if self._bytes > self._next_sweep:
            self.step(len(self._made) // _PIECES_A_STEP)
            references = list(map(sys.getrefcount, self._made.values()))  # two are our own
            self._made = dict(item for item, n in zip(self._made.items(), references, strict=True) if n > 2)
            self._bytes = sum(map(_memory, self._made.values()))
            if self._bytes > _MOST_HELD:
                raise LimitExceeded(f"The texts that the template keeps take more than {_MOST_HELD >> 20} MB.")
            self._next_sweep = min(_MOST_HELD, max(_MOST_UNSEEN, 2 * self._bytes))

    def enter(self) -> None:
        """Go into a macro or a recursive loop; raises ``LimitExceeded`` at the deepest."""
        self.step(self.round)
        if self.depth >= _DEEPEST:
            raise LimitExceeded(f"Macros and loops call themselves more than {_DEEPEST} deep.")
        self.depth += 1

    def call(self, function: str, arguments: Mapping[str, object], positional: Sequence[object]) -> Awaitable[object]:
        """Call a function of the kernel; what is wrong with the call itself is the template's fault."""
        try:
            awaitable = self._call(function, arguments, positional) if positional else self._call(function, arguments)
        except (FunctionNotFound, ArgumentsInvalid) as error:
            raise Refused(str(error)) from error
        return self._result(function, awaitable)

    async def _result(self, function: str, awaitable: Awaitable[object]) -> object:
        begun = time.monotonic()
        try:
            return await awaitable
        except FunctionNotFound as error:
            if error.name == function:
                raise Refused(str(error)) from error
            self.failure = error
            raise
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._deadline += time.monotonic() - begun


RENDERING: ContextVar[Rendering] = ContextVar("portico_jinja2_rendering")
"""The rendering that is going on here. Jinja2 has no place for it: an imported template has its own context."""


def charge(value: object) -> None:
    """Count the work of going through a value."""
    RENDERING.get().step(work(value))


def work(value: object) -> int:
    """Return how many steps going through a value takes."""
    if isinstance(value, str):
        return 1 + len(value) // _LETTERS_A_STEP
    return 1 + len(value) if isinstance(value, Sized) and not isinstance(value, AsyncLoopContext) else 1


def sized(value: T) -> T:
    """Count the memory of a text, number or list that was made: a template may keep all of them."""
    size = _memory(value)
    if size > _SMALL:
        if isinstance(value, str | int):
            RENDERING.get().hold(value, size)
        else:
            RENDERING.get().step(size // _BYTES_A_STEP)
    return value


def _memory(value: object) -> int:
    size = sys.getsizeof(value)
    return 2 * size + _BYTES_A_PIECE * len(value.pieces) if isinstance(value, OwnText) else size


def made(value: Any, times: int = 1) -> Any:
    """Count all that is in a list or mapping, as often as it is in it: Python goes through all of it in one go.

    ``times`` is for a tuple whose elements are put into so many places; the tuple itself does not count then.
    """
    step, level = RENDERING.get().step, list(value) if times > 1 else [value]
    for _ in range(_DEEPEST_VALUE):
        lists = [one for one in level if isinstance(one, list | tuple | dict)]
        if not lists:
            return value
        level = []
        for one in lists:
            step(times * (1 + len(one)))
            level += [*one, *one.values()] if isinstance(one, dict) else one
    raise LimitExceeded(f"A value nests deeper than {_DEEPEST_VALUE} levels.")


def check_growth(count: int) -> None:
    """Raise ``LimitExceeded`` for a text or list of ``count`` characters or elements, if that is too many."""
    most = RENDERING.get().settings.max_characters
    if count > most:
        raise too_large(most)


def compared(value: T, searched: bool) -> T:
    """Count a text or list that another value is compared with, or looked for in: fast, but as often as a loop says."""
    if isinstance(value, str | list | tuple) and len(value) > _ELEMENTS_COMPARED_A_STEP:
        letters = _LETTERS_SEARCHED_A_STEP if searched else _LETTERS_COMPARED_A_STEP
        RENDERING.get().step(len(value) // (letters if isinstance(value, str) else _ELEMENTS_COMPARED_A_STEP))
    return value


def charge_pieces(value: object) -> None:
    """Count the letters of a text that is gone through one by one; other values count elsewhere."""
    if isinstance(value, str):
        RENDERING.get().step(2 * len(value))


def count_lines(text: str) -> int:
    """Return into how many lines ``splitlines`` cuts a text; nothing is cut."""
    return 1 + sum(map(text.count, _LINE_ENDS)) - text.count("\r\n")


def count_pieces(text: str, separator: object, most: object) -> int:
    """Return into how many pieces ``split`` cuts a text, at most; nothing is cut."""
    is_text = isinstance(separator, str) and separator != ""
    pieces = 1 + text.count(str(separator)) if is_text else sum(1 for _ in _WORD.finditer(text))
    return min(pieces, most + 1) if isinstance(most, int) and most >= 0 else pieces


def check_format(specification: str) -> None:
    """Raise ``LimitExceeded`` for a width or precision that makes texts out of nothing."""
    check_growth(16 * len(specification))
    if _WIDE.search(specification):
        raise LimitExceeded("A width or precision of a format is at most 999.")


def too_large(most: int) -> LimitExceeded:
    """Return the error of a text or list with more than so many characters or elements."""
    return LimitExceeded(
        f"The template makes a text or list of more than {most:,} characters or elements; max_characters sets how "
        "many it may have."
    )


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
        """Return the text of pieces, empty ones left out."""
        kept = tuple([piece for piece in pieces if piece[0]])
        text = cls("".join([piece for piece, _ in kept]))
        text.pieces = kept
        RENDERING.get().step(len(kept) // _PIECES_A_STEP)
        return sized(text)

    def trim(self, characters: str | None) -> OwnText:
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


def split_values(parts: Iterable[str]) -> list[Piece]:
    """Return the pieces of what was printed, neighbours that the template wrote as one."""
    pieces: list[Piece] = []
    for part in parts:
        pieces += part.pieces if isinstance(part, OwnText) else [(str(part), isinstance(part, Printed))]
    return join_own_text(pieces)
