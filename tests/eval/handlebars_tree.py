"""Prints the tree of a template as handlebars.js prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from portico_templates.handlebars._nodes import (
    Block,
    Call,
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
)

__all__ = ["printed"]


def printed(program: Program) -> str:
    """Return the tree, one node a line."""
    return _Printer().program(program)


class _Printer:
    """Counts its indentation as handlebars.js does: after a block it is one less than before."""

    def __init__(self) -> None:
        self.padding = 0

    def program(self, program: Program) -> str:
        out = self.pad(f"BLOCK PARAMS: [ {' '.join(program.params)} ]") if program.params else ""
        out += "".join([self.statement(statement) for statement in program.body])
        self.padding -= 1
        return out

    def pad(self, line: str) -> str:
        return f"{'  ' * self.padding}{line}\n"

    def statement(self, node: Statement) -> str:
        if isinstance(node, Content):
            return self.pad(f"CONTENT[ '{node.value}' ]")
        if isinstance(node, Comment):
            return self.pad(f"{{{{! '{node.value}' }}}}")
        if isinstance(node, Mustache):
            return self.pad(f"{{{{ {_call(node.call)} }}}}")
        if isinstance(node, Partial):
            return self.partial(node)
        if isinstance(node, Decorator) and node.program is None:
            return self.pad(f"{{{{ DIRECTIVE {_call(node.call)} }}}}")
        return self.block(node)

    def block(self, node: Block | Decorator) -> str:
        out = self.pad("DIRECTIVE BLOCK:" if isinstance(node, Decorator) else "BLOCK:")
        self.padding += 1
        out += self.pad(_call(node.call))
        inverse = node.inverse if isinstance(node, Block) else None
        if node.program is not None:
            out += self.pad("PROGRAM:")
            self.padding += 1
            out += self.program(node.program)
            self.padding -= 1
        if inverse is not None:
            self.padding += node.program is not None
            out += self.pad("{{^}}")
            self.padding += 1
            out += self.program(inverse)
            self.padding -= 1
            self.padding -= node.program is not None
        self.padding -= 1
        return out

    def partial(self, node: Partial) -> str:
        name = node.name.original if isinstance(node.name, Path | Literal) else "undefined"
        content = f"{'PARTIAL BLOCK' if node.program is not None else 'PARTIAL'}:{name}"
        if node.call.params:
            content += f" {_expression(node.call.params[0])}"
        if node.call.hash:
            content += f" {_hash(node.call.hash)}"
        if node.program is not None:
            content += f" {self.pad('PROGRAM:')}"
            self.padding += 1
            content += self.program(node.program)
            self.padding -= 1
        return self.pad(f"{{{{> {content} }}}}")


def _call(node: Call) -> str:
    head = _expression(node.literal or node.path)
    return f"{head} {_arguments(node.params, node.hash)}"


def _arguments(params: Sequence[Expression], named: Mapping[str, Expression]) -> str:
    listed = f"[{', '.join(map(_expression, params))}]"
    return f"{listed} {_hash(named)}" if named else listed


def _hash(named: Mapping[str, Expression]) -> str:
    return f"HASH{{{', '.join(f'{name}={_expression(value)}' for name, value in named.items())}}}"


def _expression(node: Expression) -> str:
    if isinstance(node, Path):
        return f"{'@' if node.data else ''}PATH:{'/'.join(node.parts)}"
    if isinstance(node, Literal):
        match node.kind:
            case "STRING":
                return f'"{node.value}"'
            case "NUMBER" | "BOOLEAN":
                return f"{node.kind}{{{node.original}}}"
            case _:
                return node.kind
    return f"{_expression(node.path)} {_arguments(node.params, node.hash)}"
