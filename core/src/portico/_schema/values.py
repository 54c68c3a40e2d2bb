"""JSON values and references: the kinds of JSON Schema, equality, and where a reference leads."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

Sure: TypeAlias = bool | None
"""True and False are certain, None is not known."""

ANNOTATIONS = frozenset({
    "$comment", "$defs", "$schema", "default", "definitions", "deprecated", "description", "discriminator", "example",
    "examples", "externalDocs", "nullable", "readOnly", "title", "writeOnly", "xml",
})  # fmt: skip
"""Keywords that no validator of JSON Schema acts on. Where ``nullable`` counts, it only allows more."""

_KINDS = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value: null, boolean, number, string, array or object. Integers are numbers."""
    return _KINDS.get(type(value), "null")


def is_kind(value: Any, name: object) -> bool:
    """Tell whether a JSON value is of a type of JSON Schema. 1.0 is an integer."""
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return kind_of(value) == name


def is_number(argument: object) -> bool:
    """Tell whether the argument of a keyword is a finite number."""
    return type(argument) is int or (type(argument) is float and math.isfinite(argument))


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal as in JSON Schema: 1 is 1.0 and not true."""
    if kind_of(one) != kind_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return bool(one == other)


def freeze(value: Any) -> Any:
    """Make a JSON value hashable, so that equal ones, as `same` compares them, are equal."""
    if isinstance(value, list):
        return ("array", tuple(freeze(element) for element in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, freeze(element)) for key, element in value.items()))
    if isinstance(value, int | float) and abs(value) >= _LARGE and value not in (math.inf, -math.inf):
        return ("number", hex(int(value)))  # multiples of 2**61 - 1 all have one hash
    return (isinstance(value, bool), value)


_LARGE = 2**60


def resolve(reference: object, root: Any) -> Any:
    """Return the schema that a reference inside ``root`` leads to; None for one that leads elsewhere."""
    if not isinstance(reference, str) or not isinstance(root, Mapping):
        return None
    definitions = root.get("$defs")
    name = reference.removeprefix("#/$defs/")
    if isinstance(definitions, Mapping) and name != reference and name in definitions:
        return definitions[name]
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for escaped in unquote(reference[2:]).split("/"):
        part = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def inside(schema: Any, part: str | int) -> Any:
    """Return the schema of a member or an element of a value; None where the schema itself does not say."""
    if not isinstance(schema, Mapping):
        return None
    if isinstance(part, str):
        properties = schema.get("properties", {})
        if part in properties or "patternProperties" in schema:
            return properties.get(part)
        return schema.get("additionalProperties")
    fixed = schema.get("prefixItems", ())
    if fixed and part < len(fixed):
        return fixed[part] if part >= 0 else None
    return schema.get("items")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} stands there twice")
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


_STRICT, _LENIENT = (
    json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, strict=strict) for strict in (True, False)
)


def parse_json(text: str, *, strict: bool = True, more: bool = False) -> Any:
    """Return the value of a JSON text; with ``more``, of the one with which the text begins.

    Raises ``ValueError`` for NaN, infinities, a key that comes twice, and with ``strict`` for a line break in a string.
    """
    decoder = _STRICT if strict else _LENIENT
    return decoder.raw_decode(text.lstrip())[0] if more else decoder.decode(text)


def read_json(text: str, *, more: bool = False) -> Any:
    """Return the value of a JSON text that a model wrote, as `parse_json` does.

    >>> read_json("{'sunny': True, 'places': ['Oslo',],}")
    {'sunny': True, 'places': ['Oslo']}

    What is no JSON is read as Python writes it, with line breaks inside of texts and a comma after the last element.
    Each of these has one reading. The ``ValueError`` says what is wrong with the text as JSON.
    """
    try:
        return parse_json(text, more=more)
    except ValueError as error:
        try:
            return parse_json(_ODD.sub(_plain, text), strict=False, more=more)
        except ValueError:
            raise error from None


# A text in either quotes, a word of Python, or the comma after the last element; and what is odd inside of a text.
_ODD = re.compile(
    r"""(["'])((?:(?!\1)[^\\]|\\.)*+)(\1?)|\b(?:True|False|None)\b|(?<=[\w"'}\]]),(?=\s*+[}\]])""", re.DOTALL
)
_ODD_INSIDE = re.compile(r'''\\(?:x([0-9a-fA-F]{2})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|.)|"''', re.DOTALL)
_PLAIN = {"True": "true", "False": "false", "None": "null", ",": "", "\\'": "'", '"': '\\"'}


def _plain(odd: re.Match[str]) -> str:
    if odd[1] is None:
        return _PLAIN[odd[0]]
    return f'"{_ODD_INSIDE.sub(_plain_inside, odd[2])}{odd[3] and chr(34)}'


def _plain_inside(odd: re.Match[str]) -> str:
    code = odd[1] or odd[2]
    return json.dumps(chr(int(code, 16)))[1:-1] if code else _PLAIN.get(odd[0], odd[0])


_DEPTH = 200


def accepts(value: Any, schema: Any, root: Any) -> Sure:
    """Tell whether ``value`` is valid under ``schema``; None where a keyword says what is not known here.

    >>> accepts("Berlin", {"type": "string", "maxLength": 3}, {}), accepts("Berlin", {"pattern": "^B"}, {})
    (False, None)

    ``root`` is the schema that references are to. A schema that leads back to itself without going into the value, and
    one that is very deep, are not known.
    """
    return Evaluation(root).of(value, schema)


class Evaluation:
    """Whether a value, and each part of it, is valid. It is for one value only, which must stay alive meanwhile."""

    def __init__(self, root: Any, annotations: Collection[str] = ANNOTATIONS) -> None:
        self.root = root
        self.annotations = annotations
        self.known: dict[tuple[int, int], Sure] = {}
        """What is known of parts of the value, by identities: each is looked at once, however many ways lead there."""
        self.depth = 0

    def of(self, value: Any, schema: Any) -> Sure:
        """Tell whether the value, or a part of it, is valid under the schema or a part of it."""
        if schema is True or schema is False:
            return schema
        if (type(schema) is not dict and not isinstance(schema, Mapping)) or self.depth > _DEPTH:
            return None
        key = (id(value), id(schema))
        if key in self.known:
            return self.known[key]
        self.known[key] = None
        self.depth += 1
        kind = kind_of(value)
        found: Sure = True
        for name, argument in schema.items():
            if OF_KIND.get(name, kind) != kind:
                continue
            if (answer := self.keyword(name, argument, value, schema)) is not True:
                found = answer
                if answer is False:
                    break
        self.depth -= 1
        self.known[key] = found
        return found

    def every(self, parts: Iterable[tuple[Any, Any]]) -> Sure:
        """Tell whether all parts, given with their schemas, are valid."""
        found: Sure = True
        for value, schema in parts:
            if (answer := self.of(value, schema)) is not True:
                found = answer
                if answer is False:
                    break
        return found

    def keyword(self, name: str, argument: Any, value: Any, schema: Mapping[str, Any]) -> Sure:
        """Tell whether the value is valid under one keyword of a schema that is about its kind, see `OF_KIND`."""
        match name:
            case "type":
                if isinstance(argument, str):
                    return is_kind(value, argument)
                return any(is_kind(value, each) for each in argument) if isinstance(argument, list) else None
            case "properties":
                return self.every((value[key], inner) for key, inner in argument.items() if key in value)
            case "required":
                return all(key in value for key in argument)
            case "additionalProperties":
                rest = other_members(value, schema)
                if rest and "patternProperties" in schema:
                    return None
                return self.every((each, argument) for each in rest.values())
            case "items":
                return self.every((each, argument) for each in value[len(schema.get("prefixItems", [])) :])
            case "prefixItems":
                return self.every(zip(value, argument, strict=False))
            case "$ref":
                return self.of(value, resolve(argument, self.root))
            case "anyOf" | "oneOf":
                answers = [self.of(value, option) for option in argument]
                if name == "oneOf" and answers.count(True) > 1:
                    return False
                unknown = None in answers and not (name == "anyOf" and True in answers)
                return None if unknown else True in answers
            case "enum" | "const":
                options = [argument] if name == "const" else argument
                return any(same(value, option) for option in options) if isinstance(options, list) else None
            case "allOf":
                return self.every((value, option) for option in argument)
            case "not":
                answer = self.of(value, argument)
                return None if answer is None else not answer
            case "uniqueItems":
                return not argument or len({freeze(element) for element in value}) == len(value)
        if name in self.annotations or name.startswith("x-"):
            return None if name == "nullable" and argument is True and value is None else True
        holds = _LIMITS.get(name)
        return holds[1](value, argument) if holds and is_number(argument) else None


def other_members(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an object that ``additionalProperties`` speaks of."""
    properties = schema.get("properties", {})
    return {name: member for name, member in value.items() if name not in properties}


_LIMITS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minLength": ("string", lambda value, least: len(value) >= least),
    "maxLength": ("string", lambda value, most: len(value) <= most),
    "minItems": ("array", lambda value, least: len(value) >= least),
    "maxItems": ("array", lambda value, most: len(value) <= most),
    "minProperties": ("object", lambda value, least: len(value) >= least),
    "maxProperties": ("object", lambda value, most: len(value) <= most),
    "minimum": ("number", lambda value, least: value >= least),
    "maximum": ("number", lambda value, most: value <= most),
    "exclusiveMinimum": ("number", lambda value, least: value > least),
    "exclusiveMaximum": ("number", lambda value, most: value < most),
}
OF_KIND = {name: kind for name, (kind, _) in _LIMITS.items()} | {
    "additionalProperties": "object", "contains": "array", "contentEncoding": "string", "contentMediaType": "string",
    "dependentRequired": "object", "dependentSchemas": "object", "format": "string", "items": "array",
    "maxContains": "array", "minContains": "array", "multipleOf": "number", "pattern": "string",
    "patternProperties": "object", "prefixItems": "array", "properties": "object", "propertyNames": "object",
    "required": "object", "unevaluatedItems": "array", "unevaluatedProperties": "object", "uniqueItems": "array",
}  # fmt: skip
"""The kind of JSON that a keyword speaks of; it says nothing of the others."""
