"""Values to the text that stands in URLs, headers and cookies: RFC 6570 as OpenAPI applies it.

Where OpenAPI leaves something undefined, one rule holds: an array or object inside another is written as compact JSON
(``deepObject`` excepted, which writes it as further brackets), and null is left out, as RFC 6570 leaves out what is
undefined. An empty array or object is undefined as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}(?:\s*;\s*{_NAME}=(?:{_NAME}|\"[ !#-\[\]-~]*\"))*\s*;?")
_LONGEST = 200
_TEXT_ENDINGS = ("+xml", "/xml", "+yaml", "/yaml", "/x-yaml", "/x-ndjson", "/jsonl", "/graphql", "/javascript", "/sql")


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type, perhaps with parameters (RFC 9110, section 8.3.1)."""
    return len(text) <= _LONGEST and _MEDIA_TYPE.fullmatch(text) is not None


def name_of(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().casefold()


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON; one that leaves everything open counts.

    >>> is_json("application/problem+json; charset=utf-8"), is_json("*/*"), is_json("text/plain")
    (True, True, False)
    """
    name = name_of(media_type)
    return name.endswith(("/json", "+json")) or name in ("*/*", "application/*")


def is_text(media_type: str) -> bool:
    """Return whether a media type is text to read, other than JSON."""
    name = name_of(media_type)
    return name.startswith("text/") or name.endswith(_TEXT_ENDINGS)


_RESERVED_SAFE = ":/?@!$'()*,;="
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")
_MOST_EXACT = 2**53
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


class Unwritable(ValueError):
    """A value cannot be written as the document wants it; ``member`` is the part of a body that it is about."""

    member: str | None = None


def encode(text: str) -> bytes:
    """Return a text in UTF-8. Raises `Unwritable`."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Unwritable("it has characters that no text can be sent with (lone surrogates)") from None


def scalar(value: Any) -> str:
    """Return a single value as text: strings as they are, everything else as JSON has it.

    >>> scalar(True), scalar(2.0), scalar("2.0")
    ('true', '2', '2.0')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT:
        value = int(value)
    return as_json(value)


def as_json(value: Any, *, ascii_only: bool = False) -> str:
    """Return a value as compact JSON."""
    try:
        return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unwritable(f"it is no JSON value: {error}") from error


def percent(text: str, *, reserved: bool = False) -> str:
    """Encode all but the unreserved characters of RFC 3986.

    With ``reserved`` (OpenAPI's ``allowReserved``) reserved characters and triplets that are there pass too, save
    those that would end the value or mean something else in a query: ``# [ ] & +``. OpenAPI 3.1.1 leaves it to
    the sender to encode them.
    """
    if not reserved:
        return quote(encode(text), safe="")
    parts = _TRIPLET.split(text)
    return "".join(
        part if number % 2 else quote(encode(part), safe=_RESERVED_SAFE) for number, part in enumerate(parts)
    )


def is_undefined(value: Any) -> bool:
    """Return whether RFC 6570 expands it to nothing: null, and what is empty or has nothing but null in it."""
    if isinstance(value, Mapping):
        return all(part is None for part in value.values())
    return value is None or (isinstance(value, list | tuple) and all(part is None for part in value))


def simple(value: Any, *, explode: bool, write: Callable[[str], str] = percent) -> str:
    """Return a value in the style simple of paths and headers.

    >>> simple(["blue", "black"], explode=True)
    'blue,black'
    """
    return "" if is_undefined(value) else _join(value, ",", explode=explode, write=write)


def path(style: str, name: str, value: Any, *, explode: bool) -> str:
    """Return a value in a style of paths: simple, label or matrix.

    >>> path("matrix", "color", ["blue", "black"], explode=True), path("label", "color", "blue", explode=False)
    (';color=blue;color=black', '.blue')
    """
    if style == "matrix":
        return "".join(f";{pair.removesuffix('=')}" for pair in query("form", name, value, explode=explode))
    if style == "label" and not is_undefined(value):
        return f".{_join(value, '.' if explode else ',', explode=explode, write=percent)}"
    return simple(value, explode=explode)


def query(style: str, name: str, value: Any, *, explode: bool, reserved: bool = False) -> list[str]:
    """Return the pairs ``name=value`` of a query or of a form: form, the delimited styles and deepObject.

    >>> query("deepObject", "color", {"R": 100}, explode=True)
    ['color%5BR%5D=100']
    """
    write = partial(percent, reserved=reserved)
    pairs: Iterable[tuple[str, Any]]
    if is_undefined(value):
        pairs = ()
    elif style == "deepObject" and isinstance(value, Mapping | list | tuple):
        pairs = _deep(name, value)
    elif explode and isinstance(value, Mapping):
        pairs = value.items()
    elif explode and isinstance(value, list | tuple):
        pairs = ((name, part) for part in value)
    else:
        return [f"{percent(name)}={_join(value, _DELIMITERS.get(style, ','), explode=False, write=write)}"]
    return [f"{percent(key)}={write(scalar(part))}" for key, part in pairs if part is not None]


def _join(value: Any, delimiter: str, *, explode: bool, write: Callable[[str], str]) -> str:
    """Join what is inside a value: ``a,b``, ``k,v,k,v`` or, exploded, ``k=v,k=v``."""
    if isinstance(value, Mapping):
        joint = "=" if explode else delimiter
        pairs = [(write(key), write(scalar(part))) for key, part in value.items() if part is not None]
        return delimiter.join(f"{key}{joint}{text}" for key, text in pairs)
    if isinstance(value, list | tuple):
        return delimiter.join(write(scalar(part)) for part in value if part is not None)
    return write(scalar(value))


def _deep(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the pairs of ``name[key]``; OpenAPI defines one level, deeper ones go on in the same way."""
    stack = [(name, value)]
    while stack:
        key, part = stack.pop()
        if isinstance(part, Mapping):
            stack += [(f"{key}[{inner}]", one) for inner, one in reversed(list(part.items()))]
        elif isinstance(part, list | tuple):
            stack += [(f"{key}[{number}]", one) for number, one in reversed(list(enumerate(part)))]
        else:
            yield key, part
