"""The TemplateLanguage port."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

__all__ = ["CallFunction", "Template", "TemplateLanguage"]


class CallFunction(Protocol):
    """Calls a function of the kernel; a template never reaches one otherwise.

    May be called concurrently. A function that is not there and arguments that do not fit are ``FunctionNotFound``
    and ``ArgumentsInvalid``, raised by the call itself, before anything is awaited: a template says where.
    """

    def __call__(
        self, function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /
    ) -> Awaitable[object]:
        """Call by name, with arguments by name; ``positional`` ones go to the first parameters, in order.

        The result is text, None, a number, a bool, or other JSON data, where it has such a form.
        """
        ...


class Template(Protocol):
    """A compiled template; rendering may run many times and concurrently.

    It may have ``variables``, the names of those that it cannot do without: prompt functions make parameters of them.
    It may have ``calls``, a `portico.prompts.written_calls.FunctionCall` for each one written in it: plans check them.
    """

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `Prompt` where messages may stand in it, a plain string where none do.

        Arguments and results are values there, but for those that are `Trusted`. Raises ``TemplateError``, or what
        a called function raises.
        """
        ...


class TemplateLanguage(Protocol):
    """Compiles prompt templates.

    Errors: ``TemplateError`` with line and column, ``LimitExceeded``. Source is data: nothing in it is run but the
    language.
    """

    name: str

    def compile(self, source: str, *, name: str = "prompt") -> Template:
        """Parse ``source`` once; ``name`` is used in errors."""
        ...
