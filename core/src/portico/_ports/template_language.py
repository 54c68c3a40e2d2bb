"""The TemplateLanguage port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence


class CallFunction(Protocol):
    """Calls a function of the kernel for a template.

    It may be called concurrently. The call itself, before it is awaited, raises ``FunctionNotFound`` and
    ``ArgumentsInvalid``, so that the template can add the place.
    """

    def __call__(
        self, function: str, arguments: Mapping[str, object], positional: Sequence[object] = (), /
    ) -> Awaitable[object]:
        """Call by name, with arguments by name; ``positional`` ones go to the first parameters, in order.

        The result is text, None, a number, a bool, or other JSON data if it has a JSON form.
        """
        ...


class Template(Protocol):
    """A compiled template; rendering may run many times and concurrently.

    Optional: ``variables``, the names of required variables, which become parameters of prompt functions; ``calls``, a
    `portico._prompts.calling.FunctionCall` for every call that it may make, by which plans are checked and approved, or
    None where that cannot be known.
    """

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        """Return the prompt: a `Prompt` where it may have messages, otherwise a plain string.

        Arguments and results are values in it, except `Trusted` ones. Raises ``TemplateError``, or what a called
        function raises.
        """
        ...


class TemplateLanguage(Protocol):
    """Compiles prompt templates.

    Errors: ``TemplateError`` with line and column, ``LimitExceeded``. A source can only do what the language can.
    """

    name: str

    def compile(self, source: str, *, name: str = "prompt") -> Template:
        """Parse ``source`` once; ``name`` is used in errors."""
        ...
