"""The text between the quotes of an attribute, read leniently."""

from __future__ import annotations

import re
from collections.abc import Callable

from portico.errors import PlanFormatError
from portico.plans.xml_form.spelling import one_letter_off

__all__ = ["read_value"]

Fail = Callable[[int, str], PlanFormatError]

_SPECIAL = re.compile(r"[&<\t\n\r\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f]")
_REFERENCE = re.compile(r"&(?:#x([0-9A-Fa-f]{1,6});|#([0-9]{1,7});|([A-Za-z][0-9A-Za-z]{0,31})(;|(?![0-9A-Za-z=])))")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_STEP = re.compile(r"<\s*+/?+\s*+(?:function\.|plan[\s/>])", re.IGNORECASE)
_CDATA = "<![CDATA["


def read_value(text: str, start: int, end: int, mends: list[tuple[int, str]], fail: Fail) -> str:
    """Return what an XML parser would make of ``text[start:end]`` if what is unescaped there were escaped."""
    match = _SPECIAL.search(text, start, end)
    if match is None:
        return text[start:end]
    if _STEP.search(text, start, end):
        raise fail(start - 1, "the value has a step inside; its last quote is missing, or '<' is not escaped")
    parts: list[str] = []
    done = start
    noted: set[str] = set()

    def note(offset: int, what: str) -> None:
        # One note for each kind in a value: it may be a page of HTML.
        if what not in noted:
            noted.add(what)
            mends.append((offset, what))

    while match is not None:
        offset = match.start()
        letter = match[0]
        parts.append(text[done:offset])
        done = offset + 1
        if letter == "&":
            decoded, done = _reference(text, offset, end, fail)
            if done == offset + 1:
                note(offset, "'&' is not escaped")
            parts.append(decoded)
        elif letter == "<":
            if text.startswith(_CDATA, offset):
                raise fail(offset, "CDATA inside of a value")
            note(offset, "'<' is not escaped")
            parts.append(letter)
        elif letter in "\t\n\r":
            # What XML says of attributes (3.3.3): each break and each tab is a space.
            done += letter == "\r" and text.startswith("\n", done)
            parts.append(" ")
        elif "\ud800" <= letter <= "\udfff":
            raise fail(offset, "half of a surrogate pair")
        else:
            note(offset, "a control character stands in a value")
            parts.append(letter)
        match = _SPECIAL.search(text, done, end)
    parts.append(text[done:end])
    return "".join(parts)


def _reference(text: str, offset: int, end: int, fail: Fail) -> tuple[str, int]:
    """Read what an ampersand begins, and return it with the offset after it."""
    match = _REFERENCE.match(text, offset, end)
    if match is None:
        if text.startswith("&#", offset):
            raise fail(offset, "'&#' is neither a character's number with a ';' nor an escaped '&'")
        return "&", offset + 1
    hexadecimal, decimal, name, closed = match.groups()
    if name is None:
        code = int(hexadecimal, 16) if hexadecimal else int(decimal)
        if not _is_character(code):
            raise fail(offset, f"{match[0]} is no character of XML")
        return chr(code), match.end()
    if name in _NAMED:
        if not closed:
            raise fail(offset, f"&{name} has no ';': it is either {_NAMED[name]!r} or '&' and a word")
        return _NAMED[name], match.end()
    if closed and _known_to_html(name):
        raise fail(offset, f"{match[0]} is HTML's name of a character, or a text that is not escaped")
    meant = _nearly(name) if closed else None
    if meant is not None:
        raise fail(offset, f"{match[0]} is &{meant}; or a text that is not escaped")
    return "&", offset + 1


def _nearly(name: str) -> str | None:
    """Return the name of XML that a name hardly is by chance: in another case, or with one letter wrong."""
    lowered = name.lower()
    return next((known for known in _NAMED if len(name) > 1 and one_letter_off(lowered, known)), None)


def _is_character(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


def _known_to_html(name: str) -> bool:
    # Only here: the table is a megabyte of objects, and few plans need it.
    from html.entities import html5

    return f"{name};" in html5
