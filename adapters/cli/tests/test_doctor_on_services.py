"""`portico doctor` makes every service in use, and tells of those that cannot be made, used or closed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ACME = Path(__file__).parent / "acme"
PLUGIN = (ACME / "portico_acme.py").read_text()
SEARCH = (ACME / "portico_acme_search.py").read_text()
CHOSEN = '[search.web]\nuse = "acme"\n'
ANY = "Run `pip install --upgrade portico-acme`, `pip uninstall portico-acme`, or set PORTICO_DISABLE=acme."
Make = Callable[..., None]


@pytest.mark.parametrize(
    ("search", "message", "mend"),
    [
        (SEARCH.replace("): ...", "): raise OSError('no acme')"), "it could not be made: OSError: no acme.", ANY),
        (
            "import acmesdk\n" + SEARCH,
            "cannot be imported: ModuleNotFoundError: No module",
            "Run `pip install --upgrade portico-acme`, `pip uninstall portico-acme`, or set PORTICO_DISABLE=acme.",
        ),
        (SEARCH.replace("class Search:", "class Find:"), "has no attribute 'Search'", ANY),
        (SEARCH.replace("class Search:", "Search = 5\nclass Find:"), "cannot be called.", ANY),
    ],
)
def test_a_service_that_cannot_be_made(package: Make, doctor: Any, search: str, message: str, mend: str) -> None:
    required = "Requires-Dist: acmesdk" if "acmesdk" in search else "Keywords: none"
    package(PLUGIN, required, modules={"portico_acme_search": search})
    found = doctor(CHOSEN)["text search web"]
    assert "of portico-acme is broken" in found["message"]
    assert message in found["message"]
    assert found["mend"] == mend


WAITING = """
from portico.errors import PluginNotInstalled
from portico.plugins import Registration

def make(settings, services):
    raise PluginNotInstalled("Types of acme need more packages. Run `pip install acme[types]`.")

def portico_type_codecs():
    return [Registration(name="acme", factory="portico_acme:make", summary="Waits.")]
"""


@pytest.mark.parametrize(("configuration", "state"), [("", "warn"), ('[types.acme]\nuse = "acme"\n', "fail")])
def test_what_waits_for_packages_is_a_fault_where_it_is_configured(
    package: Make, doctor: Any, configuration: str, state: str
) -> None:
    package(WAITING)
    found = doctor(configuration, healthy=state == "warn")["type codec acme"]
    assert (found["state"], found["message"]) == (state, "Types of acme need more packages.")
    assert found["mend"] == "Run `pip install acme[types]`."


PLANNING = """
from types import SimpleNamespace
from portico.plugins import Registration

class Modelled:
    name, asks_model = "modelled", True

    def __init__(self, settings, services): ...
    async def propose(self, task, *, emit): ...

def other(settings, services):
    planner = Modelled(settings, services)
    planner.asks_model = False
    return planner

def portico_planners():
    factory = "portico_acme:{}"
    return [
        Registration(name="modelled", factory=factory.format("Modelled"), summary="Asks."),
        Registration(name="other", factory=factory.format("other"), summary="Asks nobody."),
    ]
"""


def test_a_planner_whose_plans_a_model_writes_is_noted_where_the_chat_service_is_none(
    package: Make, doctor: Any
) -> None:
    package(PLANNING)
    found = doctor('[planner]\nuse = "modelled"\n', healthy=True)
    assert found["planner modelled"] == {
        "state": "warn",
        "subject": "planner modelled",
        "message": "It needs a language model, and the chat service 'extractive' is not one: it makes no plan.",
        "mend": "Name a language model under [chat] of portico.toml, or choose another planner.",
    }
    model = '[chat]\nuse = "parrot"\n'
    for well in (model + '[planner]\nuse = "modelled"\n', '[planner]\nuse = "other"\n', ""):
        assert doctor(well, healthy=True) == {}


def test_a_planner_with_a_chat_service_of_its_own_is_judged_by_that_one(doctor: Any) -> None:
    planner = '[planner]\nuse = "structured"\n'
    own = '[planner.structured]\nchat = "{}"\n'
    assert doctor(planner + own.format("parrot"), healthy=True) == {}
    chosen = '[chat]\nuse = "parrot"\n'
    assert doctor(chosen + planner, healthy=True) == {}
    assert "planner structured" in doctor(chosen + planner + own.format("extractive"), healthy=True)


@pytest.mark.usefixtures("doctor")  # which forgets what was imported
def test_the_traceback_of_what_a_factory_raised_is_shown_on_demand(
    package: Make, in_process: Any, folder: Path
) -> None:
    package(modules={"portico_acme_search": SEARCH.replace("): ...", "): raise OSError('no acme')")})
    (folder / "portico.toml").write_text(CHOSEN)
    told = in_process("doctor", "--debug").err
    assert told.count("Traceback (most recent call last):") == 1
    assert told.endswith("OSError: no acme\n")


def test_what_is_no_search_is_told_of_by_the_search_as_by_the_doctor(
    package: Make, in_process: Any, doctor: Any
) -> None:
    package(modules={"portico_acme_search": "async def Search(settings, services): ..."})
    told = doctor(CHOSEN)["text search web"]
    assert "its factory returned <coroutine object Search at" in told["message"]
    done = in_process("search", "--source", "acme", "shelves")
    assert done.code == 2
    assert "its factory returned <coroutine object Search at" in done.err


def test_what_cannot_be_closed_is_told_of_and_stops_nothing(package: Make, doctor: Any) -> None:
    closing = "    async def aclose(self): raise OSError('line cut')\n"
    package(modules={"portico_acme_search": SEARCH + closing})
    said = "Text search 'acme' of portico-acme is broken: it could not be closed: OSError: line cut."
    chosen = doctor(CHOSEN)
    assert (list(chosen), chosen["services"]["message"]) == (["services"], said)
    assert chosen["services"]["mend"] == ANY


def test_what_is_told_of_a_failed_closing_shows_no_secret(package: Make, doctor: Any) -> None:
    plugin = PLUGIN.replace("settings=None", "settings='portico_acme_search:Settings'")
    search = SEARCH.replace("services): ...", "services): self.settings = settings")
    search += "    async def aclose(self): raise OSError(f'no line for {self.settings.key.reveal()}')\n"
    package(plugin, modules={"portico_acme_search": search})
    found = doctor(f'{CHOSEN}key = {{ env = "ACME_KEY" }}\n', ACME_KEY="mellon-of-moria")
    assert "could not be closed: OSError: no line for ********." in found["services"]["message"]
    assert "mellon" not in str(found)


@pytest.mark.parametrize(
    ("settings", "message", "mend"),
    [("    inner: 'Nope' = ()\n", "its settings class cannot be read: NameError: name 'Nope' is not defined", ANY)],
)
def test_settings_that_fail_where_nothing_is_set_are_their_packages_fault(
    package: Make, doctor: Any, in_process: Any, settings: str, message: str, mend: str
) -> None:
    plugin = PLUGIN.replace("settings=None", "settings='portico_acme_search:Mine'")
    search = f"{SEARCH}\n@dataclass\nclass Inner:\n    a: 'Nope' = 1\n@dataclass\nclass Mine:\n{settings}"
    package(plugin, modules={"portico_acme_search": search})
    found = doctor(CHOSEN)
    assert message in found["text search web"]["message"]
    assert found["text search web"]["mend"] == mend
    done = in_process("search", "--source", "acme", "shelves")
    assert done.code == 2
    assert message in done.err


def test_a_damaged_journal(doctor: Any, folder: Path) -> None:
    journal = folder / "runs.sqlite3"
    configuration = f'[runs.sqlite]\npath = "{journal.as_posix()}"\n'
    assert doctor(configuration, healthy=True) == {}
    assert not journal.exists(), "looking at it makes none"
    journal.write_bytes(b"no database " * 100)
    found = doctor(configuration)["journal sqlite"]
    assert found["message"].startswith(f"The journal {journal} is damaged")
    assert found["mend"].startswith("Move it away")


def test_a_damaged_index_is_nobodys_trouble(
    in_process: Any, doctor: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next update makes it anew and says so, hence the doctor need not look into it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (folder / "docs").mkdir()
    (folder / "docs" / "tea.md").write_text("# Tea\n\nGreen tea is steeped at eighty degrees.\n")
    assert in_process("index", "docs").code == 0
    (catalogue,) = tmp_path.joinpath("cache").rglob("catalogue.sqlite")
    catalogue.write_bytes(b"no database " * 100)
    assert doctor('[search.docs]\nuse = "documents"\npath = "docs"\n', healthy=True) == {}
    again = in_process("index", "docs", "--json")
    assert again.code == 0
    [repaired] = again.json["repaired"]
    assert "was damaged" in repaired
    catalogue.write_bytes(b"")
    assert "Repaired: The index in" in in_process("search", "green tea").err
    assert in_process("search", "green tea", "--json").json["results"][0]["text"].endswith("eighty degrees.")


def test_each_service_of_your_own_name_is_made(doctor: Any) -> None:
    found = doctor("[chat]\nuse = 'fast'\n[chat.fast]\nuse = 'extractive'\n[chat.slow]\nuse = 'extractiv'\n")
    assert found.keys() == {"chat service slow"}
    assert found["chat service slow"]["mend"] == "Did you mean extractive?"


def test_a_model_of_unknown_price_is_told_where_runs_have_a_budget_in_money(package: Make, doctor: Any) -> None:
    package(
        """
from portico import ChatCapabilities
from portico.plugins import Registration

class Chat:
    name, capabilities, knows_cost = "acme", ChatCapabilities(), False

def portico_chat_services():
    return [Registration(name="acme", factory="portico_acme:make", summary="Answers.")]

def make(settings, services):
    return Chat()
"""
    )
    found = doctor("[chat]\nuse = 'acme'\n[planner]\nmax_cost = 1\n", healthy=True)
    assert "max_cost" in found["planner retrieval"]["message"]
    assert not doctor("[chat]\nuse = 'acme'\n", healthy=True)
