"""Strings as PostgreSQL's ``text`` can hold them: neither NUL nor half surrogates, which a Python string may have.

What it cannot hold is written as a pair of characters that begins with one that is escaped itself. The pairs keep the
order of code points, so that comparing what is stored (by bytes, in UTF-8) compares what was given.
"""

from __future__ import annotations

import re

LONGEST_KEY = 2_000
"""Bytes of an id or a namespace in UTF-8: what PostgreSQL's indexes hold is bounded, at 2,704 bytes."""

_LOW, _HIGH = "\x01", "\ue000"
# NUL is the least there is, so U+0001 begins its pair. Half surrogates lie just below U+E000, which begins theirs.
_PAIRS = {"\x00": "\x01\x01", "\x01": "\x01\x02", "\ue000": "\ue000\uf000"}
_UNSTORABLE = re.compile("[\x00\x01\ud800-\udfff\ue000]")
_PAIR = re.compile("[\x01\ue000](.)", re.DOTALL)
_SURROGATES = 0xD800
_SECOND = 0x100
"""Half surrogates are written as U+E000 and this plus their number, below the U+F000 of U+E000 itself."""


def stored(text: str) -> str:
    """Return the form in which a string is stored; most strings are their own.

    >>> stored("naïve"), stored("nul" + chr(0)) == "nul" + chr(1) + chr(1)
    ('naïve', True)
    """
    return _UNSTORABLE.sub(_pair, text) if _UNSTORABLE.search(text) else text


def given(text: str) -> str:
    """Return the string that `stored` made this of.

    >>> strange = "nul" + chr(0) + chr(0xD800)
    >>> given(stored(strange)) == strange
    True
    """
    return _PAIR.sub(_single, text) if _LOW in text or _HIGH in text else text


def key(text: str, what: str) -> str:
    """Return the stored form of an id or a namespace. Raises ``ValueError`` for one of more than 2,000 bytes."""
    form = stored(text)
    # A character has at most three bytes here, four for the rare ones: most need no counting.
    if len(form) * 4 > LONGEST_KEY and (size := len(form.encode())) > LONGEST_KEY:
        raise ValueError(f"{what} {text[:40]!r}… has {size} bytes in UTF-8; PostgreSQL's indexes take {LONGEST_KEY}")
    return form


def _pair(found: re.Match[str]) -> str:
    character = found[0]
    return _PAIRS.get(character) or _HIGH + chr(_SECOND + ord(character) - _SURROGATES)


def _single(found: re.Match[str]) -> str:
    first, second = found[0][0], found[1]
    if first == _LOW:
        return "\x00" if second == "\x01" else "\x01"
    return _HIGH if second == "\uf000" else chr(_SURROGATES + ord(second) - _SECOND)
