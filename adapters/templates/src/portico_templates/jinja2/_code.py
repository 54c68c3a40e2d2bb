"""The code that a template is compiled to: it asks the environment where Jinja2 would leave all to Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators


class PromptCode(CodeGenerator):
    """Jinja2's generator; where it would take every text for a plain string, ours asks the environment.

    Nothing is computed while a template is compiled: what it may use up is counted when it is rendered.
    """

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return node.data

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write("environment.finalize(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(")")

    def start_write(self, frame: Frame, node: nodes.Node | None = None) -> None:
        """Begin to print what a filter block, a call block or a recursive loop gives: it may be a value."""
        super().start_write(frame, node)
        self.write("environment.finalize(")

    def end_write(self, frame: Frame) -> None:
        """End it."""
        self.write(")")
        super().end_write(frame)

    def simple_write(self, s: str, frame: Frame, node: nodes.Node | None = None) -> None:
        """Hand on what a block or an included template printed."""
        super().start_write(frame, node)
        self.write(s)
        super().end_write(frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``~``."""
        self.write("environment.join('', (")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``[x, y]``."""
        self.write("environment.made(")
        super().visit_List(node, frame)
        self.write(")")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``(x, y)``; the names of a loop or a ``set`` are one too."""
        self.write("environment.made(" if node.ctx == "load" else "")
        super().visit_Tuple(node, frame)
        self.write(")" if node.ctx == "load" else "")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``{x: y}``."""
        self.write("environment.pairs(")
        super().visit_List(nodes.List([nodes.Tuple([item.key, item.value], "load") for item in node.items]), frame)
        self.write(")")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write a comparison, whose values are counted before Python compares them in one go."""
        first, *others = node.ops
        if not others and first.op in ("in", "notin"):
            self.write(f"({'not ' * (first.op == 'notin')}environment.contains(")
            self.visit(node.expr, frame)
            self.write(", ")
            self.visit(first.expr, frame)
            self.write("))")
            return
        values = [node.expr, *(operand.expr for operand in node.ops)]
        # With a number or a text that is written down, one look decides.
        function = "" if not others and any(isinstance(value, nodes.Const) for value in values) else "environment.known"
        self.write("(")
        for value, operand in zip(values, [None, *node.ops], strict=True):
            self.write(f" {operators[operand.op]} {function}(" if operand is not None else f"{function}(")
            self.visit(value, frame)
            self.write(")")
        self.write(")")

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``x.y``."""
        with self._read():
            self.write("environment.field(")
            self.visit(node.node, frame)
            self.write(f", {node.attr!r})")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Write ``x[y]``; slices too go by the environment, which knows what is data."""
        with self._read():
            self.write("environment.item(")
            self.visit(node.node, frame)
            self.write(", ")
            if isinstance(node.arg, nodes.Slice):
                self.write("slice(")
                for bound in (node.arg.start, node.arg.stop, node.arg.step):
                    if bound is None:
                        self.write("None")
                    else:
                        self.visit(bound, frame)
                    self.write(", ")
                self.write(")")
            else:
                self.visit(node.arg, frame)
            self.write(")")

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Await what is read if it has to be: data is there at once, ``loop.last`` and the like is not."""
        name = self.temporary_identifier()
        self.write(f"({name} if type({name} := ")
        yield
        self.write(f") is not CoroutineType else await {name})")
