"""Settings classes as strangers write them: what is wrong with one is told as its package's, and costs nobody else."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import logging
import math
import typing
import uuid
from collections.abc import Callable, Collection, MutableSequence
from dataclasses import dataclass, field as member, make_dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

import pytest
from attrs import field, frozen, make_class, validators
from jsonschema import Draft202012Validator

import portico_host
from portico.errors import PluginBroken, SchemaUnsupported
from portico.ports import TextSearch
from portico_host.fields import limited, limits_of
from portico_host.schema import offered_schema, settings_schema
from portico_host.secret_source import SecretSource
from portico_host.settings import Structurer, Unfit

PLUGIN = """
    from portico.plugins import Registration

    def portico_text_searches():
        return [Registration(name="mine", factory="portico_mine.search:MineSearch",
                             settings="portico_mine.config:Mine", summary="Search mine.")]
"""
IMPORTS = """
    from __future__ import annotations
    from collections.abc import Callable
    from dataclasses import dataclass, field
    import attrs
    def leave(*_):
        raise SystemExit(7)
"""
NESTED = "@dataclass\n    class In:\n        a: Nope = 1\n    @dataclass\n    class Mine:\n        inner: "
UNREADABLE = {
    "a nested class with a type that is not there": (
        f"{NESTED}In | None = None",
        "NameError: name 'Nope' is not defined",
    ),
    "a class two lists deep": (f"{NESTED}list[dict[str, In]] = ()", "NameError: name 'Nope' is not defined"),
    "limits that are no mapping": (
        "@dataclass\n    class Mine:\n        a: int = field(default=1, metadata={'limits': 5})",
        "TypeError: the limits in the metadata of a are no mapping but of the type int",
    ),
    "the same with attrs": (
        "@attrs.frozen\n    class Mine:\n        a: int = attrs.field(default=1, metadata={'limits': 5})",
        "TypeError: the limits in the metadata of a are no mapping but of the type int",
    ),
    "a default that ends the program": (
        "@dataclass\n    class Mine:\n        a: int = field(default_factory=leave)",
        "SystemExit: 7",
    ),
    "a required setting that no file can hold": (
        "@dataclass\n    class Mine:\n        clock: Callable[[], float]",
        "SchemaUnsupported: The setting 'clock' has no default and cannot be of the type",
    ),
    "keys that are no strings": (
        "@dataclass\n    class Mine:\n        names: dict[int, str] = field(default_factory=dict)",
        "SchemaUnsupported: The keys of a table are strings, not <class 'int'>",
    ),
}


@pytest.mark.parametrize("source, said", UNREADABLE.values(), ids=UNREADABLE)  # noqa: PT006 - two names of one table
def test_a_class_that_cannot_be_read_or_described_is_left_out_of_the_schema_with_a_warning(
    acme: Any, work: Path, caplog: pytest.LogCaptureFixture, source: str, said: str
) -> None:
    acme.install("portico-mine", PLUGIN, {"config": f"{IMPORTS}\n    {source}\n"})
    application = portico_host.load()
    with pytest.raises(PluginBroken, match="Text search 'mine' of portico-mine is broken: its settings class cannot"):
        offered_schema(application.plugins.offer("TextSearch", "mine"))
    with caplog.at_level(logging.WARNING, "portico_host"):
        schema = application.schema()
    names = schema["properties"]["search"]["additionalProperties"]["properties"]["use"]["enum"]
    assert {"acme", "plain"} <= set(names)
    assert "mine" not in names
    (told,) = caplog.messages
    assert told.startswith("Text search 'mine' of portico-mine is broken: its settings class cannot be ")
    assert said in told


@pytest.mark.parametrize("source", [UNREADABLE[name][0] for name in list(UNREADABLE)[:2]])
def test_the_fault_of_a_class_inside_a_settings_class_is_not_the_users(site: Any, work: Path, source: str) -> None:
    site.install("portico-mine", PLUGIN, {"config": f"{IMPORTS}\n    {source}\n"})
    with pytest.raises(PluginBroken, match="its settings class cannot be read: NameError"):
        portico_host.load().services().get(TextSearch, "mine")
    (work / "portico.toml").write_text('[search.web]\nuse = "mine"\n')
    (problem,) = portico_host.diagnose().problems
    assert "its settings class cannot be read: NameError" in problem.cause
    assert portico_host.load().settings(), "nothing else fails of it"


def test_a_chosen_class_that_cannot_be_described_is_a_problem(site: Any, work: Path) -> None:
    limits = "@dataclass\n    class Mine:\n        a: str = field(default='', metadata={'limits': {'length': 5}})"
    site.install("portico-mine", PLUGIN, {"config": f"{IMPORTS}\n    {limits}\n", "search": "class MineSearch: ..."})
    (work / "portico.toml").write_text('[search.web]\nuse = "mine"\n')
    (problem,) = portico_host.diagnose().problems
    assert problem.severity == "error"
    assert "its settings class cannot be described: TypeError" in problem.cause


def test_a_check_of_settings_that_ends_the_program_is_its_packages_fault(site: Any, work: Path) -> None:
    source = "@attrs.frozen\n    class Mine:\n        key: str = attrs.field(default='', validator=leave)"
    site.install("portico-mine", PLUGIN, {"config": f"{IMPORTS}\n    {source}\n"})
    with pytest.raises(PluginBroken, match="its settings could not be checked: SystemExit: 7") as caught:
        portico_host.load().services().get(TextSearch, "mine")
    assert isinstance(caught.value.__cause__, SystemExit)


class Pair(typing.NamedTuple):
    number: int
    word: str = "x"


class Table(typing.TypedDict):
    a: int


class Branch(typing.TypedDict):
    branches: list[Branch]


class Chain(typing.NamedTuple):
    rest: list[Chain]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Opaque(enum.Enum):
    ONE = object()


VALUES: list[Any] = [1, 1.5, True, "a", "red", [], [1], ["a"], [1, "a"], [1, "a", 2], {}, {"a": 1}, {"a": "x"}]
KINDS: list[Any] = [
    decimal.Decimal,
    uuid.UUID,
    dt.timedelta,
    object,
    bytes,
    PurePath,
    Pair,
    Table,
    Callable[[], int],
    Collection[int],
    type[int],
    typing.Final[int],
    typing.Annotated[int, "a number"],
    typing.NewType("Number", int),
    tuple[()],
    tuple[int, str],
    tuple[int, ...],
    tuple,
    list[int],
    list[bytes],
    dict[str, int],
    dict[str, object],
    MutableSequence[int],
    collections.deque[int],
    collections.defaultdict[str, int],
    int | Callable[[], int],
    bytes | None,
    Literal["a", 1],
    Literal[Colour.RED],
    Literal[b"a"],
    Colour,
    Opaque,
]


@pytest.mark.parametrize("hint", KINDS, ids=str)
def test_what_the_schema_of_a_setting_takes_is_what_the_host_takes_whatever_its_type(hint: Any) -> None:
    cls = make_dataclass("Mine", [("setting", hint, member(default=None))], frozen=True)
    schema = Draft202012Validator(settings_schema(cls))
    Draft202012Validator.check_schema(schema.schema)
    for value in VALUES:
        given = {"setting": value}
        try:
            Structurer(SecretSource({}, Path("/folder")), Path("/folder")).structure(cls, given)
            taken = True
        except (Unfit, SchemaUnsupported):
            taken = False
        assert schema.is_valid(given) == taken, (value, schema.schema)


@pytest.mark.parametrize(
    ("hint", "taken", "refused"),
    [(Branch, {"branches": [{"branches": []}]}, {"branches": [1]}), (Chain, [[[[]]]], [[1]])],
    ids=["a table", "a named tuple"],
)
def test_what_holds_itself_is_described_once(hint: Any, taken: Any, refused: Any) -> None:
    cls = make_dataclass("Mine", [("setting", hint)], frozen=True)
    schema = Draft202012Validator(settings_schema(cls))
    structurer = Structurer(SecretSource({}, Path("/folder")), Path("/folder"))
    assert schema.is_valid({"setting": taken})
    structurer.structure(cls, {"setting": taken})
    assert not schema.is_valid({"setting": refused})
    with pytest.raises(Unfit):
        structurer.structure(cls, {"setting": refused})


def test_what_a_file_says_for_a_member_of_an_enumeration_is_its_value() -> None:
    @dataclass
    class Mine:
        colour: Literal[Colour.RED, "none"] = Colour.RED

    structurer = Structurer(SecretSource({}, Path("/folder")), Path("/folder"))
    assert settings_schema(Mine)["properties"]["colour"] == {"enum": ["red", "none"], "default": "red"}
    assert structurer.structure(Mine, {"colour": "red"}) == Mine(Colour.RED)
    assert structurer.structure(Mine, {"colour": Colour.RED}) == Mine(Colour.RED)
    with pytest.raises(Unfit, match="expected one of 'red', 'none'"):
        structurer.structure(Mine, {"colour": "blue"})


IN = validators.in_


@pytest.mark.parametrize(
    ("validator", "limits"),
    [
        (validators.not_(IN(["a", "b"])), {}),
        (validators.or_(IN(["a"]), IN(["b"])), {}),
        (validators.deep_iterable(IN(["a"]), validators.min_len(1)), {}),
        (validators.optional(validators.not_(validators.ge(3))), {}),
        (validators.optional(IN(["a"])), {"enum": ["a"]}),
        (validators.and_(validators.ge(1), validators.le(5)), {"minimum": 1, "maximum": 5}),
        ([validators.min_len(1), validators.max_len(5)], {"length": (1, 5)}),
        ([validators.max_len(5), validators.max_len(3), validators.min_len(2)], {"length": (2, 3)}),
        ([validators.ge(1), validators.ge(3), validators.ge(2)], {"minimum": 3}),
        ([validators.lt(5), validators.lt(3)], {"exclusiveMaximum": 3}),
        (validators.and_(IN([1, 2, 3]), IN([2, 3, 4])), {"enum": [2, 3]}),
        (IN("abc"), {}),
        (IN({"a": 1}), {"enum": ["a"]}),
        (validators.le(math.inf), {}),
        (validators.ge(dt.date(2026, 1, 1)), {}),
        (validators.gt(True), {}),
    ],
)
def test_a_validator_stands_for_what_it_asks_for_and_for_nothing_else(validator: Any, limits: Any) -> None:
    assert limits_of(validator) == limits


def test_both_lengths_are_in_the_schema() -> None:
    cls = make_class(
        "Mine", {"word": field(type=str, default="ab", validator=[validators.min_len(1), validators.max_len(5)])}
    )
    said = settings_schema(cls)["properties"]["word"]
    assert (said["minLength"], said["maxLength"]) == (1, 5)


@frozen
class NotOfJson:
    """What validators and enumerations may hold, and JSON may not."""

    upper: float = field(default=math.inf, validator=validators.le(math.inf))
    some: float = field(default=2.0, validator=IN([math.nan, 2.0]))
    none: float = field(default=math.nan, validator=lambda *_: None)
    opaque: Opaque = Opaque.ONE
    lit: Literal[Colour.RED, b"x"] = Colour.RED
    day: dt.date = dt.date(2026, 1, 2)
    told: int = field(default=1, metadata={"limits": {"minimum": -math.inf, "maximum": 9, "pattern": 5}})


def test_every_bound_and_every_member_of_a_schema_is_what_json_has() -> None:
    schema = settings_schema(NotOfJson)
    json.dumps(schema, allow_nan=False)
    Draft202012Validator.check_schema(schema)
    assert schema["properties"] == {
        "upper": {"type": "number"},
        "some": {"type": "number", "enum": [2.0], "default": 2.0},
        "none": {"type": "number"},
        "opaque": {"not": {}},
        "lit": {"enum": ["red"], "default": "red"},
        "day": {"type": "string", "format": "date", "default": "2026-01-02"},
        "told": {"type": "integer", "maximum": 9, "default": 1},
    }


def test_an_enumeration_of_which_json_has_nothing_limits_nothing() -> None:
    assert limited({"type": "number"}, {"enum": [math.nan]}) == {"type": "number"}
