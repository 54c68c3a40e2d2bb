"""The syntax tree of a Handlebars template; ``at`` and ``end`` are indexes into the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_THIS = re.compile(r"\.|.*this(?![0-9A-Za-z_])", re.DOTALL)


@dataclass(slots=True)
class Path:
    """A path: ``depth`` counts the ``../``; ``data`` is for names that begin with ``@``."""

    parts: tuple[str, ...]
    original: str
    depth: int
    data: bool
    at: int
    end: int

    @property
    def is_scoped(self) -> bool:
        """Whether it begins with ``.`` or ``this``, and so is no helper's name."""
        return _THIS.match(self.original) is not None

    @property
    def is_simple(self) -> bool:
        """Whether it is one name, which may be a helper's."""
        return len(self.parts) == 1 and not self.depth and not self.data and not self.is_scoped


@dataclass(slots=True)
class Literal:
    """A text, a number, a bool, null or undefined; ``original`` is its name where it stands for a path."""

    kind: str
    value: object
    original: str
    at: int
    end: int


@dataclass(slots=True)
class Call:
    """A name with its arguments, between the braces of a tag or between parentheses.

    ``literal`` is the literal that stands where a path would.
    """

    path: Path
    params: list[Expression]
    hash: dict[str, Expression]
    at: int
    end: int
    literal: Literal | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it has no arguments."""
        return not self.params and not self.hash

    @property
    def values(self) -> list[Expression]:
        """The arguments, those with names last."""
        return [*self.params, *self.hash.values()]


Expression = Path | Literal | Call


@dataclass(slots=True)
class Content:
    """Text, as whitespace control leaves it."""

    value: str


@dataclass(slots=True)
class Comment:
    """A comment; ``value`` is what it says."""

    value: str


@dataclass(slots=True)
class Mustache:
    """``{{path …}}``, or with three braces, where it is not escaped."""

    call: Call
    escaped: bool


@dataclass(slots=True)
class Decorator:
    """``{{* path …}}``, or with a program ``{{#* path …}}``."""

    call: Call
    program: Program | None = None


@dataclass(slots=True)
class Partial:
    """``{{> name …}}``, or with a program ``{{#> name …}}``; ``indent`` stands before each of its lines."""

    name: Expression
    call: Call
    indent: str = ""
    program: Program | None = None


@dataclass(slots=True)
class Block:
    """``{{#path …}}…{{else}}…{{/path}}``; an inverse block has an inverse only."""

    call: Call
    program: Program | None
    inverse: Program | None = None


Statement = Content | Comment | Mustache | Decorator | Partial | Block


@dataclass(slots=True)
class Program:
    """A sequence of statements, with the names of its block parameters."""

    body: list[Statement]
    params: tuple[str, ...] = ()


def walk(program: Program) -> Iterator[Statement]:
    """Yield all statements of a program, with those inside of others."""
    for statement in program.body:
        yield statement
        if isinstance(statement, Block | Decorator | Partial) and statement.program is not None:
            yield from walk(statement.program)
        if isinstance(statement, Block) and statement.inverse is not None:
            yield from walk(statement.inverse)


def walk_calls(program: Program) -> Iterator[Call]:
    """Yield all calls of a program, each before those among its arguments."""
    for statement in walk(program):
        waiting = [] if isinstance(statement, Content | Comment) else [statement.call]
        while waiting:
            call = waiting.pop()
            yield call
            waiting += [value for value in reversed(call.values) if isinstance(value, Call)]
