"""The FunctionSource on a server of the Model Context Protocol."""

from __future__ import annotations

import logging
from collections.abc import Collection

from portico import Function, FunctionPlugin
from portico.errors import ConfigurationError
from portico.plugins import Services
from portico.ports import SchemaValidator
from portico_mcp._choice import choose
from portico_mcp._client.pins import Listing
from portico_mcp._client.schemas import SchemaUnusable
from portico_mcp._client.server import Server
from portico_mcp._client.words import clean, function_name
from portico_mcp.config import MCPSettings

_log = logging.getLogger(__name__)

_MOST_LISTED = 5
_RESOURCES = ("list_resources", "read_resource")


class MCPFunctions:
    """Make a function of each tool and each prompt of a server, and two that list and read its resources.

    The server is started by `load`, unless its tools were approved: then it is started by the first call. ``lost`` are
    the tools that cannot be functions, after a load.
    """

    def __init__(self, settings: MCPSettings, services: Services | None = None) -> None:
        self._settings, self._services = settings, services
        self._servers: dict[str, Server] = {}
        self.lost: tuple[str, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Return the plugin ``name``.

        Raises ``ConfigurationError`` for a command that cannot be started and for a setting that does not go with the
        server, and ``ServiceError`` for a server that does not start or answer.
        """
        server = self.server(name)
        return self.plugin_of(server, server.approvals.read() or await server.listing())

    def server(self, name: str) -> Server:
        """Return the server as that of the plugin ``name``, not started yet."""
        return self._servers.setdefault(name, Server(name, self._settings))

    def plugin_of(self, server: Server, listing: Listing) -> FunctionPlugin:
        """Return the functions of what a server offers. Raises ``ConfigurationError`` as `load` does."""
        server.known = listing.fingerprints()
        chosen, unread = self._choose(server, listing)
        functions, lost = self._make(server, listing, chosen)
        self.lost = tuple(lost := [*unread, *lost])
        if lost:
            more = f"; and {len(lost) - _MOST_LISTED} more" if len(lost) > _MOST_LISTED else ""
            words = "; ".join(lost[:_MOST_LISTED])
            _log.warning("functions.%s: lost tools: %d: %s%s", server.name, len(lost), words, more)
        return FunctionPlugin(server.name, tuple(functions), f"The tools of the MCP server {self._settings.place}.")

    async def examine(self, name: str) -> str:
        """Start the server of the plugin ``name``, and return for `portico doctor` what it offers.

        Raises as `load` does, and ``ConfigurationError`` where something else was approved.
        """
        server = self.server(name)
        approved, now = server.approvals.read(), await server.listing()
        changes = [] if approved is None else list(approved.changes(now))
        if changes:
            raise ConfigurationError(
                f"functions.{name}: {changes[0]}, and {len(changes)} changes in all since it was approved. "
                f"`portico mcp list {name}` shows them, `portico mcp approve {name}` accepts them."
            )
        found = f"tools: {len(now.tools)}, prompts: {len(now.prompts)}"
        lost = "".join(f"; lost: {each}" for each in self._choose(server, now)[1][:_MOST_LISTED])
        return f"the server starts: {found}, {'as approved' if approved else 'none approved'}{lost}"

    async def aclose(self) -> None:
        """End the server that was started, or leave the one that is reached by a URL."""
        for server in self._servers.values():
            await server.aclose()

    def _choose(self, server: Server, listing: Listing) -> tuple[set[str], list[str]]:
        """Return the names of what is taken, and what of it is not of the protocol, with the reason."""
        settings, names = self._settings, [each["name"] for each in (*listing.tools, *listing.prompts)]
        names += [name for name, _ in listing.lost if name]
        names += _RESOURCES if listing.resources else ()
        spellings = {name: [function_name(name, settings.prefix, ())] for name in names}
        chosen = choose(spellings, settings.include, settings.exclude, f"functions.{server.name}.")
        lost = [(clean(name, 80), reason) for name, reason in listing.lost if not name or name in chosen]
        return chosen, [f"{name or 'without a name'} ({reason})" for name, reason in lost]

    def _make(self, server: Server, listing: Listing, chosen: Collection[str]) -> tuple[list[Function], list[str]]:
        """Return the functions of what was chosen, and what cannot be one, with the reason."""
        from portico_mcp._client.wire import prompt_function, resource_function, tool_function

        settings, validator = self._settings, self._validator()
        made: dict[str, Function] = {}
        lost: list[str] = []
        seen: set[str] = set()
        for said in (each for each in listing.tools if each["name"] in chosen):
            if said["name"] in seen:
                lost.append(f"{clean(said['name'], 80)} (there is another tool of this name)")
                continue
            seen.add(said["name"])
            name = function_name(said["name"], settings.prefix, made)
            try:
                made[name] = tool_function(
                    said, name, server.name, server.call_tool, trusted=settings.trusted, validator=validator
                )
            except SchemaUnusable as error:
                lost.append(f"{clean(said['name'], 80)} ({error})")
        for said in (each for each in listing.prompts if each["name"] in chosen):
            name = function_name(said["name"], settings.prefix, made)
            made[name] = prompt_function(said, name, server.name, server.get_prompt, effects=not settings.trusted)
        for call in (server.list_resources, server.read_resource) if listing.resources else ():
            if call.__name__ in chosen:
                name = function_name(call.__name__, settings.prefix, made)
                # Not @function: whether it has effects is the configuration's to say.
                made[name] = resource_function(call, name, server.name, effects=not settings.trusted)
        return list(made.values()), lost

    def _validator(self) -> SchemaValidator | None:
        if self._services is None or not self._services.names(SchemaValidator):
            return None
        return self._services.get(SchemaValidator)
