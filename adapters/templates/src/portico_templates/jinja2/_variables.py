"""Which variables a template uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jinja2 import nodes
from jinja2.compiler import Frame

from portico_templates.jinja2._generator import PromptCode

_DOING_WITHOUT = ("d", "default")


def variables_of(tree: nodes.Template) -> tuple[str, ...]:
    """Return the names that a template writes or gives to functions and filters, in the order of their first use.

    Not among them: what a condition, a loop or ``default`` is about, which may be missing; names that are called or
    whose method is called, which are functions and plugins as a rule; what the template sets itself.
    """
    search = _Search()
    found = dict.fromkeys(search.names(tree))
    undeclared = undeclared_in(tree)
    return tuple(name for name in found if name in undeclared and name not in search.excluded)


def undeclared_in(tree: nodes.Template) -> frozenset[str]:
    """Return the names that are looked up outside of the template: variables, plugins and functions."""
    scopes = _Scopes(tree.environment, None, None)
    scopes.visit(tree)
    return frozenset(scopes.undeclared)


class _Scopes(PromptCode):
    """Goes through a template as the compiler does, for the names that no scope of the template has."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.undeclared: set[str] = set()

    def write(self, x: str) -> None:
        """Write nothing."""

    def enter_frame(self, frame: Frame) -> None:
        """Note what is to be looked up in the arguments."""
        super().enter_frame(frame)
        for action, name in frame.symbols.loads.values():
            if action == "resolve" and name is not None and name not in self.environment.globals:
                self.undeclared.add(name)


class _Search:
    def __init__(self) -> None:
        self.excluded: set[str] = set()

    def names(self, node: nodes.Node) -> Iterator[str]:
        match node:
            case nodes.Name(name=name, ctx="load"):
                yield name
            case nodes.If(test=test) | nodes.CondExpr(test=test):
                self.about(test)
                yield from self.of(node.iter_child_nodes(exclude=("test",)))
            case nodes.For(iter=iterated):
                self.about(iterated)
                yield from self.of([*([] if _subject(iterated) else [iterated]), *node.iter_child_nodes(("iter",))])
            case nodes.Filter(name=name, node=nodes.Node() as subject) if name in _DOING_WITHOUT:
                self.about(subject)
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case nodes.Test(node=subject):
                self.about(subject)
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case nodes.Call(node=called) if _subject(called):
                yield from self.of(node.iter_child_nodes(exclude=("node",)))
            case _:
                yield from self.of(node.iter_child_nodes())

    def of(self, nodes: Iterable[nodes.Node]) -> Iterator[str]:
        for node in nodes:
            yield from self.names(node)

    def about(self, node: nodes.Node) -> None:
        """Leave out what a template asks for before it uses it."""
        name = _subject(node)
        if name is not None:
            self.excluded.add(name)
        elif isinstance(node, nodes.Not | nodes.Test):
            self.about(node.node)
        elif isinstance(node, nodes.And | nodes.Or):
            self.about(node.left)
            self.about(node.right)


def _subject(node: nodes.Node) -> str | None:
    """Return the variable that a path such as ``a.b[0]`` begins with."""
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None
