"""`[functions]` with ``select``: a function selector and its settings, beside the tables of function plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import portico_host
from portico.errors import ConfigurationError, PluginNotInstalled
from portico.ports import FunctionSelector

PLUGIN = """
    from portico.plugins import Registration

    def portico_function_selectors():
        return [
            Registration(name="few", factory="portico_few.selector:FewSelector",
                         settings="portico_few.config:FewSettings", summary="Offer the first few."),
            Registration(name="bare", factory="portico_few.selector:FewSelector", summary="Needs nothing."),
        ]

    def portico_function_plugins():
        return [Registration(name="numbers", factory="portico_few.selector:Numbers", summary="Numbers.")]
"""

CONFIG = """
    from attrs import field, frozen

    @frozen
    class FewSettings:
        max: int = field(default=8, metadata={"doc": "How many."})
        always: tuple[str, ...] = field(default=(), metadata={"doc": "Always offered."})
"""

SELECTOR = """
    from portico import Considered, Function, FunctionPlugin, Selection

    class FewSelector:
        name = "few"

        def __init__(self, settings, services):
            self.settings = settings
            self.limit = settings.max
            self.closed = False

        async def select(self, functions, context, *, limit=None):
            names = [each.name for each in functions]
            chosen = names[: self.settings.max if limit is None else limit]
            return Selection(tuple(Considered(name, "chosen") for name in chosen), considered=len(names))

        async def aclose(self):
            self.closed = True

    class Numbers:
        name = "numbers"

        def __init__(self, settings, services):
            pass

        async def load(self, name):
            def one() -> int:
                return 1
            return FunctionPlugin(name, (Function.of(one, plugin=name),))
"""


@pytest.fixture
def few(site: Any) -> Any:
    site.install("portico-few", PLUGIN, {"config": CONFIG, "selector": SELECTOR})
    return site


def written(text: str) -> portico_host.Application:
    Path("portico.toml").write_text(text)
    return portico_host.load()


def said_of(text: str) -> str:
    """Return the error of a configuration, when it is read or when its kernel opens."""
    with pytest.raises(ConfigurationError) as caught:
        written(text).services().prepare_all()
    return str(caught.value)


async def test_a_kernel_has_the_selector_that_is_chosen_and_closes_it(few: Any, work: Path) -> None:
    application = written('[functions]\nselect = "few"\nmax = 3\nalways = ["a-b"]\n[functions.one]\nuse = "numbers"\n')
    async with application.kernel() as kernel:
        assert "one-one" in kernel.functions
        assert kernel.function_selector is not None
        selection = await kernel.function_selector.select(tuple(kernel.specs.values()), ("one",))
        assert selection.names == ("one-one",)
        selector: Any = kernel.service(FunctionSelector)
        assert (selector.settings.max, selector.settings.always) == (3, ("a-b",))
        assert (kernel.function_selector.name, kernel.function_selector.limit) == ("few", 3)
    assert selector.closed


async def test_settings_that_do_not_fit_are_told_when_the_kernel_opens(few: Any, work: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"functions\.maxx"):
        async with written('[functions]\nselect = "few"\nmaxx = 3\n').kernel():
            pass


async def test_without_a_choice_there_is_none_and_none_is_looked_for(few: Any, work: Path) -> None:
    for text in ("", '[functions.one]\nuse = "numbers"\n', '[functions]\nselect = "none"\nmax = 3\n'):
        async with written(text).kernel() as kernel:
            assert kernel.function_selector is None


def test_the_environment_chooses_and_sets(few: Any, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTICO_FUNCTIONS__SELECT", "few")
    monkeypatch.setenv("PORTICO_FUNCTIONS__MAX", "2")
    monkeypatch.setenv("PORTICO_FUNCTIONS__ALWAYS", '["a-b"]')
    settings = portico_host.load().services().prepare("FunctionSelector").settings
    assert (settings.max, settings.always) == (2, ("a-b",))


def test_the_environment_switches_a_selector_of_the_file_off(
    few: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTICO_FUNCTIONS__SELECT", "none")
    application = written('[functions]\nselect = "few"\nmax = 3\n')
    assert application.services().names(FunctionSelector) == ()
    assert application.check() == []
    with pytest.raises(ConfigurationError, match=r'PORTICO_FUNCTIONS__SELECT: functions\.select is "none"'):
        application.services().get(FunctionSelector)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('select = "few"\nmaxx = 3', "portico.toml: functions.maxx: is not a setting here. Nearest: max."),
        ('select = "few"\nmax = "3"', "portico.toml: functions.max: expected an integer, got '3' (a string)."),
        ('select = "few"\nmax = true', "portico.toml: functions.max: expected an integer, got true."),
        ('select = "bare"\nmax = 3', "portico.toml: functions.max: is not known: 'bare' has no settings."),
        (
            "max = 3",
            "functions.max: is a setting of a function selector, and none is chosen: set `select` in [functions].",
        ),
        ('selct = "few"', "portico.toml: functions.selct: is a setting of a function selector, and none is chosen"),
        ('use = "few"', "portico.toml: functions.use: is a setting of a function selector, and none is chosen"),
        ("select = 3", "portico.toml: functions.select: expected a name, got an integer."),
        ('select = ""', "portico.toml: functions.select: expected a name, got an empty string."),
    ],
)
def test_a_mistake_says_where_it_is_and_what_belongs_there(few: Any, work: Path, text: str, said: str) -> None:
    assert said in said_of(f"[functions]\n{text}\n")


def test_a_selector_that_is_not_installed_is_told_with_the_nearest(few: Any, work: Path) -> None:
    application = written('[functions]\nselect = "fex"\n')
    with pytest.raises(PluginNotInstalled) as caught:
        application.services().prepare_all()
    said = str(caught.value)
    assert "portico.toml: functions.select: Function selector 'fex' is not installed." in said
    assert "Did you mean few?" in said
    assert "pip install" not in said, "what nobody knows of is misspelt, and may be anybody's"


def test_every_mistake_of_the_settings_is_told_at_once(few: Any, work: Path) -> None:
    said = said_of('[functions]\nselect = "few"\nmaxx = 3\nalways = 1\n')
    assert "functions.maxx" in said
    assert "functions.always" in said


def test_asking_for_a_selector_where_none_is_chosen_says_how_one_is(few: Any, work: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"set `select` in \[functions\] of portico\.toml\. Installed: .*few"):
        portico_host.load().services().get(FunctionSelector)


def test_the_effective_settings_name_choice_and_settings_with_their_origins(few: Any, work: Path) -> None:
    shown = written('[functions]\nselect = "few"\nmax = 3\n[functions.one]\nuse = "numbers"\n').redacted()
    assert shown["functions.select"] == {"value": "few", "origin": "portico.toml"}
    assert shown["functions.max"] == {"value": 3, "origin": "portico.toml"}
    assert shown["functions.always"] == {"value": [], "origin": "default"}
    assert shown["functions.one.use"]["value"] == "numbers"
    assert not [key for key in written("").redacted() if key.startswith("functions")]


def test_the_schema_takes_selector_settings_and_plugins_in_one_table(few: Any, work: Path) -> None:
    schema = portico_host.load().schema()
    validator = Draft202012Validator(schema)
    good = {"functions": {"select": "few", "max": 3, "one": {"use": "numbers"}}}
    assert validator.is_valid(good)
    assert validator.is_valid({"functions": {"select": "none"}})
    assert not validator.is_valid({"functions": {"select": "fex"}})
    assert not validator.is_valid({"functions": {"select": "few", "max": "3"}})
    assert not validator.is_valid({"functions": {"select": "few", "one": {"use": "nobody"}}})
    assert not validator.is_valid({"functions": {"max": 3}}), "no selector is chosen"
    # Another selector that is installed may have a setting of that name too.
    assert "How many." in json.dumps(schema["properties"]["functions"]["properties"]["max"])


def test_doctor_knows_a_selector_that_does_not_load(site: Any, work: Path) -> None:
    site.install("portico-few", PLUGIN, {"config": CONFIG, "selector": "raise RuntimeError('no')"})
    (problem,) = written('[functions]\nselect = "few"\n').check()
    assert problem.severity == "error"
    assert "few" in problem.subject
