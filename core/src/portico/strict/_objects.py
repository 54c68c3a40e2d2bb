"""Objects in strict forms: optional properties that are null, and maps that are arrays of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portico.strict._nodes import Node, Refer, Run, Scalar, closed, converted, counts, noted, unused_name
from portico.types.compiled import Fault, Mismatch, refuse

__all__ = ["Member", "Object", "nullable"]

_NOTHING = {"type": "null"}


@dataclass(slots=True, eq=False)
class Member:
    """A declared property. Null stands for one that is not there; ``boxed`` sets it apart from a null of its own."""

    node: Node
    required: bool
    boxed: bool = False

    def write(self, refer: Refer) -> dict[str, Any]:
        schema = self.node.write(refer)
        if self.required:
            return schema
        return nullable(closed({"value": schema}) if self.boxed else schema)

    def encode(self, value: Any, run: Run) -> Any:
        if value is None and not self.required and not self.boxed:
            refuse("a value, or nothing at all", value)
        encoded = self.node.encode(value, run)
        return {"value": encoded} if self.boxed else encoded

    def decode(self, value: Any) -> Any:
        if not self.boxed:
            return self.node.decode(value)
        if not isinstance(value, dict) or value.keys() != {"value"}:
            refuse('an object with the one key "value", or null', value)
        try:
            return self.node.decode(value["value"])
        except Mismatch as error:
            raise Mismatch(error.under("value")) from None


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Let null in where the schema does not."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NOTHING]}
    return {"anyOf": [schema, _NOTHING]}


@dataclass(slots=True, eq=False)
class Object:
    """An object: declared properties, and entries for every other key where ``rest`` says what those hold.

    Without properties it is a map, whose strict form is the array of its entries. ``low`` and ``high`` bound the
    number of entries, ``absent`` are keys that must not be there, ``key`` is what the other keys have to fit.
    """

    members: Mapping[str, Member]
    rest: Node | None = None
    key: Scalar = field(default_factory=lambda: Scalar("string"))
    low: int = 0
    high: int | None = None
    absent: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False
    entries: str = field(init=False)
    """The property of the strict form that holds the entries."""
    names: tuple[str, ...] = field(init=False)
    """The properties of the strict form, in order."""

    def __post_init__(self) -> None:
        self.entries = unused_name("entries", self.members)
        self.names = (*self.members, *([] if self.rest is None else [self.entries]))

    @property
    def is_map(self) -> bool:
        """Whether there are only entries."""
        return not self.members and self.rest is not None

    def parts(self) -> Iterable[Node]:
        return (*(member.node for member in self.members.values()), *([] if self.rest is None else [self.rest]))

    def would_change(self) -> bool:
        return self.rest is not None or any(
            member.node.changes or not member.required for member in self.members.values()
        )

    def fits(self, value: Any, run: Run) -> bool:
        if not isinstance(value, dict) or not self.absent.isdisjoint(value):
            return False
        for name, member in self.members.items():
            if not (member.node.fits(value[name], run) if name in value else not member.required):
                return False
        others = [name for name in value if name not in self.members]
        if self.rest is None:
            return not others
        return (
            self.low <= len(others)
            and (self.high is None or len(others) <= self.high)
            and all(self.key.fits(name, run) and self.rest.fits(value[name], run) for name in others)
        )

    def encode(self, value: Any, run: Run) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, dict):
            refuse("an object", value)
        faults = [
            Fault((name,), "a value", "nothing")
            for name, member in self.members.items()
            if member.required and name not in value
        ]
        others = [name for name in value if name not in self.members]
        expected = f"one of {', '.join(self.members)}" if self.rest is None else "another key"
        unwanted = others if self.rest is None else [name for name in others if name in self.absent]
        faults += [Fault((name,), expected, "an unknown key") for name in unwanted]
        if faults:
            raise Mismatch(faults)
        encoded: dict[str, Any] = dict.fromkeys(self.members)
        there = [name for name in self.members if name in value]
        values = converted(lambda name: self.members[name].encode(value[name], run), zip(there, there, strict=True))
        encoded.update(zip(there, values, strict=True))
        if self.rest is None:
            return encoded
        entries = self._entries(self.rest, [(name, value[name]) for name in others], run)
        return entries if self.is_map else {**encoded, self.entries: entries}

    def _entries(self, rest: Node, pairs: list[tuple[str, Any]], run: Run) -> list[dict[str, Any]]:
        values = converted(lambda element: rest.encode(element, run), pairs)
        return [{"key": name, "value": element} for (name, _), element in zip(pairs, values, strict=True)]

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        if self.is_map:
            return self._map(value)
        if not isinstance(value, dict):
            refuse("an object", value)
        entries = self.entries if self.rest is not None else None
        names = [name for name, element in value.items() if name in self.members and self._is_there(name, element)]
        values = converted(lambda name: self.members[name].decode(value[name]), zip(names, names, strict=True))
        decoded = dict(zip(names, values, strict=True))
        unknown = [name for name in value if name not in self.members and name != entries]
        if unknown:
            raise Mismatch([Fault((name,), f"one of {', '.join(self.names)}", "an unknown key") for name in unknown])
        if entries in value:
            try:
                decoded |= self._map(value[entries])
            except Mismatch as error:
                raise Mismatch(error.under(str(entries))) from None
        return decoded

    def _is_there(self, name: str, element: Any) -> bool:
        return element is not None or self.members[name].required

    def _map(self, value: Any) -> dict[str, Any]:
        """Turn entries into what they stand for; no key may come twice, since one of the two would be lost."""
        if not isinstance(value, list):
            refuse("an array of entries", value)
        assert self.rest is not None  # noqa: S101 - callers have asked
        decoded: dict[str, Any] = {}
        faults: list[Fault] = []
        for index, entry in enumerate(value):
            if not isinstance(entry, dict) or entry.keys() != {"key", "value"} or not isinstance(entry["key"], str):
                faults.append(Fault((index,), 'an object with "key", a string, and "value"', "something else"))
                continue
            name = entry["key"]
            if name in decoded or name in self.members or name in self.absent:
                faults.append(Fault((index, "key"), "a key of its own", repr(name)))
                continue
            try:
                decoded[name] = self.rest.decode(entry["value"])
            except Mismatch as error:
                faults += [Fault((index, "value", *fault.path), fault.expected, fault.got) for fault in error.faults]
        if faults:
            raise Mismatch(faults)
        return decoded

    def write(self, refer: Refer) -> dict[str, Any]:
        properties = {name: member.write(refer) for name, member in self.members.items()}
        if self.rest is None:
            return noted(closed(properties), self.notes)
        entry = closed({"key": self.key.write(refer), "value": self.rest.write(refer)})
        entries = {"type": "array", "items": entry, **counts(self.low, self.high)}
        return noted(entries if self.is_map else closed({**properties, self.entries: entries}), self.notes)
