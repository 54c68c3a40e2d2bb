"""The documents of one description, and what a reference between them leads to."""

from __future__ import annotations

import asyncio
import re
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from portico.errors import ConfigurationError
from portico_openapi._parsing import Parsed, parse
from portico_openapi._servers import origin_of
from portico_openapi._wrong import Twice, Wrong, shown

_MOST_HOPS = 50
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Target(NamedTuple):
    """What a reference leads to: the value, the document it stands in, and its name there."""

    value: Any
    uri: str
    pointer: str


class Documents:
    """The root document and all that it refers to, read already: following a reference opens nothing.

    >>> root = Parsed({"a": {"b/c": [1, 2]}})
    >>> Documents("file:///d.json", {"file:///d.json": root}, {}).resolve("#/a/b~1c/1", "file:///d.json").value
    2
    """

    def __init__(self, root: str, parsed: Mapping[str, Parsed], failures: Mapping[str, str]) -> None:
        self.root_uri = root
        self.root: dict[str, Any] = parsed[root].value
        self._parsed = parsed
        self._failures = failures
        self._known: dict[tuple[str, str], Target] = {}
        self._hops = _MOST_HOPS

    def resolve(self, reference: Any, base: str) -> Target:
        """Return what ``reference`` in the document ``base`` leads to. Raises `Wrong` when that is nothing."""
        if type(reference) is not str:
            problem = str(reference) if type(reference) is Twice else "a reference is text"
            raise Wrong(problem, ("$ref",))
        known = self._known.get((base, reference))
        if known is None:
            self._hops = _MOST_HOPS
            known = self._known[base, reference] = self._resolved(reference, base)
        return known

    def follow(self, value: Any, base: str, *, texts: bool = True) -> Target:
        """Follow the reference that may stand for an object, and those behind it, to the object itself.

        In OpenAPI 3.1 ``summary`` and ``description`` beside a reference take the place of the object's own.
        """
        target = Target(value, base, "")
        beside: dict[str, Any] = {}
        for _ in range(_MOST_HOPS):
            if type(target.value) is not dict or "$ref" not in target.value:
                break
            if texts:
                own = {key: target.value[key] for key in ("summary", "description") if key in target.value}
                beside = {**own, **beside}
            target = self.resolve(target.value["$ref"], target.uri)
        else:
            raise Wrong(f"its references lead to each other, or through more than {_MOST_HOPS} others", ("$ref",))
        if beside and type(target.value) is dict:
            return target._replace(value={**target.value, **beside})
        return target

    def _resolved(self, reference: str, base: str) -> Target:
        try:
            uri, fragment = urldefrag(urljoin(base, reference) if reference[:1] != "#" else base + reference)
            fragment = unquote(fragment, errors="strict")
        except ValueError:
            raise Wrong(f"{shown(reference)!r} is no reference", ("$ref",)) from None
        if uri not in self._parsed:
            raise Wrong(f"{shown(reference)!r}: {self._failures.get(uri, 'the document was not read')}", ("$ref",))
        if fragment[:1] not in ("", "/"):
            raise Wrong(f"{shown(reference)!r} leads nowhere: anchors are not followed", ("$ref",))
        return self._at(Target(self._parsed[uri].value, uri, ""), fragment, reference)

    def _at(self, start: Target, pointer: str, reference: str) -> Target:
        """Walk a JSON Pointer (RFC 6901); what stands behind a reference on the way counts too."""
        value = start.value
        tokens = pointer.split("/")[1:]
        for number, token in enumerate(tokens):
            key = token.replace("~1", "/").replace("~0", "~")
            if type(value) is dict and key in value:
                value = value[key]
            elif type(value) is list and _INDEX.fullmatch(key) and int(key) < len(value):
                value = value[int(key)]
            elif type(value) is dict and type(value.get("$ref")) is str and self._hops:
                self._hops -= 1
                behind = self._resolved(value["$ref"], start.uri)
                return self._at(behind, "".join(f"/{part}" for part in tokens[number:]), reference)
            else:
                raise Wrong(f"{shown(reference)!r} leads nowhere: there is no {shown(key)!r}", ("$ref",))
        return Target(value, start.uri, start.pointer + pointer)


MOST_DOCUMENTS = 100

Fetch: TypeAlias = Callable[[str, int], Awaitable[tuple[bytes, str]]]
"""Fetches a URL, at most so many bytes: the content, and the URL that it came from. Raises `Wrong`."""

_URL_IN_PATH = re.compile(r"(?:^|[\\/])([A-Za-z][A-Za-z0-9+.-]+):[\\/]+(.+)", re.DOTALL)


def located(document: Path | str) -> str | Path:
    """Tell a URL from a file.

    Settings make paths of the configuration relative to its folder, a URL too: it stands behind the folder then,
    and its two slashes have become one.

    >>> located(Path("/etc/app/https:/api.example/openapi.json"))
    'https://api.example/openapi.json'
    """
    url = str(document)
    if isinstance(document, Path):
        found = _URL_IN_PATH.search(url)
        url = f"{found[1]}://{found[2]}".replace("\\", "/") if found else ""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", url) is None:
        return Path(document)
    if not url.casefold().startswith(("http://", "https://")):
        raise ConfigurationError(f"The document {shown(url)!r} cannot be read: give a file or an http(s) URL.")
    return urldefrag(url).url


async def read_documents(location: str | Path, fetch: Fetch, maximum_bytes: int) -> Documents:
    """Read the document at ``location`` and all that it refers to, one after the other.

    A document that it refers to and that may not or cannot be read costs no more than what refers to it. Raises
    ``ConfigurationError`` when the document itself cannot be read.
    """
    reader = _FolderReader(location) if isinstance(location, Path) else _OriginReader(location, fetch)
    try:
        root, parsed, left = await reader.first(maximum_bytes)
    except Wrong as error:
        raise ConfigurationError(f"The OpenAPI document {location} cannot be read: {error}.") from error
    documents: dict[str, Parsed] = {root: parsed}
    failures: dict[str, str] = {}
    queue = deque([(root, reference) for reference in parsed.outward])
    while queue:
        base, reference = queue.popleft()
        try:
            uri = urldefrag(urljoin(base, reference)).url
        except ValueError:
            continue
        if uri in documents or uri in failures:
            continue
        try:
            if len(documents) + len(failures) > MOST_DOCUMENTS:
                raise Wrong(f"the document refers to more than {MOST_DOCUMENTS} others")
            found, left = await reader.further(uri, left)
        except Wrong as error:
            failures[uri] = str(error)
            continue
        documents[uri] = found
        queue += [(uri, further) for further in found.outward]
    return Documents(root, documents, failures)


class _FolderReader:
    """Reads files of the document's folder and of those inside it, none from anywhere else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path

    async def first(self, maximum_bytes: int) -> tuple[str, Parsed, int]:
        def read() -> tuple[str, Parsed, int]:
            try:
                path = self._path.expanduser().resolve()
            except (OSError, RuntimeError, ValueError) as error:
                raise Wrong(str(error)) from error
            self._folder = path.parent
            content = _content(path, maximum_bytes)
            uri = path.as_uri()
            return uri, parse(content, uri), maximum_bytes - len(content)

        return await asyncio.to_thread(read)

    async def further(self, uri: str, left: int) -> tuple[Parsed, int]:
        def read() -> tuple[Parsed, int]:
            parts = urlsplit(uri)
            if parts.scheme != "file" or parts.netloc:
                raise Wrong("a file may refer to files only")
            try:
                path = Path(_path_of(parts.path)).resolve()
            except (OSError, RuntimeError, ValueError) as error:
                raise Wrong(str(error)) from error
            if not path.is_relative_to(self._folder):
                raise Wrong("it lies outside the folder of the document")
            content = _content(path, left)
            return parse(content, uri), left - len(content)

        return await asyncio.to_thread(read)


class _OriginReader:
    """Fetches from the document's origin, and from nowhere else."""

    def __init__(self, url: str, fetch: Fetch) -> None:
        self._url = url
        self._fetch = fetch

    async def first(self, maximum_bytes: int) -> tuple[str, Parsed, int]:
        content, self._url = await self._fetch(self._url, maximum_bytes)
        parsed = await asyncio.to_thread(parse, content, self._url)
        return self._url, parsed, maximum_bytes - len(content)

    async def further(self, uri: str, left: int) -> tuple[Parsed, int]:
        if origin_of(uri) is None or origin_of(uri) != origin_of(self._url):
            raise Wrong("it is not of the document's origin")
        content, came_from = await self._fetch(uri, left)
        if origin_of(came_from) != origin_of(self._url):
            raise Wrong("it is not of the document's origin")
        return await asyncio.to_thread(parse, content, uri), left - len(content)


def _content(path: Path, maximum_bytes: int) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Wrong("it is no file")
        with path.open("rb") as stream:
            content = stream.read(maximum_bytes + 1)
    except OSError as error:
        raise Wrong((error.strerror or str(error)).lower()) from error
    except ValueError as error:
        raise Wrong(f"its name is no path: {error}") from error
    if len(content) > maximum_bytes:
        raise Wrong(f"it has more than {maximum_bytes:,} bytes; the setting maximum_document_bytes allows more")
    return content


def _path_of(path: str) -> str:
    """Turn the path of a file URL into one of this system."""
    unquoted = unquote(path)
    return unquoted[1:] if re.match(r"/[A-Za-z]:", unquoted) else unquoted
