"""Reading JSON while it is being written: what has come so far as a value, in time linear in the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING: Any = object()

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_LITERAL = re.compile(r'[^\s,:\[\]{}"]+')
_START = re.compile(r"[\[{]")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MAXIMUM_DEPTH = 200
_ATTEMPTS = 20


class PartialJson:
    """Reads a JSON text piece by piece.

    >>> reader = PartialJson()
    >>> reader.feed('{"name": "Science Fa')
    {'name': 'Science Fa'}
    >>> reader.feed('ir", "guests": [1, 2')
    {'name': 'Science Fair', 'guests': [1]}
    >>> reader.feed("0]}"), reader.complete
    ({'name': 'Science Fair', 'guests': [1, 20]}, True)

    A string shows as far as it has come; a number, true, false or null once its end is known; a key once its
    value has begun. The value given is the reader's own and grows with the next `feed`: copy what is kept.
    ``values`` counts those that have begun, inner ones too. With ``search``, text before the first bracket and
    after the end of the value is passed over.
    Raises ``ValueError`` for what can be no JSON any more, and for more than 200 levels.
    """

    NOTHING: ClassVar[Any] = NOTHING
    """Stands for "no value has begun yet"; None is JSON's null."""

    def __init__(self, *, search: bool = False) -> None:
        self.complete = False
        self.values = 0
        self._search = search
        self._rest = ""
        self._root: Any = NOTHING
        self._stack: list[Any] = []
        self._keys: list[str] = []
        self._text: list[str] | None = None
        """The pieces of the string being read, None outside of one."""
        self._begun = False
        """Whether the beginning of that string stands in its place already."""
        self._kept = 0
        self._expect = "value"

    def feed(self, text: str) -> Any:
        """Read on, and return the value so far, or `NOTHING`."""
        self._rest = self._read(self._rest + text, end=False)
        return self._shown()

    def close(self) -> Any:
        """Say that no more comes; what needed an end has one. Returns the value so far, or `NOTHING`."""
        self._rest = self._read(self._rest, end=True)
        return self._shown()

    def _shown(self) -> Any:
        if self._text is not None and self._expect != "key":
            self._text = ["".join(self._text)]
            self._put(self._text[0])
            self._begun = True
        return self._root

    def _read(self, text: str, *, end: bool) -> str:
        """Consume what can be consumed and return the rest."""
        position = 0
        if self._search and self._root is NOTHING and self._text is None:
            start = _START.search(text)
            if start is None:
                return ""
            position = start.start()
        while True:
            if self._text is not None:
                following = self._string(text, position)
                if following is None:
                    return text[self._kept :]
                position = following
                continue
            space = _SPACE.match(text, position)
            position = space.end() if space else position
            if position == len(text):
                return ""
            if self.complete:
                if self._search:
                    return ""
                raise ValueError("there is more after the end of the JSON value")
            letter = text[position]
            if letter == '"' and self._expect in ("value", "first", "key", "first key"):
                self._expect = "key" if "key" in self._expect else "value"
                self._text = []
                position += 1
            elif self._expect in ("value", "first") and letter in "{[":
                self._open({} if letter == "{" else [])
                position += 1
            elif letter in "}]":
                self._close(letter)
                position += 1
            elif self._expect == "comma" and letter == ",":
                self._expect = "key" if isinstance(self._stack[-1], dict) else "value"
                position += 1
            elif self._expect == "colon" and letter == ":":
                self._expect = "value"
                position += 1
            elif self._expect in ("value", "first"):
                literal = _LITERAL.match(text, position)
                if literal is None:
                    raise ValueError(f"{letter!r} cannot begin a JSON value")
                if literal.end() == len(text) and not end:
                    return text[position:]
                self._put(_constant(literal[0]))
                self._ended()
                position = literal.end()
            else:
                raise ValueError(f"{letter!r} where JSON needs a {self._expect}")

    def _string(self, text: str, position: int) -> int | None:
        """Read on in a string; None when the text ends inside it, the rest then begins at ``_kept``."""
        pieces = self._text
        assert pieces is not None  # noqa: S101 - the caller has looked
        while True:
            plain = _PLAIN.match(text, position)
            if plain is not None and plain[0]:
                pieces.append(plain[0])
                position = plain.end()
            if position == len(text):
                self._kept = position
                return None
            if text[position] == '"':
                self._end_string("".join(pieces))
                return position + 1
            escape = _escape(text, position)
            if escape is None:
                self._kept = position
                return None
            pieces.append(escape[0])
            position = escape[1]

    def _end_string(self, whole: str) -> None:
        self._text = None
        if self._expect == "key":
            self._keys[-1] = whole
            self._expect = "colon"
        else:
            self._put(whole)
            self._ended()

    def _open(self, container: Any) -> None:
        if len(self._stack) == _MAXIMUM_DEPTH:
            raise ValueError(f"more than {_MAXIMUM_DEPTH} levels of JSON")
        self._put(container)
        self._stack.append(container)
        self._keys.append("")
        self._expect = "first key" if isinstance(container, dict) else "first"

    def _close(self, bracket: str) -> None:
        closes = "}" if self._stack and isinstance(self._stack[-1], dict) else "]"
        if not self._stack or bracket != closes or self._expect not in ("comma", "first", "first key"):
            raise ValueError(f"{bracket!r} closes nothing here")
        self._stack.pop()
        self._keys.pop()
        self._ended()

    def _put(self, value: Any) -> None:
        """Set the value in its place, over the beginning of itself where that was shown already."""
        container = self._stack[-1] if self._stack else None
        if container is None:
            self._root = value
        elif isinstance(container, dict):
            container[self._keys[-1]] = value
        elif self._begun:
            container[-1] = value
        else:
            container.append(value)
        self.values += not self._begun

    def _ended(self) -> None:
        self._begun = False
        self._expect = "comma"
        self.complete = not self._stack

    @staticmethod
    def values_in(text: str) -> Iterator[Any]:
        """Yield the JSON values that stand in a text beside one another: one for the whole text, where that is JSON.

        >>> list(PartialJson.values_in('By [1] and [2] it is {"ok": true}.'))
        [[1], [2], {'ok': True}]

        Otherwise each opening bracket that is not inside of a value may begin one; at most 20 that begin none are
        tried. Raises ``ValueError`` where there is no value at all.
        """
        whole = _whole(text)
        if not isinstance(whole, ValueError):
            yield whole
            return
        decoder = json.JSONDecoder()
        position = found = failed = 0
        while failed < _ATTEMPTS and (start := _START.search(text, position)) is not None:
            try:
                value, position = decoder.raw_decode(text, start.start())
            except (ValueError, RecursionError):
                failed += 1
                position = start.end()
                continue
            found += 1
            yield value
        if not found:
            raise whole


def json_in(text: str) -> Any:
    """Return the JSON value of a reply that may have words around it, or a fence of three backticks.

    >>> json_in('Here it is: {"ok": true}.')
    {'ok': True}

    Where there are several, it is the first, see `PartialJson.values_in`. Raises ``ValueError``.
    """
    return next(PartialJson.values_in(text))


def _whole(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        return error


def _constant(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        raise ValueError(f"{text[:20]!r} is no JSON value") from None
    return value


def _refuse(text: str) -> None:
    raise ValueError(text)


def _escape(text: str, position: int) -> tuple[str, int] | None:
    """Read the escape at a backslash: its text and where it ends; None when it is not all there yet."""
    if position + 1 == len(text):
        return None
    letter = text[position + 1]
    if letter != "u":
        if letter not in _ESCAPES:
            raise ValueError(f"{text[position : position + 2]!r} is no JSON escape")
        return _ESCAPES[letter], position + 2
    end = position + 6
    if end > len(text):
        return None
    code = _code(text[position + 2 : end])
    if 0xD800 <= code < 0xDC00:
        # The other half of the pair decides whether it is one.
        following = text[end : end + 6]
        if not following or (len(following) < 6 and "\\u".startswith(following[:2])):
            return None
        if following.startswith("\\u") and 0xDC00 <= (low := _code(following[2:])) < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), end + 6
    return chr(code), end


def _code(digits: str) -> int:
    if not re.fullmatch("[0-9a-fA-F]{4}", digits):
        raise ValueError(f"{digits!r} are not four hexadecimal digits")
    return int(digits, 16)
