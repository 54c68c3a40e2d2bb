"""Reading a JSON Schema into the nodes of its strict form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from portico.strict._arrays import Array
from portico.strict._choice import Choice, one_of
from portico.strict._containers import read_array, read_object
from portico.strict._nodes import Node, Reference, Scalar, json_key, kind_of
from portico.strict._objects import Object
from portico.strict._proof import all_apart
from portico.strict._sources import Gathered, Key, Sources, unsupported

__all__ = ["Reader"]

_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_KINDS = ("null", "boolean", "number", "string", "array", "object")
_ANYTHING = "json"
_MERGING = 10_000
_PRODUCT = 64
_READINGS = 50
# OpenAI answers "regex lookaround is not supported"; references back are what such engines lack as well.
_UNSUPPORTED_PATTERN = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?P=")


class Reader:
    """Reads schemas that must all hold of one value into one node; None is what no value fits.

    What several schemas ask is merged keyword by keyword, so that ``allOf``, constraints beside a reference and
    constraints beside ``anyOf`` are exact wherever two keywords have a common form.
    """

    def __init__(self, root: Any, *, close: bool = False) -> None:
        self.sources = Sources(root)
        self.close = close
        self.nodes: dict[Key | str, Node | None] = {}
        """Every node by what it is made from; None while it is being made."""
        self.impossible: set[Key | str] = set()
        self.referred: set[Key | str] = set()
        self.pending: list[str] = []
        self.exclusive: list[tuple[str, list[Node]]] = []

    def read_root(self) -> Node:
        """Read everything that the root leads to. Raises ``SchemaUnsupported``."""
        for _ in range(_READINGS):
            root = self.read(["#"])
            while self.pending:
                target = self.pending.pop()
                self.nodes[target] = self.read([target])
            self.sources.refuse_loops()
            if root is None:
                unsupported("#", "nothing is valid")
            dangling = {key for key in self.referred if self.nodes[key] is None}
            if not dangling:
                return root
            # A reference was taken for a value before it was known that there is none: read again, knowing it.
            self.impossible |= dangling
            self.nodes, self.referred, self.exclusive = {}, set(), []
        return unsupported("#", "too many parts of it allow nothing")

    def names(self) -> dict[int, str]:
        """Return a name for every node, by its identity: that of the place where it stands."""
        names: dict[int, str] = {}
        for key, node in self.nodes.items():
            place = key if isinstance(key, str) else min((*key[0], *key[1]))
            outer, _, name = place.rpartition("/")
            name = "root" if place == "#" else f"{outer.rpartition('/')[2]}_{name}" if name.isdecimal() else name
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", name.replace("~1", "_").replace("~0", "_"))
            # The place that a reference names beats one that was merged.
            if isinstance(key, str) or id(node) not in names:
                names[id(node)] = name or "part"
        return names

    def note_overlaps(self) -> None:
        """Name each ``oneOf`` of which it is not plain that a value fits only one alternative."""
        for place, options in self.exclusive:
            if not all_apart(options):
                self.sources.loosen(place, "it becomes anyOf, and a value may fit several of its alternatives")

    def read(self, pointers: Sequence[str]) -> Node | None:
        """Read what these schemas ask of a value."""
        return self.node(self.sources.gather(pointers))

    def node(self, found: Gathered) -> Node | None:
        if found.impossible:
            return None
        if not found.bases and not found.groups:
            return self.reference(next(iter(found.references), _ANYTHING), found.notes)
        key = found.key
        if key in self.impossible:
            return None
        if key in self.nodes:
            known = self.nodes[key]
            self.referred.add(key)
            return replace(known, notes=found.notes) if isinstance(known, Scalar) else Reference(self.nodes, key)
        if self.sources.repeated > _MERGING and len(found.bases) + len(found.groups) > 1:
            return self.node(self.first_of(found))
        self.nodes[key] = None
        node = self.choice(found) if found.groups else self.merged(list(found.bases), found.notes)
        self.nodes[key] = node
        if node is None:
            self.impossible.add(key)
        return node

    def first_of(self, found: Gathered) -> Gathered:
        """Keep one of the schemas that should be merged: their combinations may be too many to be made."""
        kept = next(iter((*found.bases, *found.groups)))
        for place in (*found.bases, *found.groups):
            if place != kept:
                self.sources.loosen(place, f"what is to be merged has more than {_MERGING:,} parts")
        bases = {kept: None} if kept in found.bases else {}
        return Gathered(bases, {} if bases else {kept: found.groups[kept]}, notes=found.notes)

    def reference(self, target: str, notes: Mapping[str, str]) -> Reference | None:
        if target in self.impossible:
            return None
        self.referred.add(target)
        if target not in self.nodes:
            self.nodes[target] = None
            if target == _ANYTHING:
                self.nodes[target] = self.anything()
            else:
                self.pending.append(target)
        return Reference(self.nodes, target, notes)

    def anything(self) -> Node:
        """Make the definition of any JSON value."""
        inner = Reference(self.nodes, _ANYTHING)
        plain = [Scalar(kind) for kind in ("null", "boolean", "number", "string")]
        return Choice((*plain, Array(inner), Object({}, inner)))

    def choice(self, found: Gathered) -> Node | None:
        """Read alternatives, each together with all that is asked beside them."""
        groups = dict(found.groups)
        while math.prod(map(len, groups.values())) > _PRODUCT and len(groups) > 1:
            place, _ = groups.popitem()
            self.sources.loosen(place, f"there are more than {_PRODUCT} combinations with the alternatives beside it")
        place, pointers = next(iter(groups.items()))
        del groups[place]
        options: list[Node] = []
        for pointer in pointers:
            option = self.node(self.sources.gather([pointer], list(found.bases), groups))
            if option is not None:
                options.append(option)
        if place.endswith("/oneOf") and len(options) > 1:
            self.exclusive.append((place, options))
        return one_of(options, found.notes)

    def merged(self, bases: Sequence[str], notes: Mapping[str, str]) -> Node | None:
        """Read schemas without alternatives: one node for each kind of value that they let in."""
        kinds = self.kinds(bases)
        values = self.values(bases)
        plain = values is None and len(kinds) == len(_KINDS)
        if values is not None:
            kinds = {kind: kinds[kind] for kind in dict.fromkeys(map(kind_of, values)) if kind in kinds}
        options: list[Node] = []
        # A plain loop, and no method for a kind: each frame here is one for every level of a schema.
        for kind, name in kinds.items():
            if kind == "array":
                node = read_array(self, bases)
            elif kind == "object":
                node = read_object(self, bases)
            else:
                node = self.scalar(kind, name, bases, values)
            options += [] if node is None else [node]
        if plain and len(options) == len(_KINDS) and all(map(_is_free, options)):
            return self.reference(_ANYTHING, notes)
        return one_of(options, notes, from_types=any("type" in self.sources.at(base) for base in bases))

    def kinds(self, bases: Sequence[str]) -> dict[str, str]:
        """Return the kinds of value that all let in, each with its JSON type: a number may be an integer."""
        kinds = {kind: kind for kind in _KINDS}
        for base in bases:
            schema = self.sources.at(base)
            if "type" not in schema:
                continue
            names = [schema["type"]] if isinstance(schema["type"], str) else self.sources.words(base, "type")
            unknown = [name for name in names if name not in (*_KINDS, "integer")]
            if unknown:
                unsupported(f"{base}/type", f"{unknown[0]!r} is not a JSON type")
            ordered = dict.fromkeys("number" if name == "integer" else name for name in names)
            kinds = {kind: kinds[kind] for kind in ordered if kind in kinds}
            if "number" in kinds and "number" not in names:
                kinds["number"] = "integer"
        return kinds

    def values(self, bases: Sequence[str]) -> list[Any] | None:
        """Return the values that all list, None where none lists any."""
        lists: list[Sequence[Any]] = []
        for base in bases:
            schema = self.sources.at(base)
            lists += [self.sources.array(base, "enum")] if "enum" in schema else []
            lists += [[schema["const"]]] if "const" in schema else []
        if not lists:
            return None
        others = [{json_key(value) for value in values} for values in lists[1:]]
        found = {json_key(value): value for value in lists[0] if all(json_key(value) in other for other in others)}
        return list(found.values())

    def scalar(self, kind: str, name: str, bases: Sequence[str], values: Sequence[Any] | None) -> Node | None:
        scalar = Scalar(name)
        if kind == "number":
            scalar = Scalar(name, self.bounds(bases))
        elif kind == "string":
            scalar = self.string(bases)
        if values is None or kind == "null":
            return scalar
        listed = [value for value in values if scalar.fits(value, {})]
        if not listed:
            return None
        if kind == "number" and all(isinstance(value, int) for value in listed):
            name = "integer"
        consts = [base for base in bases if "const" in self.sources.at(base)]
        return Scalar(name, {"const": listed[0]} if consts else {"enum": listed})

    def string(self, bases: Sequence[str]) -> Scalar:
        facets: dict[str, Any] = {}
        search = None
        for base in bases:
            schema = self.sources.at(base)
            self.drop(base, {"minLength": 0, "maxLength": None})
            pattern = schema.get("pattern")
            if not isinstance(pattern, str | None):
                unsupported(f"{base}/pattern", "a string is expected")
            if pattern is not None and pattern != facets.get("pattern"):
                refusal = "strict mode takes one pattern for a value" if search else _refusal(pattern)
                if refusal:
                    self.sources.loosen(f"{base}/pattern", refusal)
                else:
                    facets["pattern"], search = pattern, re.compile(pattern).search
            if schema.get("format") in _FORMATS:
                facets.setdefault("format", schema["format"])
        return Scalar("string", facets, search=search)

    def bounds(self, bases: Sequence[str]) -> dict[str, Any]:
        facets: dict[str, Any] = {}
        for base in bases:
            for word, narrower in (
                ("minimum", max),
                ("exclusiveMinimum", max),
                ("maximum", min),
                ("exclusiveMaximum", min),
            ):
                bound = self.sources.number(base, word)
                if bound is not None:
                    facets[word] = narrower(bound, facets.get(word, bound))
            step = self.sources.number(base, "multipleOf")
            if step is None:
                continue
            if step <= 0:
                unsupported(f"{base}/multipleOf", f"a number above 0 is expected, not {step!r}")
            known = facets.get("multipleOf", step)
            if isinstance(step, int) and isinstance(known, int):
                facets["multipleOf"] = math.lcm(step, known)
            elif known == step:
                facets["multipleOf"] = step
            else:
                self.sources.loosen(f"{base}/multipleOf", "strict mode takes one for a value")
        return facets

    def drop(self, base: str, words: Mapping[str, Any], reason: str = "strict mode has no such keyword") -> None:
        """Note keywords that are not held; each with the argument under which it asks nothing."""
        schema = self.sources.at(base)
        for word, harmless in words.items():
            if word in schema and schema[word] != harmless:
                self.sources.loosen(f"{base}/{word}", reason)


def _is_free(node: Node) -> bool:
    """Tell whether a node lets in every value of its kind."""
    match node:
        case Scalar():
            return not node.facets
        case Array(items=Reference(key=key), low=0, high=None):
            return bool(key == _ANYTHING)
        case Object(rest=Reference(key=key), low=0, high=None):
            return bool(key == _ANYTHING) and not node.members and not node.absent and not node.key.facets
        case _:
            return False


def _refusal(pattern: str) -> str | None:
    """Say why a pattern cannot be sent, None where it can."""
    if _UNSUPPORTED_PATTERN.search(pattern):
        return "strict mode takes no lookaround and no references back"
    try:
        re.compile(pattern)
    except re.error:
        return "it is no regular expression that can be checked here"
    return None
