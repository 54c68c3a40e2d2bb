"""Somebody who writes a package is told what is wrong with it, where that stands, and what to do there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.request import pathname2url

import pytest

import portico_host
from portico.errors import PluginBroken, PluginConflict, PluginNotInstalled
from portico.plugins import Registration
from portico.ports import TextSearch
from portico_host.checking import package_problems, problems_of
from portico_host.packages import Offer, Package, Plugins, port_named
from portico_host.shipped import SHIPPED
from portico_host.typed_words import quoted

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


def worked_on(site: Any, folder: Path) -> str:
    """Let the installed package look as `pip install -e` leaves it; return the folder as messages name it."""
    (info,) = site.folder.glob("portico_mine-*.dist-info")
    told = {"url": f"file:{pathname2url(str(folder))}", "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(told))
    return quoted(str(folder))


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (
            SEARCH.replace("return MineSearch()", "MineSearch()"),
            "its factory portico_mine.search:make returned nothing, not a TextSearch.",
        ),
        (
            SEARCH.replace("def make", "async def make"),
            "its factory portico_mine.search:make is asynchronous; a service is made by a plain function.",
        ),
        (
            SEARCH.replace("async def search", "async def seek").replace("name, index,", "name, _,"),
            "MineSearch is no TextSearch: it has no index, search.",
        ),
        (
            SEARCH.replace("return MineSearch()", "return 5"),
            "int is no TextSearch: it has no name, capabilities, index, search, ",
        ),
        (
            SEARCH.replace("name, index,", "name, _,") + "MineSearch.index = property(lambda self: 1 / 0)",
            "MineSearch cannot be asked what it has: ZeroDivisionError: division by zero. See portico_mine/search.py:",
        ),
    ],
)
def test_what_a_factory_gives_is_looked_at_before_anybody_uses_it(site: Any, search: str, said: str) -> None:
    site.install("portico-mine", PLUGIN, {"search": search})
    services = portico_host.load().services()
    for _ in range(2):
        with pytest.raises(PluginBroken, match=r"^Text search 'mine' of portico-mine is broken: ") as caught:
            services.get(TextSearch, "mine")
        assert f" is broken: {said}" in str(caught.value)
        assert " Run `pip install --upgrade portico-mine`" in str(caught.value)


async def test_what_is_all_that_its_port_asks_for_is_taken_as_it_is(site: Any) -> None:
    site.install("portico-mine", PLUGIN, {"search": SEARCH})
    async with portico_host.load().services() as services:
        assert type(services.get(TextSearch, "mine")).__name__ == "MineSearch"


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (PLUGIN.replace("portico_text", "text"), f"{NO_HOOK} Its text_searches would be one as portico_text_searches."),
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
    assert package.problems[0].startswith(said)
    (problem,) = [each for each in package_problems(plugins) if each.subject == "portico-mine"]
    assert (problem.severity, problem.cause, problem.mend) == ("warning", *package.problems, package.mend)


def test_a_package_of_commands_only_needs_no_hook(site: Any) -> None:
    site.install("portico-mine", "def go(): ...", extra="[portico.commands]\ngo = portico_mine._plugin:go\n")
    assert (found(portico_host.discover()).state, found(portico_host.discover()).problem) == ("ok", None)


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (
            PLUGIN.replace("portico_text", "text"),
            "portico-mine 1.0 is installed and offers nothing. It registers nothing: ",
        ),
        (PLUGIN.replace('"mine"', '"other"'), "portico-mine 1.0 is installed and offers text search 'other'."),
        (PLUGIN.replace("text_searches", "planners"), "portico-mine 1.0 is installed and offers planner 'mine'."),
    ],
)
def test_what_is_installed_and_offers_something_else_is_not_to_be_installed(site: Any, plugin: str, said: str) -> None:
    site.install("portico-mine", plugin)
    with pytest.raises(PluginNotInstalled) as caught:
        portico_host.discover().offer("TextSearch", "mine")
    assert str(caught.value).startswith("Text search 'mine' is not registered. ")
    assert said in str(caught.value)
    assert "pip install portico-mine" not in str(caught.value)


def test_the_doctor_tells_what_mends_a_chosen_package_that_offers_nothing(
    site: Any, tmp_path: Path, work: Path
) -> None:
    site.install("portico-mine", PLUGIN.replace("portico_text", "text"))
    folder = worked_on(site, tmp_path)
    (work / "portico.toml").write_text('[search.web]\nuse = "mine"\n')
    noted, failed = portico_host.diagnose().problems
    assert (noted.severity, failed.severity, failed.subject) == ("warning", "error", "text search web")
    assert failed.mend == noted.mend == f"Mend it in {folder}; it is read again at once."


@pytest.mark.parametrize(
    ("plugin", "said", "mend"),
    [
        ("\nimport os\nos.environ['NO_SUCH']", "KeyError: 'NO_SUCH'. See portico_mine/_plugin.py:3.", "saved"),
        ("def portico_text_searches(:", "SyntaxError: invalid syntax (_plugin.py, line 1).", "saved"),
        ("from portico.plugins import Enrolment", " See portico_mine/_plugin.py:1.", "saved"),
        ("import json.nothing", "No module named 'json.nothing'. See portico_mine/_plugin.py:1.", "metadata"),
        (
            "import portico_mine.searhc",
            "No module named 'portico_mine.searhc'. See portico_mine/_plugin.py:1.",
            "metadata",
        ),
        ("from portico_mine.deep import x", "RuntimeError: deep. See portico_mine/deep.py:2.", "saved"),
        (PLUGIN.replace("summary=", "sumary="), " See portico_mine/_plugin.py:5.", "saved"),
        (PLUGIN.replace("text_searches", "text_search"), "The nearest is portico_text_searches.", "saved"),
        (PLUGIN.replace("portico_text", "text"), "would be one as portico_text_searches.", "saved"),
        ("import acmesdk.client", "No module named 'acmesdk'. See portico_mine/_plugin.py:1.", "metadata"),
    ],
)
def test_what_is_worked_on_needs_pip_only_where_its_metadata_is_wrong(
    site: Any, tmp_path: Path, plugin: str, said: str, mend: str
) -> None:
    site.install("portico-mine", plugin, {"deep": "\nraise RuntimeError('deep')"})
    folder = worked_on(site, tmp_path / "my package")
    package = found(portico_host.discover())
    assert said in str(package.problem)
    saved = f"Mend it in {folder}; it is read again at once."
    metadata = f"{saved} After a change of its pyproject.toml, run `pip install -e {folder}`."
    assert package.mend == (saved if mend == "saved" else metadata)
    if package.state == "broken":
        with pytest.raises(PluginBroken) as caught:
            portico_host.discover().offer("TextSearch", "mine")
        (problem,) = problems_of(caught.value, "TextSearch", "mine")
        assert (problem.mend, package.mend in problem.cause) == (package.mend, False)


def test_a_factory_says_where_it_failed(site: Any, tmp_path: Path) -> None:
    site.install("portico-mine", PLUGIN, {"search": SEARCH.replace("return MineSearch()", "return MineSaerch()")})
    folder = worked_on(site, tmp_path)
    with pytest.raises(PluginBroken) as caught:
        portico_host.load().services().get(TextSearch, "mine")
    assert str(caught.value).endswith(
        f"is not defined. See portico_mine/search.py:9. Mend it in {folder}; it is read again at once."
    )


def test_a_slow_import_is_to_note_with_its_seconds() -> None:
    plugins = Plugins(
        (Package("quick", "portico-quick", "1", seconds=0.9), Package("slow", "portico-slow", "1", seconds=3.14))
    )
    (problem,) = package_problems(plugins)
    assert (problem.severity, problem.subject) == ("warning", "portico-slow")
    assert problem.cause == "Its import took 3.1 s, which every command waits for; it need import core only."


def test_every_mistake_of_a_configuration_is_told_at_once(acme: Any, work: Path) -> None:
    (work / "portico.toml").write_text(
        '[search.shop]\nuse = "acme"\napi_key = "k"\nsiet = 1\n[search.web]\nuse = "acmee"\n[search.bare]\nsite = "x"\n'
        '[chat]\nuse = "opnai"\n[runs]\npaht = "x"\n[serach.web]\nuse = "acme"\n[planner]\nmax_steps = "three"\n'
    )
    diagnosis = portico_host.diagnose()
    told = {problem.subject for problem in diagnosis.problems if problem.severity == "error"}
    assert told == {
        "search.shop.siet",
        "text search web",
        "search.bare.use",
        "chat service opnai",
        "runs.paht",
        "serach",
        "planner.max_steps",
    }
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
        ('[search.web]\nuse = "acmee"', 'Set `use = "acme"`.'),
        ('[functions]\nselect = "contxtual"', 'Set `select = "contextual"`.'),
        ('[search.web]\nuse = "documents-x"', 'Set `use = "documents"`.'),
        # Near to one that is there, and one of ours all the same.
        ('[planner]\nuse = "retreival"', 'Set `use = "retrieval"`.'),
        (
            '[search.web]\nuse = "exa"',
            "Choose another, or install the package that registers it, as its own pages say.",
        ),
    ],
)
def test_a_name_that_is_near_to_an_installed_one_is_mended_and_not_installed(
    acme: Any, work: Path, text: str, mend: str
) -> None:
    (work / "portico.toml").write_text(text)
    (problem,) = portico_host.diagnose().problems
    assert problem.mend == mend
    assert "pip install" not in problem.cause


def test_who_works_on_a_package_is_told_to_register_another_name_and_not_to_uninstall(
    site: Any, tmp_path: Path, work: Path
) -> None:
    site.install("portico-mine", PLUGIN)
    site.install("portico-other", PLUGIN.replace("portico_mine", "portico_other"))
    plugins = portico_host.discover()
    uninstall = "`pip uninstall portico-mine` or `pip uninstall portico-other`"
    assert str(found(plugins).mend) == f"Run {uninstall}."
    with pytest.raises(PluginConflict, match=f"Run {uninstall}, or set PORTICO_DISABLE=portico-other.$"):
        plugins.offer("TextSearch", "mine")
    file = worked_on(site, tmp_path)
    plugins = portico_host.discover()
    for name in ("mine", "other"):
        assert found(plugins, name).state == "conflict"
        assert found(plugins, name).mend == f"Register it under another name in {file}."
    with pytest.raises(PluginConflict) as caught:
        plugins.offer("TextSearch", "mine")
    assert str(caught.value) == (
        "Text search 'mine' is registered by portico-mine and portico-other. "
        f"Register it under another name in {file}, or set PORTICO_DISABLE=portico-other."
    )
    (work / "portico.toml").write_text('[search.web]\nuse = "mine"\n')
    told = {problem.subject: problem for problem in portico_host.diagnose().problems}["text search web"]
    assert told.cause.endswith("Text search 'mine' is registered by portico-mine and portico-other.")
    assert told.mend.startswith(f"Register it under another name in {file}, or set ")


def test_of_what_is_near_and_of_what_is_ours_either_may_be_meant() -> None:
    bravo = Offer(port_named("TextSearch"), Registration("bravo", "a:b", "Bravo."), "bravo", "portico-bravo")
    with pytest.raises(PluginNotInstalled) as caught:
        Plugins((Package("bravo", "portico-bravo", "1", offers=(bravo,)),)).offer("TextSearch", "brave")
    assert "Did you mean bravo? Otherwise run `pip install portico-brave`." in str(caught.value)
    (problem,) = problems_of(caught.value, "TextSearch", "web")
    assert problem.mend == 'Write "bravo" in place of "brave", or run `pip install portico-brave`.'


def test_what_is_said_to_be_ours_is_what_the_workspace_has() -> None:
    root = Path(__file__).parents[3]
    files = [root / "core/pyproject.toml", root / "tests/testkit/pyproject.toml"]
    for folder in ("adapters", "connectors", "planners"):
        files += (root / folder).glob("*/pyproject.toml")
    names = {tomllib.loads(file.read_text("utf-8"))["project"]["name"] for file in files}
    assert len(names) > 20
    assert names == set(SHIPPED)
    assert all(re.fullmatch(r"portico(-[a-z0-9]+)*", name) for name in names)
