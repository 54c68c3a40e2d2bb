"""What a Handlebars template consists of, as the parser leaves it and whitespace control changes it.

The names are those of the syntax tree of handlebars.js; ``at`` and ``end`` are indexes into the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Strip:
    """Whether a tag has ``~`` on its left and on its right."""

    open: bool = False
    close: bool = False


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
        return self.original.startswith(".") or _has_this(self.original)

    @property
    def is_simple(self) -> bool:
        """Whether it is one name, which may be a helper's."""
        return len(self.parts) == 1 and not self.depth and not self.data and not self.is_scoped


def _has_this(original: str) -> bool:
    begin = original.find("this")
    while begin >= 0:
        after = original[begin + 4 : begin + 5]
        if not (after.isascii() and (after.isalnum() or after == "_")) or not after:
            return True
        begin = original.find("this", begin + 1)
    return False


@dataclass(slots=True)
class Literal:
    """A text, a number, a bool, null or undefined; ``original`` is its name where it stands for a path."""

    kind: str
    value: object
    original: str
    at: int
    end: int


@dataclass(slots=True)
class SubExpression:
    """A call between parentheses."""

    path: Path
    params: list[Expression]
    hash: dict[str, Expression]
    at: int
    end: int


Expression = Path | Literal | SubExpression


@dataclass(slots=True)
class Content:
    """Text; ``value`` is what whitespace control leaves of ``original``."""

    original: str
    at: int
    value: str = ""
    left_stripped: bool = False
    right_stripped: bool = False

    def __post_init__(self) -> None:
        self.value = self.original


@dataclass(slots=True)
class Comment:
    """A comment; ``value`` is what it says."""

    value: str
    strip: Strip
    at: int


@dataclass(slots=True)
class Mustache:
    """``{{path …}}``; ``literal`` is the literal that stands where a path would."""

    path: Path
    params: list[Expression]
    hash: dict[str, Expression]
    escaped: bool
    strip: Strip
    at: int
    end: int
    literal: Literal | None = None


@dataclass(slots=True)
class Decorator:
    """``{{* path …}}``, or with a program ``{{#* path …}}``."""

    path: Path
    params: list[Expression]
    hash: dict[str, Expression]
    strip: Strip
    at: int
    end: int
    program: Program | None = None
    close_strip: Strip = field(default_factory=Strip)
    literal: Literal | None = None


@dataclass(slots=True)
class Partial:
    """``{{> name …}}``, or with a program ``{{#> name …}}``."""

    name: Expression
    params: list[Expression]
    hash: dict[str, Expression]
    strip: Strip
    at: int
    end: int
    indent: str = ""
    program: Program | None = None
    close_strip: Strip = field(default_factory=Strip)


@dataclass(slots=True)
class Block:
    """``{{#path …}}…{{else}}…{{/path}}``; an inverse block has an inverse only."""

    path: Path
    params: list[Expression]
    hash: dict[str, Expression]
    program: Program | None
    inverse: Program | None
    strip: Strip
    inverse_strip: Strip
    close_strip: Strip
    at: int
    end: int
    raw: bool = False
    literal: Literal | None = None


Statement = Content | Comment | Mustache | Decorator | Partial | Block


@dataclass(slots=True)
class Program:
    """A sequence of statements; ``chained`` is set where it is an ``else if``."""

    body: list[Statement]
    params: tuple[str, ...] = ()
    chained: bool = False


def inner_programs(statement: Statement) -> Iterator[Program]:
    """Yield the programs inside of a statement."""
    if isinstance(statement, Block | Decorator | Partial) and statement.program is not None:
        yield statement.program
    if isinstance(statement, Block) and statement.inverse is not None:
        yield statement.inverse
