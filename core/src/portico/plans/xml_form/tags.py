"""One tag with its attributes, read leniently.

A quote ends a value where what follows it can only follow a value: another attribute, or the end of the tag. Quotes
before that one stand unescaped in the value. Whether that reading is the only one is what `_check_quotes` decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from portico.errors import PlanFormatError
from portico.plans.xml_form.values import read_value
from portico.plans.xml_form.written import control

__all__ = ["Tag", "read_tag"]

Fail = Callable[[int, str], PlanFormatError]

_BLANK = re.compile(r"\s*+")
_NAME = re.compile(r"[^\W\d][\w.\-:]*+")
_EQUALS = re.compile(r"\s*+=\s*+")
_SLASH = re.compile(r"/\s*+>")
_BARE = re.compile(r"[\w$.+\-]++(?=\s|/?>)")
_NEXT = r"\s*+,?+\s*+[^\W\d][\w.\-:]*+\s*+=\s*+(?:[\"'“‘]|[\w$.+\-]++(?=\s|/?>))"
_END = r"\s*+,?+\s*+(?:(?:/\s*+)?>|<(?:/?\s*+function\.|/?\s*+plan\b|!--)|\Z)"
_CLOSING = {quote: re.compile(rf"{quote}(?={_NEXT}|{_END})|(?P<stray>{quote})", re.IGNORECASE) for quote in "\"'”’"}
_CLOSED_BY = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_OPENS_A_VALUE = re.compile(r"\s[^\W\d][\w.\-:]*\s*=\s*$")
_NOT_A_VARIABLE = re.compile(r"[^\w$.\- ]")
_CONTROL_INSIDE = re.compile(r"(?:setContextVariable|appendToResult)\s*+=\s*+[\"'“”‘’]", re.IGNORECASE)
# A mark of a quotation, and whether an attribute follows it.
_MARK = re.compile(r"[\"'“”‘’](?P<attribute>(?=\s*+[^\W\d][\w.\-:]*+\s*+=\s*+[\"'“”‘’]))?")
_KINDS_OF_MARKS = {"”": "“", "’": "‘"}
_LOOK_BACK = 100
_BEFORE_OPENER = frozenset(" \t\n\r([{=:,;/>-–—'")
_AFTER_CLOSER = frozenset(" \t\n\r)]}:,;.!?/<-–—'…")


class Tag(NamedTuple):
    """What a tag says: attributes, whether it closes itself, where it ends, where the first stray quote is."""

    attributes: dict[str, str]
    closed: bool
    end: int
    stray: int | None


def read_tag(
    text: str,
    position: int,
    name: str,
    mends: list[tuple[int, str]],
    fail: Fail,
    *,
    offsets: dict[str, int] | None = None,
) -> Tag:
    """Read from after the name of a tag to its end. ``name`` is for messages, ``offsets`` takes those of attributes."""
    attributes: dict[str, str] = {}
    strays: list[list[int]] = []
    first_stray: int | None = None
    while True:
        blank = _BLANK.match(text, position).end()  # type: ignore[union-attr]
        if text.startswith("/", blank) and (slash := _SLASH.match(text, blank)):
            closed, end = True, slash.end()
            if end > blank + 2:
                mends.append((blank, "a space between '/' and '>'"))
            break
        if text.startswith(">", blank):
            closed, end = False, blank + 1
            break
        if blank == len(text):
            raise fail(blank, f"the text ends inside of {name}")
        if text[blank] == "<":
            if not attributes:
                raise fail(blank, f"the tag of {name} does not end")
            mends.append((blank, f"the tag of {name} does not end"))
            closed, end = False, blank
            break
        if text[blank] == "," and attributes:
            _check_closer(text, position, fail)
            mends.append((blank, "a comma between attributes"))
            position = blank + 1
            continue
        if blank == position and text[position - 1] != ",":
            if not attributes:
                raise fail(position, f"{text[position]!r} is not of a name")
            _check_closer(text, position, fail)
            mends.append((position, "no space between two attributes"))
        key, position = _attribute_name(text, blank, name, fail)
        start = position
        value, position, in_value = _value(text, start, key, mends, fail)
        if control(key) and not value.isidentifier() and (odd := _NOT_A_VARIABLE.search(value)):
            raise fail(start, f"{key} names a variable, and {odd[0]!r} is of no name; its quote may be missing")
        if key not in attributes:
            attributes[key] = value
            if offsets is not None:
                offsets[key] = blank
        elif attributes[key] == value:
            mends.append((blank, f"{key} is there twice, with one value"))
        else:
            raise fail(blank, f"{key} is there twice, with two values")
        strays.append(in_value)
        if in_value and first_stray is None:
            first_stray = in_value[0]
    if first_stray is not None:
        _check_quotes(text, strays, fail)
        mends.append((first_stray, "a quote is not escaped"))
    return Tag(attributes, closed, end, first_stray)


def _attribute_name(text: str, position: int, name: str, fail: Fail) -> tuple[str, int]:
    match = _NAME.match(text, position)
    if match is None:
        raise fail(position, f"{text[position]!r} where {name} has an attribute or ends")
    equals = _EQUALS.match(text, match.end())
    if equals is None:
        raise fail(position, f"{_short(match[0])} in {name} has no value")
    return match[0], equals.end()


def _value(text: str, start: int, key: str, mends: list[tuple[int, str]], fail: Fail) -> tuple[str, int, list[int]]:
    """Read a value, and return it with the offset after it and the stray quotes inside."""
    opening = text[start : start + 1]
    closing = _CLOSED_BY.get(opening)
    if closing is None:
        bare = _BARE.match(text, start)
        if bare is None:
            raise fail(start, f"the value of {_short(key)} has no quotes")
        mends.append((start, f"the value of {_short(key)} has no quotes"))
        return bare[0], bare.end(), []
    strays: list[int] = []
    apostrophe: int | None = None
    for match in _CLOSING[closing].finditer(text, start + 1):
        if match["stray"] is None:
            end = match.start()
            break
        if _is_stray(text, match.start(), opening):
            strays.append(match.start())
        elif apostrophe is None:
            apostrophe = match.start()
    else:
        raise fail(start, f"the value of {_short(key)} does not end")
    if _other_attribute(text, start + 1, end, closing):
        raise fail(start, f"the value of {_short(key)} has an attribute inside, or its last quote is missing")
    if opening != closing:
        mends.append((start, "typographic quotes"))
        if text.find(opening, start + 1, end) >= 0 or strays:
            raise fail(start, f"where the value of {_short(key)} ends is not certain")
    if apostrophe is not None and opening == closing:
        mends.append((apostrophe, "a quote is not escaped"))
    return read_value(text, start + 1, end, mends, fail), end + 1, strays


def _other_attribute(text: str, start: int, end: int, closing: str) -> bool:
    """Tell whether an attribute in other quotes stands in a value, so that these may be what ends the value.

    In ``<a b='x' c='y'>`` the quote before ``c`` closes what the one before ``x`` opens: that is a text. In
    ``it' c='y`` it closes what nothing opened. The quotes of the value itself are the business of `_check_quotes`.
    """
    if _CONTROL_INSIDE.search(text, start, end):
        return True
    opened: dict[str, bool] = {}
    for match in _MARK.finditer(text, start, end):
        mark = match[0]
        if mark == closing or not _is_stray(text, match.start(), mark):
            continue
        kind = _KINDS_OF_MARKS.get(mark, mark)
        if match["attribute"] is not None and not opened.get(kind):
            return True
        opened[kind] = mark in "“‘" or (mark in "\"'" and not opened.get(kind))
    return False


def _is_stray(text: str, offset: int, opening: str) -> bool:
    """Tell an apostrophe inside of a word, which is one in any reading, from a quote that might end the value."""
    around = text[offset - 1 : offset + 2]
    return not (opening in "'‘’" and len(around) == 3 and around[0].isalpha() and around[2].isalpha())


def _check_quotes(text: str, strays: list[list[int]], fail: Fail) -> None:
    """Refuse where the stray quotes of a tag could be read in two ways.

    In each value they must be pairs around words, as a quotation is. Where text that looks like attributes stands in
    a value (``say "hi" a="b" now``), or a quote is missing, some value has an odd one, or one that begins or ends
    nothing.
    """
    for value in strays:
        for index, offset in enumerate(value):
            opener = index % 2 == 0
            if text[offset - 1] == "\\":
                raise fail(offset, "a quote after a backslash; in XML it is &quot;")
            if len(value) % 2 or not (_opens(text, offset) if opener else _closes(text, offset)):
                raise fail(offset, "a quote is not escaped, and where the value ends is not certain")


def _check_closer(text: str, position: int, fail: Fail) -> None:
    """Refuse where the quote before ``position`` may not be the end of a value, as what follows is amiss too."""
    quote = position - 1
    if text[quote] in "\"'" and (text[quote - 1] in "\\=" or _opens_a_value(text, quote)):
        raise fail(quote, "a quote is not escaped, and where the value ends is not certain")


def _opens_a_value(text: str, offset: int) -> bool:
    return _OPENS_A_VALUE.search(text[max(0, offset - _LOOK_BACK) : offset]) is not None


def _opens(text: str, offset: int) -> bool:
    before, after = text[offset - 1], text[offset + 1 : offset + 2]
    return (before in _BEFORE_OPENER or before == text[offset]) and not after.isspace()


def _closes(text: str, offset: int) -> bool:
    before, after = text[offset - 1], text[offset + 1 : offset + 2]
    if _opens_a_value(text, offset):
        return False
    return not before.isspace() and (after in _AFTER_CLOSER or after == text[offset])


def _short(word: str) -> str:
    return word if len(word) <= 60 else f"{word[:60]}…"
