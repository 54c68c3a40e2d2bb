"""The scanner: it cuts a template into tokens, which have the names that handlebars.js gives them.

Content, escapes, comments and raw blocks are found by searching; what stands between braces by one expression, whose
alternatives are tried in the order of the rules of handlebars.js. Each character is looked at a bounded number of
times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from portico import Prompt
from portico.errors import LimitExceeded, TemplateError

LONGEST = 4_000_000
MOST_TOKENS = 1_000_000

BLANKS = "\t\n\x0b\x0c\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript takes for white space."""

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
_LONG_END = re.compile(r"--~?\}\}")
_UNQUOTED = re.compile(r"\\([\\\]])")


class Token(NamedTuple):
    """A piece of the source: ``text`` is what it means, ``source[at:end]`` what is written."""

    name: str
    text: str
    at: int
    end: int


def scan(source: str, *, name: str = "prompt") -> Iterator[Token]:
    """Yield the tokens of a template; the last one is EOF.

    Raises ``TemplateError`` for a comment or a raw block without an end, and ``LimitExceeded`` above 4,000,000
    characters or 1,000,000 tokens.
    """
    if len(source) > LONGEST:
        raise LimitExceeded(f"{name}: a template has at most {LONGEST:,} characters, not {len(source):,}.")
    for count, token in enumerate(_Scanner(source, name).tokens()):
        if count > MOST_TOKENS:
            raise LimitExceeded(f"{name}: a template has at most {MOST_TOKENS:,} tokens.")
        yield token


class _Scanner:
    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.position = 0
        # Where a search found nothing, it finds nothing later: strings that nothing closes are looked for once.
        self.hopeless: dict[str, int] = {}

    def tokens(self) -> Iterator[Token]:
        source = self.source
        while self.position < len(source):
            start = self.position
            opened = source.find("{{", start)
            if opened < 0:
                yield Token("CONTENT", source[start:], start, len(source))
                break
            before = source[start:opened]
            escaped = before.endswith("\\") and not before.endswith("\\\\")
            text = before[:-1] if before.endswith("\\") else before
            if text:
                yield Token("CONTENT", text, start, opened)
            self.position = opened
            if escaped:
                end = self._end_of_escaped(opened)
                yield Token("CONTENT", source[opened:end], opened, end)
                self.position = end
            else:
                yield from self._tag()
        yield Token("EOF", "", len(source), len(source))

    def _end_of_escaped(self, opened: int) -> int:
        following = self.source.find("{{", opened + 2)
        if following < 0:
            return len(self.source)
        for backslashes in (2, 1):
            begin = following - backslashes
            if begin >= opened + 2 and self.source.startswith("\\" * backslashes, begin):
                return begin
        return following

    def _tag(self) -> Iterator[Token]:
        """Yield the tokens of one tag, and of a raw block what follows up to its end."""
        source = self.source
        while self.position < len(source):
            start = self.position
            kind, end = self._next(start)
            self.position = end
            if kind == "BLANK":
                continue
            if kind in {"COMMENT", "LONG_COMMENT"}:
                yield self._comment(kind, start)
                return
            yield Token(_NAMES.get(kind, kind), _meaning(kind, source[start:end]), start, end)
            if kind in _ENDS:
                return
            if kind == "CLOSE_RAW_BLOCK":
                yield from self._raw(start)
                return

    def _next(self, start: int) -> tuple[str, int]:
        letter = self.source[start]
        if letter in "\"'[" and self._is_hopeless("]" if letter == "[" else letter, start):
            return "INVALID", start + 1
        found = _TAG.match(self.source, start)
        if found is None or found.lastgroup is None:
            return "INVALID", start + 1
        return found.lastgroup, found.end()

    def _is_hopeless(self, closing: str, start: int) -> bool:
        if closing not in self.hopeless:
            self.hopeless[closing] = self.source.rfind(closing)
        return self.hopeless[closing] <= start

    def _comment(self, kind: str, start: int) -> Token:
        source = self.source
        if kind == "LONG_COMMENT":
            found = _LONG_END.search(source, start)
            end = found.end() if found else 0
            wanted = "--}}"
        else:
            end = source.find("}}", start) + 2
            end = 0 if end == 1 else end
            wanted = "}}"
        if not end:
            raise Prompt.fault(f"The comment has no end: {wanted} is missing.", source, start, 5, name=self.name)
        self.position = end
        return Token("COMMENT", source[start:end], start, end)

    def _raw(self, opened: int) -> Iterator[Token]:
        """Yield what is in a raw block, in which other raw blocks may be, and its end."""
        source = self.source
        level = 1
        while True:
            start = self.position
            found = source.find("{{{{", start)
            if found < 0:
                raise self._unclosed(opened)
            if found > start:
                yield Token("CONTENT", source[start:found], start, found)
            end = _RAW_END.match(source, found)
            if end is not None:
                level -= 1
                self.position = end.end()
                if not level:
                    yield Token("END_RAW_BLOCK", end[1], found, end.end())
                    return
                yield Token("CONTENT", end[0], found, end.end())
            elif source[found + 4 : found + 5] not in {"", "/"}:
                level += 1
                self.position = found + 4
                yield Token("CONTENT", "{{{{", found, found + 4)
            else:
                raise Prompt.fault("This ends no raw block.", source, found, 5, name=self.name)

    def _unclosed(self, opened: int) -> TemplateError:
        at = self.source.rfind("{{{{", 0, opened)
        name = self.source[at + 4 : opened].strip().split(" ")[0]
        return Prompt.fault(
            f"The raw block is not closed: {{{{{{{{/{name}}}}}}}}} is missing.",
            self.source,
            at,
            opened + 4 - at,
            name=self.name,
        )


def _meaning(kind: str, text: str) -> str:
    if kind == "STRING":
        return text[1:-1].replace('\\"', '"')
    if kind == "STRING_SINGLE":
        return text[1:-1].replace("\\'", "'")
    if kind == "ID_QUOTED":
        return _UNQUOTED.sub(r"\1", text)  # The brackets stay: they tell [this] from this.
    return text
