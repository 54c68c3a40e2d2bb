"""The scanner: it cuts a template into tokens, which have the names that handlebars.js gives them.

Text is found by searching; what stands between braces by one expression, whose alternatives are tried in the order of
the rules of handlebars.js.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from portico import Prompt
from portico.errors import LimitExceeded

LONGEST = 4_000_000
MOST_TOKENS = 1_000_000
BLANKS = "\t\n\x0b\x0c\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
# They are what JavaScript takes for white space.
_NOT_IN_NAMES = r"""!"#%-,./;->@\[-\^`{-~""" + BLANKS
_AFTER = rf"(?=[=~}}/.)|{BLANKS}])"
_AFTER_LITERAL = rf"(?=[~}}){BLANKS}])"

_RULES = (
    ("OPEN_SEXPR", r"\("),
    ("CLOSE_SEXPR", r"\)"),
    ("OPEN_RAW_BLOCK", r"\{\{\{\{"),
    ("CLOSE_RAW_BLOCK", r"\}\}\}\}"),
    ("OPEN_PARTIAL", r"\{\{~?>"),
    ("OPEN_PARTIAL_BLOCK", r"\{\{~?#>"),
    ("OPEN_BLOCK", r"\{\{~?#\*?"),
    ("OPEN_ENDBLOCK", r"\{\{~?/"),
    ("INVERSE", rf"\{{\{{~?\^[{BLANKS}]*+~?\}}\}}|\{{\{{~?[{BLANKS}]*+else[{BLANKS}]*+~?\}}\}}"),
    ("OPEN_INVERSE", r"\{\{~?\^"),
    ("OPEN_INVERSE_CHAIN", rf"\{{\{{~?[{BLANKS}]*+else(?![0-9A-Za-z_])"),
    ("OPEN_UNESCAPED", r"\{\{~?\{"),
    ("OPEN", r"\{\{~?&"),
    ("LONG_COMMENT", r"\{\{~?!--"),
    ("COMMENT", r"\{\{~?!"),
    ("OPEN_ANY", r"\{\{~?\*?"),
    ("EQUALS", r"="),
    ("ID_UP", r"\.\."),
    ("ID_HERE", rf"\.{_AFTER}"),
    ("SEP", r"[/.]"),
    ("BLANK", rf"[{BLANKS}]++"),
    ("CLOSE_UNESCAPED", r"\}~?\}\}"),
    ("CLOSE", r"~?\}\}"),
    ("STRING", r'"(?:\\"|[^"])*"'),
    ("STRING_SINGLE", r"'(?:\\'|[^'])*'"),
    ("DATA", r"@"),
    ("BOOLEAN", rf"(?:true|false){_AFTER_LITERAL}"),
    ("UNDEFINED", rf"undefined{_AFTER_LITERAL}"),
    ("NULL", rf"null{_AFTER_LITERAL}"),
    ("NUMBER", rf"-?[0-9]++(?:\.[0-9]++)?{_AFTER_LITERAL}"),
    ("OPEN_BLOCK_PARAMS", rf"as[{BLANKS}]++\|"),
    ("CLOSE_BLOCK_PARAMS", r"\|"),
    ("ID", rf"[^{_NOT_IN_NAMES}]++{_AFTER}"),
    ("ID_QUOTED", r"\[(?:\\\]|[^\]])*\]"),
    ("INVALID", r"."),
)
_TAG = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in _RULES), re.DOTALL)
_NAMES = {"OPEN_ANY": "OPEN", "ID_UP": "ID", "ID_HERE": "ID", "ID_QUOTED": "ID", "STRING_SINGLE": "STRING"}
_ENDS = {"CLOSE", "CLOSE_UNESCAPED", "INVERSE"}
_RAW_END = re.compile(rf"\{{\{{\{{\{{/([^{_NOT_IN_NAMES}]++)\}}\}}\}}\}}")
_COMMENT_ENDS = {"LONG_COMMENT": re.compile(r"--~?\}\}"), "COMMENT": re.compile(r"\}\}")}
_UNQUOTED = re.compile(r"\\([\\\]])")


class Token(NamedTuple):
    """A piece of the source: ``text`` is what it means, ``source[at:end]`` what is written."""

    name: str
    text: str
    at: int
    end: int


def scan(source: str, *, name: str = "prompt") -> Iterator[Token]:
    """Yield the tokens of a template; the last one is EOF, and a token INVALID is followed by no other.

    Raises ``TemplateError`` for a comment or a raw block without an end, and ``LimitExceeded`` above 4,000,000
    characters or 1,000,000 tokens.
    """
    if len(source) > LONGEST:
        raise LimitExceeded(f"{name}: a template has at most {LONGEST:,} characters, not {len(source):,}.")
    for count, token in enumerate(_tokens(source, name)):
        if count > MOST_TOKENS:
            raise LimitExceeded(f"{name}: a template has at most {MOST_TOKENS:,} tokens.")
        yield token
    yield Token("EOF", "", len(source), len(source))


def _tokens(source: str, name: str) -> Iterator[Token]:
    position = 0
    while (opened := source.find("{{", position)) >= 0:
        text = source[position:opened]
        is_escaped = text.endswith("\\") and not text.endswith("\\\\")
        text = text.removesuffix("\\")
        if text:
            yield Token("CONTENT", text, position, opened)
        if is_escaped:
            position = _end_of_escaped(source, opened)
            yield Token("CONTENT", source[opened:position], opened, position)
            continue
        position = yield from _tag(source, opened, name)
    if position < len(source):
        yield Token("CONTENT", source[position:], position, len(source))


def _end_of_escaped(source: str, opened: int) -> int:
    following = source.find("{{", opened + 2)
    if following < 0:
        return len(source)
    backslashes = min(len(source[opened + 2 : following]) - len(source[opened + 2 : following].rstrip("\\")), 2)
    return following - backslashes


def _tag(source: str, opened: int, name: str) -> Generator[Token, None, int]:
    """Yield the tokens of one tag, and of a raw block what follows up to its end; return where the text goes on."""
    position = opened
    while (found := _TAG.match(source, position)) is not None:
        kind, start, position = found.lastgroup or "INVALID", found.start(), found.end()
        if kind == "BLANK":
            continue
        if kind in _COMMENT_ENDS:
            end = _COMMENT_ENDS[kind].search(source, start)
            if end is None:
                wanted = "--}}" if kind == "LONG_COMMENT" else "}}"
                raise Prompt.fault(f"The comment has no end: {wanted} is missing.", source, start, 5, name=name)
            yield Token("COMMENT", source[start : end.end()], start, end.end())
            return end.end()
        yield Token(_NAMES.get(kind, kind), _meaning(kind, found[0]), start, position)
        if kind == "INVALID":
            break
        if kind in _ENDS:
            return position
        if kind == "CLOSE_RAW_BLOCK":
            return (yield from _raw(source, opened, position, name))
    return len(source)


def _meaning(kind: str, text: str) -> str:
    if kind == "STRING":
        return text[1:-1].replace('\\"', '"')
    if kind == "STRING_SINGLE":
        return text[1:-1].replace("\\'", "'")
    if kind == "ID_QUOTED":
        return _UNQUOTED.sub(r"\1", text)  # The brackets stay: they tell [this] from this.
    return text


def _raw(source: str, opened: int, position: int, name: str) -> Generator[Token, None, int]:
    """Yield what is in a raw block, in which other raw blocks may be, and its end; return where that ends."""
    level = 1
    begin = position
    while (found := source.find("{{{{", position)) >= 0:
        if found > position:
            yield Token("CONTENT", source[position:found], position, found)
        end = _RAW_END.match(source, found)
        if end is not None:
            level -= 1
            position = end.end()
            if not level:
                yield Token("END_RAW_BLOCK", end[1], found, position)
                return position
            yield Token("CONTENT", end[0], found, position)
        elif source[found + 4 : found + 5] not in {"", "/"}:
            level += 1
            position = found + 4
            yield Token("CONTENT", "{{{{", found, position)
        else:
            raise Prompt.fault("This ends no raw block.", source, found, 5, name=name)
    raise Prompt.fault("The raw block is not closed.", source, opened, begin - opened, name=name)
