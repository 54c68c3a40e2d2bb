"""Tags and text of a plan in XML, and the elements that were written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from portico.errors import PlanFormatError

LIMIT_OF_CHARACTERS = 1_000_000
LIMIT_OF_STEPS = 1_000

SET = "setcontextvariable"
APPEND = "appendtoresult"
_CONTROL = {"setContextVariable": SET, "appendToResult": APPEND}
CONTROL_LENGTHS = frozenset(map(len, _CONTROL))


class WrittenCall(NamedTuple):
    """One ``<function.…>``: what follows the dot, its attributes, the comments before it, and where it begins.

    A tuple for its speed: a plan is read while somebody waits. ``offset`` counts as the parser does. ``offsets`` are
    those of the attributes in a text that was mended.
    """

    function: str
    attributes: Mapping[str, str]
    reason: str
    offset: int
    offsets: Mapping[str, int] = {}


class WrittenPlan(NamedTuple):
    """The calls of one ``<plan>`` in their order, and the text of a ``<goal>`` where there is one.

    ``characters`` turns the offset of a call into one that counts characters of the text.
    """

    calls: list[WrittenCall]
    goal: str
    characters: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Mend:
    """Something that was put right while reading: where, counted from 1, and what."""

    line: int
    column: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what}"


Place: TypeAlias = tuple[int, int]


def places(text: str, offsets: Iterable[int]) -> list[Place]:
    """Return line and column of offsets, given in ascending order, in one pass over the text."""
    found: list[Place] = []
    line, start, seen = 1, 0, 0
    for offset in offsets:
        breaks = text.count("\n", seen, offset)
        if breaks:
            line += breaks
            start = text.rindex("\n", seen, offset) + 1
        seen = offset
        found.append((line, offset - start + 1))
    return found


def format_error(text: str, offset: int, problem: str) -> PlanFormatError:
    """Make the error of a plan's text, with its place."""
    [(line, column)] = places(text, [min(offset, len(text))])
    return PlanFormatError(f"line {line}, column {column}: {problem}.", line=line, column=column)


def control(name: str) -> str | None:
    """Return `SET` or `APPEND` for an attribute that is no argument, in whatever case it is written."""
    known = _CONTROL.get(name)
    if known is not None:
        return known
    lowered = name.lower()
    return lowered if lowered in (SET, APPEND) else None


def unlike_names(attributes: Mapping[str, str], fail: Callable[[str], PlanFormatError]) -> Mapping[str, str]:
    """Return the attributes, each once: names that differ in case only are one, and must have one value."""
    kept: dict[str, tuple[str, str]] = {}
    for name, value in attributes.items():
        first, other = kept.setdefault(name.lower(), (name, value))
        if other != value:
            raise fail(f"{first} and {name} are one argument with two values")
    return dict(kept.values())


def one_letter_off(one: str, other: str) -> bool:
    """Tell whether two words are the same but for one letter more, less or other, or two that are swapped.

    >>> one_letter_off("peom", "poem"), one_letter_off("poems", "poem"), one_letter_off("plan", "poem")
    (True, True, False)
    """
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[same:] == long[same + 1 :]
    if short[same + 1 :] == long[same + 1 :]:
        return True
    return short[same : same + 2] == long[same : same + 2][::-1] and short[same + 2 :] == long[same + 2 :]


Fail = Callable[[int, str], PlanFormatError]

_SPECIAL = re.compile(
    r"&(?:#x([0-9A-Fa-f]{1,6});|#([0-9]{1,7});|([A-Za-z][0-9A-Za-z]{0,31})(;|(?![0-9A-Za-z=])))?"
    r"|<|\r\n|[\t\n\r\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f]"
)
_NAMED = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}
_STEP = re.compile(r"<\s*+/?+\s*+(?:function\.|plan[\s/>])", re.IGNORECASE)
_CDATA = "<![CDATA["


def read_value(text: str, start: int, end: int, mends: list[tuple[int, str]], fail: Fail) -> str:
    """Return what an XML parser would make of ``text[start:end]`` if what is unescaped there were escaped."""
    if _SPECIAL.search(text, start, end) is None:
        return text[start:end]
    if _STEP.search(text, start, end):
        raise fail(start - 1, "the value has a step inside; its last quote is missing, or '<' is not escaped")
    noted: set[str] = set()

    def read(match: re.Match[str]) -> str:
        offset, letter = start + match.start(), match[0][0]
        if letter in "\t\n\r":
            # What XML says of attributes (3.3.3): each break and each tab is a space.
            return " "
        if "\ud800" <= letter <= "\udfff":
            raise fail(offset, "half of a surrogate pair")
        if letter == "<" and text.startswith(_CDATA, offset):
            raise fail(offset, "CDATA inside of a value")
        decoded = _decoded(match, text, offset, fail) if letter == "&" else None
        what = f"{letter!r} is not escaped" if letter in "&<" else "a control character stands in a value"
        # One note for each kind in a value: it may be a page of HTML.
        if decoded is None and what not in noted:
            noted.add(what)
            mends.append((offset, what))
        return match[0] if decoded is None else decoded

    return _SPECIAL.sub(read, text[start:end])


def _decoded(match: re.Match[str], text: str, offset: int, fail: Fail) -> str | None:
    """Return the character that an ampersand begins the name of; None for an ampersand that stands for itself."""
    hexadecimal, decimal, name, closed = match.groups()
    if hexadecimal or decimal:
        code = int(hexadecimal, 16) if hexadecimal else int(decimal)
        if not _is_character(code):
            raise fail(offset, f"{match[0]} is no character of XML")
        return chr(code)
    if name is None:
        if text.startswith("&#", offset):
            raise fail(offset, "'&#' is neither a character's number with a ';' nor an escaped '&'")
        return None
    if name in _NAMED:
        if not closed:
            raise fail(offset, f"&{name} has no ';': it is either {_NAMED[name]!r} or '&' and a word")
        return _NAMED[name]
    if closed and _known_to_html(name):
        raise fail(offset, f"{match[0]} is HTML's name of a character, or a text that is not escaped")
    meant = _nearly(name) if closed else None
    if meant is not None:
        raise fail(offset, f"{match[0]} is &{meant}; or a text that is not escaped")
    return None


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


_THOUGHT = re.compile(r"\s*+<(think|thinking|reasoning)>", re.IGNORECASE)
_GOAL_END = re.compile(r"<(?:/\s*+goal|plan)\b", re.IGNORECASE)


def end_of_thoughts(text: str, fail: Fail) -> tuple[int, int] | None:
    """Return where what a model thought before it answered begins and ends: a plan in there is a draft."""
    match = _THOUGHT.match(text)
    if match is None:
        return None
    start = match.start(1) - 1
    found = re.compile(re.escape(f"</{match[1]}>"), re.IGNORECASE).search(text)
    if found is None:
        raise fail(start, f"<{match[1]}> does not end")
    return start, found.end()


def end_of_goal(text: str, start: int) -> int:
    """Return where a goal's text ends: at its end tag, or at the plan that it is around."""
    end = _GOAL_END.search(text, start)
    return len(text) if end is None else end.start()


def words_of(text: str) -> str:
    """Return the text of an element; what is no reference stays as it is, since a goal is for people."""
    for name, character in _NAMED.items():
        text = text.replace(f"&{name};", character)
    return text.strip()


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
    """Read from after the name of a tag to its end; ``name`` is for messages, ``offsets`` takes those of attributes."""
    attributes: dict[str, str] = {}
    offsets = {} if offsets is None else offsets
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
            attributes[key], offsets[key] = value, blank
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
