"""Which variables a template uses."""

from __future__ import annotations

from collections.abc import Iterator

from portico_templates.handlebars._nodes import (
    Block,
    Decorator,
    Expression,
    Literal,
    Mustache,
    Partial,
    Path,
    Program,
    Statement,
    SubExpression,
)
from portico_templates.handlebars._setup import BUILT_IN, Setup
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS, VALUES

_SAME_CONTEXT = {"if", "unless", *BLOCKS}


def variables_of(program: Program, setup: Setup) -> tuple[str, ...]:
    """Return the names that a template writes or gives to functions and helpers, in the order of their first use.

    Not among them: what a block is about, which may be missing; what is set in the template; block parameters; a
    name with ``-``, which is a function's.
    """
    search = _Search(setup)
    found = dict.fromkeys(search.program(program, 0, frozenset()))
    return tuple(name for name in found if name not in search.excluded)


class _Search:
    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.excluded: set[str] = set()

    def program(self, program: Program | None, level: int | None, hidden: frozenset[str]) -> Iterator[str]:
        if program is not None:
            hidden |= frozenset(program.params)
            for statement in program.body:
                yield from self.statement(statement, level, hidden)

    def statement(self, node: Statement, level: int | None, hidden: frozenset[str]) -> Iterator[str]:
        if isinstance(node, Mustache):
            is_set = node.path.original == "set" and self.setup.semantic_kernel_helpers
            if is_set and node.params and isinstance(node.params[0], Literal):
                self.excluded.add(node.params[0].original)
            elif is_set and isinstance(name := node.hash.get("name"), Literal):
                self.excluded.add(name.original)
            if not node.params and not node.hash and node.literal is None:
                yield from self.path(node.path, level, hidden, is_bare=True)
            yield from self.values([*node.params, *node.hash.values()], level, hidden)
        elif isinstance(node, Block):
            yield from self.block(node, level, hidden)
        elif isinstance(node, Partial):
            yield from self.values([*node.params, *node.hash.values()], level, hidden)
            yield from self.program(node.program, level, hidden)
        elif isinstance(node, Decorator):
            yield from self.program(node.program, None, hidden)

    def block(self, node: Block, level: int | None, hidden: frozenset[str]) -> Iterator[str]:
        name = node.path.original
        subjects = [*node.params, *node.hash.values()]
        if name in BUILT_IN:
            for subject in subjects:
                if isinstance(subject, Path):
                    self.excluded.update(self.path(subject, level, hidden))
                else:
                    yield from self.values([subject], level, hidden)
        else:
            yield from self.values(subjects, level, hidden)
            if not subjects:
                self.excluded.update(self.path(node.path, level, hidden))
        same = name in _SAME_CONTEXT
        yield from self.program(node.program, level if same or level is None else level + 1, hidden)
        yield from self.program(node.inverse, level, hidden)

    def values(self, values: list[Expression], level: int | None, hidden: frozenset[str]) -> Iterator[str]:
        for value in values:
            if isinstance(value, Path):
                yield from self.path(value, level, hidden)
            elif isinstance(value, SubExpression):
                yield from self.values([*value.params, *value.hash.values()], level, hidden)

    def path(self, path: Path, level: int | None, hidden: frozenset[str], *, is_bare: bool = False) -> Iterator[str]:
        """Yield the variable that a path begins with, if it does."""
        if path.data:
            if path.parts[:1] == ("root",) and len(path.parts) > 1:
                yield path.parts[1]
            return
        if not path.parts or level is None or path.depth != level or (path.is_simple and path.parts[0] in hidden):
            return
        name = path.parts[0]
        if not path.depth and name in hidden:
            return
        if is_bare and path.is_simple and ("-" in name or self.is_helper(name)):
            return
        yield name

    def is_helper(self, name: str) -> bool:
        """Tell whether a bare name is a helper's rather than a variable's."""
        if name in self.setup.helpers or name in BUILT_IN:
            return True
        return self.setup.semantic_kernel_helpers and name in BARE and name in VALUES
