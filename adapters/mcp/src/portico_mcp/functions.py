"""The FunctionSource on a server of the Model Context Protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from portico import Function, FunctionPlugin
from portico.errors import ConfigurationError, LimitExceeded, nearest
from portico.plugins import Services
from portico.ports import SchemaValidator
from portico_mcp._connection import Connection
from portico_mcp._pins import Approvals, Listing
from portico_mcp._schemas import SchemaUnusable
from portico_mcp._words import clean, function_name
from portico_mcp.config import MCPSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, GetPromptResult

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_PAGES = 100
_MOST_LISTED = 5


class MCPFunctions:
    """Make a function of each tool and each prompt of a server, and two that list and read its resources.

    The server is started by `load`, unless its tools were approved: then it is started by the first call. Each time it
    has started, what it says of its tools is compared with what was approved, or with what it said at first; a tool of
    which it says something else is refused. ``lost`` are the tools that cannot be functions, after a load.
    """

    def __init__(self, settings: MCPSettings, services: Services | None = None) -> None:
        self._settings, self._services = settings, services
        self._connection: Connection | None = None
        self._approvals: Approvals | None = None
        self._name = ""
        self._known: dict[str, str] = {}  # what was approved or said at first
        self._now: Listing | None = None
        self._changed: dict[str, str] = {}
        self._outdated = False
        self.lost: tuple[str, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Return the plugin ``name``.

        Raises ``ConfigurationError`` for a command that cannot be started and for a setting that does not go with the
        server, and ``ServiceError`` for a server that does not start or answer.
        """
        return self.plugin_of(self.approved(name) or await self.listing(name))

    def plugin_of(self, listing: Listing) -> FunctionPlugin:
        """Return the functions of what a server offers. Raises ``ConfigurationError`` as `load` does."""
        self._known = listing.fingerprints()
        chosen = self._choose([each["name"] for each in (*listing.tools, *listing.prompts)])
        functions, lost = self._make(listing, chosen)
        self.lost = tuple(lost)
        if lost:
            more = f"; and {len(lost) - _MOST_LISTED} more" if len(lost) > _MOST_LISTED else ""
            _log.warning(
                "functions.%s: %d tools are lost: %s%s", self._name, len(lost), "; ".join(lost[:_MOST_LISTED]), more
            )
        where = self._settings.command or self._settings.url
        return FunctionPlugin(self._name, tuple(functions), f"The tools of the MCP server {where}.")

    def approved(self, name: str) -> Listing | None:
        """Return what was approved of the server of the plugin ``name``, None where nothing was."""
        self._open(name)
        assert self._approvals is not None  # noqa: S101 - it was opened
        return self._approvals.read()

    async def listing(self, name: str) -> Listing:
        """Return what the server of the plugin ``name`` offers now; it is started for that."""
        self._open(name)
        await self._ask(_nothing, "its listing", repeat=True)
        assert self._now is not None  # noqa: S101 - each start lists
        return self._now

    async def examine(self, name: str) -> str:
        """Start the server of the plugin ``name``, and return for `portico doctor` what it offers.

        Raises as `load` does, and ``ConfigurationError`` where something else was approved.
        """
        approved, now = self.approved(name), await self.listing(name)
        changes = [] if approved is None else list(approved.changes(now))
        if changes:
            raise ConfigurationError(
                f"functions.{name}: {changes[0]}, and {len(changes)} changes in all since it was approved. "
                f"`portico mcp list {name}` shows them, `portico mcp approve {name}` accepts them."
            )
        found = f"{len(now.tools)} tools, {len(now.prompts)} prompts"
        return f"the server starts: {found}, {'as approved' if approved else 'none approved'}"

    def approve(self, listing: Listing) -> None:
        """Keep a listing as what was approved."""
        assert self._approvals is not None  # noqa: S101 - the listing was asked for
        self._approvals.write(listing)

    async def aclose(self) -> None:
        """End the server that was started, or leave the one that is reached by a URL."""
        if self._connection is not None:
            await self._connection.aclose()

    def _open(self, name: str) -> None:
        if self._connection is None:
            self._name = name
            self._connection = Connection(name, self._settings, self._compare, self._hear)
            self._approvals = Approvals(name, self._settings)

    async def _ask(self, request: Callable[[Client], Awaitable[T]], what: str, *, repeat: bool) -> T:
        assert self._connection is not None  # noqa: S101 - functions come from a load
        return await self._connection.ask(request, what, repeat=repeat)

    async def _compare(self, client: Client) -> None:
        """List what a client's server offers, and note what is another now than was known."""
        self._outdated = False
        self._now = now = await _list(client, self._settings.maximum_tools, f"functions.{self._name}")
        prints = now.fingerprints()
        self._changed = {
            key: "is not what it was: the server describes it in another way" if key in prints else "is gone"
            for key, known in self._known.items()
            if prints.get(key) != known
        }

    async def _hear(self, message: object) -> None:
        """Compare anew before the next call if the server says that its tools or prompts are others now."""
        if getattr(message, "method", "") in ("notifications/tools/list_changed", "notifications/prompts/list_changed"):
            self._outdated = True

    async def _require_same(self, client: Client, key: str) -> None:
        if self._outdated:
            await self._compare(client)
        if key in self._changed:
            raise ConfigurationError(
                f"functions.{self._name}: the {key} {self._changed[key]}. "
                f"`portico mcp list {self._name}` shows what changed, `portico mcp approve {self._name}` accepts it."
            )

    def _choose(self, names: Sequence[str]) -> set[str]:
        settings = self._settings
        for key, entries in (("include", settings.include), ("exclude", settings.exclude)):
            for entry in entries:
                if not any(fnmatchcase(name, entry) for name in names):
                    near = ", ".join(map(clean, nearest(entry, list(names)) or names[:10])) or "none"
                    raise ConfigurationError(
                        f"functions.{self._name}.{key}: the server has no tool or prompt {entry!r}. It has {near}."
                    )
        return {
            name
            for name in names
            if (not settings.include or any(fnmatchcase(name, each) for each in settings.include))
            and not any(fnmatchcase(name, each) for each in settings.exclude)
        }

    def _make(self, listing: Listing, chosen: Collection[str]) -> tuple[list[Function], list[str]]:
        """Return the functions of what was chosen, and what cannot be one, with the reason."""
        from portico_mcp._wire import prompt_function, resource_function, tool_function

        settings, validator = self._settings, self._validator()
        made: dict[str, Function] = {}
        lost: list[str] = []
        for said in (each for each in listing.tools if each["name"] in chosen):
            name = function_name(said["name"], settings.prefix, made)
            try:
                made[name] = tool_function(
                    said, name, self._name, self._call_tool, trusted=settings.trusted, validator=validator
                )
            except SchemaUnusable as error:
                lost.append(f"{clean(said['name'], 80)} ({error})")
        for said in (each for each in listing.prompts if each["name"] in chosen):
            name = function_name(said["name"], settings.prefix, made)
            made[name] = prompt_function(said, name, self._name, self._get_prompt, effects=not settings.trusted)
        if listing.resources:
            for call in (self.list_resources, self.read_resource):
                name = function_name(call.__name__, settings.prefix, made)
                # Not @function: whether it has effects is the configuration's to say.
                made[name] = resource_function(call, name, self._name, effects=not settings.trusted)
        return list(made.values()), lost

    def _validator(self) -> SchemaValidator | None:
        if self._services is None or not self._services.names(SchemaValidator):
            return None
        return self._services.get(SchemaValidator)

    async def _call_tool(self, tool: str, arguments: Mapping[str, Any], what: str, *, repeat: bool) -> CallToolResult:
        async def request(client: Client) -> CallToolResult:
            await self._require_same(client, f"tool {tool}")
            return await client.call_tool(tool, dict(arguments))

        return await self._ask(request, what, repeat=repeat)

    async def _get_prompt(self, prompt: str, arguments: Mapping[str, str], what: str) -> GetPromptResult:
        async def request(client: Client) -> GetPromptResult:
            await self._require_same(client, f"prompt {prompt}")
            return await client.get_prompt(prompt, dict(arguments))

        return await self._ask(request, what, repeat=True)

    async def list_resources(self) -> list[dict[str, Any]]:
        """List what can be read: its URI, name, description and type.

        Returns:
            The resources that the server has.
        """
        from portico_mcp._wire import resource_of

        most, what = self._settings.maximum_tools, "list_resources"

        async def request(client: Client) -> list[dict[str, Any]]:
            pages = _pages(client.list_resources, most, f"functions.{self._name}: {what}")
            return [resource_of(each) async for page in pages for each in page.resources]

        return await self._ask(request, what, repeat=True)

    async def read_resource(self, uri: str) -> str | list[dict[str, Any]]:
        """Read a resource: a text, or its parts where it has more than text.

        Args:
            uri: The URI of the resource.
        """
        from portico_mcp._wire import contents_of, plain

        result = await self._ask(lambda client: client.read_resource(uri), "read_resource", repeat=True)
        read: str | list[dict[str, Any]] = plain(contents_of(result.contents))
        return read


async def _nothing(client: Client) -> None:
    """Ask nothing: the server is started, and has listed its tools then."""


async def _list(client: Client, most: int, said: str) -> Listing:
    """Return all that a server lists. Raises ``LimitExceeded`` for one whose lists do not end."""
    from mcp import MCPError

    can = client.server_capabilities
    tools, prompts, resources = [], [], False
    if can.tools:
        tools = [_plainly(each) async for page in _pages(client.list_tools, most, said) for each in page.tools]
    if can.prompts:
        prompts = [_plainly(each) async for page in _pages(client.list_prompts, most, said) for each in page.prompts]
    if can.resources:
        # Many say that they can, and have none.
        with suppress(MCPError):
            resources = bool((await client.list_resources()).resources)
            resources = resources or bool((await client.list_resource_templates()).resource_templates)
    return Listing(tuple(tools), tuple(prompts), resources)


async def _pages(ask: Callable[..., Awaitable[Any]], most: int, said: str) -> AsyncIterator[Any]:
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        entries = next(value for value in dict(page).values() if isinstance(value, list))
        most -= len(entries)
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
