"""Strict mode: the JSON Schema that services such as OpenAI hold a model to, and the way there and back.

Strict mode knows a part of JSON Schema only. The root is an object, every property is required, no object has
other keys, and a handful of keywords are known. The rules are those of OpenAI's guide "Structured model outputs",
section "Supported schemas" (developers.openai.com/api/docs/guides/structured-outputs, read in 2026), and three
that its service tells by an error: every schema has a type, nothing stands beside ``$ref``, and a pattern has no
lookaround.

`strict_form` rewrites any schema into this part, so that a value is valid under the original exactly when its
encoding is valid under the strict form, and decoding gives the value back. What strict mode cannot hold is
loosened, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portico.errors import SchemaUnsupported
from portico.ports.schema_validator import SchemaValidator, Validate
from portico.strict._arrays import Fixed
from portico.strict._choice import choose_wrappers
from portico.strict._limits import within_limits
from portico.strict._narrowing import require_nullable_defaults
from portico.strict._nodes import Node, Reference, closed, unused_name
from portico.strict._objects import Object
from portico.strict._reading import Reader
from portico.types.compiled import Fault, Mismatch, refuse

__all__ = ["StrictForm", "require_nullable_defaults", "strict_form"]


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema that strict mode takes, and functions between its values and those of the original.

    >>> form = strict_form({
    ...     "type": "object",
    ...     "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    ...     "required": ["name"],
    ...     "additionalProperties": False,
    ... })
    >>> form.encode({"name": "Ada"})
    {'name': 'Ada', 'age': None}
    >>> form.decode({"name": "Ada", "age": None})
    {'name': 'Ada'}

    ``loosened`` has a sentence for each keyword that the strict form does not hold, with its place; with none, the
    two forms are equal. ``encode`` raises `Mismatch` for a value that is not valid under the original where it
    cannot be encoded; others pass, and fail under the strict form as well. ``decode`` raises it for what is not of
    the strict form where that cannot be decoded; a missing key stays missing, so that a reply can be decoded while
    it comes. Validate what was decoded. ``identity`` says that both change nothing, so that callers may skip them.
    """

    schema: Mapping[str, Any]
    loosened: tuple[str, ...]
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    identity: bool


def strict_form(
    schema: Mapping[str, Any] | bool,
    *,
    validator: SchemaValidator | None = None,
    loosen: bool = True,
    close: bool = False,
) -> StrictForm:
    """Rewrite a JSON Schema (2020-12) for strict mode. Done once for a type; a large one takes some milliseconds.

    With a ``validator``, ``encode`` refuses every value that is not valid under the original, what had to be
    loosened included; it compiles the schema at the first call, and raises what the validator then raises. With
    ``close``, an object that declares properties and does not speak of other keys has none, as OpenAI's own helper
    takes it; JSON Schema lets any in, and the strict form has a place for them.

    Raises ``SchemaUnsupported`` with place and rule: for a schema that is malformed or allows nothing, for a
    reference that leads out of it or in a circle, for a limit of strict mode that is exceeded, and without
    ``loosen`` for what would have to be loosened.
    """
    try:
        return _form(schema, validator, loosen=loosen, close=close)
    except RecursionError:
        raise SchemaUnsupported("The schema has no strict form: it is nested too deeply.") from None


def _form(schema: Any, validator: SchemaValidator | None, *, loosen: bool, close: bool) -> StrictForm:
    reader = Reader(schema, close=close)
    root = reader.read_root()
    nodes = _reachable(root)
    for node in nodes:
        if isinstance(node, Object):
            for member in node.members.values():
                member.boxed = not member.required and member.node.fits(None, {})
    reader.note_overlaps()
    loosened = tuple(reader.sources.loosened)
    if loosened and not loosen:
        raise SchemaUnsupported(f"The schema has no exact strict form. {'. '.join(loosened)}.")
    choose_wrappers(nodes)
    target = root.target if isinstance(root, Reference) else root
    bare = isinstance(target, Fixed) or (isinstance(target, Object) and not target.is_map)
    written = within_limits(_written(reader, root, target, bare=bare))
    checks: list[Validate] = []

    def encode(value: Any) -> Any:
        if validator is not None:
            if not checks:
                checks.append(validator.compile(schema))
            faults = checks[0](value)
            if faults:
                raise Mismatch([Fault((), "a value of the schema", f"one with faults: {fault}") for fault in faults])
        encoded = _bounded(lambda value: target.encode(value, {}), value)
        return encoded if bare else {"value": encoded}

    def decode(value: Any) -> Any:
        if bare:
            return _bounded(target.decode, value)
        if not isinstance(value, dict) or value.keys() != {"value"}:
            refuse('an object with the one key "value"', value)
        try:
            return _bounded(target.decode, value["value"])
        except Mismatch as error:
            raise Mismatch(error.under("value")) from None

    return StrictForm(written, loosened, encode, decode, bare and not target.changes)


def _bounded(convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except RecursionError:
        return refuse("a value that is nested less deeply", value)


def _reachable(root: Node) -> Sequence[Node]:
    """List every node once, the inner ones first: what they are decides what the outer ones become."""
    found: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack.extend(node.parts())
    return list(reversed(found.values()))


def _written(reader: Reader, root: Node, target: Node, *, bare: bool) -> dict[str, Any]:
    """Write the schema with the definitions that it refers to."""
    places = reader.names()
    names: dict[int, str] = {}
    waiting: list[Node] = []

    def refer(node: Node) -> str:
        if id(node) not in names:
            names[id(node)] = unused_name(places[id(node)], names.values())
            waiting.append(node)
        return f"#/$defs/{names[id(node)]}"

    written = {**target.write(refer), **getattr(root, "notes", {})} if bare else closed({"value": root.write(refer)})
    definitions: dict[str, Any] = {}
    while waiting:
        node = waiting.pop(0)
        definitions[names[id(node)]] = node.write(refer)
    return {**written, "$defs": definitions} if definitions else written
