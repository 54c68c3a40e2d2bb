"""Whitespace control: what ``~`` takes away, and the lines on which a tag stands alone.

The order of the steps is that of handlebars.js, since each looks at what those before it left.
"""

from __future__ import annotations

from collections.abc import Sequence

from portico_templates.handlebars._nodes import (
    Block,
    Comment,
    Content,
    Decorator,
    Mustache,
    Partial,
    Program,
    Statement,
    Strip,
)
from portico_templates.handlebars._scanning import BLANKS


def control_whitespace(program: Program, *, ignore_standalone: bool = False) -> None:
    """Take away the white space of a whole template, in place."""
    _Control(not ignore_standalone).program(program, is_root=True)


class _Control:
    def __init__(self, standalone: bool) -> None:
        self.standalone = standalone

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
        if not (alone and self.standalone):
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
        if self.standalone and opens_alone:
            _omit_right(program.body, 0)
            _omit_left(body, index - 1)
        if self.standalone and closes_alone:
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
        if self.standalone and _blank_before(program.body, len(program.body)) and _blank_after(first.body, -1):
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
