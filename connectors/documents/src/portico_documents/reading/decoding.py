"""From bytes to text: which encoding, and whether it is text at all."""

from __future__ import annotations

import codecs
import re

from portico.errors import PorticoError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The encodings of the WHATWG registry, by their Python names. Others that Python has (idna, punycode, utf-7,
# unicode_escape) are no encodings of files, and some of them take quadratic time.
_DECLARABLE = re.compile(r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|gb\w+|big5\w*|shift_ji\w+|euc_\w+|mac-\w+|tis-620")
# Controls that text has no use for: all but backspace, tab, newline, vertical tab, form feed, return, escape.
_CONTROLS = bytes({*range(8), *range(14, 27), *range(28, 32), 127})
_MOST_CONTROLS = 0.05


class Unreadable(PorticoError):
    """A file has no text for us; ``reason`` is a few plain words, the same for every file of its kind.

    The reasons are ``empty``, ``binary``, ``undecodable`` (text, but in no encoding that it declares), ``damaged``,
    ``encrypted``, ``no text`` (a PDF of pictures), ``too large`` (once unpacked) and ``too slow``. They are meant for
    counting: ``12 skipped: 9 binary, 3 empty``. ``detail`` adds what is known of this one file.

    >>> Unreadable("encrypted").reason
    'encrypted'
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"The file cannot be read: {reason}{f' ({detail})' if detail else ''}.")


def decode(data: bytes, declared: str | None = None) -> str:
    r"""Decode a file and turn each of its line ends into one ``\n``.

    A byte order mark decides; else UTF-8, if the bytes are UTF-8 throughout; else the encoding that the file
    itself declares. No encoding is guessed: what one cannot read rightly is better not found than quoted wrongly.
    Raises ``Unreadable``: ``binary`` for a file with NUL or with more than one control character in twenty,
    ``undecodable``, ``empty``.
    """
    mark, encoding = next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    if not mark and (b"\0" in data or len(data) - len(data.translate(None, _CONTROLS)) > len(data) * _MOST_CONTROLS):
        raise Unreadable("binary")
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        name = None if mark or declared is None else _codec(declared)
        if name is None:
            raise Unreadable("undecodable") from error
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            raise Unreadable("undecodable") from error
    if "\0" in text:
        raise Unreadable("binary")
    if not text or text.isspace():
        raise Unreadable("empty")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _codec(declared: str) -> str | None:
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"  # what such files are in truth (WHATWG)
    return name if _DECLARABLE.fullmatch(name) else None
