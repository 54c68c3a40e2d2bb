"""Somebody who writes a package is told what is wrong with it, where that stands, and what to do there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico.errors import PluginBroken, PluginNotInstalled
from portico.plugins import Registration
from portico.ports import TextSearch
from portico_host.packages import SHIPPED, Offer, Package, Plugins, port_named
from portico_host.problems import problems_of

pytestmark = pytest.mark.usefixtures("work")

PLUGIN = """
from portico.plugins import Registration

def portico_text_searches():
    return [Registration(name="mine", factory="portico_mine.search:make", summary="Mine.")]
"""
SEARCH = """
class MineSearch:
    name, index, capabilities = "mine", None, None
    async def search(self, query, options=None): ...
    async def get_text_search_results(self, query, options=None): ...
    async def get_search_results(self, query, options=None): ...

def make(settings, services):
    return MineSearch()
"""
NO_HOOK = "It registers nothing: no function of portico_mine._plugin is a hook."


def found(plugins: Plugins, name: str = "mine") -> Package:
    return next(package for package in plugins.packages if package.name == name)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (SEARCH.replace("return MineSearch()", "MineSearch()"), "its factory returned None, not a service."),
        (SEARCH.replace("def make", "async def make"), "its factory returned <coroutine object make"),
        (SEARCH.replace("MineSearch()", "MineSaerch()"), "it could not be made: NameError: name 'MineSaerch' is not"),
        (SEARCH.replace("return MineSearch()", "raise SystemExit(3)"), "it could not be made: SystemExit: 3."),
        (
            SEARCH.replace("return MineSearch()", "raise type('Odd', (Exception,), {'__str__': None})()"),
            "it could not be made: Odd.",
        ),
    ],
)
def test_a_factory_that_gives_no_service_is_its_packages_fault(site: Any, search: str, said: str) -> None:
    site.install("portico-mine", PLUGIN, {"search": search})
    services = portico_host.load().services()
    for _ in range(2):
        with pytest.raises(PluginBroken, match=r"^Text search 'mine' of portico-mine is broken: ") as caught:
            services.get(TextSearch, "mine")
        assert f" is broken: {said}" in str(caught.value)
        assert " Run `pip install --upgrade portico-mine`" in str(caught.value)


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (PLUGIN.replace("portico_text", "text"), f"{NO_HOOK} The hooks are portico_chat_services, "),
        (PLUGIN.replace("portico_text_searches", "register"), f"{NO_HOOK} The hooks are portico_chat_services, "),
        ("", f"{NO_HOOK} The hooks are "),
        ("from os.path import join as text_searches", f"{NO_HOOK} The hooks are "),
    ],
)
def test_a_package_without_a_hook_is_not_ok(site: Any, plugin: str, said: str) -> None:
    site.install("portico-mine", plugin, {"search": SEARCH})
    plugins = portico_host.discover()
    package = found(plugins)
    assert package.state == "empty"
    assert str(package.problem).startswith(said)
    (problem,) = [each for each in plugins.problems if each.subject == "portico-mine"]
    assert (problem.severity, problem.cause, problem.mend) == ("warning", package.problem, package.mend)


def test_a_package_of_commands_only_needs_no_hook(site: Any) -> None:
    site.install("portico-mine", "def go(): ...", extra="[portico.commands]\ngo = portico_mine._plugin:go\n")
    assert (found(portico_host.discover()).state, found(portico_host.discover()).problem) == ("ok", None)


@pytest.mark.parametrize(
    ("plugin", "error", "said"),
    [
        (PLUGIN.replace("portico_text", "text"), PluginBroken, "is empty. It registers nothing: no function of "),
        (PLUGIN.replace('"mine"', '"other"'), PluginNotInstalled, "is not installed. Installed: "),
        (PLUGIN.replace("text_searches", "planners"), PluginNotInstalled, "is not installed. Installed: "),
    ],
)
def test_a_package_that_offers_something_else_need_not_be_installed(
    site: Any, plugin: str, error: Any, said: str
) -> None:
    site.install("portico-mine", plugin)
    with pytest.raises(error) as caught:
        portico_host.discover().offer("TextSearch", "mine")
    assert said in str(caught.value)
    assert "pip install portico-mine" not in str(caught.value)


def test_every_mistake_of_the_file_is_shown_at_once(acme: Any, work: Path) -> None:
    (work / "portico.toml").write_text(
        '[search.shop]\nuse = "acme"\napi_key = "k"\nsiet = 1\n[search.web]\nuse = "acmee"\n[search.bare]\nsite = "x"\n'
        '[chat]\nuse = "opnai"\n[runs]\npaht = "x"\n[serach.web]\nuse = "acme"\n[planner]\nmax_steps = "three"\n'
    )
    diagnosis = portico_host.diagnose()
    told = {problem.subject for problem in diagnosis.problems if problem.severity == "error"}
    assert told == {"search.bare.use", "runs.paht", "serach", "planner.max_steps"}
    assert diagnosis.application is None


def test_what_is_left_out_for_one_mistake_makes_no_other(acme: Any, work: Path) -> None:
    for text, subject in (
        ('[chat]\nuse = 5\n[chat.acme]\nmodel = "x"\n', "chat.use"),
        ('[search.shop]\nues = "acme"\n', "search.shop.use"),
        ("search = 5\n", "search"),
        ('[functions]\nselct = "contextual"\n', "functions.selct"),
        ("[plugins]\ndisable = 5\n", "plugins.disable"),
    ):
        (work / "portico.toml").write_text(text)
        assert [problem.subject for problem in portico_host.diagnose().problems] == [subject], text


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ('[search.web]\nuse = "acmee"', "Did you mean acme?"),
        ('[functions]\nselect = "contxtual"', "Did you mean contextual?"),
        ('[search.web]\nuse = "exa"', "Choose another, or install the package that registers it."),
    ],
)
def test_a_name_that_is_not_registered_is_compared_and_not_installed(
    acme: Any, work: Path, text: str, mend: str
) -> None:
    (work / "portico.toml").write_text(text)
    (problem,) = portico_host.diagnose().problems
    assert problem.mend == mend
    assert "pip install" not in problem.cause


def test_a_name_near_to_an_installed_one_and_to_one_of_ours_may_mean_either() -> None:
    bravo = Offer(port_named("TextSearch"), Registration("bravo", "a:b", "Bravo."), "bravo", "portico-bravo")
    with pytest.raises(PluginNotInstalled) as caught:
        Plugins((Package("bravo", "portico-bravo", "1", offers=(bravo,)),)).offer("TextSearch", "brave")
    (problem,) = problems_of(caught.value, "text search web")
    assert problem.mend == "Did you mean bravo? Otherwise run `pip install portico-brave`."
    assert problem.mend in str(caught.value)


def test_what_is_said_to_be_ours_is_what_the_workspace_has() -> None:
    root = Path(__file__).parents[3]
    files = [root / "core/pyproject.toml", root / "tests/testkit/pyproject.toml"]
    for folder in ("adapters", "connectors", "planners"):
        files += (root / folder).glob("*/pyproject.toml")
    names = {tomllib.loads(file.read_text("utf-8"))["project"]["name"] for file in files}
    assert len(names) > 20
    assert names == set(SHIPPED)
