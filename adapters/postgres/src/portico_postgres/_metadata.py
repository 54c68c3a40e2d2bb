"""Strings, metadata and filters for PostgreSQL. Values and field names from outside are bound, never part of the SQL.

PostgreSQL's ``text`` holds neither NUL nor half surrogates, which a Python string may have. They are written as pairs
of characters, whose first one is escaped too. The pairs keep the order of code points, so stored strings compare as the
original ones do.

Metadata are stored twice: as a text, which is read back, and as a jsonb, which filters read. The jsonb has a list for
each field, whose elements compare as in `portico.search.matches`. It cannot replace the text: it has no NUL, no NaN and
no infinity, and makes 1e300 an integer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from portico.errors import StoreDamaged
from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, Scalar, VectorRecord

LONGEST_KEY = 2_000
"""Bytes of an id or a namespace in UTF-8, at most: PostgreSQL's indexes hold up to 2,704 bytes."""

_LOW, _HIGH = "\x01", "\ue000"
# The pair of NUL, the lowest character, begins with U+0001; those of half surrogates with U+E000, the next character.
_PAIRS = {"\x00": "\x01\x01", "\x01": "\x01\x02", "\ue000": "\ue000\uf000"}
_UNSTORABLE = re.compile("[\x00\x01\ud800-\udfff\ue000]")
_PAIR = re.compile("[\x01\ue000](.)", re.DOTALL)
_SHIFT = 0x100 - 0xD800
"""Half surrogates are written as U+E000 and this plus their code, below the U+F000 of U+E000 itself."""


def escape(text: str) -> str:
    """Return the stored form of a string, which mostly is the string itself.

    >>> escape("naïve"), escape("nul" + chr(0)) == "nul" + chr(1) + chr(1)
    ('naïve', True)
    """
    return _UNSTORABLE.sub(_pair, text) if _UNSTORABLE.search(text) else text


def unescape(text: str) -> str:
    """Return the original of a stored string.

    >>> strange = "nul" + chr(0) + chr(0xD800)
    >>> unescape(escape(strange)) == strange
    True
    """
    return _PAIR.sub(_single, text) if _LOW in text or _HIGH in text else text


def key(text: str, what: str) -> str:
    """Return the stored form of an id or a namespace. Raises ``ValueError`` for one of more than 2,000 bytes."""
    form = escape(text)
    # A character has at most four bytes, so most strings need no counting.
    if len(form) * 4 > LONGEST_KEY and (size := len(form.encode())) > LONGEST_KEY:
        raise ValueError(f"{what} {text[:40]!r}… has {size} bytes in UTF-8; PostgreSQL's indexes take {LONGEST_KEY}")
    return form


def _pair(found: re.Match[str]) -> str:
    character = found[0]
    return _PAIRS.get(character) or _HIGH + chr(ord(character) + _SHIFT)


def _single(found: re.Match[str]) -> str:
    first, second = found[0][0], found[1]
    if first == _LOW:
        return "\x00" if second == "\x01" else "\x01"
    return _HIGH if second == "\uf000" else chr(ord(second) - _SHIFT)


_LONGEST_NUMBER = 13_000
"""Bits of a whole number: some 3,900 digits. Python itself writes no more than 4,300."""
_INFINITE = "1e5000"
"""Stands for infinity in the jsonb: greater than every number that is stored."""

# Made once: `json.dumps` with options makes an encoder for each call.
_readable = json.JSONEncoder(ensure_ascii=False).encode


def encode(record: VectorRecord) -> tuple[str, str]:
    """Return a record's metadata as the text that is read back, and as the jsonb that is filtered.

    Raises ``TypeError`` for other values than strings, numbers, bools and lists of them, and ``ValueError`` for an
    integer of more than 13,000 bits.
    """
    if not record.metadata:
        return "{}", "{}"
    metadata = record.plain_metadata()
    parts: list[str] = []
    for name, value in metadata.items():
        elements = value if isinstance(value, tuple) else (value,)
        try:
            inside = ",".join(text for element in elements if (text := comparable(element)) is not None)
        except ValueError as error:
            raise ValueError(f"record {record.id!r}: the metadata field {name!r} holds {error}") from None
        parts.append(f"{_readable(escape(name))}:[{inside}]")
    return VectorRecord.encode_metadata(metadata), "{" + ",".join(parts) + "}"


def decode(text: str) -> dict[str, Any]:
    """Return the metadata that `encode` wrote. Raises ``StoreDamaged`` for anything else."""
    try:
        return VectorRecord.decode_metadata(text)
    except ValueError as error:
        raise StoreDamaged(
            f"The metadata {text[:80]!r} of a record cannot be read: {error}. Drop the namespace; what is derived from "
            "documents is then built again."
        ) from error


def comparable(value: Scalar, *, clipped: bool = False) -> str | None:
    """Return a value in JSON, so that it compares correctly in a jsonb; None for a NaN, which compares with nothing.

    A float that is an integer is written with all its digits, since a jsonb compares decimal numbers; the shortest form
    of others lies between the same floats. An integer that is too long raises ``ValueError``; with ``clipped`` it is
    written as a number beyond all stored ones.
    """
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _readable(escape(value))
    if isinstance(value, int):
        if value.bit_length() <= _LONGEST_NUMBER:
            return str(int(value))
        if not clipped:
            raise ValueError(f"a whole number of {value.bit_length():,} bits; {_LONGEST_NUMBER:,} are the most")
        return "1e4500" if value > 0 else "-1e4500"
    if math.isfinite(value):
        return f"{int(value)}.0" if value.is_integer() else repr(float(value))
    if math.isnan(value):
        return None
    return _INFINITE if value > 0 else f"-{_INFINITE}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the column ``fields``, which is never null, and the values of its named parameters."""

    sql: str
    values: dict[str, object] = field(default_factory=dict)


EVERYTHING = Condition("true")

_BOUNDS = (("at_least", ">="), ("at_most", "<="), ("above", ">"), ("below", "<"))


def condition_of(filter: Filter | None) -> Condition:
    """Return the condition that keeps what ``filter`` keeps, as `portico.search.matches` defines it."""
    if filter is None:
        return EVERYTHING
    values: dict[str, object] = {}
    return Condition(_condition(filter, values), values)


def _condition(filter: Filter, values: dict[str, object]) -> str:
    match filter:
        case Equal(field, value):
            return _one_of(field, (value,), values)
        case AnyOf(field, allowed):
            return _one_of(field, allowed, values)
        case Range():
            return _within(filter, values)
        case And(parts):
            return _join(" AND ", [_condition(part, values) for part in parts], "true")
        case Or(parts):
            return _join(" OR ", [_condition(part, values) for part in parts], "false")
        case Not(part):
            return f"(NOT {_condition(part, values)})"


def _one_of(field: str, allowed: Sequence[Scalar], values: dict[str, object]) -> str:
    # The jsonb of a record has a list for each field; `@>` is answered by the index on it.
    name = _readable(escape(field))
    texts = [text for value in allowed if (text := comparable(value, clipped=True)) is not None]
    wanted = [f"{{{name}:[{text}]}}" for text in texts]
    if not wanted:
        return "false"
    if len(wanted) == 1:
        return f"fields @> {_bind(wanted[0], values)}::jsonb"
    return f"fields @> ANY({_bind(wanted, values)}::jsonb[])"


def _within(bounds: Range, values: dict[str, object]) -> str:
    tests: list[str] = []
    variables: list[str] = []
    for name, operator in _BOUNDS:
        bound = getattr(bounds, name)
        if bound is None:
            continue
        text = comparable(bound, clipped=True)
        if text is None or isinstance(bound, bool):
            # A NaN and a bool compare with nothing.
            return "false"
        tests.append(f"@ {operator} ${name}")
        variables.append(f'"{name}":{text}')
    elements = f"fields -> {_bind(escape(bounds.field), values)}"
    limits = _bind("{" + ",".join(variables) + "}", values)
    return f"coalesce(jsonb_path_exists({elements}, '$[*] ? ({' && '.join(tests)})', {limits}::jsonb), false)"


def _join(word: str, conditions: list[str], none: str) -> str:
    return f"({word.join(conditions)})" if conditions else none


def _bind(value: object, values: dict[str, object]) -> str:
    name = f"f{len(values)}"
    values[name] = value
    return f"%({name})s"
