"""Bounds on numbers, lengths and texts: as keywords of JSON Schema, and as a check with core's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isclose
from typing import Any

from portico.plugins import Compiled, Fault, Mismatch
from portico_basics.type_codecs._faults import counted, got

_LENGTHS = {"string": ("Length", "character"), "array": ("Items", "element"), "object": ("Properties", "key")}
_KINDS: Mapping[str, type[Any]] = {"string": str, "array": list, "object": dict}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a value must keep to; None for no limit. They speak of the JSON value.

    As in JSON Schema, a bound on numbers says nothing of a value that is no number.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Further keywords of the schema, which are not checked: a description, examples."""

    def apply(self, compiled: Compiled) -> Compiled:
        """Return a type within these limits."""
        if self == _NONE:
            return compiled
        schema = {**compiled.schema, **self._schema(compiled.schema), **self.keywords}
        checks = list(self._checks())
        if not checks:
            return replace(compiled, schema=schema)

        def structure(value: Any) -> Any:
            made = compiled.structure(value)
            faults = [Fault((), expected, got(value)) for expected, keeps in checks if not keeps(value)]
            if faults:
                raise Mismatch(faults)
            return made

        # What has come of a value so far may still be too short.
        return replace(compiled, schema=schema, structure=structure, draft=compiled.draft or structure)

    def _schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        keywords: dict[str, Any] = {
            "minimum": self.ge,
            "exclusiveMinimum": self.gt,
            "maximum": self.le,
            "exclusiveMaximum": self.lt,
            "multipleOf": self.multiple_of,
            "pattern": self.pattern,
        }
        for kind in _kinds(schema):
            if kind in _LENGTHS:
                keywords[f"min{_LENGTHS[kind][0]}"] = self.min_length
                keywords[f"max{_LENGTHS[kind][0]}"] = self.max_length
        return {keyword: limit for keyword, limit in keywords.items() if limit is not None}

    def _checks(self) -> Iterator[tuple[str, Callable[[Any], bool]]]:
        ge, gt, le, lt, step = self.ge, self.gt, self.le, self.lt, self.multiple_of
        if ge is not None:
            yield f"at least {ge}", lambda value: not _is_number(value) or value >= ge
        if gt is not None:
            yield f"more than {gt}", lambda value: not _is_number(value) or value > gt
        if le is not None:
            yield f"at most {le}", lambda value: not _is_number(value) or value <= le
        if lt is not None:
            yield f"less than {lt}", lambda value: not _is_number(value) or value < lt
        if step is not None:
            yield f"a multiple of {step}", lambda value: not _is_number(value) or _is_multiple(value, step)
        if self.pattern is not None:
            matches = re.compile(self.pattern).search
            yield f"a text that matches {self.pattern!r}", lambda value: type(value) is not str or bool(matches(value))
        for kind, (_, unit) in _LENGTHS.items():
            yield from self._length_checks(_KINDS[kind], unit)

    def _length_checks(self, kind: type[Any], unit: str) -> Iterator[tuple[str, Callable[[Any], bool]]]:
        least, most = self.min_length, self.max_length
        if least is not None:
            yield f"at least {counted(least, unit)}", lambda value: type(value) is not kind or len(value) >= least
        if most is not None:
            yield f"at most {counted(most, unit)}", lambda value: type(value) is not kind or len(value) <= most


_NONE = Limits()


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Return the kinds of JSON value that a schema names; all that have a length where it names none."""
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    if "anyOf" in schema:
        return {kind for option in schema["anyOf"] for kind in _kinds(option)}
    return set() if "enum" in schema else set(_LENGTHS)


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    quotient = value / step
    return isclose(quotient, round(quotient), rel_tol=1e-12, abs_tol=1e-12)
