"""Reads JSON while it is being written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING: Any = object()

_START = re.compile(r"[\[{]")
_BODY = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_TOKEN = re.compile(
    rf"""\s*+(?:(?P<open>[{{\[])|(?P<close>[}}\]])|(?P<mark>[,:])|(?P<string>{_BODY}")|(?P<word>[^\s,:\[\]{{}}"]+))""",
    re.DOTALL,
)
# A string without its end, up to an escape or a surrogate pair that is not all there.
_BEGUN = re.compile(
    r'\s*+"(?:[^"\\]|\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*', re.DOTALL
)
_CLOSING = {"{": "}", "[": "]"}
_MAXIMUM_DEPTH = 200
_ATTEMPTS = 20
_SHARE = 64


class PartialJson:
    """Reads a JSON text piece by piece.

    >>> reader = PartialJson()
    >>> reader.feed('{"name": "Science Fa')
    {'name': 'Science Fa'}
    >>> reader.feed('ir", "guests": [1, 2')
    {'name': 'Science Fair', 'guests': [1]}
    >>> reader.feed("0]}"), reader.complete
    ({'name': 'Science Fair', 'guests': [1, 20]}, True)

    A string shows as far as it has come; a number, true, false or null when its end is known; a key when its value has
    begun. The value of a long text is made again only when the text has grown by 1/64 or is complete. With
    ``search``, text before the first bracket and after the end of the value is ignored.
    """

    NOTHING: ClassVar[Any] = NOTHING
    """Stands for "no value has begun yet"; None is JSON's null."""

    def __init__(self, *, search: bool = False) -> None:
        self.complete = False
        self._search = search
        self._head: list[str] = []
        """The text up to the end of the last value, or to the last bracket that opens."""
        self._rest = ""
        self._position = 0
        """How far the rest is divided into tokens."""
        self._length = self._due = 0
        self._closing: list[str] = []
        """The brackets that are missing, the outermost first."""
        self._in_key = False
        self._value = NOTHING

    def feed(self, text: str) -> Any:
        """Read on, and return the value so far, or `NOTHING`.

        Raises ``ValueError`` for a text that cannot become JSON, though not always at once, and for more than 200
        levels.
        """
        if self.complete and self._search:
            return self._value
        self._rest += text
        self._length += len(text)
        if self._search and not self._head:
            start = _START.search(self._rest)
            self._rest = "" if start is None else self._rest[start.start() :]
        due = self._length >= self._due
        if due or "}" in text or "]" in text:
            self._divide(self._rest)
        if self.complete and self._rest.strip() and not self._search:
            raise ValueError("there is more after the end of the JSON value")
        if due or self.complete:
            self._due = self._length + self._length // _SHARE
            self._value = self._read()
        return self._value

    def _read(self) -> Any:
        shown = "".join(self._head)
        begun = None if self.complete or self._in_key else _BEGUN.match(self._rest, self._position)
        if begun is not None:
            shown += f'{self._rest[: begun.end()]}"'
        if not shown:
            if self._rest.strip() and _TOKEN.match(self._rest) is None:
                raise ValueError("this cannot begin a JSON value")
            return NOTHING
        return json.loads(shown + "".join(reversed(self._closing)), strict=False, parse_constant=_refuse)

    def _divide(self, text: str) -> None:
        """Go on to the last token that is all there."""
        whole = 0
        while not self.complete and (token := _TOKEN.match(text, self._position)) is not None:
            kind = token.lastgroup
            if kind == "word" and token.end() == len(text):
                break
            self._position = token.end()
            in_key, self._in_key = self._in_key, False
            if kind == "open":
                self._closing.append(_CLOSING[token["open"]])
                if len(self._closing) > _MAXIMUM_DEPTH:
                    raise ValueError(f"more than {_MAXIMUM_DEPTH} levels of JSON")
                self._in_key = token["open"] == "{"
            elif kind == "close":
                if not self._closing or self._closing.pop() != token["close"]:
                    raise ValueError(f"{token['close']!r} closes nothing here")
            elif kind == "mark":
                self._in_key = token["mark"] == "," and self._closing[-1:] == ["}"]
                continue
            elif in_key and kind == "string":
                continue
            whole = self._position
            self.complete = not self._closing
        if whole:
            self._head.append(text[:whole])
            self._rest, self._position = text[whole:], self._position - whole

    @staticmethod
    def values_in(text: str) -> Iterator[Any]:
        """Yield the JSON values that stand in a text beside one another: one for the whole text, where that is JSON.

        >>> list(PartialJson.values_in('By [1] and [2] it is {"ok": true}.'))
        [[1], [2], {'ok': True}]

        Otherwise each opening bracket that is not inside of a value may begin one; at most 20 that begin none are
        tried. Raises ``ValueError`` where there is no value at all.
        """
        try:
            whole = json.loads(text)
        except ValueError as error:
            refused = error
        else:
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
            raise refused


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON value")
