"""The connection to one server: one task owns it, and starts it again when it has ended."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from portico.errors import (
    AuthenticationFailed,
    ConfigurationError,
    LimitExceeded,
    PorticoError,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.plugins import Secret
from portico_mcp._client.words import LOST, clean, sentence

if TYPE_CHECKING:
    from mcp import Client

    from portico_mcp.config import MCPSettings

_log = logging.getLogger(__name__)

T = TypeVar("T")

_TOO_LARGE = re.compile("the server sent a message (of more|that nests)[\\w ,]+|SSE stream failed: .* byte limit[.]?")
"""The whole of a reason that is the size of a message, for which the SDK has other words than we."""
_KEYS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resources/templates": "resourceTemplates"}
_LISTED = {f"{kind}/list": key for kind, key in _KEYS.items()}
_PAUSES = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between an end and the next start, by how often it ended without having answered a call."""


class Connection:
    """Speaks to the server of a function plugin, called ``name``. Calls may come from any task.

    The SDK's client must be left in the task that entered it, so a task of the connection owns it. The server is
    started by the first call, and once more by the first call after it has ended, after a pause that grows while it
    ends without having answered. ``started`` is called with each new client before any call gets it, ``heard`` with
    what a server says unasked.
    """

    def __init__(
        self,
        name: str,
        settings: MCPSettings,
        started: Callable[[Client], Awaitable[None]],
        heard: Callable[[object], Awaitable[None]],
    ) -> None:
        self._name, self._settings, self._started, self._heard = name, settings, started, heard
        self._owner: _Owner | None = None
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._failures = 0
        self._closed = False

    async def ask(self, request: Callable[[Client], Awaitable[T]], what: str, *, repeat: bool) -> T:
        """Let ``request`` ask the server by its client, and return its answer; ``what`` names it in errors.

        With ``repeat`` it is asked once more when the server ended meanwhile. Raises ``ServiceTimeout``,
        ``ServiceUnavailable``, ``LimitExceeded``, ``ResponseInvalid`` and ``ServiceError``.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        said = f"functions.{self._name}: {what}"
        failed = f"{said} failed"
        while True:
            owner = await self._running()
            try:
                answer = await request(owner.ready.result())
            except MCPError as error:
                lost = owner.lost(error)
                # A server may use the codes of the SDK for errors of its tools.
                if error.code == REQUEST_TIMEOUT and str(error).endswith(" timed out") and not lost:
                    seconds = self._settings.timeout
                    raise ServiceTimeout(f"{said} gave no answer within {seconds:g} seconds.") from error
                closed = error.data == LOST or str(error).startswith(("Connection closed", "SSE stream "))
                if not lost and not (closed and error.code == CONNECTION_CLOSED):
                    words = _in_words(error, self._settings) or "the server does not say why."
                    raise _denied(failed, self._settings, error) or ServiceError(f"{failed}: {words}") from error
                reason = show(str(error), self._settings).rstrip(".")
            except ValidationError as error:
                raise ResponseInvalid(f"{failed}: its answer is not of the protocol: {_first_fault(error)}.") from error
            except RuntimeError as error:
                # The client was left meanwhile, or the server answers with one question after the other.
                if owner.usable:
                    raise ServiceError(f"{failed}: the server asks, and does not answer.") from error
                reason = "it was ended meanwhile"
            else:
                owner.answered = True
                return answer
            # Behind a URL, it may be this one answer that failed.
            if self._settings.command is not None or owner.ended:
                reason = await owner.close() or reason
            if not repeat or _TOO_LARGE.fullmatch(reason):
                gone = "the server is gone; " if self._settings.command is not None else ""
                unknown = "" if repeat else " Whether it happened is not known."
                raise _too_large(failed, reason) or ServiceUnavailable(f"{failed}: {gone}{reason}.{unknown}")
            repeat = False

    async def _running(self) -> _Owner:
        loop = asyncio.get_running_loop()
        owner = self._owner
        if owner is not None and owner.loop is loop and owner.usable:
            return owner
        if self._closed:
            raise ServiceUnavailable(f"functions.{self._name} has been closed.")
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        async with self._lock[1]:
            owner = self._owner
            if owner is not None and owner.loop is loop:
                if owner.usable:
                    return owner
                await owner.close()
                self._failures = 0 if owner.answered else self._failures + 1
            await asyncio.sleep(_PAUSES[min(self._failures, len(_PAUSES) - 1)])
            self._owner = owner = _Owner(self._name, self._settings, self._heard)
            try:
                await owner.start(self._started)
            except BaseException:
                await owner.close()
                raise
            return owner

    async def aclose(self) -> None:
        """End the server, or leave it; a second call does nothing."""
        self._closed = True
        if self._owner is not None and self._owner.loop is asyncio.get_running_loop():
            await self._owner.close()


class _Owner:
    """Owns one client, in one task, from the start of the server to its end."""

    def __init__(self, name: str, settings: MCPSettings, heard: Callable[[object], Awaitable[None]]) -> None:
        self._name, self._settings, self._listener = name, settings, heard
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Client] = self.loop.create_future()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._process: Any = None
        self._problem = ""
        self.answered = False

    @property
    def ended(self) -> bool:
        """Whether the server ended, or cannot be spoken to any more."""
        return bool(self._problem or (self._process is not None and self._process.problem))

    @property
    def usable(self) -> bool:
        ready = self.ready.done() and not self.ready.cancelled() and self.ready.exception() is None
        return ready and not self.ended and not self._stop.is_set()

    def lost(self, error: Exception) -> bool:
        """Tell whether the server ended, or an error means that one behind a URL has forgotten this session."""
        if str(error) == "the server has ended the session":
            self._problem = str(error)
        return self.ended

    async def start(self, started: Callable[[Client], Awaitable[None]]) -> None:
        """Start the server and shake hands. Raises ``ConfigurationError`` and ``ServiceError`` where that fails."""
        seconds = self._settings.start_timeout
        self._task = asyncio.create_task(self._own())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait([self.ready])
                if self.ready.cancelled():
                    raise ServiceUnavailable(f"functions.{self._name} has been closed.")
                client = self.ready.result()
                await started(client)
        except TimeoutError as error:
            raise ServiceTimeout(
                f"functions.{self._name}: the server did not start within {seconds:g} seconds.{await self._heard()}"
            ) from error
        except PorticoError:
            raise
        except Exception as error:
            raise await self._failed(error) from error

    async def _failed(self, error: Exception) -> PorticoError:
        """Return what is to be said of an error at the start."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        settings, said = self._settings, f"functions.{self._name}"
        if settings.command is not None:
            if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
                return ConfigurationError(f"{said}: {settings.command!r} cannot be started: {error.strerror}.")
            gone = self.ended or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED)
            # Where it has not ended yet, closing is what ends it, and no reason.
            if gone and (reason := await self.close()):
                failed = ServiceUnavailable(f"{said}: the server did not start; {reason}.{await self._heard()}")
                return _too_large(said, reason) or failed
        if isinstance(error, ValidationError):
            return ResponseInvalid(f"{said}: the server's answer is not of the protocol: {_first_fault(error)}.")
        reason = _in_words(error, settings) or f"{type(error).__name__}."
        if settings.command is not None:
            return ServiceError(f"{said}: the server cannot be used: {reason}")
        failed = ServiceUnavailable(f"{said}: {settings.place} cannot be used as a server: {reason}")
        return _denied(said, settings, error) or _too_large(said, str(error)) or failed

    async def _heard(self) -> str:
        """Return the last words of the server; they may come a moment after its end."""
        if self._process is None:
            return ""
        for _ in range(20):
            if self._process.words:
                break
            await asyncio.sleep(0.01)
        words = show("\n".join(self._process.words), self._settings)
        return f" Its last words: {words}" if words else ""

    async def close(self) -> str:
        """End the server and return what had ended the exchange before, "" where nothing had."""
        if self._process is not None and not self._process.problem and self._task is not None:
            # The end of the pipe is seen a moment before how the process ended.
            await asyncio.wait([self._task], timeout=0)
        self._stop.set()
        if self._task is not None:
            if not self.ready.done():
                # It may wait for the answer of a server that gives none.
                self._task.cancel()
            await asyncio.wait([self._task])
        if not self.ready.done():
            self.ready.cancel()
        elif not self.ready.cancelled():
            self.ready.exception()
        return self._problem or (self._process.problem if self._process is not None else "")

    async def _own(self) -> None:
        try:
            async with self._client() as client:
                self.ready.set_result(client)
                await self._stop.wait()
        except Exception as ended:  # noqa: BLE001 - whatever ends it is told to those who wait
            error = ended
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            if not self.ready.done():
                self.ready.set_exception(error)
            else:
                _log.debug("functions.%s: the connection ended", self._name, exc_info=True)
                self._problem = self._problem or clean(str(error)) or type(error).__name__
        finally:
            if not self.ready.done():
                self.ready.cancel()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp_types import Implementation

        settings = self._settings
        # Without a handler, Python would print what the SDK logs of a server's faults, tracebacks too.
        if not (log := logging.getLogger("mcp")).handlers:
            log.addHandler(logging.NullHandler())
        known: Mapping[str, Any] = {
            "cache": None,
            "message_handler": self._listener,
            "client_info": Implementation(name="portico", version=version("portico-mcp")),
            "read_timeout_seconds": settings.timeout,
        }
        if settings.command is not None:
            from portico_mcp._client.process import Process

            self._process = Process(
                (settings.command, *settings.args), settings.env, settings.folder, settings.maximum_result_bytes
            )
            async with Client(self._process.open(), **known) as client:
                yield _unchecked(client)
            return
        from portico_mcp._client.http import open_client

        async with open_client(settings) as http:
            transport = streamable_http_client(
                str(settings.url), http_client=http, max_sse_event_size=settings.maximum_result_bytes
            )
            async with Client(transport, **known) as client:
                yield _unchecked(client)


def _unchecked(client: Client) -> Client:
    """Return the client, without its own check of results: a server may have made a pattern that never ends.

    The functions check results with the kernel's schema validator, whose work is bounded. Of a list, the client gets
    the entries that are of the protocol; it would refuse all for one that is not.
    """

    async def accept(name: str, result: Any) -> None:
        return None

    async def ask(method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        raw, key = await send(method, params, opts), _LISTED.get(method, "")
        return _readable(raw, method, key, client.protocol_version) if isinstance(raw.get(key), list) else raw

    dispatcher = client.session._dispatcher  # noqa: SLF001 - nothing public gives what a server said as it is
    send, dispatcher.send_raw_request = dispatcher.send_raw_request, ask  # type: ignore[method-assign]
    client.session.validate_tool_result = accept  # type: ignore[method-assign]
    return client


def _readable(raw: Mapping[str, Any], method: str, key: str, version: str) -> dict[str, Any]:
    """Return a page of a list with the entries that are of the protocol; ``_meta`` has name and fault of the others."""
    from mcp_types.methods import parse_server_result
    from pydantic import ValidationError

    kept, lost = [], []
    for number, each in enumerate(raw[key]):
        try:
            parse_server_result(method, version, {**raw, key: [each]})
        except ValidationError as error:
            if error.errors()[0]["loc"][:2] == (key, 0):
                name = str(each.get("name", "") if isinstance(each, Mapping) else "")
                fault = _first_fault(error).replace(f"{key}.0", f"{key}.{number}", 1)
                lost.append((name, f"it is not of the protocol: {fault}"))
                continue
        kept.append(each)
    return {**raw, key: kept, "_meta": {LOST: lost}}


def show(text: str, settings: MCPSettings) -> str:
    """Return what a server said for people: cleaned, and without the secrets that it was given."""
    hidden = [each for each in (*settings.env.values(), *settings.headers.values()) if each.reveal()]
    text = text if settings.url is None else text.replace(settings.url, settings.place)
    return clean(Secret.redact(text, hidden))


def _in_words(error: Exception, settings: MCPSettings) -> str:
    """Return what an error says as a sentence. The SDK quotes at length what it could not read."""
    if re.match("Failed to parse .*validation error", str(error)):
        return "the answer is no message of the protocol."
    return sentence(show(str(error), settings))


def _too_large(said: str, reason: str) -> LimitExceeded | None:
    """Return the error for a reason that is the size of a message."""
    if not _TOO_LARGE.fullmatch(reason):
        return None
    return LimitExceeded(f"{said}: {sentence(reason)} `maximum_result_bytes` says how large one may be.")


def _denied(said: str, settings: MCPSettings, error: Exception) -> AuthenticationFailed | None:
    """Return the error for an answer that asks for a key."""
    status = re.fullmatch("the server answers (401|403)", str(error))
    if status is None:
        return None
    return AuthenticationFailed(f"{said}: {settings.place} answers {status[1]}; set `headers`, such as Authorization.")


def _first_fault(error: Any) -> str:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    return clean(f"{place}: {fault['msg']}", 300)
