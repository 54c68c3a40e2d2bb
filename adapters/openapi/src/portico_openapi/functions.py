"""The FunctionSource on an OpenAPI document."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from portico import Function, FunctionPlugin
from portico.errors import ConfigurationError, nearest
from portico.plugins import Secret, Services
from portico_openapi._bodies import read_body
from portico_openapi._calls import Call, Caller, Plan, written_path
from portico_openapi._client import Client
from portico_openapi._documents import Documents, located, read_documents
from portico_openapi._names import function_names
from portico_openapi._parameters import read_parameters
from portico_openapi._responses import read_responses
from portico_openapi._schemas import Schemas
from portico_openapi._security import Credentials
from portico_openapi._servers import NoServer, Server, chosen_server, own_server
from portico_openapi._validation import unchecked
from portico_openapi._wrong import Twice, Wrong, described, mapping, shortened, shown
from portico_openapi.config import OpenAPISettings

if TYPE_CHECKING:
    import httpx


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class LostOperation:
    """An operation that did not become a function: method and path, and why."""

    operation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operation} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it stands in a document, with its path's item before it."""

    method: str
    path: str
    id: str | None
    tags: tuple[str, ...]
    name: str
    levels: tuple[tuple[Mapping[str, Any], str], ...]
    """The path's item and the operation, each with the document that it stands in."""

    @property
    def label(self) -> str:
        """Method and path, as people write them; a path holds no secret."""
        return f"{self.method.upper()} {shown(self.path)}"

    @property
    def value(self) -> Mapping[str, Any]:
        """The operation object."""
        return self.levels[-1][0]

    @property
    def base(self) -> str:
        """The document that it stands in."""
        return self.levels[-1][1]


@dataclass(frozen=True, slots=True)
class _Found:
    method: str
    path: str
    item: Mapping[str, Any]
    value: Any
    base: str


def operations_of(documents: Documents, paths: Mapping[str, Any]) -> tuple[list[Operation], list[LostOperation]]:
    """Return the operations and what is wrong in ``paths`` itself.

    Names are given to all before any is left out, so that leaving one out renames no other.
    """
    lost: list[LostOperation] = []
    found: list[_Found] = []
    for path, item in paths.items():
        if path[:1] == "/":
            try:
                found += _in_item(documents, path, item)
            except Wrong as error:
                lost.append(LostOperation(shown(path), str(error)))
        elif not path.startswith("x-"):
            lost.append(LostOperation(shown(path) or "a path without a name", "a path begins with a slash"))
    ids = [one.value.get("operationId") if type(one.value) is dict else None for one in found]
    texts = [id if type(id) is str else None for id in ids]
    names = function_names((one.method, one.path, id) for one, id in zip(found, texts, strict=True))
    operations = []
    for one, id, name in zip(found, texts, names, strict=True):
        if type(one.value) is dict:
            levels = ((one.item, one.base), (one.value, one.base))
            operations.append(Operation(one.method, one.path, id, _tags(one.value), name, levels))
        else:
            problem = str(one.value) if type(one.value) is Twice else described(one.value)
            label = f"{one.method.upper()} {shown(one.path)}"
            lost.append(LostOperation(label, f"expected an operation, not {problem}"))
    return operations, lost


def _in_item(documents: Documents, path: str, item: Any) -> Iterator[_Found]:
    """Yield the operations of a path; what stands beside a reference counts as well, and first."""
    if item is None:
        return
    parts: Sequence[tuple[Any, str]] = [(item, documents.root_uri)]
    if type(item) is dict and "$ref" in item:
        behind = documents.follow(item, documents.root_uri, texts=False)
        parts = [*parts, (behind.value, behind.uri)]
    seen: set[str] = set()
    for part, base in parts:
        if type(part) is not dict:
            raise Wrong(
                str(part) if type(part) is Twice else f"expected the operations of a path, not {described(part)}"
            )
        for method, value in part.items():
            if method in METHODS and method not in seen:
                seen.add(method)
                yield _Found(method, path, part, value, base)


def _tags(operation: Mapping[str, Any]) -> tuple[str, ...]:
    tags = operation.get("tags")
    return tuple(tag for tag in tags if type(tag) is str) if type(tags) is list else ()


def selected(
    entries: Sequence[str], operations: Sequence[Operation], setting: str, *, further: Iterable[str] = ()
) -> set[str]:
    """Return the names of the functions that any of the entries means.

    An entry is an operation id, a function's name or a tag, ``*`` standing for anything; or a path, a method before
    it or not, where ``*`` stays inside one segment and ``**`` does not. ``further`` are labels, as ``GET /pets``, of
    operations that are lost: to name one is no mistake. Raises ``ConfigurationError`` for an entry that means
    nothing, with the nearest that would.
    """
    chosen: set[str] = set()
    lost = tuple(further)
    for entry in entries:
        found = {operation.name for operation in operations if _means(entry, operation)}
        if not found and not any(names_path([entry], label) for label in lost):
            raise ConfigurationError(
                f"{setting}: no operation of the document is {entry!r}. {_hint(entry, operations)}"
            )
        chosen |= found
    return chosen


def names_path(entries: Iterable[str], label: str) -> bool:
    """Return whether an entry means what has only a path, or a method and a path, as ``GET /pets``."""
    method, _, path = label.rpartition(" ")
    return any(_is_path(entry, method, path) for entry in entries)


def _means(entry: str, operation: Operation) -> bool:
    if _is_path(entry, operation.method, operation.path):
        return True
    return any(
        word == entry or fnmatchcase(word, entry)
        for word in (operation.name, operation.id, *operation.tags)
        if word is not None
    )


def _is_path(entry: str, method: str, path: str) -> bool:
    wanted, space, pattern = entry.partition(" ")
    if not space:
        wanted, pattern = "*", entry
    if pattern[:1] not in ("/", "*") or (pattern[:1] == "*" and not space):
        return False
    if wanted != "*" and (wanted.casefold() not in METHODS or wanted.casefold() != method.casefold()):
        return False
    return re.fullmatch(_expression(pattern), path) is not None


def _expression(pattern: str) -> str:
    parts = re.split(r"(\*\*?)", pattern)
    return "".join({"*": "[^/]*", "**": ".*"}.get(part) or re.escape(part) for part in parts)


def _hint(entry: str, operations: Sequence[Operation]) -> str:
    words = [word for one in operations for word in (one.id, one.name, *one.tags, one.label, one.path) if word]
    near = nearest(entry, list(dict.fromkeys(words)))
    if near:
        return f"Nearest: {', '.join(near)}."
    return f"It has: {', '.join(one.id or one.name for one in operations[:10]) or 'none'}."


_log = logging.getLogger(__name__)

_WITHOUT_EFFECTS = frozenset({"get", "head", "options", "trace"})
_LONGEST_DESCRIPTION = 1_000
_MOST_TOLD = 5


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

        async def fetch(url: str, maximum_bytes: int) -> tuple[bytes, str]:
            return await self._client.fetch(url, seconds=settings.timeout, maximum_bytes=maximum_bytes)

        location = located(settings.document)
        documents = await read_documents(location, fetch, settings.maximum_document_bytes)
        plugin, lost = await asyncio.to_thread(_Making(name, str(location), documents, settings, self._client).plugin)
        self.lost = lost
        if lost:
            _log.warning("functions.%s: %s", name, _told(lost, len(plugin.functions)))
        return plugin

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class _Making:
    """Makes the plugin of a document that has been read."""

    def __init__(self, name: str, place: str, documents: Documents, settings: OpenAPISettings, client: Client) -> None:
        self._name = name
        self._settings = settings
        self._documents = documents
        root = documents.root
        self._schemas = Schemas(documents, old=_version(root, place) == (3, 0))
        try:
            self._paths = mapping(root, "paths")
        except Wrong as error:
            raise ConfigurationError(f"The OpenAPI document {place} cannot be used: {error}.") from error
        base = documents.root_uri
        self._server = chosen_server(root, base, settings.server, settings.server_variables, name)
        headers: dict[str, str | Secret] = {**settings.headers, **settings.secret_headers}
        self._credentials = Credentials(documents, settings.credentials, headers, name)
        self._caller = Caller(
            client, self._credentials, settings.timeout, settings.retries, settings.maximum_response_bytes
        )

    def plugin(self) -> tuple[FunctionPlugin, tuple[LostOperation, ...]]:
        operations, lost = operations_of(self._documents, self._paths)
        chosen = self._chosen(operations, lost)
        effects = self._with_effects(operations)
        functions = []
        if self._settings.include:
            lost = [one for one in lost if names_path(self._settings.include, one.operation)]
        lost = [one for one in lost if not names_path(self._settings.exclude, one.operation)]
        for operation in operations:
            if operation.name in chosen:
                try:
                    functions.append(self._function(operation, effects=operation.name in effects))
                except Wrong as error:
                    lost.append(LostOperation(operation.label, str(error)))
                except RecursionError:
                    lost.append(LostOperation(operation.label, "it nests too deeply"))
        description = _about(self._documents.root)
        if isinstance(self._server, NoServer):
            description += f" No server to call is known ({self._server.reason}): set `server`."
        if lost:
            description += f" {_told(lost, len(functions))}"
        return FunctionPlugin(self._name, tuple(functions), description.strip()), tuple(lost)

    def _chosen(self, operations: Sequence[Operation], lost: Sequence[LostOperation]) -> set[str]:
        settings, place = self._settings, f"functions.{self._name}"
        further = [one.operation for one in lost]
        included = selected(settings.include, operations, f"{place}.include", further=further)
        excluded = selected(settings.exclude, operations, f"{place}.exclude", further=further)
        return (included if settings.include else {operation.name for operation in operations}) - excluded

    def _with_effects(self, operations: Sequence[Operation]) -> set[str]:
        settings, place = self._settings, f"functions.{self._name}"
        found = {operation.name for operation in operations if operation.method not in _WITHOUT_EFFECTS}
        found -= selected(settings.no_effects, operations, f"{place}.no_effects")
        return found | selected(settings.effects, operations, f"{place}.effects")

    def _function(self, operation: Operation, *, effects: bool) -> Function:
        value, base = operation.value, operation.base
        server, trusted = self._server_of(operation)
        schemes = self._credentials.choose(value, self._documents.root)
        lacking = None
        if isinstance(schemes, str):
            lacking = f"it needs credentials that are not configured, {schemes}. Set them in `credentials`."
            schemes = ()
        elif schemes and not trusted and isinstance(server, Server):
            lacking = (
                f"its server {shown(server.url)!r} is of another origin than the document's, where alone secrets go. "
                "Configure the document once more, with this `server`."
            )
            schemes = ()
        sent = [
            one
            for one in read_parameters(operation.levels, operation.path, self._schemas)
            if not (trusted and self._credentials.fills(one.location, one.name, schemes))
        ]
        body = read_body(value, base, self._schemas, {one.parameter.name for one in sent})
        responses = read_responses(value, base, self._schemas)
        plan = Plan(
            f"{self._name}-{operation.name}",
            operation.label,
            operation.method,
            written_path(operation.path),
            tuple(sent),
            body,
            responses,
            server,
            schemes,
            trusted,
            lacking,
            effects,
        )
        return Function(
            operation.name,
            Call(plan, self._caller),
            plugin=self._name,
            description=_description(operation, lacking),
            parameters=[*(one.parameter for one in sent), *(body.parameters if body else ())],
            returns=unchecked(responses.schema),
            effects=effects,
            tags=frozenset(operation.tags),
        )

    def _server_of(self, operation: Operation) -> tuple[Server | NoServer, bool]:
        """Return the server of an operation, and whether it is of the origin that secrets may go to.

        A URL in the settings is for every operation; otherwise those of the operation and its path come first.
        """
        setting = self._settings.server
        if isinstance(setting, str) and not setting.isdecimal():
            return self._server, True
        base = self._documents.root_uri
        parts = [level for level, _ in reversed(operation.levels)]
        own = own_server(parts, base, self._settings.server_variables)
        if own is None:
            return self._server, True
        return own, isinstance(self._server, Server) and own.origin == self._server.origin


def _version(root: Mapping[str, Any], place: str) -> tuple[int, int]:
    """Return major and minor version of OpenAPI. Raises ``ConfigurationError`` for anything but 3.0 and later."""
    written = root.get("openapi")
    words = str(written).split(".") if isinstance(written, str | float | int) else []
    if len(words) >= 2 and words[0] == "3" and words[1].isdecimal() and len(words[1]) < 3:
        return 3, int(words[1])
    if "swagger" in root:
        found = f"it is Swagger {root['swagger']}; convert it to OpenAPI 3"
    elif written is None:
        keys = ", ".join(shown(key) for key in list(root)[:5])
        found = f"it has no key `openapi`{f'; it has {keys}' if keys else ''}"
    else:
        found = str(written) if type(written) is Twice else f"`openapi` is {described(written)}; expected 3.0 or 3.1"
    raise ConfigurationError(f"{place} is no OpenAPI 3 document: {found}.")


def _about(root: Mapping[str, Any]) -> str:
    try:
        info = mapping(root, "info")
    except Wrong:
        return ""
    title, words = info.get("title"), info.get("description") or info.get("summary")
    first = " ".join(words.strip().split("\n\n")[0].split()) if isinstance(words, str) else ""
    heading = title.strip() if isinstance(title, str) else ""
    return shortened(f"{_sentence(heading)} {first}".strip(), _LONGEST_DESCRIPTION)


def _description(operation: Operation, lacking: str | None) -> str:
    texts = [operation.value.get(key) for key in ("summary", "description")]
    said = list(dict.fromkeys(_sentence(text.strip()) for text in texts if isinstance(text, str) and text.strip()))
    words = shortened("\n\n".join(said) or f"{operation.label}.", _LONGEST_DESCRIPTION)
    if operation.value.get("deprecated") is True:
        words = f"Deprecated. {words}"
    return f"{words}\n\nIt cannot be called: {lacking}" if lacking else words


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", ":", "…")) else f"{text}."


def _told(lost: Sequence[LostOperation], usable: int) -> str:
    shown_ones = "; ".join(str(one) for one in lost[:_MOST_TOLD])
    more = f"; and {len(lost) - _MOST_TOLD} more" if len(lost) > _MOST_TOLD else ""
    return f"{len(lost)} of {usable + len(lost)} operations are lost: {shown_ones}{more}."
