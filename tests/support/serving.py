"""A kernel that is served to clients of the Model Context Protocol, and a user who answers their questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from portico import Kernel, function, search_plugin
from portico.errors import ServiceUnavailable
from portico.plugins import RunState
from portico.ports import Planner, TemplateLanguage
from portico_mcp._serving.server import make_server
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.text_search import ListEntry, ListSearch

MODES = ["auto", "legacy"]
"""The newest revision, and the newest of those before it."""


@dataclass
class Post:
    """Functions with effects, and what they did."""

    sent: list[str] = field(default_factory=list)
    fails: bool = False
    waits: asyncio.Event | None = None
    ended: list[str] = field(default_factory=list)

    @function
    async def shout(self, text: str) -> str:
        """Say it louder.

        Args:
            text: What to say.
        """
        return text.upper()

    @function
    async def measure(self, text: str) -> dict[str, int]:
        """Count letters."""
        return {"letters": len(text)}

    @function
    async def find(self, text: str) -> str | None:
        """Find a letter."""
        return text or None

    @function(effects=True)
    async def send(self, letter: str) -> str:
        """Send a letter."""
        if self.waits is not None:
            try:
                self.waits.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                self.ended.append(letter)
        if self.fails:
            raise ServiceUnavailable("The post office is closed.")
        self.sent.append(letter)
        return f"sent {letter}"


@dataclass
class World:
    """A kernel, and a user who answers the questions of a client."""

    post: Post = field(default_factory=Post)
    store: MemoryRunStore | None = field(default_factory=MemoryRunStore)
    planner: ScriptedPlanner = field(default_factory=ScriptedPlanner)
    answers: list[ElicitResult] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    languages: tuple[TemplateLanguage, ...] = ()

    def __post_init__(self) -> None:
        self.kernel = Kernel({Planner: self.planner}, run_store=self.store, template_languages=self.languages)
        self.kernel.add_plugin(self.post, "Post")
        entries = [ListEntry("Otters swim.", "Otters", "https://zoo.example/otters"), ListEntry("Owls fly.", "Owls")]
        self.kernel.add_plugin(search_plugin(ListSearch(entries), "zoo"))

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.questions.append(params.message)
        return self.answers.pop(0)

    async def describe(self, run: str, *, details: bool) -> Mapping[str, Any]:
        assert self.store is not None
        state = RunState.of(await self.store.read(run))
        return {"goal": state.goal, "state": state.state} | ({"steps": len(state.records)} if details else {})

    @asynccontextmanager
    async def client(self, mode: Any, *, asks: bool = True) -> AsyncIterator[Client]:
        server = make_server(self.kernel, describe_run=self.describe, **self.options)
        async with Client(server, mode=mode, elicitation_callback=self.answer if asks else None) as client:
            yield client


YES = ElicitResult(action="accept", content={"run": True})
SENDING: dict[str, Any] = {
    "version": 1,
    "goal": "Write to Ada",
    "steps": [
        {"id": "s1", "function": "Post-shout", "arguments": {"text": {"value": "hello"}}},
        {"id": "s2", "function": "Post-send", "arguments": {"letter": {"from": "s1"}}},
    ],
    "result": {"from": "s2"},
}
READING: dict[str, Any] = {**SENDING, "steps": SENDING["steps"][:1], "result": {"from": "s1"}}


def text_of(result: Any) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text
