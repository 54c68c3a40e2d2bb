"""The documents of one description: how they are read, and what a reference between them leads to."""

from __future__ import annotations

import asyncio
import json
import math
import re
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import yaml

from portico.errors import ConfigurationError
from portico_openapi._errors import T, Unusable, Within, describe, show
from portico_openapi._servers import origin_of

_MOST_HOPS = 50
_MOST_DOCUMENTS = 5_000
_HALF = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_URL_IN_PATH = re.compile(r"(?:^|[\\/])([A-Za-z][A-Za-z0-9+.-]+):[\\/]+(.+)", re.DOTALL)

Layers: TypeAlias = list[tuple[dict[str, Any], str]]
"""The objects of a chain of references, each with the URI of its document: the one that refers comes first."""

Fetch: TypeAlias = Callable[[str, int], Awaitable[tuple[bytes, str]]]
"""Fetches a URL, at most so many bytes: the content, and the URL that it came from. Raises `Unusable`."""


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

    def __init__(self, root: str, values: Mapping[str, Any], failures: Mapping[str, str]) -> None:
        self.root_uri = root
        self.root: dict[str, Any] = values[root]
        self._values = values
        self._failures = failures
        self._known: dict[tuple[str, str], Target] = {}

    def resolve(self, reference: Any, base: str) -> Target:
        """Return what ``reference`` in the document ``base`` leads to. Raises `Unusable` when that is nothing."""
        if type(reference) is not str:
            raise Unusable("a reference is text", ("$ref",))
        known = self._known.get((base, reference))
        if known is None:
            try:
                known = self._known[base, reference] = self._resolve(reference, base)
            except Unusable as error:
                raise Unusable(f"{show(reference)!r}{error}", ("$ref",)) from None
        return known

    def follow(self, value: Any, base: str) -> Target:
        """Follow the reference that may stand for an object, and those behind it, to the object itself."""
        target = Target(value, base, "")
        for _ in range(_MOST_HOPS):
            if type(target.value) is not dict or "$ref" not in target.value:
                return target
            target = self.resolve(target.value["$ref"], target.uri)
        raise Unusable(f"its references lead to each other, or through more than {_MOST_HOPS} others", ("$ref",))

    def layers(self, value: Any, base: str) -> Layers:
        """Return an object and those behind its reference: what stands beside a reference counts, and first."""
        target = Target(value, base, "")
        found: Layers = []
        while type(target.value) is dict and len(found) < _MOST_HOPS:
            found.append((target.value, target.uri))
            if "$ref" not in target.value:
                return found
            target = self.resolve(target.value["$ref"], target.uri)
        raise Unusable(f"expected an object, not {describe(self.follow(value, base).value)}")

    def member(
        self, read: Callable[[Mapping[str, Any], str], T], parent: Mapping[str, Any], key: str, base: str
    ) -> tuple[T, str]:
        """Return what ``read`` makes of the member ``key``, perhaps a reference, and the document that it stands in."""
        with Within(key):
            value, uri, _ = self.follow(parent.get(key), base)
        return read({key: value}, key), uri

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
                raise Unusable(f" leads nowhere: there is no {show(key)!r}")
            tokens.popleft()
        return Target(value, uri, pointer)

    def _split(self, reference: str, base: str) -> tuple[str, str]:
        """Return the document and the pointer that a reference names."""
        try:
            uri, fragment = urldefrag(urljoin(base, reference) if reference[:1] != "#" else base + reference)
            pointer = unquote(fragment, errors="strict")
        except ValueError:
            raise Unusable(" is no reference") from None
        if uri not in self._values:
            raise Unusable(f": {self._failures.get(uri, 'the document was not read')}")
        if pointer[:1] not in ("", "/"):
            raise Unusable(" leads nowhere: anchors are not followed")
        return uri, pointer


def parse_location(document: Path | str) -> str | Path:
    """Tell a URL from a file.

    Settings make paths of the configuration relative to its folder, a URL too: it stands behind the folder then,
    and its two slashes have become one.

    >>> parse_location(Path("/etc/app/https:/api.example/openapi.json"))
    'https://api.example/openapi.json'
    """
    url = str(document)
    if isinstance(document, Path):
        found = _URL_IN_PATH.search(url)
        url = f"{found[1]}://{found[2]}".replace("\\", "/") if found else ""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", url) is None:
        return Path(document)
    if not url.casefold().startswith(("http://", "https://")):
        raise ConfigurationError(f"The document {show(url)!r} cannot be read: give a file or an http(s) URL.")
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
        value, outward = await asyncio.to_thread(parse, content)
        if type(value) is not dict:
            raise Unusable("it holds one value where an object is expected")
    except Unusable as error:
        raise ConfigurationError(f"The OpenAPI document {location} cannot be read: {error}.") from error
    values: dict[str, Any] = {root: value}
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
                raise Unusable(f"the document refers to more than {_MOST_DOCUMENTS} others")
            content = await _read_further(uri, root, fetch, left)
            values[uri], outward = await asyncio.to_thread(parse, content)
        except Unusable as error:
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
            raise Unusable("a file may refer to files only")
        folder = Path(url2pathname(urlsplit(root).path)).parent
        content, _ = await asyncio.to_thread(_read_file, Path(url2pathname(parts.path)), maximum_bytes, folder)
        return content
    if origin_of(uri) == origin_of(root):
        content, came_from = await fetch(uri, maximum_bytes)
        if origin_of(came_from) == origin_of(root):
            return content
    raise Unusable("it is not of the document's origin")


def _read_file(path: Path, maximum_bytes: int, folder: Path | None = None) -> tuple[bytes, str]:
    """Return a file's content and its URI; it must lie in ``folder``, where that is given, links followed."""
    try:
        path = path.expanduser().resolve() if folder is None else path.resolve()
        if folder is not None and not path.is_relative_to(folder):
            raise Unusable("it lies outside the folder of the document")
        if not stat.S_ISREG(path.stat().st_mode):
            raise Unusable("it is no file")
        with path.open("rb") as stream:
            content = stream.read(maximum_bytes + 1)
    except OSError as error:
        raise Unusable((error.strerror or str(error)).lower()) from error
    except (RuntimeError, ValueError) as error:
        raise Unusable(f"its name is no path: {error}") from error
    if len(content) > maximum_bytes:
        raise Unusable(f"it has more than {maximum_bytes:,} bytes; the setting maximum_document_bytes allows more")
    return content, path.as_uri()


_MOST_NODES = 1_000_000
"""Values in a document, what aliases repeat counted each time."""

_DEEPEST = 200

_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({"!", f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}binary"})
_PLAIN = frozenset(f"{_TAG}{name}" for name in ("int", "float", "bool", "null"))
_CONTAINERS = frozenset({"!", f"{_TAG}map", f"{_TAG}seq"})
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NUMBERS_BEGIN = frozenset("+-.0123456789")
_LONGEST_NUMBER = 400


def read_yaml(text: str) -> Any:
    """Return the value of the only document in ``text``.

    Raises `Unusable` with the line for anything that is not YAML, for a tag that makes more than JSON values, and
    for a document whose aliases make it larger than 1,000,000 values or that nests deeper than 200 levels.
    """
    try:
        return _Composer(yaml.parse(text, Loader=_Parser)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        # At its end the parser names the line after the last.
        line = min(mark.line, text.rstrip("\n").count("\n")) + 1 if mark else None
        raise Unusable(f"line {line}: {problem}" if line else problem) from error


class _Composer:
    """Makes JSON values of YAML's events: the composer of the library has no bounds and ends the process."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, tuple[Any, int]] = {}
        """The values that aliases stand for, with their sizes. A circle has none: its value is not made yet."""

    def document(self) -> Any:
        """Return the value of the only document; None for none."""
        documents: list[Any] = []
        for event in self.events:
            if type(event) is yaml.DocumentStartEvent:
                if documents:
                    raise Unusable(f"{_line(event)}: a second YAML document begins; one is expected")
                documents.append(self.value(next(self.events), 0)[0])
        return documents[0] if documents else None

    def value(self, event: Any, depth: int) -> tuple[Any, int]:
        """Return the value that an event begins, and the number of values in it, aliases counted."""
        if type(event) is yaml.AliasEvent:
            if event.anchor not in self.anchors:
                raise Unusable(f"{_line(event)}: the alias {show(event.anchor)!r} has no value before it")
            return self.anchors[event.anchor]
        made: tuple[Any, int]
        if type(event) is yaml.ScalarEvent:
            made = _read_scalar(event), 1
        elif event.tag is not None and event.tag not in _CONTAINERS:
            raise Unusable(f"{_line(event)}: the tag {show(event.tag)!r} is not one of JSON's kinds")
        elif depth >= _DEEPEST:
            raise Unusable(f"{_line(event)}: it nests deeper than {_DEEPEST} levels")
        else:
            self.anchors.pop(event.anchor, None)
            made = self.mapping(depth) if type(event) is yaml.MappingStartEvent else self.sequence(depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = made
        return made

    def sequence(self, depth: int) -> tuple[list[Any], int]:
        made: list[Any] = []
        size = 1
        while type(event := next(self.events)) is not yaml.SequenceEndEvent:
            value, more = self.value(event, depth + 1)
            size = _check_size(size + more, event)
            made.append(value)
        return made, size

    def mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        merged: list[Any] = []
        size = 1
        while type(event := next(self.events)) is not yaml.MappingEndEvent:
            is_merge = type(event) is yaml.ScalarEvent and event.value == "<<" and event.implicit[0]
            key = self.key(event)
            value, more = self.value(next(self.events), depth + 1)
            size = _check_size(size + more, event)
            if is_merge:
                parts = value if type(value) is list else [value]
                if any(type(part) is not dict for part in parts):
                    raise Unusable(f"{_line(event)}: '<<' takes an object or a list of objects")
                merged += parts
            else:
                made[key] = value
        for part in merged:
            for key, value in part.items():
                made.setdefault(key, value)
        return made, size

    def key(self, event: Any) -> str:
        """Return a key: its text as it is written, or the text that an alias stands for."""
        if type(event) is yaml.ScalarEvent:
            if event.anchor is not None:
                self.anchors[event.anchor] = event.value, 1
            return str(event.value)
        if type(event) is yaml.AliasEvent:
            value, _ = self.value(event, 0)
            if type(value) is str:
                return value
        raise Unusable(f"{_line(event)}: a key is text, not a list or an object")


def _check_size(size: int, event: Any) -> int:
    if size > _MOST_NODES:
        raise Unusable(f"{_line(event)}: it holds more than {_MOST_NODES:,} values, aliases counted")
    return size


def _read_scalar(event: Any) -> Any:
    """Return the value of a scalar."""
    word: str = event.value
    tag = event.tag
    if tag is None:
        if not event.implicit[0]:
            return word
    elif tag in _TEXTS:
        return word
    elif tag not in _PLAIN:
        raise Unusable(f"{_line(event)}: the tag {show(tag)!r} is not one of JSON's kinds")
    if word in _WORDS:
        return _WORDS[word]
    if word[0] in _NUMBERS_BEGIN and len(word) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(word):
            return int(word, 8 if word[:2] == "0o" else 16) if word[:2] in ("0o", "0x") else int(word)
        if _NUMBER.fullmatch(word) and math.isfinite(number := float(word)):
            return number
    return word


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def parse(content: bytes) -> tuple[Any, list[str]]:
    """Read JSON or YAML; return the value and its references to other documents, as they are written.

    A text that begins with a brace is JSON. Raises `Unusable` for what is neither, or nests deeper than 200 levels. Of
    a key that stands twice the last value counts. In JSON, half of a surrogate pair becomes U+FFFD, since no request
    can hold it; YAML refuses it.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable(f"it is not UTF-8 text: byte {error.start}") from None
    beginning = text.lstrip()[:1]
    if beginning in ("", "<"):
        raise Unusable("it is HTML or XML, not JSON or YAML" if beginning else "it is empty")
    try:
        value = read_json(_HALF.sub(_whole, text)) if beginning == "{" else read_yaml(text)
    except (ValueError, Unusable) as error:
        raise Unusable(f"it is not {'JSON' if beginning == '{' else 'YAML'}: {error}") from error
    return _examine(value)


def _whole(escape: re.Match[str]) -> str:
    return r"\ufffd" if escape[1] else escape[0]


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ``ValueError``, also for one that nests too deeply."""
    try:
        return json.loads(text, parse_float=_number, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _number(text: str) -> float | str:
    """Read a number; one that no float can hold stays what it is, text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _examine(value: Any) -> tuple[Any, list[str]]:
    """Walk once through everything: its depth and its references. Shared parts are seen once."""
    outward: dict[str, None] = {}
    level: list[Any] = [value] if type(value) in (dict, list) else []
    seen: set[int] = set()
    for _ in range(_DEEPEST + 1):
        following: list[Any] = []
        for part in level:
            reference = part.get("$ref") if type(part) is dict else None
            if type(reference) is str and reference[:1] != "#":
                outward[reference] = None
            for child in part.values() if type(part) is dict else part:
                if type(child) in (dict, list) and id(child) not in seen:
                    seen.add(id(child))
                    following.append(child)
        if not following:
            return value, list(outward)
        level = following
    raise Unusable(f"it nests deeper than {_DEEPEST} levels")
