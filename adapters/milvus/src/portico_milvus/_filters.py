"""Filters as Milvus's expressions, and what of a record's metadata these are asked about.

Nothing from outside is ever in an expression: fields and values go in as digests and as hexadecimal, of which nothing
can break out. Milvus has template parameters for that purpose, but Milvus Lite refuses them, and a field's name cannot
be one.

Two columns beside the metadata make that possible, and hold no matter what is in the metadata:

- ``terms``, a list of digests: one for each value of each field, and one for each field that has numbers, or texts. A
  bool, a number and a text differ in them, 1 and 1.0 do not.
- ``bounds``, a JSON object: for each field that has numbers, and for each that has texts, the least and the greatest,
  as texts that sort as the values do.

An expression keeps all that the filter keeps. In some cases it keeps more, so `portico.search.matches` has the last
word: a range with two ends, since a list may go round it; an end that is an integer no float holds or a text longer
than a key; and Not of these.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, Scalar

Expression: TypeAlias = str | bool
"""An expression in Milvus's language; True and False need no expression."""

TERM_LENGTH = 32
_NAME_LENGTH = 24
_KEY_BYTES = 32
"""Bytes of a text that its key holds. Longer texts with the same beginning have the same key."""


def terms(metadata: dict[str, Any]) -> list[str]:
    """Return what equality and presence are looked up by, each once."""
    found: dict[str, None] = {}
    for field, value in metadata.items():
        for element in value if isinstance(value, tuple) else (value,):
            found[_term(field, element)] = None
            if (kind := _kind(element)) is not None:
                found[_presence(field, kind)] = None
    return list(found)


def bounds(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the least and the greatest key of each field, for its numbers and for its texts."""
    found: dict[str, str] = {}
    for field, value in metadata.items():
        keys: dict[str, list[str]] = {}
        for element in value if isinstance(value, tuple) else (value,):
            if (kind := _kind(element)) is not None:
                keys.setdefault(kind, []).append(_sort_key(element)[0])
        for kind, some in keys.items():
            name = _bound(field, kind)
            found[f"{name}l"] = min(some)
            found[f"{name}h"] = max(some)
    return found


def expression(filter: Filter) -> Expression:
    """Return an expression that holds for every record that the filter keeps, and for hardly any other."""
    return _translate(filter)[0]


def _translate(filter: Filter) -> tuple[Expression, bool]:
    """Return an expression that holds for every record that the filter keeps, and whether for no other."""
    match filter:
        case Equal(field, value):
            return _any_of(field, (value,)), True
        case AnyOf(field, values):
            return _any_of(field, values), True
        case Range():
            return _range(filter)
        case And(parts):
            return _join(" and ", [_translate(part) for part in parts], absorbing=False)
        case Or(parts):
            return _join(" or ", [_translate(part) for part in parts], absorbing=True)
        case Not(part):
            inner, exact = _translate(part)
            if not exact:
                return True, False
            return (not inner if isinstance(inner, bool) else f"(not {inner})"), True


def _any_of(field: str, values: Sequence[Scalar]) -> Expression:
    # A NaN equals nothing.
    wanted = dict.fromkeys(_term(field, value) for value in values if not _is_nan(value))
    if not wanted:
        return False
    return f"array_contains_any(terms, [{', '.join(map(_quoted, wanted))}])"


def _range(filter: Range) -> tuple[Expression, bool]:
    ends: list[tuple[str, str, Any, bool]] = [
        ("h", ">", filter.at_least, False),
        ("h", ">", filter.above, True),
        ("l", "<", filter.at_most, False),
        ("l", "<", filter.below, True),
    ]
    given = [end for end in ends if end[2] is not None]
    kinds = {_kind(bound) for _, _, bound, _ in given}
    if len(kinds) != 1 or (kind := kinds.pop()) is None:
        return False, True
    exact = len({side for side, *_ in given}) == 1
    clauses = [f"array_contains(terms, {_quoted(_presence(filter.field, kind))})"]
    for side, sign, bound, strict in given:
        key, sure = _sort_key(bound)
        exact = exact and sure
        # Of values with the key of an end that is not sure, some lie on either side of it.
        equal = "" if strict and sure else "="
        clauses.append(f'bounds["{_bound(filter.field, kind)}{side}"] {sign}{equal} {_quoted(key)}')
    return f"({' and '.join(clauses)})", exact


def _join(word: str, parts: list[tuple[Expression, bool]], *, absorbing: bool) -> tuple[Expression, bool]:
    """Join parts, of which one that is ``absorbing`` decides, and one that is the contrary is left out."""
    exact = all(sure for _, sure in parts)
    if any(part is absorbing for part, _ in parts):
        return absorbing, exact
    kept = [part for part, _ in parts if isinstance(part, str)]
    return (f"({word.join(kept)})" if kept else not absorbing), exact


def _kind(value: object) -> str | None:
    """Return whether a value is a number or a text that ranges compare; None for a bool and a NaN."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_nan(value):
        return None
    return "number"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _term(field: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return _digest("bool", field, str(value))
    if isinstance(value, str):
        return _digest("text", field, value)
    # A float that is an integer is equal to it, however large.
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return _digest("number", field, hex(number) if isinstance(number, int) else repr(float(number)))


def _presence(field: str, kind: str) -> str:
    return _digest("presence", field, kind)


def _bound(field: str, kind: str) -> str:
    return _digest("bound", field, kind)[:_NAME_LENGTH]


def _digest(purpose: str, field: str, value: str) -> str:
    text = f"{purpose}:{len(field)}:{field}{value}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=TERM_LENGTH // 2).hexdigest()


def _sort_key(value: Scalar) -> tuple[str, bool]:
    """Return a text that sorts as the value does, and whether only equal values have it."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        # UTF-8 sorts by code point. A "g" sorts after every digit, as longer texts do; the "a" is for the empty text.
        exact = len(data) <= _KEY_BYTES
        return f"a{data[:_KEY_BYTES].hex()}{'' if exact else 'g'}", exact
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if number > value:
        number = math.nextafter(number, -math.inf)
    # Zero has a sign in a float, and is the same with both.
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    ordered = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
    exact = number == value
    return f"{ordered:016x}{'0' if exact else '1'}", exact


def _quoted(text: str) -> str:
    # What comes here is made of hexadecimal digits and "g".
    return f'"{text}"'
