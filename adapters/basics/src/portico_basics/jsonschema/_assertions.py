"""Keywords that look at a value as a whole: what each speaks of, when it holds, and what it says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from portico_basics.jsonschema._values import frozen, shown


@dataclass(frozen=True, slots=True)
class Assertion:
    """A keyword that speaks of some kinds of value; ``holds`` and ``says`` take its argument and the value."""

    kinds: tuple[type, ...]
    holds: Callable[[Any, Any], bool]
    says: Callable[[Any, Any], str]

    def speaks_of(self, value: Any) -> bool:
        """Tell whether the keyword says anything of a value."""
        return isinstance(value, self.kinds) and (not isinstance(value, bool) or object in self.kinds)


_ANYTHING = (object,)
_NUMBERS = (int, float)


def _count(bound: str, unit: str) -> Callable[[Any, Any], str]:
    return lambda argument, value: f"expected at {bound} {argument} {unit}, got {len(value)}"


def _number(bound: str) -> Callable[[Any, Any], str]:
    return lambda argument, value: f"expected {bound} {argument}, got {shown(value)}"


def _is_multiple(argument: Any, value: Any) -> bool:
    """Compare as the numbers are written: 0.3 is three times 0.1, though not to a processor."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (_written(value) / _written(argument)).denominator == 1


def _written(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


ASSERTIONS: Mapping[str, Assertion] = {
    "const": Assertion(
        _ANYTHING,
        lambda argument, value: bool(frozen(value) == frozen(argument)),
        lambda argument, value: f"expected one of {shown(argument)}",
    ),
    "enum": Assertion(
        _ANYTHING,
        lambda argument, value: frozen(value) in map(frozen, argument),
        lambda argument, value: f"expected one of {', '.join(map(shown, argument))}",
    ),
    "exclusiveMaximum": Assertion(_NUMBERS, lambda argument, value: value < argument, _number("less than")),
    "exclusiveMinimum": Assertion(_NUMBERS, lambda argument, value: value > argument, _number("more than")),
    "maxItems": Assertion((list,), lambda argument, value: len(value) <= argument, _count("most", "elements")),
    "maxLength": Assertion((str,), lambda argument, value: len(value) <= argument, _count("most", "characters")),
    "maxProperties": Assertion((dict,), lambda argument, value: len(value) <= argument, _count("most", "keys")),
    "maximum": Assertion(_NUMBERS, lambda argument, value: value <= argument, _number("at most")),
    "minItems": Assertion((list,), lambda argument, value: len(value) >= argument, _count("least", "elements")),
    "minLength": Assertion((str,), lambda argument, value: len(value) >= argument, _count("least", "characters")),
    "minProperties": Assertion((dict,), lambda argument, value: len(value) >= argument, _count("least", "keys")),
    "minimum": Assertion(_NUMBERS, lambda argument, value: value >= argument, _number("at least")),
    "multipleOf": Assertion(_NUMBERS, _is_multiple, _number("a multiple of")),
    "uniqueItems": Assertion(
        (list,),
        lambda argument, value: not argument or len({frozen(element) for element in value}) == len(value),
        lambda argument, value: "the elements are not all different",
    ),
}
