"""The TemplateLanguage port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

__all__ = ["CallFunction", "Template", "TemplateLanguage"]

CallFunction: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[object]]
"""Calls a function of the kernel by name with arguments; a template never reaches one otherwise."""


class Template(Protocol):
    """A compiled template; rendering may run many times and concurrently."""

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt. Raises ``TemplateError``, or what a called function raises."""
        ...


class TemplateLanguage(Protocol):
    """Compiles prompt templates.

    Errors: ``TemplateError`` with line and column. Source is data: nothing in it is run but the language.
    """

    name: str

    def compile(self, source: str, *, name: str = "prompt") -> Template:
        """Parse ``source`` once; ``name`` is used in errors."""
        ...
