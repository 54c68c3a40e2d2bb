"""What is known of the template that is being compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from portico import Prompt
from portico.errors import TemplateError
from portico_templates.handlebars._running import Scope
from portico_templates.handlebars._setup import BUILT_IN, Setup
from portico_templates.handlebars.semantic_kernel import BLOCKS, VALUES

Get = Callable[[Scope], Any]
Write = Callable[[Any], Any]
Step = Callable[[Scope, Write], None]


class _Placed(Protocol):
    @property
    def at(self) -> int: ...
    @property
    def end(self) -> int: ...


class Unit:
    """One source: its text and name, for errors, and the block parameters in force where the compiler is."""

    def __init__(self, source: str, name: str, setup: Setup, *, may_set: bool) -> None:
        self.source = source
        self.name = name
        self.setup = setup
        self.may_set = may_set
        self.block_params: list[tuple[str, ...]] = []
        self.needs_data = False

    def fault(self, message: str, node: _Placed) -> TemplateError:
        """Return the error of a node."""
        return Prompt.fault(message, self.source, node.at, node.end - node.at, name=self.name)

    def refuse(self, message: str, node: _Placed, cause: BaseException | None = None) -> NoReturn:
        """Raise the error of a node."""
        raise self.fault(message, node) from cause

    def block_param(self, name: str) -> tuple[int, int] | None:
        """Find a block parameter: how many blocks out, and which of that block's."""
        for hops, names in enumerate(reversed(self.block_params)):
            if name in names:
                return hops, names.index(name)
        return None

    def helper_kind(self, name: str) -> str | None:
        """Tell whose helper a name is: the application's, of the language, or of Semantic Kernel's."""
        if name in self.setup.helpers:
            return "custom"
        if name in BUILT_IN:
            return "built-in"
        if self.setup.semantic_kernel_helpers and (name in VALUES or name in BLOCKS or name == "set"):
            return "semantic-kernel"
        return None
