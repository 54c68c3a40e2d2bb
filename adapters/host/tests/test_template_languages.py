"""Template languages of packages: used by name, made when a prompt first names one, configured where wanted."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

import portico_host
from portico.errors import PluginNotInstalled

PLUGIN = """
    from portico.plugins import Registration

    def portico_template_languages():
        return [Registration(name="shouting", factory="portico_shouting.language:Shouting",
                             settings="portico_shouting.config:ShoutingSettings", summary="Shouts.")]
"""
CONFIG = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class ShoutingSettings:
        end: str = "!"
"""
LANGUAGE = """
    made = []

    class Shouting:
        name = "shouting"

        def __init__(self, settings, services):
            made.append(self)
            self.end = settings.end

        def compile(self, source, *, name="prompt"):
            end = self.end

            class Template:
                async def render(self, arguments, *, call):
                    return source.upper() + end

            return Template()
"""


@pytest.fixture
def shouting(site) -> None:
    site.install("portico-shouting", PLUGIN, {"config": CONFIG, "language": LANGUAGE})


async def test_an_installed_language_is_used_by_its_name_and_made_once_when_it_is(shouting, work: Path) -> None:
    async with portico_host.open() as kernel:
        assert await kernel.render_prompt("hey {{$a}}", {"a": 1}) == "hey 1"
        for _ in range(2):
            assert await kernel.render_prompt("hey", language="shouting") == "HEY!"
        from portico_shouting.language import made

        assert len(made) == 1


async def test_a_language_has_settings(shouting, work: Path) -> None:
    (work / "portico.toml").write_text('[templates.shouting]\nend = "?"\n[templates.loud]\nuse = "shouting"\n')
    async with portico_host.open() as kernel:
        assert await kernel.render_prompt("hey", language="shouting") == "HEY?"
        assert await kernel.render_prompt("hey", language="loud") == "HEY!"


async def test_a_language_that_is_not_installed_says_what_to_do(shouting, work: Path) -> None:
    async with portico_host.open() as kernel:
        with pytest.raises(PluginNotInstalled) as raised:
            await kernel.render_prompt("hey", language="shoutin")
    for words in ("Did you mean shouting?", "Installed: ", "shouting", "Always there: semantic-kernel"):
        assert words in str(raised.value)


def test_the_schema_knows_a_language_s_table_with_and_without_use(shouting, work: Path) -> None:
    schema = portico_host.load().schema()["properties"]["templates"]
    for table in ({"shouting": {"end": "?"}}, {"shouting": {"use": "shouting"}}, {"loud": {"use": "shouting"}}):
        jsonschema.validate(table, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"shouting": {"ends": "?"}}, schema)


def test_settings_that_are_wrong_name_their_key(shouting, work: Path) -> None:
    (work / "portico.toml").write_text("[templates.shouting]\nend = 1\n[templates.shoutin]\n")
    problems = "\n".join(map(str, portico_host.load().check()))
    assert "templates.shouting.end" in problems
    assert "Did you mean shouting?" in problems
