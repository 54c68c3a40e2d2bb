"""`portico doctor` makes every service that is installed, and tells of those that cannot be made, used or closed."""

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


@pytest.mark.parametrize(
    ("search", "message", "mend"),
    [
        ("import acmesdk\n" + SEARCH, "No module named 'acmesdk'", ANY),
        (SEARCH.replace("class Search:", "class Find:"), "has no attribute 'Search'", ANY),
        (SEARCH.replace(", services)", ")"), "it could not be made: TypeError", ANY),
        (SEARCH.replace("): ...", "): raise SystemExit('no licence')"), "it could not be made: SystemExit", ANY),
        (SEARCH.replace("): ...", "): print('made')"), "", ""),
    ],
)
def test_a_mistake_in_what_nobody_has_chosen_yet_is_to_note(
    package: Make, doctor: Any, search: str, message: str, mend: str
) -> None:
    package(PLUGIN, modules={"portico_acme_search": search})
    found = doctor(healthy=True)
    if not message:
        assert found == {}, "what it prints is not among the JSON, and no fault"
        return
    assert list(found) == ["text search acme"]
    assert message in found["text search acme"]["message"]
    assert found["text search acme"]["mend"] == mend
    chosen = doctor(CHOSEN)
    assert list(chosen) == ["text search web"]
    assert message in chosen["text search web"]["message"]
    assert chosen["text search web"]["mend"] == mend


def test_what_another_package_lacks_is_no_failure_of_who_stands_on_it(package: Make, doctor: Any) -> None:
    stands = "): services.get(__import__('portico').TextSearch, 'nowhere')"
    package(modules={"portico_acme_search": SEARCH.replace("): ...", stands)})
    found = doctor(healthy=True)["text search acme"]
    assert found["state"] == "warn"
    assert "Text search 'nowhere' is not installed." in found["message"]


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
        "message": "It needs a language model, and the chat service 'extractive' is none: it makes no plan.",
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
    idle = doctor(healthy=True)
    assert (list(idle), idle["text search acme"]["message"]) == (["text search acme"], said)
    assert idle["text search acme"]["mend"] == ANY
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


def test_what_does_not_end_its_closing_is_not_waited_for(
    package: Make, doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico_cli.commands.doctor._PATIENCE", 0.01)
    closing = "    async def aclose(self): await __import__('asyncio').Event().wait()\n"
    package(PLUGIN, modules={"portico_acme_search": SEARCH + closing})
    (found,) = doctor(healthy=True).values()
    assert found["message"].startswith("It could not be closed within")


@pytest.mark.parametrize("raised", ["SystemExit(9)", "__import__('asyncio').CancelledError()"])
def test_a_closing_that_ends_the_program_ends_no_examination(package: Make, doctor: Any, raised: str) -> None:
    package(modules={"portico_acme_search": f"{SEARCH}    async def aclose(self): raise {raised}\n"})
    idle = doctor(healthy=True)["text search acme"]
    assert "Text search 'acme' of portico-acme is broken: it could not be closed: " in idle["message"]
    assert idle["mend"] == ANY
    assert doctor(CHOSEN)["services"]["message"] == idle["message"]


@pytest.mark.parametrize(
    ("settings", "message", "mend"),
    [
        ("    inner: 'Nope' = ()\n", "its settings class cannot be read: NameError: name 'Nope' is not defined", ANY),
        (
            "    limit: int = 5\n    def __post_init__(self): raise SystemExit(7)\n",
            "its settings class cannot be used: SystemExit: 7",
            ANY,
        ),
        ("    key: Secret\n    def __post_init__(self): raise KeyError('a bug')\n", "", ""),
    ],
)
def test_settings_that_fail_where_nothing_is_set_are_their_packages_fault(
    package: Make, doctor: Any, in_process: Any, settings: str, message: str, mend: str
) -> None:
    plugin = PLUGIN.replace("settings=None", "settings='portico_acme_search:Mine'")
    search = f"{SEARCH}\n@dataclass\nclass Inner:\n    a: 'Nope' = 1\n@dataclass\nclass Mine:\n{settings}"
    package(plugin, modules={"portico_acme_search": search})
    found = doctor(healthy=True)
    assert list(found) == (["text search acme"] if message else [])
    if message:
        assert message in found["text search acme"]["message"]
        assert found["text search acme"]["mend"] == mend
    if mend == ANY and "is broken" in found["text search acme"]["message"]:
        done = in_process("search", "--source", "acme", "shelves")
        assert done.code == 2
        assert done.err == f"Error: {found['text search acme']['message']} {mend}\n"


def test_what_nobody_has_chosen_is_closed_before_the_next_is_made(package: Make, doctor: Any, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    for name in ("acme", "bcme"):
        write = f"):\n        with open({str(told)!r}, 'a') as told: told.write('{name} {{}}, ')\n"
        search = SEARCH.replace("): ...", write.format("made"), 1)
        search += f"    async def aclose(self{write.format('closed')}"
        plugin = PLUGIN.replace('"acme"', f'"{name}"').replace("portico_acme_search", f"portico_{name}_search")
        package(plugin, name=f"portico-{name}", modules={f"portico_{name}_search": search})
    assert doctor(healthy=True) == {}
    assert told.read_text() == "acme made, acme closed, bcme made, bcme closed, "


def test_what_nobody_has_chosen_and_has_no_settings_yet_is_no_fault(package: Make, doctor: Any) -> None:
    package(PLUGIN.replace("settings=None", "settings='portico_acme_search:Settings'"))
    assert doctor(healthy=True) == {}


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
    assert "was damaged" in str(again.json)
    assert in_process("search", "green tea", "--json").json["results"][0]["text"].endswith("eighty degrees.")
