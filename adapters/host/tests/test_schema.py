"""The JSON Schema of portico.toml: what it takes, the host takes; what an editor offers is what is installed."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field as member
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import field, frozen, validators
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator

import portico_host
from portico.plugins import Secret, ValueForm
from portico.ports import PORTS
from portico_host.configuration import can_be_none
from portico_host.schema import settings_schema
from portico_host.settings import SecretSource, Structurer


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


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
    """One field of each kind that a setting may have, and of each limit that a schema can say."""

    number: int
    ratio: float = field(default=1.0, validator=[validators.ge(0), validators.le(2)])
    flag: bool = False
    text: str = ""
    path: Path = Path()
    secret: Secret | None = None
    mode: Literal["a", "b", 3] = "a"
    colour: Colour = Colour.RED
    maybe: int | None = field(default=None, validator=validators.optional([validators.ge(16), validators.lt(20)]))
    either: int | str = 1
    words: tuple[str, ...] = field(default=("a",), validator=validators.min_len(1))
    pair: tuple[int, str] = (1, "a")
    bag: frozenset[int] = frozenset()
    table: dict[str, int] = field(factory=dict)
    inner: Inner = field(factory=lambda: Inner(1.0))
    inners: list[Inner] = field(factory=list)
    plain: Plain | None = None
    anything: Any = None
    country: str | None = field(default=None, validator=validators.optional(ValueForm("[A-Z]{2}", "two letters")))
    size: str = field(default="small", validator=ValueForm.one_of("small", "large"))
    dimensions: int = field(default=64, validator=validators.in_((256, 128, 64)))
    seed: int | None = field(default=None, validator=validators.optional(validators.in_(range(2**32 - 1))))
    steps: int = field(default=1, validator=validators.gt(0))


TEXTS = st.text(st.characters(exclude_categories=["C"]), max_size=6)


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Draw what a schema takes: the keywords are those that the host writes, and any other one is an error here."""
    if schema in ({}, True):
        return st.integers() | TEXTS
    unknown = set(schema) - KNOWN
    assert unknown == set(), f"teach this strategy {unknown}"
    if "anyOf" in schema:
        return st.one_of([values_of(option) for option in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"].replace("$", r"\Z"), fullmatch=True)
    kind = schema["type"]
    least, most = schema.get("minimum"), schema.get("maximum")
    if kind == "integer":
        least = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else least
        most = schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else most
        return st.integers(least, most)
    if kind == "number":
        return st.floats(least, most, allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return st.booleans()
    if kind == "string":
        return TEXTS.filter(lambda text: schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 6))
    if kind == "array":
        if "prefixItems" in schema:
            return st.tuples(*map(values_of, schema["prefixItems"])).map(list)
        return st.lists(values_of(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    assert kind == "object"
    if "properties" not in schema:
        return st.dictionaries(TEXTS, values_of(schema.get("additionalProperties", True)), max_size=2)
    needed = schema.get("required", [])
    parts = {name: values_of(part) for name, part in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: part for name, part in parts.items() if name in needed},
        optional={name: part for name, part in parts.items() if name not in needed},
    )


KNOWN = {"type", "description", "default", "properties", "required", "additionalProperties", "anyOf", "enum", "const"}
KNOWN |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "items"}
KNOWN |= {"prefixItems", "minItems", "maxItems"}
WHOLE = settings_schema(Everything)


@pytest.fixture
def nothing_to_read(tmp_path_factory: pytest.TempPathFactory) -> Structurer:
    return Structurer(SecretSource({}, tmp_path_factory.mktemp("folder")))


def drawn_without_files(value: Any) -> bool:
    """Whether no secret stands in a variable or a file, and no path in a home: these are no matter of a schema."""
    if isinstance(value, str):
        return not value.startswith("~")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    named = isinstance(value, dict) and value.keys() & {"env", "file"}
    return not named and all(map(drawn_without_files, parts))


@settings(max_examples=200)
@given(values_of(WHOLE).filter(drawn_without_files))
def test_settings_that_the_schema_takes_the_host_takes(values: dict[str, Any]) -> None:
    assert [*Draft202012Validator(WHOLE).iter_errors(values)] == []
    made = Structurer(SecretSource({}, Path("/folder"))).structure(Everything, values)
    assert isinstance(made, Everything)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"number": "1"},
        {"ratio": 2.5},
        {"path": ""},
        {"secret": ""},
        {"secret": {"env": ""}},
        {"secret": {"env": "A", "file": "b"}},
        {"mode": "c"},
        {"colour": "green"},
        {"maybe": 20},
        {"words": []},
        {"pair": [1]},
        {"inner": {}},
        {"inner": {"rate": 1, "rates": 2}},
        {"table": {"a": "b"}},
        {"country": "Germany"},
        {"size": "medium"},
        {"dimensions": 65},
        {"seed": -1},
        {"steps": 0},
        {"numbr": 1},
    ],
    ids=str,
)
def test_what_the_schema_refuses_the_host_refuses(nothing_to_read: Structurer, wrong: dict[str, Any]) -> None:
    values = ({"number": 1} if wrong else {}) | wrong
    assert not Draft202012Validator(WHOLE).is_valid(values)
    with pytest.raises(Exception, match=next(iter(wrong), "number")):
        nothing_to_read.structure(Everything, values)


LIMITS = {"doc": "Few.", "limits": {"minimum": 1, "maximum": 9}}


@frozen
class FewByAttrs:
    few: int = field(default=3, metadata=LIMITS, validator=lambda *_: None)


@dataclass(frozen=True)
class FewByDataclass:
    few: int = member(default=3, metadata=LIMITS)


@pytest.mark.parametrize("cls", [FewByAttrs, FewByDataclass])
def test_the_limits_of_a_check_that_is_code_are_in_the_metadata(cls: type[Any]) -> None:
    said = settings_schema(cls)["properties"]["few"]
    assert said == {"type": "integer", "minimum": 1, "maximum": 9, "description": "Few.", "default": 3}


GOOD = """
[chat]
use = "acme"
[chat.acme]
model = "x"
retries = 3
[search.web]
use = "acme"
api_key = { env = "ACME_KEY" }
language = "de"
headers = { Authorization = { file = "/key" } }
limits = { requests = 2 }
[search.notes]
use = "plain"
[functions.any-name_1]
use = "acme"
[planner]
use = "retrieval"
max_steps = 3
max_seconds = 2.5
[runs]
use = "none"
[plugins]
disable = ["x"]
[secrets]
allow_files_inside = true
"""
MISTAKES = {
    "chatt = {}": "Additional properties",
    "[chat]\nuse = 'gone'": "'gone' is not one of",
    "[chat]\nuse = 1": "1 is not one of",
    "[chat.acme]\nmodle = 'x'": "'modle' was unexpected",
    "[chat.acme]\nretries = 'x'": "'x' is not of type 'integer'",
    "[search.web]\nuse = 'gone'": "'gone' is not one of",
    "[search.web]\nlanguage = 'en'": "'use' is a required property",
    "[search.web]\nuse = 'acme'": "",
    "[search.web]\nuse = 'plain'\nlanguage = 'en'": "",
    "[search.'a b']\nuse = 'plain'": "does not match",
    "[planner]\nmax_steps = 0": "less than the minimum of 1",
    "[planner]\nmax_refusals = -1": "less than the minimum of 0",
    "[runs]\nuse = 'nonee'": "'nonee' is not one of",
    "[plugins]\nonly = 'x'": "'x' is not of type 'array'",
    "[functions]\nselect = 'gone'": "'gone' is not one of",
}


@pytest.fixture
def schema(acme: Any, work: Path) -> dict[str, Any]:
    return portico_host.load().schema()


def test_it_is_a_schema_of_the_version_that_it_names(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


def test_a_good_file_fits(schema: dict[str, Any], work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*Draft202012Validator(schema).iter_errors(tomllib.loads(GOOD))] == []
    monkeypatch.setenv("ACME_KEY", "k")
    (work / "portico.toml").write_text(GOOD.replace('headers = { Authorization = { file = "/key" } }\n', ""))
    assert [problem for problem in portico_host.load().check() if problem.severity == "error"] == []


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text.replace("\n", " "))
def test_a_mistake_is_told_as_what_it_is(schema: dict[str, Any], text: str) -> None:
    found = [*Draft202012Validator(schema).iter_errors(tomllib.loads(text))]
    assert found
    assert MISTAKES[text] in "\n".join(error.message for error in found), "an editor shows this sentence"


def test_each_choice_has_the_names_that_are_installed(schema: dict[str, Any]) -> None:
    plugins = portico_host.discover()
    for port in PORTS:
        table = schema["properties"][port.table]
        if port.many and not plugins.names(port.name):
            assert table["additionalProperties"] is False
            continue
        place = table["additionalProperties"] if port.many else table
        choice = place["properties"][port.key]
        enum = choice["enum"] if "enum" in choice else choice["anyOf"][0]["enum"]
        names = [*plugins.names(port.name), *(["none"] if can_be_none(port) else [])]
        assert enum == names
        assert choice.get("default") == (port.default if port.default in names and not port.many else None)


def test_what_a_chosen_service_cannot_do_without_must_be_there(site: Any, work: Path) -> None:
    site.install(
        "portico-needy",
        "from portico.plugins import Registration\n"
        "def portico_chat_services():\n"
        "    return [Registration(name='needy', factory='a:b', settings='portico_needy.c:Needs', summary='Needs.')]",
        {"c": "from dataclasses import dataclass\n@dataclass\nclass Needs:\n    model: str\n"},
    )
    validator = Draft202012Validator(portico_host.load().schema())
    assert validator.is_valid({"chat": {"use": "needy", "needy": {"model": "m"}}})
    assert not validator.is_valid({"chat": {"use": "needy"}})
    assert not validator.is_valid({"chat": {"use": "needy", "needy": {}}})
    assert validator.is_valid({"chat": {"use": "extractive"}})


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        # A setting may have the name of a keyword: what stands under `properties` is no schema itself.
        names = schema.get("properties", {})
        schema = [*names.values(), *(part for key, part in schema.items() if key != "properties")]
    for part in schema if isinstance(schema, list) else ():
        yield from parts(part)


def test_every_default_fits_where_it_stands(schema: dict[str, Any]) -> None:
    with_default = [part for part in parts(schema) if "default" in part and part.keys() & {"type", "enum", "anyOf"}]
    assert len(with_default) > 20
    for part in with_default:
        assert Draft202012Validator(part).is_valid(part["default"]), part
        assert not (isinstance(part["default"], float) and math.isinf(part["default"]))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_configuration_that_the_schema_takes_the_host_takes(data: st.DataObject) -> None:
    """Of tables and choices, with the packages that are installed and the settings that they need."""
    schema = portico_host.load().schema()
    several = {"search": TEXT_SEARCHES, "types": {}}
    values: dict[str, Any] = {}
    for table in data.draw(st.sets(st.sampled_from(["chat", "vectors", "runs", "plugins", "secrets", "search"]))):
        if table in several:
            names = st.from_regex("[a-z0-9_-]{1,5}", fullmatch=True)
            values[table] = data.draw(st.dictionaries(names, st.sampled_from(several[table]), max_size=2))
        elif table in ("plugins", "secrets"):
            values[table] = data.draw(values_of(schema["properties"][table]))
            values[table].pop("only", None)
        else:
            choices = schema["properties"][table]["properties"]["use"]["anyOf"][0]["enum"]
            named = {"mine": {"use": "extractive"}} if table == "chat" and data.draw(st.booleans()) else {}
            # JSON Schema has no way to say that a name is one of the tables beside it.
            gone = [] if named else ["gone"]
            values[table] = {"use": data.draw(st.sampled_from([*choices, *named, *gone])), **named}
    if not Draft202012Validator(schema).is_valid(values):
        return
    application = portico_host.load(overrides=values)
    assert [problem for problem in application.check() if problem.severity == "error"] == []


TEXT_SEARCHES = [{"use": "documents", "path": "."}, {"use": "documents"}, {"use": "nothing"}, {}]
