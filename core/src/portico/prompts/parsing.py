"""The parser of the Semantic Kernel template language.

It reads what Semantic Kernel's .NET parser reads, and reads it alike; the rules are those of its unit tests
(TemplateTokenizerTests, CodeTokenizerTests and the tests of the blocks). Each character is looked at a bounded
number of times, whatever the text. Two differences, both where .NET goes wrong: a value between quotes may contain
``=`` after a name as well, and ``{{f a b='c'}}`` is an error instead of an argument called ``ab``.
"""

from __future__ import annotations

import re
from typing import NoReturn

from portico.errors import LimitExceeded
from portico.prompts.faults import fault
from portico.prompts.nodes import Argument, Block, Call, Node, Quoted, Text, Variable

__all__ = ["parse"]

_LONGEST = 4_000_000
_MOST_BLOCKS = 10_000
_MOST_ARGUMENTS = 256
_SHORT = 40

# Possessive, so that a quote that is never closed is looked through once.
_QUOTED = re.compile(r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\"""", re.DOTALL)
_MARKS = re.compile(r"""\{\{+|\}\}|['"]""")
_BLANKS = re.compile(r"\s*+")
_WORD = re.compile(r"\S++")
_NAME = re.compile(r"[0-9A-Za-z_]++")
_FUNCTION = re.compile(r"(?:([0-9A-Za-z_]++)\.)?([0-9A-Za-z_]++)")
_EQUALS = re.compile(r"\s*+=\s*+")
_NAMED = re.compile(r"([^\s='\"]++)=")

_LETTERS = "letters, digits and '_' only"


def parse(source: str, *, name: str = "prompt") -> tuple[Node, ...]:
    """Read a template.

    Raises ``TemplateError`` with line and column, and ``LimitExceeded`` above 4,000,000 characters or 10,000 blocks.
    """
    if len(source) > _LONGEST:
        raise LimitExceeded(f"{name}: a template has at most {_LONGEST:,} characters, not {len(source):,}.")
    nodes: list[Node] = []
    text_from = position = blocks = 0
    while (start := source.find("{{", position)) >= 0:
        bounds = _bounds(source, start)
        if bounds is None:
            break
        begin, end = bounds
        position = end + 2
        if begin == end or source[begin:end].isspace():
            continue  # An empty block is text.
        if text_from < begin - 2:
            nodes.append(Text(source[text_from : begin - 2]))
        blocks += 1
        if blocks > _MOST_BLOCKS:
            raise LimitExceeded(f"{name}: a template has at most {_MOST_BLOCKS:,} blocks.")
        nodes.append(_Reader(source, begin, end, name).block())
        text_from = position
    if text_from < len(source):
        nodes.append(Text(source[text_from:]))
    return tuple(nodes)


def _bounds(source: str, start: int) -> tuple[int, int] | None:
    """Find where the next block begins and ends, without its braces; None when there is no further one.

    It begins at the last ``{{`` before its ``}}``. Braces between quotes do not count, and a quote that is not
    closed takes everything up to the end of the template.
    """
    begin = position = start
    while mark := _MARKS.search(source, position):
        position = mark.end()
        match mark[0][0]:
            case "{":
                begin = position
            case "}":
                return begin, mark.start()
            case _:
                quoted = _QUOTED.match(source, mark.start())
                if quoted is None:
                    return None
                position = quoted.end()
    return None


class _Reader:
    """Reads the content of one block."""

    def __init__(self, source: str, begin: int, end: int, name: str) -> None:
        self.source = source
        self.position = begin
        self.end = end
        self.name = name

    def block(self) -> Block:
        before = self.blanks()
        first = self.source[self.position]
        if first not in "$'\"":
            return Block(*self.call(before))
        content = self.variable() if first == "$" else self.quoted()
        after = self.blanks()
        if self.position < self.end:
            self.refuse(f"Nothing may follow {'a variable' if first == '$' else 'a value'} in its block.")
        return Block(content, before, after)

    def call(self, before: str) -> tuple[Call, str, str]:
        """Read a function and its arguments, and the blanks after them."""
        word = self.word()
        function = _FUNCTION.fullmatch(word)
        if function is None:
            self.refuse(_function_fault(word))
        self.position += len(word)
        arguments: list[Argument] = []
        while True:
            blanks = self.blanks()
            if self.position == self.end:
                return Call(function[1], function[2], tuple(arguments)), before, blanks
            if not blanks:
                self.refuse("A blank is missing before this argument.")
            if len(arguments) == _MOST_ARGUMENTS:
                self.refuse(f"A call has at most {_MOST_ARGUMENTS} arguments.")
            arguments.append(self.argument(blanks, first=not arguments))

    def argument(self, before: str, *, first: bool) -> Argument:
        if self.source[self.position] in "$'\"":
            if not first:
                self.refuse("Only the first argument may go without a name: write name=value.")
            return Argument(None, self.value(), before)
        found = _NAME.match(self.source, self.position, self.end)
        after_name = found.end() if found else self.position
        equals = _EQUALS.match(self.source, after_name, self.end)
        if found is None or equals is None:
            word = self.word()
            named = _NAMED.match(word)
            if named:
                self.refuse(f"The name of an argument has {_LETTERS}.", length=len(named[1]))
            advice = f": write ${word} or '{word}'" if _NAME.fullmatch(word) and len(word) <= _SHORT else ""
            self.refuse(f"An argument is 'quoted', a $variable or name=value, not {_short(word)!r}{advice}.")
        self.position = equals.end()
        if self.position == self.end:
            self.refuse(f"The argument {found[0]!r} has no value.", at=found.start(), length=self.end - found.start())
        if self.source[self.position] not in "$'\"":
            word = _short(self.word())
            self.refuse(f"The value of an argument is 'quoted' or a $variable: write {found[0]}={Quoted.of(word)}.")
        return Argument(found[0], self.value(), before, equals[0])

    def value(self) -> Quoted | Variable:
        return self.variable() if self.source[self.position] == "$" else self.quoted()

    def variable(self) -> Variable:
        word = self.word()
        if not _NAME.fullmatch(word, 1):
            self.refuse("The variable has no name." if word == "$" else f"The name of a variable has {_LETTERS}.")
        self.position += len(word)
        return Variable(word[1:])

    def quoted(self) -> Quoted:
        found = _QUOTED.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - a block ends where no quote is open
        self.position = found.end()
        return Quoted(found[0])

    def blanks(self) -> str:
        found = _BLANKS.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - it matches nothing as well
        self.position = found.end()
        return found[0]

    def word(self) -> str:
        """Return what stands here up to the next blank, without going on."""
        found = _WORD.match(self.source, self.position, self.end)
        assert found is not None  # noqa: S101 - blanks are read before a word is
        return found[0]

    def refuse(self, message: str, *, at: int | None = None, length: int | None = None) -> NoReturn:
        at = self.position if at is None else at
        length = len(self.word()) if length is None else length
        raise fault(message, self.source, at, length, name=self.name)


def _function_fault(word: str) -> str:
    if _NAMED.match(word):
        return "A block cannot begin with a named argument: write the function first."
    if re.fullmatch(r"[0-9A-Za-z_]+-[0-9A-Za-z_]+", word):
        return f"A function is written plugin.function here: write {word.replace('-', '.')}."
    if word[0] in "#/^>!":
        return "This language has no conditions, loops and comments."
    if word.count(".") > 1:
        return "The name of a function has at most one '.', between plugin and function."
    return f"A block holds a $variable, a 'value' or a function, whose name has {_LETTERS}."


def _short(word: str) -> str:
    return word if len(word) <= _SHORT else f"{word[: _SHORT - 1]}…"
