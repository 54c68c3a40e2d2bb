"""What PackageKit holds for a type that a file can set is one, and what it refuses is none."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, make_dataclass
from enum import Enum, IntEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import pytest

from portico.registration import Secret
from portico_testkit._package_toml import schema_faults, unsettable


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Odd(Enum):
    ONE = object()
    NONE = float("inf")


class Point(NamedTuple):
    x: float
    y: float


class Tree(TypedDict):
    name: str
    children: NotRequired[list[Tree]]


class Bent(TypedDict):
    angle: complex


@dataclass
class Node:
    name: str = ""
    below: tuple[Node, ...] = ()
    next: Node | None = None


@dataclass
class Branch:
    root: decimal.Decimal | None = None
    nodes: tuple[Branch, ...] = ()


Key = NewType("Key", str)
SETTABLE: list[Any] = [
    *(str, bool, int, float, Path, Secret, Secret | None, dt.datetime, dt.date, dt.time, Any),
    *(list[str], tuple[int, ...], tuple[int, str], set[Path], frozenset[str], Sequence[str], Iterable[int], Set[str]),
    *(list, dict, Mapping[str, int], dict[Key, list[float]], dict[str, Any], list[Node], Node | None, Node),
    *(Literal["a", 1], Literal[Colour.RED], Colour, Level, Point, Key, Annotated[int, "some"]),
    *(int | Callable[[], int], Callable[[], int] | str | None),
]
REFUSED: dict[Any, list[str]] = {
    complex: [": <class 'complex'>"],
    bytes: [": <class 'bytes'>"],
    object: [": <class 'object'>"],
    dt.timedelta: [": <class 'datetime.timedelta'>"],
    Odd: [": <enum 'Odd'>"],
    Literal[Odd.ONE]: [f": {Literal[Odd.ONE]}"],
    Callable[[], int]: [": collections.abc.Callable[[], int]"],
    complex | bytes | None: [": <class 'complex'>", ": <class 'bytes'>"],
    dict[int, str]: [": the keys of dict[int, str] are to be str"],
    Mapping[str, list[complex]]: [": <class 'complex'>"],
    Bent: [".angle: <class 'complex'>"],
    Branch: [".root: <class 'decimal.Decimal'>"],
}


@pytest.mark.parametrize("hint", SETTABLE)
def test_a_type_that_a_file_can_set_is_none_to_complain_of(hint: Any) -> None:
    cls = make_dataclass("AcmeSettings", [("setting", hint)])
    assert unsettable(cls) == []
    if find_spec("portico_host") is not None:
        assert schema_faults(cls) == []


def test_a_type_that_holds_itself_is_looked_at_once() -> None:
    assert unsettable(make_dataclass("AcmeSettings", [("setting", Tree)])) == []


@pytest.mark.parametrize("hint", REFUSED)
def test_a_type_that_no_file_can_set_is_told_with_the_way_to_it(hint: Any) -> None:
    assert unsettable(make_dataclass("AcmeSettings", [("setting", hint)])) == [
        f"setting{told}" for told in REFUSED[hint]
    ]
