from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field as member
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType

import pytest
from attrs import field, frozen, validators
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from portico.plugins import Secret
from portico_host.problems import SettingsInvalid
from portico_host.schema import settings_schema
from portico_host.settings import SecretSource, Structurer
from portico_host.tree import Given

Seconds = NewType("Seconds", float)


class Level(IntEnum):
    LOW = 1


class Colour(Enum):
    RED = "red"


@frozen
class Inner:
    rate: float
    token: Secret | None = None


@dataclass(frozen=True)
class Plain:
    name: str = "x"
    rates: list[int] = member(default_factory=list)


@frozen
class Everything:
    _number: int = 1
    ratio: float = 1.0
    flag: bool = False
    text: str = ""
    path: Path = Path()
    secret: Secret | None = None
    mode: Literal["a", "b", 3] = "a"
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    maybe: int | None = None
    either: int | str = 1
    way: Literal["auto"] | int = "auto"
    words: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "a")
    bag: frozenset[int] = frozenset()
    table: Mapping[str, int] = field(factory=dict)
    headers: dict[str, Secret] = field(factory=dict)
    inner: Inner = field(factory=lambda: Inner(1.0))
    inners: list[Inner] = field(factory=list)
    plain: Plain | None = None
    wait: Annotated[Seconds, "seconds"] = Seconds(1.0)
    anything: Any = None
    bounded: int = field(default=1, validator=validators.ge(0))


def structurer(
    folder: Path = Path("/folder"), environ: Mapping[str, str] | None = None, inside: bool = False
) -> Structurer:
    return Structurer(SecretSource(environ or {}, folder, inside))


def faults(values: Mapping[str, Any], cls: type[Any] = Everything, **options: Any) -> dict[str, str]:
    with pytest.raises(SettingsInvalid) as caught:
        structurer(**options).structure(cls, values)
    assert caught.value.__context__ is None, "the original error might hold a secret"
    return {".".join(each.key): each.cause for each in caught.value.problems}


FITS: list[tuple[str, Any, Any]] = [
    ("number", 5, 5),
    ("ratio", 5, 5.0),
    ("flag", True, True),
    ("text", "five", "five"),
    ("path", "docs", Path("/folder/docs")),
    ("path", "/docs", Path("/docs")),
    ("path", Path("kept"), Path("kept")),
    ("secret", "s", Secret("s")),
    ("mode", 3, 3),
    ("colour", "red", Colour.RED),
    ("level", 1, Level.LOW),
    ("maybe", 2, 2),
    ("either", "x", "x"),
    ("either", 7, 7),
    ("way", 7, 7),
    ("words", ["a"], ("a",)),
    ("pair", [2, "b"], (2, "b")),
    ("bag", [1, 1], frozenset({1})),
    ("table", {"a": 1}, {"a": 1}),
    ("headers", {"a": "s"}, {"a": Secret("s")}),
    ("inner", {"rate": 2}, Inner(2.0)),
    ("inners", [{"rate": 2}], [Inner(2.0)]),
    ("plain", {"name": "n", "rates": [1]}, Plain("n", [1])),
    ("wait", 3, 3.0),
    ("anything", {"a": ["b"]}, {"a": ["b"]}),
]


@pytest.mark.parametrize(("key", "raw", "made"), FITS, ids=lambda value: repr(value)[:20])
def test_a_value_that_fits_is_structured(key: str, raw: Any, made: Any) -> None:
    settings = structurer().structure(Everything, {key: raw})
    got = getattr(settings, "_number" if key == "number" else key)
    assert got == made
    assert type(got) is type(made)


@pytest.mark.parametrize(
    ("key", "raw", "sentence"),
    [
        ("number", True, "expected an integer, got true."),
        ("number", 5.0, "expected an integer, got 5.0 (a float)."),
        ("number", "5", "expected an integer, got '5' (a string)."),
        ("number", 10**5000, None),
        ("ratio", "1.5", "expected a number, got '1.5' (a string)."),
        ("ratio", False, "expected a number, got false."),
        ("ratio", 10**400, "int too large to convert to float."),
        ("flag", 1, "expected true or false, got 1 (an integer)."),
        ("flag", "true", "expected true or false, got 'true' (a string)."),
        ("text", 5, "expected a string, got 5 (an integer)."),
        ("text", {"a": 1}, "expected a string, got a table."),
        ("text", ["a"], "expected a string, got an array."),
        ("path", "", "expected a path, got '' (a string)."),
        ("path", "a\0b", "expected a path, got 'a\\x00b' (a string)."),
        ("path", 3, "expected a path, got 3 (an integer)."),
        ("secret", 5, 'expected a secret: { env = "VARIABLE" } or { file = "PATH" }, got an integer.'),
        ("mode", "c", "expected one of 'a', 'b', 3, got 'c' (a string)."),
        ("mode", True, "expected one of 'a', 'b', 3, got true."),
        ("colour", "blue", "expected one of 'red', got 'blue' (a string)."),
        ("level", 2, "expected one of 1, got 2 (an integer)."),
        ("maybe", "x", "expected an integer, got 'x' (a string)."),
        ("either", 1.5, "expected an integer or a string, got 1.5 (a float)."),
        ("words", "abc", "expected an array, each a string, got a string."),
        ("pair", [1], "expected an array of 2 elements, got one of 1."),
        ("table", [1], "expected a table, got an array."),
        ("inner", "x", "expected a table, got a string."),
        ("bounded", -1, None),
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else "integer",
)
def test_a_value_that_does_not_fit_says_what_was_expected_and_what_came(
    key: str, raw: Any, sentence: str | None
) -> None:
    if key == "number" and sentence is None:
        assert structurer().structure(Everything, {key: raw})._number == raw
        return
    found = faults({key: raw})
    assert list(found) == [key]
    if sentence is not None:
        assert found[key] == sentence


def test_every_mistake_is_told_at_once_with_its_key() -> None:
    found = faults({"text": 1, "inner": {"token": 4, "ratte": 1}, "words": ["a", 2], "flagg": True, "bounded": "x"})
    assert found == {
        "flagg": "is not a setting here. Nearest: flag.",
        "text": "expected a string, got 1 (an integer).",
        "inner.ratte": "is not a setting here. Nearest: rate.",
        "inner.rate": "is missing; expected a number.",
        "inner.token": 'expected a secret: { env = "VARIABLE" } or { file = "PATH" }, got an integer.',
        "words.1": "expected a string, got 2 (an integer).",
        "bounded": "expected an integer, got 'x' (a string).",
    }


def test_a_missing_setting_is_described_by_its_documentation() -> None:
    @frozen
    class Needs:
        path: Path = field(metadata={"doc": "The folder to index."})

    assert faults({}, Needs) == {"path": "is missing; expected a path (The folder to index)."}


def test_a_validator_of_the_class_names_its_field() -> None:
    assert faults({"bounded": -1}) == {"bounded": "'bounded' must be >= 0: -1."}


def test_a_type_that_no_file_can_hold_is_a_fault_of_the_class() -> None:
    @frozen
    class Odd:
        data: bytes = b""
        number: complex = 1j
        call: Any = None

    for key in ("data", "number"):
        assert "cannot be set: no file has values of the type" in faults({key: "x"}, Odd)[key]


@pytest.mark.parametrize(
    ("key", "text", "made"),
    [
        ("number", "5", 5),
        ("ratio", "1.5", 1.5),
        ("ratio", "1", 1.0),
        ("flag", "true", True),
        ("text", "5", "5"),
        ("text", "true", "true"),
        ("text", '"quoted"', '"quoted"'),
        ("either", "5", "5"),
        ("way", "5", 5),
        ("way", "auto", "auto"),
        ("mode", "3", 3),
        ("mode", "a", "a"),
        ("level", "1", Level.LOW),
        ("maybe", "3", 3),
        ("words", '["a", "b"]', ("a", "b")),
        ("bag", "[1, 2]", frozenset({1, 2})),
        ("table", "{a = 1}", {"a": 1}),
        ("secret", "{ env = 'X' }", Secret("{ env = 'X' }")),
        ("inner", "{ rate = 2 }", Inner(2.0)),
        ("anything", "5", "5"),
    ],
)
def test_text_of_the_environment_is_read_as_the_type_needs(key: str, text: str, made: Any) -> None:
    value = Given(text, "env PORTICO_X", textual=True)
    settings = structurer().structure(Everything, {key: value})
    got = getattr(settings, "_number" if key == "number" else key)
    assert got == made
    assert type(got) is type(made)


@pytest.mark.parametrize("text", ["5\nother = 6", "x", "", "[", "5.5", "{a=1}", "[" * 3000])
def test_text_of_the_environment_that_is_no_integer_is_refused(text: str) -> None:
    assert "expected an integer" in faults({"number": Given(text, "env X", textual=True)})["number"]


def test_a_path_is_relative_to_the_file_or_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    make = structurer(folder=Path("/folder")).structure
    assert make(Everything, {"path": "a"}).path == Path("/folder/a")
    assert make(Everything, {"path": Given("a", "override", textual=False)}).path == tmp_path / "a"
    assert make(Everything, {"path": "~/a"}).path == Path("/home/ada/a")


# What TOML can hold, in any shape, against every field.
KEYS = [attribute.alias for attribute in Everything.__attrs_attrs__]  # type: ignore[attr-defined]
SCALARS = st.one_of(
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.text(max_size=8).map(lambda text: Given(text, "env X", textual=True)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, "rate", "token", "env", "file", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from([*KEYS, "unknown"]), VALUES, max_size=6)


@given(TABLES)
def test_any_table_gives_settings_or_faults_and_nothing_else(values: dict[str, Any]) -> None:
    made: Any = None
    found: list[Any] = []
    try:
        made = structurer().structure(Everything, values)
    except SettingsInvalid as error:
        found = list(error.problems)
    assert bool(found) != isinstance(made, Everything)
    for problem in found:
        assert all(isinstance(part, str) for part in problem.key)
        assert not problem.key or problem.key[0] in values
        assert problem.cause.endswith((".", "!", "?"))


JSON_VALUES = st.recursive(
    st.text(max_size=5) | st.integers(-5, 5) | st.floats(-9, 9).filter(lambda x: not math.isnan(x)) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["rate", "env", "file", "name", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
CHECKED = [k for k in KEYS if k not in ("day", "moment", "bounded", "path", "secret", "headers", "inner", "inners")]
CHECK = Draft202012Validator(settings_schema(Everything))


@given(st.dictionaries(st.sampled_from(CHECKED), JSON_VALUES, max_size=3))
def test_the_json_schema_accepts_what_the_host_accepts(values: dict[str, Any]) -> None:
    try:
        structurer().structure(Everything, values)
    except SettingsInvalid:
        return
    assert [*CHECK.iter_errors(values)] == []


@pytest.mark.parametrize(
    "values",
    [
        {"zz": 1},
        {"text": 1},
        {"mode": "c"},
        {"pair": [1]},
        {"inner": {}},
        {"words": "a"},
        {"bounded": -1},
        {"path": ""},
    ],
)
def test_the_json_schema_refuses_what_the_host_refuses(values: dict[str, Any]) -> None:
    assert faults(values)
    assert not CHECK.is_valid(values)
