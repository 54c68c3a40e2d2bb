"""What a helper of the application receives in addition to its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from portico.errors import TemplateError
from portico_templates.handlebars._running import Body, OfBlock, Scope, flatten, perform_jobs, split_values
from portico_templates.handlebars.values import MISSING

Helper = Callable[..., Any]
"""Called as ``helper(options, *arguments, **named)``; it may be asynchronous."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Options:
    """Where a helper is called: its context, and the block that it stands before.

    >>> import asyncio
    >>> from portico_templates.handlebars.language import HandlebarsTemplates
    >>> def twice(options, separator=" "):
    ...     return separator.join([options.fn(), options.fn()])
    >>> language = HandlebarsTemplates(helpers={"twice": twice})
    >>> asyncio.run(language.compile("{{#twice separator='-'}}ho{{/twice}}").render({}, call=None))
    'ho-ho'

    ``fn`` and ``inverse`` return the text of the block and of what follows its ``{{else}}``. In a helper that is
    ``async def`` they are awaited; in another they return at once, and their block cannot call functions.
    """

    name: str
    _scope: Scope
    _bodies: tuple[Body | None, Body | None] | None
    _is_async: bool
    _fault: Callable[[str], TemplateError]

    @property
    def is_block(self) -> bool:
        """Whether the helper stands before a block."""
        return self._bodies is not None

    @property
    def context(self) -> Any:
        """The current context, which templates call ``this``."""
        return self._scope.context

    def fn(self, context: Any = MISSING, *, block_params: Sequence[Any] | None = None) -> Any:
        """Return the text of the block in a context, the current one by default.

        ``block_params`` are the values of ``as |first second|``, which are an error in the block where none are given.
        Raises ``TemplateError`` in a helper that is not asynchronous where the block calls functions.
        """
        return self._text(self._bodies and self._bodies[0], context, block_params)

    def inverse(self, context: Any = MISSING) -> Any:
        """Return the text of what follows ``{{else}}``, as `fn` does."""
        return self._text(self._bodies and self._bodies[1], context, None)

    def _text(self, body: Body | None, context: Any, values: Sequence[Any] | None) -> Any:
        scope = self._scope.copy() if context is MISSING else self._scope.inner(context)
        scope.jobs = []
        parts: list[Any] = []
        given = None if values is None else tuple(values)
        if self._is_async:
            return self._render(body, scope, parts, given)
        if body is not None:
            if not body.in_order:
                body.enter(scope, parts.append, given)
            if body.in_order or scope.jobs:
                raise self._fault(
                    f"The block calls functions or sets variables, and the helper {self.name!r} is not asynchronous: "
                    f"write it as `async def` and await its `options.fn()`."
                )
        return self._join(parts)

    async def _render(self, body: Body | None, scope: Scope, parts: list[Any], values: tuple[Any, ...] | None) -> str:
        if body is not None:
            await body.enter_in_order(scope, parts.append, values)
            await perform_jobs(scope.jobs)
        return self._join(parts)

    def _join(self, parts: list[Any]) -> str:
        run = self._scope.run
        text = OfBlock(split_values(flatten(parts, run.limits.characters, run.name)))
        run.grow(text)
        return text
