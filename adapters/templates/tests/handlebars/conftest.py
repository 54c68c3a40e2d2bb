"""A kernel with functions that take a moment, and a way to render in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from portico import Kernel, function
from portico.plugins import FunctionCall
from portico_templates.handlebars.language import HandlebarsTemplates

Render = Callable[..., Awaitable[str]]


class Tools:
    """Functions that note when they begin and end."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @function
    async def echo(self, text: str, times: int = 1) -> str:
        """Give the text back, after a moment."""
        self.log.append(f"begin {text}")
        try:
            await asyncio.sleep(0.005)
        finally:
            self.log.append(f"end {text}")
        return text * times

    @function
    async def results(self, query: str, count: int = 2) -> list[dict[str, str | None]]:
        """Search."""
        return [{"name": f"{query} {number}", "value": f"<b>{number}</b>", "link": None} for number in range(count)]

    @function
    async def today(self) -> str:
        """Say what day it is."""
        return "Sunday"

    @function
    async def fails(self, text: str) -> str:
        """Fail."""
        raise KeyError(text)


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def kernel(tools: Tools) -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(tools, "Tools")
    return kernel


@pytest.fixture
def render(kernel: Kernel) -> Render:
    async def render(source: str, variables: Any = None, /, **settings: Any) -> str:
        variables = variables or {}
        template = HandlebarsTemplates(**settings).compile(source)
        return await template.render(variables, call=FunctionCall.caller(kernel, variables))

    return render
