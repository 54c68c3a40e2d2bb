"""The parser of Handlebars, by the grammar of handlebars.js 4.7: text becomes tokens, and tokens become nodes.

Text is found by searching; what stands between braces by one expression, whose alternatives are tried in the order of
the rules of handlebars.js.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from portico import Prompt
from portico.errors import LimitExceeded, TemplateError
from portico_templates.handlebars import _nodes as nodes
from portico_templates.handlebars.values import format_number

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
    """Yield the tokens of one tag, and of a raw block all up to its end; return where the next text begins."""
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


DEEPEST = 64
"""How many blocks, and how many calls, may be inside of each other."""

_MOST_DIGITS = 300
_SHORT = 40

_COMMENT = re.compile(r"\{\{~?!-?-?(.*?)-?-?~?\}\}", re.DOTALL)
_LITERALS = {"STRING", "NUMBER", "BOOLEAN", "UNDEFINED", "NULL"}
_VALUES = {*_LITERALS, "ID", "DATA", "OPEN_SEXPR"}
_ENDS_PROGRAM = {"EOF", "OPEN_ENDBLOCK", "INVERSE", "OPEN_INVERSE_CHAIN"}
_CLOSING = {"CLOSE_RAW_BLOCK": "}}}}", "CLOSE_UNESCAPED": "}}}", "CLOSE_SEXPR": ")"}


def parse(source: str, *, name: str = "prompt") -> nodes.Program:
    """Read a template.

    Raises ``TemplateError`` with line and column, and ``LimitExceeded`` where blocks are nested more than 64 deep.
    """
    return _Parser(source, name).template()


def _identifier(text: str) -> str:
    """Return a name without the brackets that it may be written in."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") and "\n" not in text else text


class _Tag(NamedTuple):
    """A tag that was read; ``first`` and ``last`` are the indexes of its tokens."""

    call: nodes.Call
    params: tuple[str, ...]
    first: int
    last: int


class _Parser:
    """Reads nodes from tokens.

    Whitespace control changes the contents beside a tag: all white space for ``~``, and the rest of the line where a
    tag stands alone on it. Whether it does is seen in the tokens, which stay as they are. The tags of a block take
    their turn when the block has been read, as in handlebars.js.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.tokens = list(scan(source, name=name))
        self.contents = {
            index: nodes.Content(token.text) for index, token in enumerate(self.tokens) if token.name == "CONTENT"
        }
        self.index = 0
        self.token = self.tokens[0]
        self.opened: list[_Tag] = []
        self.depth = 0

    def template(self) -> nodes.Program:
        program = self._program()
        if self.token.name != "EOF":
            raise self._wrong("No block is open that this could belong to.")
        return program

    def _program(self) -> nodes.Program:
        if len(self.opened) > DEEPEST:
            raise self._too_deep("Blocks", self.tokens[self.opened[-1].first])
        body: list[nodes.Statement] = []
        while self.token.name not in _ENDS_PROGRAM:
            body.append(self._statement())
        return nodes.Program(body)

    def _statement(self) -> nodes.Statement:
        token = self.token
        match token.name:
            case "CONTENT":
                self._advance()
                return self.contents[self.index - 1]
            case "COMMENT":
                self._advance()
                self._trim(self.index - 1, self.index - 1)
                found = _COMMENT.fullmatch(token.text)
                return nodes.Comment(found[1] if found else "")
            case "OPEN" | "OPEN_UNESCAPED":
                return self._mustache(token)
            case "OPEN_PARTIAL" | "OPEN_PARTIAL_BLOCK":
                return self._partial(token)
            case "OPEN_BLOCK" | "OPEN_INVERSE":
                return self._block(token)
            case "OPEN_RAW_BLOCK":
                return self._raw_block(token)
            case _:
                raise self._unexpected()

    def _mustache(self, token: Token) -> nodes.Mustache | nodes.Decorator:
        tag = self._tag("CLOSE_UNESCAPED" if token.name == "OPEN_UNESCAPED" else "CLOSE")
        self._squeeze(tag.first, tag.last, tag.first - 1, tag.last + 1)
        if "*" in token.text:
            return nodes.Decorator(tag.call)
        return nodes.Mustache(tag.call, escaped=token.name == "OPEN" and not token.text.endswith("&"))

    def _tag(self, closing: str = "CLOSE", *, names: bool = False) -> _Tag:
        """Read a tag: a name with arguments, and the block parameters that it may declare."""
        opening, first = self.token, self.index
        self._advance()
        path, literal = self._helper_name()
        params, named = self._params(), self._hash()
        declared = self._block_params() if names and self.token.name == "OPEN_BLOCK_PARAMS" else ()
        end = self._expect(closing, opening)
        return _Tag(nodes.Call(path, params, named, opening.at, end.end, literal), declared, first, self.index - 1)

    def _partial(self, token: Token) -> nodes.Partial:
        first = self.index
        self._advance()
        name = self._value() if self.token.name in _VALUES else self._path()
        params, named = self._params(), self._hash()
        end = self._expect("CLOSE", token)
        original = "" if isinstance(name, nodes.Call) else name.original
        path = name if isinstance(name, nodes.Path) else nodes.Path((original,), original, 0, False, name.at, name.end)
        call = nodes.Call(path, params, named, token.at, end.end)
        partial = nodes.Partial(name, call)
        last = self.index - 1
        if token.name == "OPEN_PARTIAL":
            partial.indent = self._trim(first, last)
            return partial
        if isinstance(name, nodes.Call):
            # No name could close it; handlebars.js refuses each.
            raise self._wrong_at("A partial that is chosen by a call cannot have a block.", name.at, name.end)
        tag = _Tag(call, (), first, last)
        self.opened.append(tag)
        partial.program = self._program()
        self._trim_block(tag, [], self._close(tag))
        return partial

    def _block(self, token: Token) -> nodes.Block | nodes.Decorator:
        tag = self._tag(names=True)
        self.opened.append(tag)
        program = self._program()
        program.params = tag.params
        elses: list[tuple[int, int]] = []
        is_inverted = token.name == "OPEN_INVERSE"
        if "*" in token.text:
            if self.token.name in {"INVERSE", "OPEN_INVERSE_CHAIN"}:
                raise self._wrong("A decorator has no inverse.")
            self._trim_block(tag, elses, self._close(tag))
            return nodes.Decorator(tag.call, program)
        if is_inverted and self.token.name == "OPEN_INVERSE_CHAIN":
            raise self._wrong(f"This does not fit {self._describe_tag(tag)}.")
        is_chained = self.token.name == "OPEN_INVERSE_CHAIN"
        inverse = self._inverse(elses)
        self._trim_block(tag, elses, self._close(tag), is_inverted=is_inverted, is_chained=is_chained)
        return nodes.Block(tag.call, inverse, program) if is_inverted else nodes.Block(tag.call, program, inverse)

    def _inverse(self, elses: list[tuple[int, int]]) -> nodes.Program | None:
        """Read ``{{else}}`` or ``{{else if …}}`` and what follows, up to the end of the block."""
        if self.token.name == "INVERSE":
            elses.append((self.index, self.index))
            self._advance()
            return self._program()
        if self.token.name != "OPEN_INVERSE_CHAIN":
            return None
        tag = self._tag(names=True)
        elses.append((tag.first, tag.last))
        self.opened.append(tag)
        program = self._program()
        program.params = tag.params
        inverse = self._inverse(elses)
        self.opened.pop()
        return nodes.Program([nodes.Block(tag.call, program, inverse)])

    def _raw_block(self, token: Token) -> nodes.Block:
        tag = self._tag("CLOSE_RAW_BLOCK")
        program = nodes.Program([])
        while self.token.name == "CONTENT":
            program.body.append(self.contents[self.index])
            self._advance()
        end = self.token
        if end.name != "END_RAW_BLOCK" or end.text != tag.call.path.original:
            raise self._wrong(f"This does not close {self._describe_tag(tag, 'raw block')}.")
        self._advance()
        self._trim_block(tag, [], (self.index - 1, self.index - 1))
        return nodes.Block(tag.call, program)

    def _close(self, tag: _Tag) -> tuple[int, int]:
        opening, first, original = self.token, self.index, tag.call.path.original
        if opening.name == "EOF":
            message = f"The block is not closed: {{{{/{original}}}}} is missing."
            raise self._wrong_at(message, tag.call.at, self.tokens[tag.last].end)
        if opening.name != "OPEN_ENDBLOCK":
            raise self._wrong(f"This does not fit {self._describe_tag(tag)}.")
        self._advance()
        path, _ = self._helper_name()
        end = self._expect("CLOSE", opening)
        if path.original != original:
            message = f"{{{{/{path.original}}}}} does not close {self._describe_tag(tag)}."
            raise self._wrong_at(message, opening.at, end.end)
        self.opened.pop()
        return first, self.index - 1

    def _describe_tag(self, tag: _Tag, what: str = "block") -> str:
        line = self.source.count("\n", 0, tag.call.at) + 1
        return f"the {what} {tag.call.path.original!r}, opened in line {line}"

    def _trim_block(
        self,
        tag: _Tag,
        elses: list[tuple[int, int]],
        close: tuple[int, int],
        *,
        is_inverted: bool = False,
        is_chained: bool = False,
    ) -> None:
        """Take away the white space beside the tags of a block.

        As in handlebars.js, an inverse block with an ``else`` looks at the insides in the other order, and the end of
        a chain at the end of its first ``else if``.
        """
        if is_inverted and elses:
            (between,) = elses
            self._trim(tag.first, tag.last, after=between[1] + 1)
            self._trim(*between, before=close[0] - 1, after=tag.last + 1)
            self._trim(*close, before=between[0] - 1)
            return
        for between in elses:
            self._trim(*between)
        self._trim(tag.first, tag.last)
        if not is_chained:
            self._trim(*close)
            return
        self._squeeze(*close, close[0] - 1, close[1] + 1)
        begins = elses[1][0] if len(elses) > 1 else close[0]
        if self._ends_with_line(begins - 1) and self._begins_with_line(close[1] + 1):
            self._strip_line(close[1] + 1)

    def _trim(self, first: int, last: int, *, before: int | None = None, after: int | None = None) -> str:
        """Take away the white space beside a tag, or at other places; return the indent before one that is alone."""
        before = first - 1 if before is None else before
        after = last + 1 if after is None else after
        is_alone = self._ends_with_line(before) and self._begins_with_line(after)
        self._squeeze(first, last, before, after)
        if not is_alone:
            return ""
        self._strip_line(after)
        content = self.contents.get(before)
        if content is None:
            return ""
        kept = content.value.rstrip(" \t")
        is_changed, content.value = kept != content.value, kept
        text = self.tokens[before].text
        return text[len(text.rstrip(" \t")) :] if is_changed else ""

    def _squeeze(self, first: int, last: int, before: int, after: int) -> None:
        """Take away the white space that ``~`` asks for."""
        left, right = self.contents.get(before), self.contents.get(after)
        if left is not None and self.tokens[first].text[2:3] == "~":
            left.value = left.value.rstrip(BLANKS)
        if right is not None and self.tokens[last].text[-3:-2] == "~":
            right.value = right.value.lstrip(BLANKS)

    def _strip_line(self, index: int) -> None:
        content = self.contents.get(index)
        if content is not None:
            content.value = re.sub(r"\A[ \t]*(?:\r?\n)?", "", content.value)

    def _ends_with_line(self, index: int) -> bool:
        """Tell whether a token ends with a line of nothing but blanks; the beginning of the template does."""
        if index not in self.contents:
            return index < 0
        text = self.tokens[index].text
        kept = text.rstrip(BLANKS)
        return "\n" in text[len(kept) :] or (index == 0 and not kept)

    def _begins_with_line(self, index: int) -> bool:
        if index not in self.contents:
            return self.tokens[index].name == "EOF"
        text = self.tokens[index].text
        kept = text.lstrip(BLANKS)
        return "\n" in text[: len(text) - len(kept)] or (self.tokens[index + 1].name == "EOF" and not kept)

    def _advance(self) -> None:
        self.index += 1
        self.token = self.tokens[self.index]

    def _expect(self, wanted: str, opening: Token) -> Token:
        token = self.token
        if token.name == wanted:
            self._advance()
            return token
        is_cut_off = token.name == "INVALID" and "}}" not in self.source[token.at :]
        if token.name in {"EOF", "OPEN"} or token.name.startswith("OPEN_") or is_cut_off:
            message = f"What begins here is not closed: {_CLOSING.get(wanted, '}}')} is missing."
            raise self._wrong_at(message, opening.at, opening.end)
        raise self._unexpected()

    def _unexpected(self) -> TemplateError:
        token = self.token
        if token.name == "INVALID" and token.text in "\"'[":
            return self._wrong(f"Nothing closes this {token.text}.")
        shown = repr(self.source[token.at : token.end][:_SHORT]) if token.name != "EOF" else "The end of the template"
        return self._wrong(f"{shown} is not expected here.")

    def _helper_name(self) -> tuple[nodes.Path, nodes.Literal | None]:
        """Read a path, or a literal that stands for one."""
        token = self.token
        if token.name in _LITERALS:
            literal = self._literal()
            return nodes.Path((literal.original,), literal.original, 0, False, token.at, token.end), literal
        return self._path(), None

    def _params(self) -> list[nodes.Expression]:
        found: list[nodes.Expression] = []
        while self.token.name in _VALUES and not self._is_named():
            found.append(self._value())
        return found

    def _hash(self) -> dict[str, nodes.Expression]:
        """Read the arguments that have names; the first of a name counts."""
        found: dict[str, nodes.Expression] = {}
        while self._is_named():
            name = _identifier(self.token.text)
            self._advance()
            self._advance()
            if self.token.name not in _VALUES:
                raise self._wrong(f"The argument {name!r} has no value.")
            found.setdefault(name, self._value())
        return found

    def _is_named(self) -> bool:
        return self.token.name == "ID" and self.tokens[self.index + 1].name == "EQUALS"

    def _block_params(self) -> tuple[str, ...]:
        """Read ``as |first second|``."""
        self._advance()
        names: list[str] = []
        while self.token.name == "ID":
            names.append(_identifier(self.token.text))
            self._advance()
        if not names or self.token.name != "CLOSE_BLOCK_PARAMS":
            raise self._wrong("Block parameters are written as |name name|.")
        self._advance()
        return tuple(names)

    def _value(self) -> nodes.Expression:
        token = self.token
        if token.name in _LITERALS:
            return self._literal()
        if token.name != "OPEN_SEXPR":
            return self._path()
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._too_deep("Calls", token)
        self._advance()
        path, _ = self._helper_name()
        params, named = self._params(), self._hash()
        end = self._expect("CLOSE_SEXPR", token)
        self.depth -= 1
        return nodes.Call(path, params, named, token.at, end.end)

    def _literal(self) -> nodes.Literal:
        token = self.token
        self._advance()
        value: object = None
        original = token.text
        if token.name == "STRING":
            value = token.text
        elif token.name == "BOOLEAN":
            value = token.text == "true"
        elif token.name == "NUMBER":
            if len(token.text) > _MOST_DIGITS:
                raise self._wrong_at(f"A number has at most {_MOST_DIGITS} digits.", token.at, token.end)
            number = float(token.text) if "." in token.text else int(token.text)
            value, original = number, format_number(number)
        return nodes.Literal(token.name, value, original, token.at, token.end)

    def _path(self) -> nodes.Path:
        begin = self.token
        is_data = begin.name == "DATA"
        if is_data:
            self._advance()
        parts: list[str] = []
        original = "@" if is_data else ""
        depth = 0
        while True:
            segment = self.token
            if segment.name != "ID":
                raise self._unexpected()
            self._advance()
            name = _identifier(segment.text)
            original += name
            if name == segment.text in {"..", ".", "this"}:
                if parts:
                    message = f"Invalid path: {original!r}. {segment.text!r} may only stand at the beginning."
                    raise self._wrong_at(message, begin.at, segment.end)
                depth += segment.text == ".."
            else:
                parts.append(name)
            if self.token.name != "SEP":
                return nodes.Path(tuple(parts), original, depth, is_data, begin.at, segment.end)
            original += self.token.text
            self._advance()

    def _wrong(self, message: str) -> TemplateError:
        return self._wrong_at(message, self.token.at, self.token.end)

    def _wrong_at(self, message: str, at: int, end: int) -> TemplateError:
        return Prompt.fault(message, self.source, at, max(1, end - at), name=self.name)

    def _too_deep(self, what: str, token: Token) -> LimitExceeded:
        message = f"{what} may be at most {DEEPEST} deep inside of each other."
        return LimitExceeded(str(self._wrong_at(message, token.at, token.end)))
