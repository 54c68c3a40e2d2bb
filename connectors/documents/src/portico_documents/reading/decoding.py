"""From bytes to text: which encoding, and whether it is text at all."""

from __future__ import annotations

import codecs
import re

from portico_documents.reading.unreadable import Unreadable

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


def decode(data: bytes, declared: str | None = None) -> str:
    r"""Decode a file and turn each of its line ends into one ``\n``.

    A byte order mark decides; else UTF-8, if the bytes are UTF-8 throughout; else the encoding that the file
    itself declares. No encoding is guessed: what one cannot read rightly is better not found than quoted wrongly.
    Raises ``Unreadable``: ``binary`` for a file with NUL or with more than one control character in twenty,
    ``undecodable``, ``empty``.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = _decoded(data[len(mark) :], encoding)
            break
    else:
        if b"\0" in data:
            raise Unreadable("binary")
        text = _decoded(data, "utf-8")
        if text is None and declared is not None:
            text = _decoded(data, _python_name(declared))
        if len(data) - len(data.translate(None, _CONTROLS)) > len(data) * _MOST_CONTROLS:
            raise Unreadable("binary")
    if text is None:
        raise Unreadable("undecodable")
    if "\0" in text:
        raise Unreadable("binary")
    if not text or text.isspace():
        raise Unreadable("empty")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _decoded(data: bytes, encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _python_name(declared: str) -> str | None:
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    # The registry reads both as windows-1252: that is what such files are.
    if name in {"iso8859-1", "ascii"}:
        name = "cp1252"
    return name if _DECLARABLE.fullmatch(name) else None
