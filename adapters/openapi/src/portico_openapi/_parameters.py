"""The parameters of an operation: what the document says of each, and how a value of it is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from portico import Parameter
from portico_openapi import _styles
from portico_openapi._errors import Unusable, Within, describe, flag, listing, mapping, shorten, show, text, truth
from portico_openapi._names import parameter_names
from portico_openapi._schemas import Schemas
from portico_openapi._styles import Unwritable, is_json, is_text
from portico_openapi._validation import compile_schema

_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_NOT_PARAMETERS = frozenset(
    {"accept", "authorization", "connection", "content-length", "content-type", "host", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
"""Headers that OpenAPI takes from elsewhere, and those that the client itself writes."""
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_TEXT = 1_000
_NOT_GIVEN = object()
"""The default of a parameter without one. It has no JSON form, so that no schema tells it."""
_LONGEST_NAME = 200


@dataclass(slots=True)
class Parts:
    """What the parameters make of a request, percent-encoded where that is due."""

    path: dict[str, str]
    query: list[str]
    headers: list[tuple[str, str]]
    cookies: list[str]


@dataclass(frozen=True, slots=True)
class Sent:
    """One parameter: the function's own, and where and how the document wants its value."""

    parameter: Parameter
    name: str
    location: str
    style: str
    explode: bool
    reserved: bool
    content: Literal["json", "text"] | None

    def write(self, value: Any, parts: Parts) -> None:
        """Add a value to a request. Raises `Unwritable`."""
        if self.content is not None:
            # Any value has a JSON form, null too: it goes as one text.
            as_text = _styles.scalar if self.content == "text" else _styles.as_json
            value = _styles.as_json(value, ascii_only=True) if self.location == "header" else as_text(value)
        if self.location == "path":
            parts.path[self.name] = _styles.path(self.style, self.name, value, explode=self.explode)
            if not parts.path[self.name]:
                raise Unwritable("it is empty, and the path needs a value")
        elif self.location == "query":
            parts.query += _styles.query(self.style, self.name, value, explode=self.explode, reserved=self.reserved)
        elif self.location == "cookie":
            # Where the style form would join pairs with "&", each is a cookie.
            parts.cookies += _styles.query("form", self.name, value, explode=self.explode)
        elif not _styles.is_undefined(value):
            # Nothing is percent-encoded, since nothing would decode it.
            written = _styles.simple(value, explode=self.explode, write=str)
            if _CONTROLS.search(written):
                raise Unwritable("it has line breaks or control characters, which a header cannot have")
            if written != written.strip():
                raise Unwritable("it begins or ends with a space, which a header cannot")
            _styles.encode(written)
            parts.headers.append((self.name, written))


def read_parameters(levels: Sequence[tuple[Mapping[str, Any], str]], path: str, schemas: Schemas) -> list[Sent]:
    """Return the parameters of an operation, those of its path included; ``levels`` goes from path to operation.

    Raises `Unusable` for one that cannot be sent, and for a part of the path that no parameter describes.
    """
    found: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}
    for level, base in levels:
        declared, uri = schemas.documents.member(listing, level, "parameters", base)
        for number, one in enumerate(declared):
            with Within("parameters", number):
                target = schemas.documents.follow(one, uri)
                found[_identity(target.value)] = (target.value, target.uri)
    names_in_path = re.findall(r"\{([^{}]*)\}", path)
    for name in names_in_path:
        if ("path", name) not in found:
            raise Unusable(f"the path names {{{show(name)}}}, and no parameter describes it")
    usable = {
        (location, name): part
        for (location, name), part in found.items()
        if not (location == "header" and name.casefold() in _NOT_PARAMETERS)
        and not (location == "path" and name not in names_in_path)
    }
    arguments = parameter_names(list(usable))
    made = []
    for argument, ((location, name), (part, base)) in zip(arguments, usable.items(), strict=True):
        with Within(f"the {location} parameter {show(name)!r}"):
            made.append(_read_one(argument, (location, name), part, base, schemas))
    return made


def _identity(parameter: Any) -> tuple[str, str]:
    if type(parameter) is not dict:
        raise Unusable(f"expected a parameter, not {describe(parameter)}")
    name, location = text(parameter, "name"), text(parameter, "in")
    if not name:
        raise Unusable("it has no name")
    if location is None or location not in _STYLES:
        raise Unusable(f"it is in {describe(location)}; a parameter is in path, query, header or cookie")
    if len(name) > _LONGEST_NAME:
        raise Unusable(f"its name has more than {_LONGEST_NAME} characters")
    if location == "header" and not TOKEN.fullmatch(name):
        raise Unusable(f"{show(name)!r} is no name of a header")
    return location, name


def _read_one(argument: str, identity: tuple[str, str], part: Mapping[str, Any], base: str, schemas: Schemas) -> Sent:
    location, name = identity
    style = text(part, "style") or _STYLES[location][0]
    if style not in _STYLES[location]:
        raise Unusable(f"the style {show(style)!r} is none of a {location} parameter: {', '.join(_STYLES[location])}")
    explode = flag(part, "explode")
    content: Literal["json", "text"] | None = None
    schema, inner = part.get("schema"), ("schema",)
    if "schema" not in part:
        media, base = schemas.documents.member(mapping, part, "content", base)
        if not media:
            raise Unusable("it has neither schema nor content")
        media_type = next(iter(sorted(media, key=lambda one: not is_json(one))))
        content = "json" if is_json(media_type) else "text"
        if content == "text" and not is_text(media_type):
            raise Unusable(f"its content is {show(media_type)}; JSON and text can be written")
        value, base, _ = schemas.documents.follow(media[media_type], base)
        schema = value.get("schema") if type(value) is dict else None
        inner = (f"content.{media_type}.schema",)
    with Within(*inner):
        compiled = schemas.compile(schema, base)
    required = location == "path" or flag(part, "required") is True
    parameter = new_parameter(argument, compiled, required=required, about=(part, compiled))
    exploded = style == "form" if explode is None else explode
    return Sent(parameter, name, location, style, exploded, flag(part, "allowReserved") is True, content)


def new_parameter(
    name: str, schema: Mapping[str, Any], *, required: bool, about: Sequence[Mapping[str, Any]]
) -> Parameter:
    """Return a parameter of a compiled schema; the first of ``about`` that has a description describes it."""
    words = next((text for part in about if (text := part.get("description"))), "")
    words = shorten(words.strip(), _LONGEST_TEXT) if isinstance(words, str) else ""
    if any(truth(part.get("deprecated")) is True for part in about):
        words = f"Deprecated. {words}".rstrip()
    return Parameter(name, words, compile_schema(schema), required, schema.get("default", _NOT_GIVEN))
