"""Which functions a template calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from portico.plugins import FunctionCall
from portico_templates.handlebars._calls import defined
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
from portico_templates.handlebars.semantic_kernel import BLOCKS, VALUES

_Hidden = frozenset[str]


def calls_of(program: Program, setup: Setup, source: str) -> tuple[FunctionCall, ...]:
    """Return the calls of functions of the kernel that a template writes down, in the order of writing."""
    search = _Search(setup, FunctionCall.places(source))
    search.names_set(program)
    return tuple(search.program(program, frozenset()))


class _Search:
    def __init__(self, setup: Setup, places: Any) -> None:
        self.setup = setup
        self.places = places
        self.set_names: set[str] = set()

    def names_set(self, program: Program | None) -> None:
        """Note the names that are set anywhere: a name like those is a variable."""
        if program is None or not self.setup.semantic_kernel_helpers:
            return
        for node in program.body:
            if isinstance(node, Mustache) and node.path.original == "set":
                name = node.params[0] if node.params else node.hash.get("name")
                if isinstance(name, Literal):
                    self.set_names.add(name.original)
            elif isinstance(node, Block | Decorator | Partial):
                self.names_set(node.program)
                if isinstance(node, Block):
                    self.names_set(node.inverse)

    def program(self, program: Program | None, hidden: _Hidden) -> Iterator[FunctionCall]:
        if program is None:
            return
        hidden |= frozenset(program.params)
        for statement in program.body:
            yield from self.statement(statement, hidden)

    def statement(self, node: Statement, hidden: _Hidden) -> Iterator[FunctionCall]:
        if isinstance(node, Mustache | Block):
            if node.params or node.hash:
                yield from self.call(node, hidden)
            else:
                yield from self.bare(node, hidden)
        elif isinstance(node, Partial):
            yield from self.values([node.name, *node.params, *node.hash.values()], hidden)
        elif isinstance(node, Decorator):
            yield from self.values(node.params, hidden)
        if isinstance(node, Block | Decorator | Partial):
            yield from self.program(node.program, hidden)
        if isinstance(node, Block):
            yield from self.program(node.inverse, hidden)

    def call(self, node: Mustache | Block | SubExpression, hidden: _Hidden) -> Iterator[FunctionCall]:
        """Yield the call that a node is, if it is no helper's, and those in its arguments."""
        named = defined(node.hash)
        if not self.is_helper(node.path, hidden):
            yield self.places.call(node.path.original, len(node.params), named, at=node.path.at)
        yield from self.values([*node.params, *named.values()], hidden)

    def bare(self, node: Mustache | Block, hidden: _Hidden) -> Iterator[FunctionCall]:
        path = node.path
        name = path.original
        is_function = path.is_simple and node.literal is None and "-" in name
        if is_function and name not in hidden | self.set_names and not self.is_helper(path, hidden):
            yield self.places.call(name, 0, (), at=path.at)

    def values(self, values: Iterable[Expression], hidden: _Hidden) -> Iterator[FunctionCall]:
        for value in values:
            if isinstance(value, SubExpression):
                yield from self.call(value, hidden)

    def is_helper(self, path: Path, hidden: _Hidden) -> bool:
        """Tell whether a name is a helper's: the application's, of the language, or of Semantic Kernel's."""
        name = path.parts[0] if path.parts else ""
        if not path.is_simple or name in hidden:
            return False
        if name in self.setup.helpers or name in BUILT_IN:
            return True
        return self.setup.semantic_kernel_helpers and (name in VALUES or name in BLOCKS or name == "set")
