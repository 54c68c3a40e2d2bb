"""`portico doctor` tells of every way in which a package or a configuration can fail, and what mends it.

Each package is made in a folder of the test's own, with the metadata that `pip install` would leave.
"""

from __future__ import annotations

import json
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import pytest

REGISTERING = """
from portico.registration import Registration
def portico_text_searches():
    return [Registration(name="acme", factory="portico_acme_search:Search", settings={settings}, summary="Acme.")]
"""
SEARCH = """
from dataclasses import dataclass
from portico.registration import Secret

@dataclass
class Settings:
    key: Secret
    limit: int = 5

class Search:
    name = "acme"
    index = capabilities = None
    def __init__(self, settings, services): ...
    async def search(self, query, options=None): ...
    async def get_text_search_results(self, query, options=None): ...
    async def get_search_results(self, query, options=None): ...
"""
WITH_SETTINGS = REGISTERING.format(settings="'portico_acme_search:Settings'")
WITHOUT = REGISTERING.format(settings=None)
CHOSEN = '[search.web]\nuse = "acme"\n'

Make = Callable[..., None]


@pytest.fixture
def package(install: Callable[..., Path]) -> Make:
    """Return what installs the distribution `portico-acme` with that plugin module, further metadata and modules."""

    def make(
        plugin: str,
        *metadata: str,
        name: str = "portico-acme",
        wheel: str = "",
        modules: Mapping[str, str] | None = None,
    ) -> None:
        module = name.replace("-", "_")
        entry_points = {"portico": {name.removeprefix("portico-"): module}}
        folder = install(name, entry_points, **{module: plugin}, **(modules or {}))
        info = folder / f"{module}-1.0.dist-info"
        with (info / "METADATA").open("a") as stream:
            stream.writelines(f"{line}\n" for line in metadata)
        if wheel:
            (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {wheel}\n")

    return make


@pytest.fixture
def doctor(
    in_process: Any, site: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, dict[str, Any]]]]:
    """Return what runs the doctor on a configuration, and gives by subject what is not as it should be."""

    def run(configuration: str = "", *, healthy: bool = False, **env: str) -> dict[str, dict[str, Any]]:
        (folder / "portico.toml").write_text(configuration)
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            done = in_process("doctor", "--json")
        forget(site)
        assert "Traceback" not in done.err
        assert (done.json["healthy"], done.code) == (healthy, 0 if healthy else 1), done.out
        checks = [check for check in done.json["checks"] if check["state"] != "ok"]
        assert [check for check in checks if not check["mend"]] == [], "nothing says what mends these"
        return {check["subject"]: check for check in checks}

    yield run
    forget(site)


def forget(site: Path) -> None:
    """Forget the modules of the made-up packages, so that each run imports them."""
    for name, module in list(sys.modules.items()):
        if str(site) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


AUTHORS = "Run `pip install --upgrade portico-acme`, or tell its authors and set PORTICO_DISABLE=acme."
ANY = "Run `pip install --upgrade portico-acme`, `pip uninstall portico-acme`, or set PORTICO_DISABLE=acme."
CORE = 'Run `pip install --upgrade "portico-core>=99" portico-acme`.'


@pytest.mark.parametrize(
    ("plugin", "metadata", "message", "mend"),
    [
        pytest.param("raise OSError('no acme')", [], "import failed: OSError: no acme.", ANY, id="import raises"),
        pytest.param(
            "import acmesdk.client",
            ["Requires-Dist: acmesdk[http]<3,>=2"],
            "No module named 'acmesdk'.",
            'Run `pip install "acmesdk[http]<3,>=2"`.',
            id="a vendor that is required is missing",
        ),
        pytest.param(
            "import yaml_of_acme",
            ["Requires-Dist: acme-parts>=1", "Requires-Dist: portico-core"],
            "No module named 'yaml_of_acme'.",
            'Run `pip install "acme-parts>=1"`.',
            id="a vendor whose module has another name is missing",
        ),
        pytest.param(
            "import acmefast",
            ["Provides-Extra: fast", 'Requires-Dist: acmefast>=1; extra == "fast"'],
            "No module named 'acmefast'.",
            'Run `pip install "portico-acme[fast]"`.',
            id="a vendor of an extra is missing",
        ),
        pytest.param(
            "import portico_acme.parts",
            [],
            "portico_acme.parts",
            "Run `pip install --force-reinstall --no-deps portico-acme`.",
            id="a module of its own is missing",
        ),
        pytest.param(
            "from portico.registration import Enrolment",
            ["Requires-Dist: portico-core>=99"],
            "cannot import name 'Enrolment'",
            CORE,
            id="core is too old for a name",
        ),
        pytest.param(
            "import portico.enrolment", ["Requires-Dist: portico-core>=99"], "portico.enrolment", CORE, id="or a module"
        ),
        pytest.param(
            WITHOUT.replace("summary=", "colour='red', summary="),
            ["Requires-Dist: portico-core>=99"],
            "Its hook portico_text_searches failed: TypeError:",
            CORE,
            id="or a field of a registration",
        ),
        pytest.param(
            WITHOUT.replace("    return", "    raise KeyError('acme')\n    return"),
            [],
            "Its hook portico_text_searches failed: KeyError: 'acme'.",
            ANY,
            id="a hook raises",
        ),
        pytest.param(
            WITHOUT.replace("[Registration", "(Registration").replace(")]", "))"),
            [],
            "Its hook portico_text_searches returned a Registration, not a list of Registrations.",
            AUTHORS,
            id="a hook returns no list",
        ),
        pytest.param(
            WITHOUT.replace("return [", "return ['acme', "),
            [],
            "Its hook portico_text_searches returned a str among its Registrations.",
            AUTHORS,
            id="a hook returns something else",
        ),
        pytest.param(
            WITHOUT.replace("text_searches", "text_search"),
            [],
            "Its function portico_text_search is no hook and is not called. The nearest is portico_text_searches.",
            AUTHORS,
            id="a hook is misspelt",
        ),
        pytest.param(
            WITHOUT.replace("summary=", "port_version=0, summary="),
            [],
            "port_version is a whole number from 1, not 0",
            ANY,
            id="a version of a port is none",
        ),
        pytest.param(
            WITHOUT.replace("summary=", "port_version=2, summary="),
            [],
            "was built for version 2 of the port TextSearch; the portico-core that is installed has version 1.",
            "The core is the older side: run `pip install --upgrade portico-core`.",
            id="it is for another version of a port",
        ),
    ],
)
def test_a_package_that_cannot_be_used(
    package: Make, doctor: Any, plugin: str, metadata: list[str], message: str, mend: str
) -> None:
    package(plugin, *metadata, modules={"portico_acme_search": SEARCH})
    found = doctor()
    assert message in found["portico-acme"]["message"]
    assert found["portico-acme"]["mend"] == mend
    assert list(found) == ["portico-acme"], "everything else works"


@pytest.mark.parametrize(
    ("required", "message", "mend", "healthy"),
    [
        (
            "portico-core>=99",
            "portico-acme needs portico-core>=99, and ",
            'Run `pip install --upgrade "portico-core>=99"`.',
            False,
        ),
        (
            "acmesdk>=2",
            "portico-acme needs acmesdk>=2, which is not installed.",
            'Run `pip install "acmesdk>=2"`.',
            False,
        ),
        ("click<2", "portico-acme needs click<2, and ", 'Run `pip install --upgrade "click<2"`.', True),
        ('acmesdk>=2; sys_platform == "a machine of nobody"', "", "", True),
        ('acmesdk>=2; extra == "fast"', "", "", True),
        ('acmesdk>=2; os_name ~= "a marker that means nothing"', "", "", True),
    ],
)
def test_a_package_whose_requirements_are_not_met_works_or_not(
    package: Make, doctor: Any, required: str, message: str, mend: str, healthy: bool
) -> None:
    package(WITHOUT, "Provides-Extra: fast", f"Requires-Dist: {required}", modules={"portico_acme_search": SEARCH})
    found = doctor(healthy=healthy)
    if message:
        assert found["portico-acme"]["message"].startswith(message)
        assert found["portico-acme"]["mend"] == mend
    else:
        assert found == {}


def test_versions_that_cannot_be_compared_and_what_is_half_uninstalled_are_no_fault_of_a_package(
    package: Make, doctor: Any, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0+")  # as one built from its repository says
    package("", name="acmesdk")
    (site / "acmesdk-1.0.dist-info").rename(site / "acmesdk-2004d.of.old.dist-info")
    (site / "acmesdk-2004d.of.old.dist-info" / "METADATA").write_text("Name: acmesdk\nVersion: 2004d-of-old\n")
    package(
        WITHOUT,
        "Requires-Python: >=3.11",
        "Requires-Dist: acmesdk>=1",
        "Requires-Dist: acmeparts>=1",
        modules={"portico_acme_search": SEARCH},
    )
    (site / "acmeparts-1.0.dist-info").mkdir()
    found = doctor()
    assert found.keys() == {"portico-acme"}
    assert found["portico-acme"]["message"] == "portico-acme needs acmeparts>=1, which is not installed."


def test_a_package_for_another_python(package: Make, doctor: Any) -> None:
    package(WITHOUT, "Requires-Python: >=4", modules={"portico_acme_search": SEARCH})
    found = doctor(healthy=True)["portico-acme"]
    assert found["message"].startswith("portico-acme needs Python >=4; this is Python 3.")
    assert found["mend"] == "Run `pip install --force-reinstall --no-cache-dir portico-acme` with this Python."


def test_a_vendor_that_was_built_for_another_python(package: Make, doctor: Any) -> None:
    package("", name="acmesdk", wheel="cp27-cp27m-win32", modules={"acme_compiled": "raise ImportError('bad magic')"})
    package(
        WITHOUT,
        "Requires-Dist: acmesdk",
        modules={"portico_acme_search": "import acme_compiled\n" + SEARCH},
    )
    said = "acmesdk was built for cp27-cp27m-win32, which this Python"
    mend = "Run `pip install --force-reinstall --no-cache-dir acmesdk`"
    note = doctor(healthy=True)["portico-acme"]
    assert (note["state"], note["message"].startswith(said), note["mend"].startswith(mend)) == ("warn", True, True)
    failed = doctor(CHOSEN)["text search web"]
    assert "ImportError: bad magic" in failed["message"]
    assert failed["mend"] == f"{mend}."


def test_two_packages_with_one_name(package: Make, doctor: Any) -> None:
    package(WITHOUT, modules={"portico_acme_search": SEARCH})
    package(WITHOUT, name="portico-copy")
    found = doctor(CHOSEN)
    assert found["portico-acme"]["message"] == "Text search 'acme' is registered by portico-copy too."
    assert found["portico-acme"]["mend"] == "Run `pip uninstall portico-copy` or `pip uninstall portico-acme`."
    assert "portico-acme and portico-copy" in found["text search web"]["message"]


@pytest.mark.parametrize(
    ("table", "env", "mend"),
    [
        ("", {"PORTICO_DISABLE": "acme"}, "Take `acme` out of PORTICO_DISABLE."),
        ('[plugins]\ndisable = ["portico-acme"]\n', {}, "Take `portico-acme` out of `disable` in [plugins]."),
    ],
)
def test_a_package_that_is_chosen_and_switched_off(
    package: Make, doctor: Any, table: str, env: dict[str, str], mend: str
) -> None:
    package(WITHOUT, modules={"portico_acme_search": SEARCH})
    found = doctor(CHOSEN + table, **env)
    assert "its package portico-acme is disabled" in found["text search web"]["message"]
    assert found["text search web"]["mend"] == mend
    assert doctor(table, healthy=True, **env) == {}, "switched off on purpose is no fault"


def test_a_package_that_only_leaves_out(package: Make, doctor: Any, portico: Any) -> None:
    package(WITHOUT, modules={"portico_acme_search": SEARCH})
    listed = '["wordllama", "faiss", "extractive", "retrieval-planner", "documents"]'
    found = doctor(f"{CHOSEN}[plugins]\nonly = {listed}\n")
    assert found["text search web"]["mend"] == "Add `acme` to `only` in [plugins]."


@pytest.mark.parametrize(
    ("search", "message", "mend"),
    [
        (SEARCH.replace("): ...", "): raise OSError('no acme')"), "it could not be made: OSError: no acme.", ANY),
        (
            "import acmesdk\n" + SEARCH,
            "cannot be imported: ModuleNotFoundError: No module",
            'Run `pip install "acmesdk"`.',
        ),
        (SEARCH.replace("class Search:", "class Find:"), "has no attribute 'Search'", ANY),
        (
            SEARCH.replace("class Search:", "Search = 5\nclass Find:"),
            "cannot be called.",
            AUTHORS,
        ),
    ],
)
def test_a_service_that_cannot_be_made(package: Make, doctor: Any, search: str, message: str, mend: str) -> None:
    required = "Requires-Dist: acmesdk" if "acmesdk" in search else "Keywords: none"
    package(WITHOUT, required, modules={"portico_acme_search": search})
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
        (
            SEARCH + "    @property\n    def index(self): raise OSError('no line')\n",
            "Search cannot be asked what it has: OSError: no line.",
            AUTHORS,
        ),
        (
            SEARCH.replace("async def search", "async def seek").replace("index =", "indexes ="),
            "Search is no TextSearch: it has no index, search.",
            AUTHORS,
        ),
    ],
)
def test_a_mistake_in_what_nobody_has_chosen_yet_is_to_note(
    package: Make, doctor: Any, search: str, message: str, mend: str
) -> None:
    package(WITHOUT, modules={"portico_acme_search": search})
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


def test_what_cannot_be_closed_is_told_of_and_stops_nothing(package: Make, doctor: Any) -> None:
    closing = "    async def aclose(self): raise OSError('line cut')\n"
    package(WITHOUT, modules={"portico_acme_search": SEARCH + closing})
    said = "It could not be closed: OSError: line cut."
    idle = doctor(healthy=True)
    assert (list(idle), idle["text search acme"]["message"]) == (["text search acme"], said)
    assert idle["text search acme"]["mend"] == AUTHORS
    chosen = doctor(CHOSEN)
    assert (list(chosen), chosen["services"]["message"]) == (["services"], said)


def test_what_does_not_end_its_closing_is_not_waited_for(
    package: Make, doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico_cli.service_checks._PATIENCE", 0.01)
    closing = "    async def aclose(self): await __import__('asyncio').Event().wait()\n"
    package(WITHOUT, modules={"portico_acme_search": SEARCH + closing})
    (found,) = doctor(healthy=True).values()
    assert found["message"].startswith("It could not be closed within")


def test_what_nobody_has_chosen_is_closed_before_the_next_is_made(package: Make, doctor: Any, tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    for name in ("acme", "bcme"):
        write = f"):\n        with open({str(told)!r}, 'a') as told: told.write('{name} {{}}, ')\n"
        search = SEARCH.replace("): ...", write.format("made"), 1)
        search += f"    async def aclose(self{write.format('closed')}"
        plugin = WITHOUT.replace('"acme"', f'"{name}"').replace("portico_acme_search", f"portico_{name}_search")
        package(plugin, name=f"portico-{name}", modules={f"portico_{name}_search": search})
    assert doctor(healthy=True) == {}
    assert told.read_text() == "acme made, acme closed, bcme made, bcme closed, "


def test_what_nobody_has_chosen_and_has_no_settings_yet_is_no_fault(package: Make, doctor: Any) -> None:
    package(WITH_SETTINGS, modules={"portico_acme_search": SEARCH})
    assert doctor(healthy=True) == {}


def test_a_package_that_is_worked_on_is_mended_where_it_lies(package: Make, doctor: Any, site: Path) -> None:
    package(WITHOUT.replace("text_searches", "text_search"), modules={"portico_acme_search": SEARCH})
    editable = {"url": "file:///home/ada/portico%20acme", "dir_info": {"editable": True}}
    info = next(site.glob("portico_acme-*.dist-info"))
    (info / "direct_url.json").write_text(json.dumps(editable))
    folder = url2pathname("/home/ada/portico acme")
    assert doctor()["portico-acme"]["mend"] == f"Run `pip install -e {shlex.quote(folder)}` when it is mended there."
    (info / "direct_url.json").write_text("[")
    assert doctor()["portico-acme"]["mend"] == AUTHORS


@pytest.mark.parametrize(
    ("settings", "subject", "message", "mend"),
    [
        ("", "search.web.key", "is missing; expected a secret", "Set `key` in [search.web] of portico.toml."),
        (
            'key = { env = "ACME_KEY_NOT_SET" }',
            "search.web.key",
            "the environment variable ACME_KEY_NOT_SET is not set.",
            "Run `export ACME_KEY_NOT_SET=…` first.",
        ),
        (
            'key = { file = "/nowhere/key" }',
            "search.web.key",
            "the secret's file '/nowhere/key' cannot be read: No such file or directory. Write the secret into it",
            "Edit `search.web.key` in portico.toml.",
        ),
        (
            'key = { env = "HOME" }\nlimt = 3',
            "search.web.limt",
            "is not a setting here. Nearest: limit.",
            "Edit `search.web.limt` in portico.toml.",
        ),
        (
            'key = { env = "HOME" }\nlimit = "3"',
            "search.web.limit",
            "expected an integer, got '3' (a string).",
            "Edit `search.web.limit` in portico.toml.",
        ),
    ],
)
def test_a_setting_that_is_wrong(
    package: Make, doctor: Any, settings: str, subject: str, message: str, mend: str
) -> None:
    package(WITH_SETTINGS, modules={"portico_acme_search": SEARCH})
    found = doctor(f"{CHOSEN}{settings}\n", HOME="/home/ada")
    assert message in found[subject]["message"]
    assert found[subject]["mend"] == mend


def test_a_variable_that_is_wrong_is_named(package: Make, doctor: Any) -> None:
    package(WITH_SETTINGS, modules={"portico_acme_search": SEARCH})
    found = doctor(CHOSEN + 'key = "k"\n', PORTICO_SEARCH__WEB__LIMIT="many")
    assert found["search.web.limit"]["mend"] == "Change the environment variable PORTICO_SEARCH__WEB__LIMIT."


def test_a_secret_in_the_file_is_only_to_note(package: Make, doctor: Any) -> None:
    package(WITH_SETTINGS, modules={"portico_acme_search": SEARCH})
    found = doctor(CHOSEN + 'key = "very secret"\n', healthy=True)
    assert found["search.web.key"]["mend"] == 'Put it in a variable: { env = "NAME" }.'
    assert "very secret" not in str(found)


def test_a_file_of_a_secret_that_may_not_be_read(
    in_process: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal of the system is made up: whoever runs the tests may be allowed to read everything."""
    key = folder.parent / "my key"
    key.write_text("k")
    key.chmod(0)
    assert stat.S_IMODE(key.stat().st_mode) == 0
    opened = Path.open

    def refusing(self: Path, *arguments: Any, **options: Any) -> Any:
        if self == key.resolve():
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    (folder / "portico.toml").write_text('[search.web]\nuse = "shelf"\nkey = { file = "../my key" }\n')
    done = in_process("doctor", "--json")
    (check,) = [check for check in done.json["checks"] if check["state"] == "fail"]
    assert "cannot be read: Permission denied." in check["message"]
    assert check["mend"] == f"Run `chmod u+r {shlex.quote(str(key.resolve()))}`, as who owns it."


@pytest.mark.parametrize(
    ("configuration", "subject", "mend"),
    [
        ("[search.web", "configuration", "Edit the configuration."),
        ("[serach.web]\nuse = 'acme'", "serach", "Edit `serach` in portico.toml."),
        ("[search.web]\npath = '.'", "search.web.use", "Set `use` in [search.web] of portico.toml."),
        ("[search.web]\nuse = 'exa'", "text search web", "Run `pip install portico-exa`, or choose another."),
        ("[chat]\nuse = 'extractiv'", "chat service", "Run `pip install portico-extractiv`, or choose another."),
    ],
)
def test_a_configuration_that_is_wrong(doctor: Any, configuration: str, subject: str, mend: str) -> None:
    found = doctor(configuration)
    assert mend in {check["mend"] for check in found.values()}
    assert any(subject in each for each in found), list(found)


def test_a_command_that_cannot_be_imported(install: Callable[..., Path], doctor: Any) -> None:
    install(
        "portico-tidy", {"portico.commands": {"tidy": "portico_tidy:tidy"}}, portico_tidy="raise OSError('no tidy')"
    )
    found = doctor()["command tidy"]
    assert "OSError: no tidy" in found["message"]
    assert found["mend"] == "Run `pip install --upgrade portico-tidy`, or `pip uninstall portico-tidy`."


def test_a_name_that_switches_nothing_off_is_to_note(doctor: Any) -> None:
    found = doctor(healthy=True, PORTICO_DISABLE="amce")["amce"]
    assert found["mend"] == "Remove 'amce' there, or correct its spelling."


def test_people_are_told_the_same(package: Make, in_process: Any, folder: Path) -> None:
    package("import acmesdk", "Requires-Dist: acmesdk>=2")
    told = in_process("doctor")
    assert told.code == 1
    lines = told.out.splitlines()
    (failed,) = [number for number, line in enumerate(lines) if line.startswith("fail")]
    assert lines[failed].startswith("fail  portico-acme  The package is broken. Its import failed: ModuleNotFoundError")
    assert lines[failed + 1] == '      → Run `pip install "acmesdk>=2"`.'
    assert told.out.endswith("\n1 failed, 0 to note.\n")


def test_a_damaged_journal(doctor: Any, folder: Path) -> None:
    journal = folder / "runs.sqlite3"
    configuration = f'[runs.sqlite]\npath = "{journal.as_posix()}"\n'
    assert doctor(configuration, healthy=True) == {}
    assert not journal.exists(), "looking at it makes none"
    journal.write_bytes(b"no database " * 100)
    found = doctor(configuration)["journal sqlite"]
    assert found["message"].startswith(f"The journal {journal} is damaged: ")
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
