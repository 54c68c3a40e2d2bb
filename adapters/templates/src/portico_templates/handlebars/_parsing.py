"""The parser: tokens to nodes, by the grammar of handlebars.js 4.7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portico import Prompt
from portico.errors import TemplateError
from portico_templates.handlebars._expression_parsing import ExpressionParser
from portico_templates.handlebars._nodes import (
    Block,
    Comment,
    Content,
    Decorator,
    Expression,
    Literal,
    Mustache,
    Partial,
    Path,
    Program,
    Statement,
    Strip,
    SubExpression,
)
from portico_templates.handlebars._scanning import BLANKS, Token, scan


def control_whitespace(program: Program) -> None:
    """Take away the white space of a whole template, in place."""
    _Control().program(program, is_root=True)


class _Control:
    def program(self, program: Program | None, *, is_root: bool = False) -> None:
        if program is None:
            return
        body = program.body
        for index, statement in enumerate(body):
            if isinstance(statement, Content):
                continue
            if isinstance(statement, Mustache) or (isinstance(statement, Decorator) and statement.program is None):
                self._strip(body, index, statement.strip)
            elif isinstance(statement, Comment) or (isinstance(statement, Partial) and statement.program is None):
                self._inline(body, index, statement, is_root)
            else:
                self._block(body, index, statement, is_root)

    def _strip(self, body: list[Statement], index: int, strip: Strip) -> None:
        if strip.close:
            _omit_right(body, index + 1, everything=True)
        if strip.open:
            _omit_left(body, index - 1, everything=True)

    def _inline(self, body: list[Statement], index: int, statement: Comment | Partial, is_root: bool) -> None:
        alone = _blank_before(body, index, is_root) and _blank_after(body, index, is_root)
        self._strip(body, index, statement.strip)
        if not alone:
            return
        _omit_right(body, index + 1)
        if _omit_left(body, index - 1) and isinstance(statement, Partial):
            before = body[index - 1]
            assert isinstance(before, Content)  # noqa: S101 - only content is left out
            statement.indent = before.original[len(before.original.rstrip(" \t")) :]

    def _block(self, body: list[Statement], index: int, block: Statement, is_root: bool) -> None:
        assert isinstance(block, Block | Decorator | Partial)  # noqa: S101 - the others are dealt with
        inverse = block.inverse if isinstance(block, Block) else None
        self.program(block.program)
        self.program(inverse)
        program = block.program or inverse
        assert program is not None  # noqa: S101 - a block has one of the two
        inverse = inverse if block.program else None
        first, last = _ends_of_chain(inverse)
        opens_alone = _blank_after(program.body, -1)
        closes_alone = _blank_before((first or program).body, len((first or program).body))
        self._inside(block, program, inverse, first, last)

        opens_alone = opens_alone and _blank_before(body, index, is_root)
        closes_alone = closes_alone and _blank_after(body, index, is_root)
        if block.close_strip.close:
            _omit_right(body, index + 1, everything=True)
        if block.strip.open:
            _omit_left(body, index - 1, everything=True)
        if opens_alone:
            _omit_right(program.body, 0)
            _omit_left(body, index - 1)
        if closes_alone:
            _omit_right(body, index + 1)
            ending = (inverse or program).body
            _omit_left(ending, len(ending) - 1)

    def _inside(
        self,
        block: Block | Decorator | Partial,
        program: Program,
        inverse: Program | None,
        first: Program | None,
        last: Program | None,
    ) -> None:
        if block.strip.close:
            _omit_right(program.body, 0, everything=True)
        if inverse is None or first is None or last is None or not isinstance(block, Block):
            if block.close_strip.open:
                _omit_left(program.body, len(program.body) - 1, everything=True)
            return
        if block.inverse_strip.open:
            _omit_left(program.body, len(program.body) - 1, everything=True)
        if block.inverse_strip.close:
            _omit_right(first.body, 0, everything=True)
        if block.close_strip.open:
            _omit_left(last.body, len(last.body) - 1, everything=True)
        if _blank_before(program.body, len(program.body)) and _blank_after(first.body, -1):
            _omit_left(program.body, len(program.body) - 1)
            _omit_right(first.body, 0)


def _ends_of_chain(inverse: Program | None) -> tuple[Program | None, Program | None]:
    """Return what follows the first ``else`` of a chain and what follows its last ``else if``."""
    first = last = inverse
    if inverse is not None and inverse.chained:
        first = _chained(inverse.body[0])
        while last is not None and last.chained:
            last = _chained(last.body[-1])
    return first, last


def _chained(statement: Statement) -> Program | None:
    assert isinstance(statement, Block)  # noqa: S101 - a chained program holds one block
    return statement.program


def _blank_before(body: Sequence[Statement], index: int, is_root: bool = False) -> bool:
    """Tell whether nothing but blanks stands before a statement on its line."""
    if index < 1:
        return is_root
    before = body[index - 1]
    if not isinstance(before, Content):
        return False
    kept = before.original.rstrip(BLANKS)
    return "\n" in before.original[len(kept) :] or (index < 2 and is_root and not kept)


def _blank_after(body: Sequence[Statement], index: int, is_root: bool = False) -> bool:
    if index + 1 >= len(body):
        return is_root
    after = body[index + 1]
    if not isinstance(after, Content):
        return False
    kept = after.original.lstrip(BLANKS)
    blanks = after.original[: len(after.original) - len(kept)]
    return "\n" in blanks or (index + 2 >= len(body) and is_root and not kept)


def _omit_right(body: Sequence[Statement], index: int, *, everything: bool = False) -> None:
    """Take blanks from the beginning of a content: all of them, or the rest of the line."""
    content = body[index] if index < len(body) else None
    if not isinstance(content, Content) or (not everything and content.right_stripped):
        return
    value = content.value
    if everything:
        content.value = value.lstrip(BLANKS)
    else:
        content.value = value.lstrip(" \t").removeprefix("\r") if _is_line_end(value) else value.lstrip(" \t")
        content.value = content.value.removeprefix("\n")
    content.right_stripped = content.value != value


def _is_line_end(value: str) -> bool:
    return value.lstrip(" \t").startswith("\r\n")


def _omit_left(body: Sequence[Statement], index: int, *, everything: bool = False) -> bool:
    """Take blanks from the end of a content: all of them, or those on the last line; tell whether there were any."""
    content = body[index] if 0 <= index < len(body) else None
    if not isinstance(content, Content) or (not everything and content.left_stripped):
        return False
    value = content.value
    content.value = value.rstrip(BLANKS if everything else " \t")
    content.left_stripped = content.value != value
    return content.left_stripped


DEEPEST = 64
"""How many blocks may be inside of each other."""

_ENDS_PROGRAM = {"EOF", "OPEN_ENDBLOCK", "INVERSE", "OPEN_INVERSE_CHAIN"}


def parse(source: str, *, name: str = "prompt") -> Program:
    """Read a template.

    Raises ``TemplateError`` with line and column, and ``LimitExceeded`` where blocks are nested more than 64 deep.
    """
    program = parse_without_whitespace_control(source, name=name)
    control_whitespace(program)
    return program


def parse_without_whitespace_control(source: str, *, name: str = "prompt") -> Program:
    """Read a template, and leave all its white space."""
    return _Parser(source, name).template()


@dataclass(slots=True)
class _Opened:
    """The tag that opens a block."""

    token: Token
    path: Path
    literal: Literal | None
    params: list[Expression]
    hash: dict[str, Expression]
    names: tuple[str, ...]
    strip: Strip
    end: int

    @property
    def original(self) -> str:
        return self.path.original


class _Parser(ExpressionParser):
    def __init__(self, source: str, name: str) -> None:
        super().__init__(source, name, list(scan(source, name=name)))
        self.opened: list[_Opened] = []

    def template(self) -> Program:
        program = self._program()
        token = self.token
        if token.name == "EOF":
            return program
        if token.name == "OPEN_ENDBLOCK":
            raise self.wrong("No block is open that this could close.")
        raise self.wrong("This stands in no block.")

    def _program(self) -> Program:
        if len(self.opened) > DEEPEST:
            message = f"Blocks may be at most {DEEPEST} deep inside of each other."
            raise self.too_deep(message, self.opened[-1].token)
        body: list[Statement] = []
        while self.token.name not in _ENDS_PROGRAM:
            body.append(self._statement())
        return Program(body)

    def _statement(self) -> Statement:
        token = self.token
        match token.name:
            case "CONTENT":
                self.advance()
                return Content(token.text, token.at)
            case "COMMENT":
                self.advance()
                return Comment(_comment_text(token.text), _strip(token, token), token.at)
            case "OPEN" | "OPEN_UNESCAPED":
                return self._mustache(token)
            case "OPEN_PARTIAL":
                return self._partial(token)
            case "OPEN_PARTIAL_BLOCK":
                return self._partial_block(token)
            case "OPEN_BLOCK":
                return self._block(token)
            case "OPEN_INVERSE":
                return self._inverse_block(token)
            case "OPEN_RAW_BLOCK":
                return self._raw_block(token)
            case _:
                raise self.wrong(f"{token.text!r} is not expected here.")

    def _mustache(self, token: Token) -> Mustache | Decorator:
        closing = "CLOSE_UNESCAPED" if token.name == "OPEN_UNESCAPED" else "CLOSE"
        opened = self._opening(token, closing)
        decorated = "*" in token.text
        if decorated:
            return Decorator(
                opened.path, opened.params, opened.hash, opened.strip, token.at, opened.end, literal=opened.literal
            )
        escaped = token.name == "OPEN" and not token.text.endswith("&")
        return Mustache(
            opened.path, opened.params, opened.hash, escaped, opened.strip, token.at, opened.end, opened.literal
        )

    def _opening(self, token: Token, closing: str = "CLOSE", *, names: bool = False) -> _Opened:
        """Read what stands between the braces of a tag."""
        self.advance()
        path, literal = self.helper_name()
        params = self.params()
        hash_arguments = self.hash()
        declared = self.block_params() if names and self.token.name == "OPEN_BLOCK_PARAMS" else ()
        end = self.expect(closing, token)
        return _Opened(token, path, literal, params, hash_arguments, declared, _strip(token, end), end.end)

    def _partial(self, token: Token) -> Partial:
        self.advance()
        name = self.partial_name()
        params, hash_arguments = self.params(), self.hash()
        end = self.expect("CLOSE", token)
        return Partial(name, params, hash_arguments, _strip(token, end), token.at, end.end)

    def _partial_block(self, token: Token) -> Partial:
        partial = self._partial(token)
        name = partial.name
        if isinstance(name, Path):
            path = name
        else:
            if isinstance(name, SubExpression):
                # No name could close it; handlebars.js refuses each.
                message = "A partial that is chosen by a call cannot have a block."
                raise Prompt.fault(message, self.source, name.at, name.end - name.at, name=self.name)
            original = name.original
            path = Path((original,), original, 0, False, name.at, name.end)
        opened = _Opened(token, path, None, [], {}, (), partial.strip, partial.end)
        self.opened.append(opened)
        partial.program = self._program()
        partial.close_strip = self._close(opened)
        return partial

    def _block(self, token: Token) -> Block | Decorator:
        opened = self._opening(token, names=True)
        self.opened.append(opened)
        program = self._program()
        program.params = opened.names
        if "*" in token.text:
            if self.token.name in {"INVERSE", "OPEN_INVERSE_CHAIN"}:
                raise self.wrong("A decorator has no inverse.")
            closing = self._close(opened)
            return Decorator(
                opened.path,
                opened.params,
                opened.hash,
                opened.strip,
                token.at,
                opened.end,
                program,
                closing,
                opened.literal,
            )
        inverse, strip = self._inverse_chain()
        closing = self._close(opened)
        if inverse is not None and inverse.chained:
            _set_close(inverse, closing)
        return _made(opened, program, inverse, strip, closing)

    def _inverse_chain(self) -> tuple[Program | None, Strip]:
        """Read ``{{else}}`` or ``{{else if …}}`` and what follows, up to the end of the block."""
        token = self.token
        if token.name == "INVERSE":
            self.advance()
            return self._program(), _strip(token, token)
        if token.name != "OPEN_INVERSE_CHAIN":
            return None, Strip()
        opened = self._opening(token, names=True)
        self.opened.append(opened)
        program = self._program()
        program.params = opened.names
        inverse, strip = self._inverse_chain()
        self.opened.pop()
        if inverse is not None and inverse.chained:
            _set_close(inverse, strip)
        block = _made(opened, program, inverse, strip, strip)
        return Program([block], chained=True), opened.strip

    def _inverse_block(self, token: Token) -> Block:
        opened = self._opening(token, names=True)
        self.opened.append(opened)
        inverse = self._program()
        inverse.params = opened.names
        program = None
        strip = Strip()
        if self.token.name == "INVERSE":
            strip = _strip(self.token, self.token)
            self.advance()
            program = self._program()
        closing = self._close(opened)
        return _made(opened, program, inverse, strip, closing)

    def _close(self, opened: _Opened) -> Strip:
        token = self.token
        if token.name != "OPEN_ENDBLOCK":
            if token.name == "EOF":
                raise self._wrong_opened(opened, f"The block is not closed: {{{{/{opened.original}}}}} is missing.")
            where = f"the block {opened.original!r}, opened in line {self._line(opened)}"
            raise self.wrong(f"This does not fit {where}.")
        self.advance()
        path, _ = self.helper_name()
        end = self.expect("CLOSE", token)
        if path.original != opened.original:
            advice = " {{else}} is written without '#'." if opened.original == "else" else ""
            raise Prompt.fault(
                f"{{{{/{path.original}}}}} does not close the block {opened.original!r}, "
                f"opened in line {self._line(opened)}.{advice}",
                self.source,
                token.at,
                end.end - token.at,
                name=self.name,
            )
        self.opened.pop()
        return _strip(token, end)

    def _line(self, opened: _Opened) -> int:
        return self.source.count("\n", 0, opened.token.at) + 1

    def _raw_block(self, token: Token) -> Block:
        opened = self._opening(token, "CLOSE_RAW_BLOCK")
        body: list[Statement] = []
        while self.token.name == "CONTENT":
            body.append(Content(self.token.text, self.token.at))
            self.advance()
        end = self.token
        if end.name != "END_RAW_BLOCK" or end.text != opened.original:
            raise self.wrong(
                f"This does not close the raw block {opened.original!r}, opened in line {self._line(opened)}."
            )
        self.advance()
        return Block(
            opened.path,
            opened.params,
            opened.hash,
            Program(body),
            None,
            Strip(),
            Strip(),
            Strip(),
            token.at,
            opened.end,
            raw=True,
            literal=opened.literal,
        )

    def _wrong_opened(self, opened: _Opened, message: str) -> TemplateError:
        at = opened.token.at
        return Prompt.fault(message, self.source, at, opened.end - at, name=self.name)


def _made(opened: _Opened, program: Program | None, inverse: Program | None, strip: Strip, closing: Strip) -> Block:
    return Block(
        opened.path,
        opened.params,
        opened.hash,
        program,
        inverse,
        opened.strip,
        strip,
        closing,
        opened.token.at,
        opened.end,
        literal=opened.literal,
    )


def _set_close(chained: Program, strip: Strip) -> None:
    block = chained.body[0]
    assert isinstance(block, Block)  # noqa: S101 - a chained program holds one block
    block.close_strip = strip


def _strip(opening: Token, closing: Token) -> Strip:
    return Strip(opening.text[2:3] == "~", closing.text[-3:-2] == "~")


def _comment_text(text: str) -> str:
    value = text.removeprefix("{{").removeprefix("~").removeprefix("!")
    value = value.removeprefix("-").removeprefix("-").removesuffix("}}").removesuffix("~")
    return value.removesuffix("-").removesuffix("-")
