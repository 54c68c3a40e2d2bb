"""What the kit of type codecs is told of a codec, and the values that it makes of that."""

from __future__ import annotations

import copy
import enum
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from portico.plugins import Compiled, Mismatch

__all__ = ["JUNK", "Chain", "CodecCase", "Coin", "CoinCodec", "deep_json", "part_of", "references", "through_json"]

_DEEP = 5_000


@dataclass(frozen=True, slots=True)
class CodecCase:
    """A type of the codec's kind, some of its values, and JSON that is none of them.

    ``refused`` has such JSON with every place where it is wrong: ``({"age": "x"}, ["$.age"])``.
    """

    hint: Any
    values: Sequence[Any]
    refused: Sequence[tuple[Any, Sequence[str]]] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A type that contains itself: a value without another inside, and a function that puts one around a value."""

    hint: Any
    end: Any
    around: Callable[[Any], Any]


class _Colour(enum.Enum):
    RED = "red"


class _Reading(TypedDict):
    at: int


class _Point(NamedTuple):
    x: float


class Coin:
    """A class that no codec but `CoinCodec` knows."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coin) and other.cents == self.cents

    def __hash__(self) -> int:
        return hash(self.cents)


class CoinCodec:
    """Another codec beside the one under test; its JSON is a text such as "5 cents"."""

    name = "coin"

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Compile a `Coin`."""
        if hint is not Coin:
            return None

        def structure(value: Any) -> Coin:
            if type(value) is not str or not value.removesuffix(" cents").isascii():
                Mismatch.refuse("an amount in cents", value)
            number = value.removesuffix(" cents")
            return (
                Coin(int(number))
                if number.isdigit() and number != value
                else Mismatch.refuse("an amount in cents", value)
            )

        return Compiled({"type": "string"}, structure, lambda coin: f"{coin.cents} cents")


def _nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


JUNK: Sequence[Any] = (
    None, True, 0, -1, 1.5, 2.0, "", "x", "\x00", "half a \ud800 character", [], [[]], [None], {}, {"": None},
    {"a": {}}, float("nan"), float("inf"), [float("nan")], {"a": float("inf")}, 10**400, _nested(_DEEP),
)  # fmt: skip
"""What Python's own JSON parser may give; a type may take some of it, and refuses the rest with a Mismatch."""


def through_json(value: Any) -> Any:
    """Return a JSON value as it is after it was sent as text."""
    return json.loads(json.dumps(value, allow_nan=False))


def part_of(value: Any) -> Iterator[Any]:
    """Yield what may have come of a JSON value while it streams: keys, elements and letters are missing."""
    if isinstance(value, dict):
        for key in value:
            rest = {other: value[other] for other in value if other != key}
            yield rest
            for part in part_of(value[key]):
                yield {**rest, key: part}
    elif isinstance(value, list):
        for length in range(len(value)):
            yield value[:length]
            for part in part_of(value[length]):
                yield [*value[:length], part]
    elif isinstance(value, str):
        yield from {value[: len(value) // 2], ""}


def references(schema: Any) -> Iterator[str]:
    """Yield every reference in a schema."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)


def deep_json(compiled: Compiled, chain: Chain) -> Any:
    """Return JSON of a chain of more links than Python can follow."""
    one = compiled.unstructure(chain.around(chain.end))
    two = compiled.unstructure(chain.around(chain.around(chain.end)))
    path = next((path for path, part in _parts(two, ()) if path and part == one), None)
    assert path is not None, "the JSON of a value is not inside of the JSON of what stands around it"
    value = one
    for _ in range(_DEEP):
        outer = copy.deepcopy(one)
        place = outer
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        value = outer
    return value


def _parts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    if isinstance(value, dict | list):
        for step, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _parts(part, (*path, step))
