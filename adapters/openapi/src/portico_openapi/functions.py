"""The FunctionSource on an OpenAPI document."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from portico import Function, FunctionLabels, FunctionPlugin
from portico.errors import ConfigurationError, nearest
from portico.plugins import Secret, Services
from portico_openapi._bodies import read_body
from portico_openapi._calls import Call, encode_path
from portico_openapi._client import Client
from portico_openapi._documents import Documents, Layers, parse_location, read_documents
from portico_openapi._errors import Unusable, describe, mapping, shorten, show, truth
from portico_openapi._names import function_names
from portico_openapi._parameters import read_parameters
from portico_openapi._responses import read_responses
from portico_openapi._schemas import Schemas
from portico_openapi._security import Credentials
from portico_openapi._servers import Server, Servers
from portico_openapi._validation import compile_unchecked
from portico_openapi.config import OpenAPISettings

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_WITHOUT_EFFECTS = frozenset({"get", "head", "options", "trace"})
_LONGEST_DESCRIPTION = 1_000
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class LostOperation:
    """An operation that did not become a function: method and path, and why."""

    operation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operation} ({self.reason})"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation as it stands in a document: ``layers`` are its objects, ``item`` those of its path.

    ``value`` is what the layers say together; references in it do not count, since each is relative to its document.
    What cannot be read has a ``problem``, and a path that cannot has no method.
    """

    method: str
    path: str
    item: Layers = field(default_factory=list)
    layers: Layers = field(default_factory=list)
    value: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    problem: str | None = None

    def layer(self, key: str) -> tuple[Mapping[str, Any], str]:
        """Return the object that has ``key``, and its document."""
        return next((layer for layer in self.layers if layer[0].get(key) is not None), self.layers[-1])

    @property
    def label(self) -> str:
        """Method and path, as people write them; a path holds no secret."""
        return f"{self.method.upper()} {show(self.path)}".strip() or "a path without a name"

    @property
    def id(self) -> str | None:
        """The operation id; None without a usable one."""
        id = self.value.get("operationId")
        return id if type(id) is str else None

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that are texts."""
        tags = self.value.get("tags")
        return tuple(tag for tag in tags if type(tag) is str) if type(tags) is list else ()

    def is_meant_by(self, entry: str) -> bool:
        """Return whether an entry of the settings names it by id, function name, tag, or method and path."""
        if any(word == entry or fnmatchcase(word, entry) for word in (self.id, self.name, *self.tags) if word):
            return True
        wanted, space, pattern = entry.partition(" ")
        if not space:
            wanted, pattern = "", entry
        if wanted.casefold() not in ("", "*", self.method.casefold()) or pattern[:1] not in ("/*" if space else "/"):
            return False
        parts = re.split(r"(\*\*?)", pattern)
        expression = "".join({"*": "[^/]*", "**": ".*"}.get(part) or re.escape(part) for part in parts)
        return re.fullmatch(expression, self.path) is not None


def operations_of(documents: Documents, paths: Mapping[str, Any]) -> list[Operation]:
    """Return the operations; all have their names before any is left out, so that leaving one out renames no other."""
    found: dict[str, list[Operation]] = {"$ref": []}
    layers: Layers = [(dict(paths), documents.root_uri)]
    try:
        layers = documents.layers(paths, documents.root_uri)
    except Unusable as error:
        found["$ref"] = [Operation("", "$ref", problem=str(error))]
    for layer, base in layers:
        for path in [path for path in layer if path not in found]:
            try:
                found[path] = _in_item(documents, path, layer[path], base)
            except Unusable as error:
                found[path] = [Operation("", path, problem=str(error))]
    operations = [one for each in found.values() for one in each]
    names = iter(function_names((one.method, one.path, one.id) for one in operations if one.method))
    return [replace(one, name=next(names)) if one.method else one for one in operations]


def _in_item(documents: Documents, path: str, item: Any, base: str) -> list[Operation]:
    """Return the operations of a path."""
    if path[:1] != "/":
        if path.startswith("x-"):
            return []
        raise Unusable("a path begins with a slash")
    found: dict[str, Operation] = {}
    layers = documents.layers(item, base) if item is not None else []
    for part, uri in layers:
        for method in part:
            if method in _METHODS and method not in found:
                found[method] = _operation(documents, Operation(method, path, layers), part[method], uri)
    return list(found.values())


def _operation(documents: Documents, operation: Operation, value: Any, base: str) -> Operation:
    try:
        layers = documents.layers(value, base)
    except Unusable as error:
        return replace(operation, problem=str(error))
    whole = {key: part for layer, _ in reversed(layers) for key, part in layer.items()}
    return replace(operation, layers=layers, value=whole)


def select(entries: Sequence[str], operations: Sequence[Operation], setting: str) -> set[Operation]:
    """Return the operations that any of the entries means.

    An entry is an operation id, a function's name or a tag, ``*`` standing for anything; or a path, a method before
    it or not, where ``*`` stays inside one segment and ``**`` does not. Raises ``ConfigurationError`` for an entry
    that means nothing, with the nearest that would.
    """
    chosen: set[Operation] = set()
    for entry in entries:
        found = {one for one in operations if one.is_meant_by(entry)}
        if not found:
            words = [word for one in operations for word in (one.id, one.name, *one.tags, one.label, one.path) if word]
            names = nearest(entry, list(dict.fromkeys(words))) or [one.id or one.name for one in operations[:10]]
            hint = f"It has {', '.join(names) or 'none'}."
            raise ConfigurationError(f"{setting}: no operation of the document is {entry!r}. {hint}")
        chosen |= found
    return chosen


class OpenAPIFunctions:
    """Make a function of each operation of an OpenAPI 3.0 or 3.1 document.

    >>> import asyncio, json, pathlib, tempfile
    >>> document = {
    ...     "openapi": "3.1.0",
    ...     "info": {"title": "Clock", "version": "1"},
    ...     "servers": [{"url": "https://clock.example"}],
    ...     "paths": {"/hour": {"get": {"operationId": "hour", "summary": "Tell the hour."}}},
    ... }
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clock.json"
    >>> _ = path.write_text(json.dumps(document))
    >>> plugin = asyncio.run(OpenAPIFunctions(OpenAPISettings(document=path)).load("clock"))
    >>> [(function.full_name, function.description) for function in plugin]
    [('clock-hour', 'Tell the hour.')]

    An operation that is wrong in the document is lost, and nothing else is: ``lost`` has those of the latest
    ``load``, the plugin's description and a warning in the log tell of them. A client that is given is not closed.
    """

    def __init__(
        self, settings: OpenAPISettings, services: Services | None = None, *, client: httpx.AsyncClient | None = None
    ) -> None:
        self._settings = settings
        self._client = Client(client)
        self.lost: tuple[LostOperation, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Read the document and return its functions as the plugin ``name``.

        Raises ``ConfigurationError`` when the document cannot be read or is no OpenAPI 3, and for a setting that
        does not go with it.
        """
        settings = self._settings
        fetch = partial(self._client.fetch, settings.timeout)
        location = parse_location(settings.document)
        documents = await read_documents(location, fetch, settings.maximum_document_bytes)
        plugin, lost = await asyncio.to_thread(_Making(name, str(location), documents, settings, self._client).plugin)
        self.lost = lost
        if lost:
            _log.warning("functions.%s: %s", name, _list_lost(lost, len(plugin.functions)))
        return plugin

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class _Making:
    """Makes the plugin of a document that has been read."""

    def __init__(self, name: str, place: str, documents: Documents, settings: OpenAPISettings, client: Client) -> None:
        self._name = name
        self._settings = settings
        self._root = root = dict(documents.root)
        for key in ("info", "servers", "security"):
            with suppress(Unusable):
                root[key] = documents.follow(root.get(key), documents.root_uri).value
        old = _is_old(root, place)
        self._sent = Schemas(documents, "readOnly", old=old)
        self._received = Schemas(documents, "writeOnly", old=old)
        try:
            self._operations = operations_of(documents, mapping(root, "paths"))
        except Unusable as error:
            raise ConfigurationError(f"The OpenAPI document {place} cannot be used: {error}.") from error
        base = documents.root_uri
        self._servers = Servers(root, base, settings.server, settings.server_variables, name)
        headers: dict[str, str | Secret] = {**settings.headers, **settings.secret_headers}
        self._credentials = Credentials(documents, settings.credentials, headers, name)
        self._client = client

    def plugin(self) -> tuple[FunctionPlugin, tuple[LostOperation, ...]]:
        settings = {
            setting: select(getattr(self._settings, setting), self._operations, f"functions.{self._name}.{setting}")
            for setting in ("include", "exclude", "effects", "no_effects")
        }
        functions, lost = [], []
        for operation in self._operations:
            if operation in settings["exclude"] or (self._settings.include and operation not in settings["include"]):
                continue
            effects = operation.method not in _WITHOUT_EFFECTS and operation not in settings["no_effects"]
            try:
                functions.append(self._function(operation, effects=effects or operation in settings["effects"]))
            except Unusable as error:
                lost.append(LostOperation(operation.label, str(error)))
            except RecursionError:
                lost.append(LostOperation(operation.label, "it nests too deeply"))
        description = _about(self._root)
        self._servers.require_known_variables()
        if patterns := [show(pattern) for pattern in self._sent.unchecked]:
            listed = ", ".join(patterns[:_MOST_LISTED])
            _log.warning(
                "functions.%s: %d patterns are not checked before a call, since the engine RE2 does not have them: %s",
                self._name, len(patterns), listed,
            )  # fmt: skip
        if isinstance(self._servers.chosen, str):
            description += f" No server to call is known ({self._servers.chosen}): set `server`."
        if lost:
            description += f" {_list_lost(lost, len(functions))}"
        return FunctionPlugin(self._name, tuple(functions), description.strip()), tuple(lost)

    def _function(self, operation: Operation, *, effects: bool) -> Function:
        if operation.problem is not None:
            raise Unusable(operation.problem)
        value = operation.value
        server, trusted = self._servers.of(value, *(item for item, _ in operation.item))
        schemes = self._credentials.choose(value, self._root)
        lacking = None
        if isinstance(schemes, str):
            lacking = f"it needs credentials that are not configured, {schemes}. Set them in `credentials`."
            schemes = ()
        elif schemes and not trusted and isinstance(server, Server):
            lacking = (
                f"its server {show(server.url)!r} is of another origin than the document's, where alone secrets go. "
                "Configure the document once more, with this `server`."
            )
            schemes = ()
        levels = [*reversed(operation.item), *reversed(operation.layers)]
        sent = [
            one
            for one in read_parameters(levels, operation.path, self._sent)
            if not (trusted and self._credentials.fills(one.location, one.name, schemes))
        ]
        body = read_body(*operation.layer("requestBody"), self._sent, {one.parameter.name for one in sent})
        responses = read_responses(*operation.layer("responses"), self._received)
        call = Call(
            name=f"{self._name}-{operation.name}",
            label=operation.label,
            method=operation.method,
            path=encode_path(operation.path),
            sent=tuple(sent),
            body=body,
            responses=responses,
            server=server,
            schemes=schemes,
            trusted=trusted,
            lacking=lacking,
            effects=effects,
            client=self._client,
            credentials=self._credentials,
            settings=self._settings,
        )
        return Function(
            operation.name,
            call,
            plugin=self._name,
            description=_description(operation, lacking),
            parameters=[*(one.parameter for one in sent), *(body.parameters if body else ())],
            returns=compile_unchecked(responses.schema),
            effects=effects,
            tags=frozenset(operation.tags),
            # What is sent to a server can be read there, also where the operation has no effects.
            labels=FunctionLabels(reaches_out=isinstance(server, Server) and not _is_here(server.url)),
        )


def _is_here(url: str) -> bool:
    """Return whether a server is on this machine, so that what is sent to it does not leave the machine."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _is_old(root: Mapping[str, Any], place: str) -> bool:
    """Return whether a document is of OpenAPI 3.0. Raises ``ConfigurationError`` for anything but 3.0 and later."""
    written = root.get("openapi")
    if (version := re.match(r"3\.(\d{1,2})(?:\.|$)", str(written))) is not None:
        return version[1] == "0"
    found = f"`openapi` is {describe(written)}; expected 3.0 or 3.1"
    if "swagger" in root:
        found = f"it is Swagger {describe(root['swagger'])}; convert it to OpenAPI 3"
    raise ConfigurationError(f"{place} is no OpenAPI 3 document: {found}.")


def _about(root: Mapping[str, Any]) -> str:
    """Return the title of the service and the first paragraph about it."""
    info = root.get("info")
    found = info if isinstance(info, dict) else {}
    texts = (found.get("title"), found.get("description") or found.get("summary"))
    title, words = (text.strip() if isinstance(text, str) else "" for text in texts)
    first = " ".join(words.split("\n\n")[0].split())
    return shorten(f"{_sentence(title)} {first}".strip(), _LONGEST_DESCRIPTION)


def _description(operation: Operation, lacking: str | None) -> str:
    texts = [operation.value.get(key) for key in ("summary", "description")]
    said = list(dict.fromkeys(_sentence(text.strip()) for text in texts if isinstance(text, str) and text.strip()))
    words = shorten("\n\n".join(said) or f"{operation.label}.", _LONGEST_DESCRIPTION)
    if truth(operation.value.get("deprecated")) is True:
        words = f"Deprecated. {words}"
    return f"{words}\n\nIt cannot be called: {lacking}" if lacking else words


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", ":", "…")) else f"{text}."


def _list_lost(lost: Sequence[LostOperation], usable: int) -> str:
    shown_ones = "; ".join(str(one) for one in lost[:_MOST_LISTED])
    more = f"; and {len(lost) - _MOST_LISTED} more" if len(lost) > _MOST_LISTED else ""
    return f"{len(lost)} of {usable + len(lost)} operations are lost: {shown_ones}{more}."
