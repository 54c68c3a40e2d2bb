"""One server: what it offers and offered before, and calls of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from portico.errors import ArgumentsInvalid, ConfigurationError, LimitExceeded, ServiceError
from portico_mcp._client.connection import Connection, show
from portico_mcp._client.pins import Approvals, Listing
from portico_mcp._client.words import LOST, sentence
from portico_mcp.config import MCPSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, GetPromptResult

_MOST_PAGES = 100


class Server:
    """The server of the function plugin ``name``. It is started by the first call, or to list what it offers.

    Each time it has started, what it says of its tools is compared with what is ``known``: what was approved or what it
    said at first. A tool of which it says something else is refused.
    """

    def __init__(self, name: str, settings: MCPSettings) -> None:
        self.name, self._settings = name, settings
        self.approvals = Approvals(name, settings)
        self.known: Mapping[str, str] = {}
        self._connection = Connection(name, settings, self._compare, self._hear)
        self._ask = self._connection.ask
        self._now: Listing | None = None
        self._changed: dict[str, str] = {}
        self._announced = self._compared = 0  # how often the server said that its tools are others now

    async def listing(self) -> Listing:
        """Return what the server offers now."""
        await self._ask(self._refresh, "its listing", repeat=True)
        assert self._now is not None  # noqa: S101 - each start lists
        return self._now

    async def aclose(self) -> None:
        """End the server that was started, or leave the one that is reached by a URL."""
        await self._connection.aclose()

    async def _compare(self, client: Client) -> None:
        """List what a client's server offers, and note what is another now than was known."""
        announced = self._announced
        self._now = now = await _list(client, self._settings.maximum_tools, f"functions.{self.name}")
        prints = now.fingerprints()
        self._changed = {
            key: "is not what it was: the server describes it in another way" if key in prints else "is gone"
            for key, known in self.known.items()
            if prints.get(key) != known
        }
        # Only now: until then, other calls must not trust what was compared before.
        self._compared = announced

    async def _hear(self, message: object) -> None:
        """Compare anew before the next call if the server says that its tools or prompts are others now."""
        if getattr(message, "method", "") in ("notifications/tools/list_changed", "notifications/prompts/list_changed"):
            self._announced += 1

    async def _refresh(self, client: Client) -> None:
        if self._compared != self._announced:
            await self._compare(client)

    async def _require_same(self, client: Client, key: str) -> None:
        await self._refresh(client)
        if key in self._changed:
            raise ConfigurationError(
                f"functions.{self.name}: the {key} {self._changed[key]}. "
                f"`portico mcp list {self.name}` shows what changed, `portico mcp approve {self.name}` accepts it."
            )

    def _require_json(self, arguments: Mapping[str, Any], what: str) -> None:
        """Raise ``ArgumentsInvalid`` for what cannot be sent: the SDK finds out where no call hears of it."""
        try:
            json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentsInvalid(f"{self.name}-{what}", [f"they are not JSON: {error}"]) from error

    async def call_tool(self, tool: str, arguments: Mapping[str, Any], what: str, *, repeat: bool) -> CallToolResult:
        self._require_json(arguments, what)

        async def request(client: Client) -> CallToolResult:
            await self._require_same(client, f"tool {tool}")
            return await client.call_tool(tool, dict(arguments))

        result = await self._ask(request, what, repeat=repeat)
        if result.is_error:
            said = " ".join(block.text for block in result.content if block.type == "text")
            words = sentence(show(said, self._settings)) or "the tool does not say why."
            raise ServiceError(f"functions.{self.name}: {what} failed: {words}")
        return result

    async def get_prompt(self, prompt: str, arguments: Mapping[str, Any], what: str) -> GetPromptResult:
        self._require_json(arguments, what)
        if others := [f"{name}: not a text" for name, value in arguments.items() if not isinstance(value, str)]:
            raise ArgumentsInvalid(f"{self.name}-{what}", others)

        async def request(client: Client) -> GetPromptResult:
            await self._require_same(client, f"prompt {prompt}")
            return await client.get_prompt(prompt, dict(arguments))

        return await self._ask(request, what, repeat=True)

    async def list_resources(self) -> list[dict[str, Any]]:
        """List what can be read: its URI, or the template of its URIs, its name, description and type.

        Returns:
            The resources that the server has.
        """
        from mcp import MCPError
        from mcp_types import METHOD_NOT_FOUND

        from portico_mcp._client.wire import resource_of

        most, what = self._settings.maximum_tools, "list_resources"

        async def request(client: Client) -> list[dict[str, Any]]:
            pages = _pages(client.list_resources, most, f"functions.{self.name}: {what}")
            found = [resource_of(each) async for page in pages for each in page.resources]
            pages = _pages(client.list_resource_templates, most, f"functions.{self.name}: {what}")
            try:
                found += [resource_of(each) async for page in pages for each in page.resource_templates]
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:  # many have none
                    raise
            return found

        return await self._ask(request, what, repeat=True)

    async def read_resource(self, uri: str) -> str | list[dict[str, Any]]:
        """Read a resource: a text, or its parts where it has more than text.

        Args:
            uri: The URI of the resource.
        """
        from portico_mcp._client.wire import contents_of, plain

        self._require_json({"uri": uri}, "read_resource")
        result = await self._ask(lambda client: client.read_resource(uri), "read_resource", repeat=True)
        read: str | list[dict[str, Any]] = plain(contents_of(result.contents))
        return read


async def _list(client: Client, most: int, said: str) -> Listing:
    """Return all that a server lists. Raises ``LimitExceeded`` for one whose lists do not end."""
    from mcp import MCPError

    can = client.server_capabilities
    found: dict[str, list[Any]] = {"tools": [], "prompts": [], LOST: []}
    resources = False
    for key in ("tools", "prompts"):
        if getattr(can, key):
            async for page in _pages(getattr(client, f"list_{key}"), most, said):
                found[key] += map(_plainly, getattr(page, key))
                found[LOST] += page.meta[LOST]
    if can.resources:
        # Many say that they can, and have none.
        with suppress(MCPError):
            resources = bool((await client.list_resources()).resources)
            resources = resources or bool((await client.list_resource_templates()).resource_templates)
    return Listing(tuple(found["tools"]), tuple(found["prompts"]), resources, tuple(found[LOST]))


async def _pages(ask: Callable[..., Awaitable[Any]], most: int, said: str) -> AsyncIterator[Any]:
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        entries = next(value for value in dict(page).values() if isinstance(value, list))
        most -= len(entries) + len(page.meta[LOST])
        if most < 0:
            break
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
    raise LimitExceeded(
        f"{said}: the server lists more than `maximum_tools` allows, or in more than {_MOST_PAGES} pages."
    )


def _plainly(said: Any) -> dict[str, Any]:
    """Return a tool or a prompt as JSON: all that a server says of it, but for pictures."""
    return dict(said.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"}))
