"""The Python code that a template becomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame


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
        self.write("environment.joined((")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

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
