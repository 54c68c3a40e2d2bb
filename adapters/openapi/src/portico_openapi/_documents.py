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
from urllib.request import url2pathname

from portico.errors import ConfigurationError
from portico_openapi._parsing import parse
from portico_openapi._servers import origin_of
from portico_openapi._wrong import Wrong, shown

_MOST_HOPS = 50
_MOST_DOCUMENTS = 100
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_URL_IN_PATH = re.compile(r"(?:^|[\\/])([A-Za-z][A-Za-z0-9+.-]+):[\\/]+(.+)", re.DOTALL)

Fetch: TypeAlias = Callable[[str, int], Awaitable[tuple[bytes, str]]]
"""Fetches a URL, at most so many bytes: the content, and the URL that it came from. Raises `Wrong`."""


class Target(NamedTuple):
    """What a reference leads to: the value, the document it stands in, and its name there."""

    value: Any
    uri: str
    pointer: str


class Documents:
    """The root document and all that it refers to, read already: following a reference opens nothing.

    >>> documents = Documents("file:///d.json", {"file:///d.json": {"a": {"b/c": [1, 2]}}}, {})
    >>> documents.resolve("#/a/b~1c/1", "file:///d.json").value
    2
    """

    def __init__(self, root: str, values: Mapping[str, dict[str, Any]], failures: Mapping[str, str]) -> None:
        self.root_uri = root
        self.root = values[root]
        self._values = values
        self._failures = failures
        self._known: dict[tuple[str, str], Target] = {}

    def resolve(self, reference: Any, base: str) -> Target:
        """Return what ``reference`` in the document ``base`` leads to. Raises `Wrong` when that is nothing."""
        if type(reference) is not str:
            raise Wrong("a reference is text", ("$ref",))
        known = self._known.get((base, reference))
        if known is None:
            try:
                known = self._known[base, reference] = self._resolve(reference, base)
            except Wrong as error:
                raise Wrong(f"{shown(reference)!r}{error}", ("$ref",)) from None
        return known

    def follow(self, value: Any, base: str) -> Target:
        """Follow the reference that may stand for an object, and those behind it, to the object itself."""
        target = Target(value, base, "")
        for _ in range(_MOST_HOPS):
            if type(target.value) is not dict or "$ref" not in target.value:
                return target
            target = self.resolve(target.value["$ref"], target.uri)
        raise Wrong(f"its references lead to each other, or through more than {_MOST_HOPS} others", ("$ref",))

    def _resolve(self, reference: str, base: str) -> Target:
        """Walk a JSON Pointer (RFC 6901); what stands behind a reference on the way counts too."""
        uri, pointer = self._split(reference, base)
        value: Any = self._values[uri]
        tokens = deque(pointer.split("/")[1:])
        hops = _MOST_HOPS
        while tokens:
            key = tokens[0].replace("~1", "/").replace("~0", "~")
            if type(value) is dict and key in value:
                value = value[key]
            elif type(value) is list and _INDEX.fullmatch(key) and int(key) < len(value):
                value = value[int(key)]
            elif type(value) is dict and type(value.get("$ref")) is str and hops:
                hops -= 1
                uri, pointer = self._split(value["$ref"], uri)
                pointer = "/".join([pointer, *tokens])
                value, tokens = self._values[uri], deque(pointer.split("/")[1:])
                continue
            else:
                raise Wrong(f" leads nowhere: there is no {shown(key)!r}")
            tokens.popleft()
        return Target(value, uri, pointer)

    def _split(self, reference: str, base: str) -> tuple[str, str]:
        """Return the document and the pointer that a reference names."""
        try:
            uri, fragment = urldefrag(urljoin(base, reference) if reference[:1] != "#" else base + reference)
            pointer = unquote(fragment, errors="strict")
        except ValueError:
            raise Wrong(" is no reference") from None
        if uri not in self._values:
            raise Wrong(f": {self._failures.get(uri, 'the document was not read')}")
        if pointer[:1] not in ("", "/"):
            raise Wrong(" leads nowhere: anchors are not followed")
        return uri, pointer


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
    try:
        if isinstance(location, Path):
            content, root = await asyncio.to_thread(_read_file, location, maximum_bytes)
        else:
            content, root = await fetch(location, maximum_bytes)
        value, outward = await asyncio.to_thread(parse, content, root)
    except Wrong as error:
        raise ConfigurationError(f"The OpenAPI document {location} cannot be read: {error}.") from error
    values = {root: value}
    failures: dict[str, str] = {}
    left = maximum_bytes - len(content)
    queue = deque((root, reference) for reference in outward)
    while queue:
        base, reference = queue.popleft()
        try:
            uri = urldefrag(urljoin(base, reference)).url
        except ValueError:
            continue
        if uri in values or uri in failures:
            continue
        try:
            if len(values) + len(failures) > _MOST_DOCUMENTS:
                raise Wrong(f"the document refers to more than {_MOST_DOCUMENTS} others")
            content = await _read_further(uri, root, fetch, left)
            values[uri], outward = await asyncio.to_thread(parse, content, uri)
        except Wrong as error:
            failures[uri] = str(error)
            continue
        left -= len(content)
        queue += [(uri, further) for further in outward]
    return Documents(root, values, failures)


async def _read_further(uri: str, root: str, fetch: Fetch, maximum_bytes: int) -> bytes:
    """Read a document that another refers to: from the root's folder and below or from its origin, nowhere else."""
    if origin_of(root) is None:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc:
            raise Wrong("a file may refer to files only")
        folder = Path(url2pathname(urlsplit(root).path)).parent
        content, _ = await asyncio.to_thread(_read_file, Path(url2pathname(parts.path)), maximum_bytes, folder)
        return content
    if origin_of(uri) == origin_of(root):
        content, came_from = await fetch(uri, maximum_bytes)
        if origin_of(came_from) == origin_of(root):
            return content
    raise Wrong("it is not of the document's origin")


def _read_file(path: Path, maximum_bytes: int, folder: Path | None = None) -> tuple[bytes, str]:
    """Return a file's content and its URI; it must lie in ``folder``, where that is given, links followed."""
    try:
        path = path.expanduser().resolve() if folder is None else path.resolve()
        if folder is not None and not path.is_relative_to(folder):
            raise Wrong("it lies outside the folder of the document")
        if not stat.S_ISREG(path.stat().st_mode):
            raise Wrong("it is no file")
        with path.open("rb") as stream:
            content = stream.read(maximum_bytes + 1)
    except OSError as error:
        raise Wrong((error.strerror or str(error)).lower()) from error
    except (RuntimeError, ValueError) as error:
        raise Wrong(f"its name is no path: {error}") from error
    if len(content) > maximum_bytes:
        raise Wrong(f"it has more than {maximum_bytes:,} bytes; the setting maximum_document_bytes allows more")
    return content, path.as_uri()
