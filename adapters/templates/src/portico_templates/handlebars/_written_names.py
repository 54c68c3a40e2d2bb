"""Which variables and functions a template names."""

from __future__ import annotations

from collections.abc import Iterable

from portico.plugins import FunctionCall
from portico_templates.handlebars._expressions import BUILT_IN, Setup, defined
from portico_templates.handlebars._nodes import (
    Block,
    Call,
    Decorator,
    Expression,
    Literal,
    Mustache,
    Partial,
    Path,
    Program,
    Statement,
    walk,
)
from portico_templates.handlebars.semantic_kernel import BARE, BLOCKS

_SAME_CONTEXT = {"if", "unless", *BLOCKS}
_Hidden = frozenset[str]


class WrittenNames:
    """The names that are written in a template, in the order of their first use.

    ``variables`` are written or given to functions, helpers and partials. Not among them: what a block is about, which
    may be missing; what the template sets; block parameters; a bare name with ``-``, which is a function's.
    ``calls`` are the calls of functions of the kernel.
    """

    def __init__(self, program: Program, setup: Setup, source: str) -> None:
        self._setup = setup
        self._places = FunctionCall.places(source)
        self._calls: list[FunctionCall] = []
        self._found: dict[str, None] = {}
        self._set = {name for statement in walk(program) if (name := self._set_name(statement))}
        self._optional: set[str] = set()
        self._program(program, 0, frozenset())
        self.variables = tuple(name for name in self._found if name not in self._set | self._optional)
        self.calls = tuple(self._calls)

    def _set_name(self, statement: Statement) -> str | None:
        if not isinstance(statement, Mustache) or statement.call.path.original != "set":
            return None
        call = statement.call
        name = call.params[0] if call.params else call.hash.get("name")
        return name.original if isinstance(name, Literal) and self._setup.semantic_kernel_helpers else None

    def _program(self, program: Program | None, level: int | None, hidden: _Hidden) -> None:
        """Look through a program; ``level`` is how many ``../`` lead to the variables, None where it is not known."""
        if program is not None:
            hidden |= frozenset(program.params)
            for statement in program.body:
                self._statement(statement, level, hidden)

    def _statement(self, node: Statement, level: int | None, hidden: _Hidden) -> None:
        if isinstance(node, Mustache):
            call = node.call
            if call.is_bare and call.literal is None:
                is_function = call.path.is_simple and ("-" in call.path.parts[0] or self._is_bare_helper(call.path))
                if not is_function:
                    self._variable(call.path, level, hidden, self._found)
            self._call(call, level, hidden)
        elif isinstance(node, Block):
            self._block(node, level, hidden)
        elif isinstance(node, Partial):
            if isinstance(node.name, Call):
                self._call(node.name, None, hidden, is_nested=True)
            self._values(node.call.values, level, hidden)
            self._program(node.program, level, hidden)
        elif isinstance(node, Decorator):
            self._values(node.call.params, None, hidden)
            self._program(node.program, None, hidden)

    def _block(self, node: Block, level: int | None, hidden: _Hidden) -> None:
        name = node.call.path.original
        optional: dict[str, None] = {}
        if name in BUILT_IN:
            for subject in node.call.values:
                if isinstance(subject, Path):
                    self._variable(subject, level, hidden, optional)
        elif node.call.is_bare:
            self._variable(node.call.path, level, hidden, optional)
        self._optional.update(optional)
        self._call(node.call, level, hidden, has_variables=name not in BUILT_IN)
        inner = level if level is None or name in _SAME_CONTEXT else level + 1
        self._program(node.program, inner, hidden)
        self._program(node.inverse, level, hidden)

    def _call(
        self, call: Call, level: int | None, hidden: _Hidden, *, is_nested: bool = False, has_variables: bool = True
    ) -> None:
        """Note a call that is no helper's, and look at its arguments.

        A bare name may be a variable's. It is a call where it has a ``-`` and is set nowhere.
        """
        path, named = call.path, defined(call.hash)
        name = path.parts[0] if path.parts else ""
        is_helper = path.is_simple and name not in hidden and self._setup.helper_kind(name) is not None
        is_call = is_nested or not call.is_bare
        if not is_call and path.is_simple and call.literal is None:
            is_call = "-" in name and name not in hidden | self._set
        if is_call and not is_helper:
            self._calls.append(self._places.call(path.original, len(call.params), named, at=path.at))
        self._values(call.values, level, hidden, has_variables=has_variables)

    def _values(
        self, values: Iterable[Expression], level: int | None, hidden: _Hidden, *, has_variables: bool = True
    ) -> None:
        for value in values:
            if isinstance(value, Call):
                self._call(value, level, hidden, is_nested=True)
            elif isinstance(value, Path) and has_variables:
                self._variable(value, level, hidden, self._found)

    def _variable(self, path: Path, level: int | None, hidden: _Hidden, found: dict[str, None]) -> None:
        """Note the variable that a path begins with, if it does."""
        if path.data:
            if path.parts[:1] == ("root",) and len(path.parts) > 1:
                found[path.parts[1]] = None
        elif path.parts and level is not None and path.depth == level and (path.depth or path.parts[0] not in hidden):
            found[path.parts[0]] = None

    def _is_bare_helper(self, path: Path) -> bool:
        kind = self._setup.helper_kind(path.parts[0])
        return kind in {"custom", "built-in"} or (kind is not None and path.parts[0] in BARE)
