"""The compiled template, whose loops and ranges are counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import CoroutineType
from typing import Any

from jinja2 import Template
from jinja2.environment import TemplateModule
from jinja2.runtime import AsyncLoopContext, Context
from jinja2.utils import Namespace

from portico.errors import LimitExceeded
from portico_templates.jinja2._errors import Refused
from portico_templates.jinja2._rendering import RENDERING

_LARGEST_RANGE = 100_000


class PromptTemplate(Template):
    """A template whose loops are counted, and whose imports are made anew in each rendering."""

    @classmethod
    def from_code(cls, environment: Any, code: Any, globals: Any, uptodate: Any = None) -> PromptTemplate:
        """Make it of its code; the loops of that go through our own iterators."""
        template: PromptTemplate = super().from_code(environment, code, globals, uptodate)  # type: ignore[assignment]
        names = template.root_render_func.__globals__
        names.update(auto_aiter=counted_iterator, AsyncLoopContext=CountedLoop, CoroutineType=CoroutineType)
        return template

    async def _get_default_module_async(self, ctx: Context | None = None) -> TemplateModule:
        shared = {} if ctx is None else {key: ctx.parent[key] for key in ctx.globals_keys - self.globals.keys()}
        return await self.make_module_async(shared)


async def counted_iterator(iterable: Any) -> AsyncIterator[Any]:
    """Go through a loop's elements, and count the rounds."""
    rendering = RENDERING.get()
    step, count = rendering.step, rendering.round
    if hasattr(iterable, "__aiter__"):
        async for element in iterable:
            step(count)
            yield element
    else:
        for element in iterable:
            step(count)
            yield element


class CountedLoop(AsyncLoopContext):
    """A loop with its variable ``loop``, counted."""

    _to_iterator = staticmethod(counted_iterator)

    def __len__(self) -> int:
        raise Refused("The length of a loop is loop.length.")


class CountedNamespace(Namespace):
    """A namespace; putting a container into it counts, since in a loop that nests without end."""

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, list | tuple | dict):
            RENDERING.get().step(1_000)
        super().__setitem__(name, value)


def counted_range(*args: int) -> range:
    """Return a range of at most 100,000 numbers, and count them."""
    numbers = range(*args)
    try:
        count = len(numbers)
    except OverflowError:
        count = _LARGEST_RANGE + 1
    if count > _LARGEST_RANGE:
        raise LimitExceeded(f"A range in a template has at most {_LARGEST_RANGE:,} numbers.")
    RENDERING.get().step(count)
    return numbers
