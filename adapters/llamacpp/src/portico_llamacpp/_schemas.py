r"""JSON Schemas in the form that llama.cpp's converter understands.

It makes a grammar of a schema and holds the reply to that. What it lacks is put in its own words here: schemas that
are true or false, patterns that match a part, classes such as ``\d``, and formats it does not know. What has no such
words (``not``, ``if``, ``uniqueItems``, bounds of fractions, look-around in patterns) does not constrain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from portico.errors import SchemaUnsupported

_DEEPEST = 64
_MEMBERS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP}-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3})?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FORMATS = {
    # llama.cpp's own would let 30 February pass.
    "date": f"^{_DATE}$",
    "date-time": f"^{_DATE}T{_CLOCK}{_ZONE}$",
    "time": f"^{_CLOCK}{_ZONE}?$",
    "decimal": r"^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?$",
}
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r"}
_ESCAPE = re.compile(r"\\(.)|(\[)|(\])|([^\x00-\x7f])", re.DOTALL)


def prepared(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as llama.cpp takes it; the given one stays as it is.

    Raises ``SchemaUnsupported`` where nothing at all is allowed, and for schemas deeper than 64 levels.
    """
    return _Preparation("#").schema(schema, 0)


def moved(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a schema that will stand at ``place`` of another: its references, from its own root, lead there."""
    return _Preparation(place).schema(schema, 0)


class _Preparation:
    def __init__(self, root: str) -> None:
        self.root = root

    def schema(self, schema: Any, depth: int) -> dict[str, Any]:
        if schema is True:
            return {}
        if schema is False:
            raise SchemaUnsupported("llama.cpp cannot hold a reply to a JSON Schema that allows nothing (false).")
        if not isinstance(schema, Mapping):
            raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
        if depth > _DEEPEST:
            raise SchemaUnsupported(f"The JSON Schema is deeper than {_DEEPEST} levels.")
        made = {key: self.keyword(key, value, depth + 1) for key, value in schema.items()}
        self.close(made, schema)
        self.describe_text(made)
        return made

    def keyword(self, key: str, value: Any, depth: int) -> Any:
        if key in _MEMBERS and isinstance(value, Mapping):
            return {name: self.schema(member, depth) for name, member in value.items() if member is not False}
        if key in _LISTS and isinstance(value, list | tuple):
            return [self.schema(member, depth) for member in value if key != "anyOf" or member is not False]
        if key in _SINGLE and not isinstance(value, bool):
            return self.schema(value, depth)
        if key == "$ref" and isinstance(value, str) and value.startswith("#"):
            return self.root + value[1:]
        return value

    def close(self, made: dict[str, Any], schema: Mapping[str, Any]) -> None:
        """Say in other words that nothing follows the elements or members that are named."""
        if made.get("items") is False:
            del made["items"]
            made["maxItems"] = min(len(made.get("prefixItems", ())), made.get("maxItems", 2**31))
        elif made.get("items") is True:
            made["items"] = {}
        for name in made.get("required", ()):
            if isinstance(schema.get("properties"), Mapping) and schema["properties"].get(name) is False:
                raise SchemaUnsupported(f"The JSON Schema requires {name!r} and allows no value for it.")

    def describe_text(self, made: dict[str, Any]) -> None:
        pattern = made.get("pattern")
        if isinstance(pattern, str):
            made.pop("pattern")
            if (written := _pattern(pattern)) is not None:
                made["pattern"] = written
        elif made.get("type") == "string" and made.get("format") in _FORMATS:
            made["pattern"] = _FORMATS[made.pop("format")]


def _pattern(pattern: str) -> str | None:
    """Return a pattern in llama.cpp's words, None where it has none. It may match less, never more.

    The pattern of JSON Schema matches anywhere in a text, llama.cpp's all of it.
    """
    try:
        re.compile(pattern)
    except re.error:
        return None
    if re.search(r"\(\?(?!:)|\\[bBpPAZk1-9]|[*+?}]\+", pattern):
        return None
    body = pattern.removeprefix("^")
    closed = body.endswith("$") and not re.search(r"(?<!\\)(?:\\\\)*\\\$$", body)
    inner = body[:-1] if closed else body
    if _has_anchor(inner):
        return None
    try:
        written = _ESCAPE.sub(_escaper(), inner)
    except LookupError:
        return None
    start, end = ("" if pattern.startswith("^") else ".*"), ("" if closed else ".*")
    return f"^{start}({written}){end}$" if "|" in inner or start or end else f"^{written}$"


def _has_anchor(pattern: str) -> bool:
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern)
    return "^" in bare or "$" in bare


def _escaper() -> Callable[[re.Match[str]], str]:
    inside = False

    def escape(match: re.Match[str]) -> str:
        nonlocal inside
        letter, opening, closing, far = match.groups()
        if far:
            if ord(far) > 0xFFFF:
                raise LookupError
            return f"\\u{ord(far):04x}"
        if opening or closing:
            inside = bool(opening) or (inside and not closing)
            return match[0]
        if letter in _CLASSES:
            return _CLASSES[letter] if inside else f"[{_CLASSES[letter]}]"
        if letter in "DWS":
            if inside:
                raise LookupError
            return f"[^{_CLASSES[letter.lower()]}]"
        if letter in "/\"'<>=!@#%&,:;_~` ":
            return letter
        return match[0]

    return escape
