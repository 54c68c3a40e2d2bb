"""Settings classes as strangers write them: a mistake in one is reported as its package's and breaks nothing else."""

from __future__ import annotations

import enum
import typing
from dataclasses import dataclass, field as member, make_dataclass
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from attrs import validators
from jsonschema import Draft202012Validator

import portico_host
from portico.errors import PluginBroken
from portico_host.problems import SettingsInvalid
from portico_host.schema import offered_schema, settings_schema
from portico_host.settings import SecretSource, Structurer

PLUGIN = """
    from portico.plugins import Registration

    def portico_text_searches():
        return [Registration(name="mine", factory="portico_mine.search:MineSearch",
                             settings="portico_mine.config:Mine", summary="Search mine.")]
"""
IMPORTS = """
    from __future__ import annotations
    from dataclasses import dataclass
"""


def test_a_class_that_cannot_be_read_is_left_out_of_the_schema(acme: Any, work: Path) -> None:
    source = "@dataclass\n    class Mine:\n        a: Nope = 1"
    said = "cannot be read: NameError: name 'Nope' is not defined"
    acme.install("portico-mine", PLUGIN, {"config": f"{IMPORTS}\n    {source}\n", "search": "class MineSearch: ..."})
    application = portico_host.load()
    with pytest.raises(
        PluginBroken, match="Text search 'mine' of portico-mine is broken: its settings class "
    ) as caught:
        offered_schema(application.plugins.offer("TextSearch", "mine"))
    assert said in str(caught.value)
    names = application.schema()["properties"]["search"]["additionalProperties"]["properties"]["use"]["enum"]
    assert {"acme", "plain"} <= set(names)
    assert "mine" not in names
    (work / "portico.toml").write_text('[search.web]\nuse = "mine"\n')
    assert [problem.severity for problem in portico_host.diagnose().problems][-1:] == ["error"]
    assert portico_host.load().settings(), "nothing else fails"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


VALUES: list[Any] = [1, 1.5, True, "a", "red", [], [1], ["a"], [1, "a"], [1, "a", 2], {}, {"a": 1}, {"a": "x"}]
KINDS: list[Any] = [
    bytes,
    typing.Annotated[int, "a number"],
    typing.NewType("Number", int),
    tuple[int, str],
    tuple[int, ...],
    tuple,
    list[int],
    list[bytes],
    dict[str, int],
    int | str,
    bytes | None,
    Literal["a", 1],
    Colour,
]


@pytest.mark.parametrize("hint", KINDS, ids=str)
def test_what_the_schema_of_a_setting_takes_is_what_the_host_takes_whatever_its_type(hint: Any) -> None:
    cls = make_dataclass("Mine", [("setting", hint, member(default=None))], frozen=True)
    schema = Draft202012Validator(settings_schema(cls))
    Draft202012Validator.check_schema(schema.schema)
    for value in VALUES:
        given = {"setting": value}
        try:
            Structurer(SecretSource({}, Path("/folder"))).structure(cls, given)
            taken = True
        except SettingsInvalid:
            taken = False
        assert schema.is_valid(given) == taken, (value, schema.schema)


def test_a_file_names_a_member_of_an_enumeration_by_its_value() -> None:
    @dataclass
    class Mine:
        colour: Colour = Colour.RED

    structurer = Structurer(SecretSource({}, Path("/folder")))
    assert settings_schema(Mine)["properties"]["colour"] == {"enum": ["red", "blue"], "default": "red"}
    assert structurer.structure(Mine, {"colour": "blue"}) == Mine(Colour.BLUE)
    assert structurer.structure(Mine, {"colour": Colour.RED}) == Mine(Colour.RED)
    with pytest.raises(SettingsInvalid, match="expected one of 'red', 'blue'"):
        structurer.structure(Mine, {"colour": "green"})


IN = validators.in_


@pytest.mark.parametrize(
    ("validator", "limits"),
    [
        (validators.not_(validators.ge(3)), {}),
        (validators.or_(validators.ge(3), validators.ge(5)), {}),
        (validators.optional(IN([1, 2])), {"enum": [1, 2]}),
        (validators.and_(validators.ge(1), validators.le(5)), {"minimum": 1, "maximum": 5}),
        ([validators.gt(1), validators.lt(5)], {"exclusiveMinimum": 1, "exclusiveMaximum": 5}),
        (IN(range(3, 7)), {"minimum": 3, "maximum": 6}),
        (validators.instance_of(int), {}),
        (lambda *_: None, {}),
    ],
)
def test_a_validator_stands_for_what_it_asks_for_and_for_nothing_else(validator: Any, limits: Any) -> None:
    cls = attrs.make_class("Mine", {"setting": attrs.field(type=int, validator=validator)})
    assert settings_schema(cls)["properties"]["setting"] == {"type": "integer", **limits}
