"""`portico doctor` tells of every way in which a package can fail, and what mends it.

Each package is made in a folder of the test's own, with the metadata that `pip install` would leave.
"""

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
    ("plugin", "metadata", "message", "mend"),
    [
        pytest.param("raise OSError('no acme')", [], "import failed: OSError: no acme.", ANY, id="import raises"),
        pytest.param(
            "import acmesdk.client",
            ["Requires-Dist: acmesdk[http]<3,>=2"],
            "No module named 'acmesdk'.",
            ANY,
            id="a vendor that is required is missing",
        ),
        pytest.param("import portico_acme.parts", [], "portico_acme.parts", ANY, id="a module of its own is missing"),
        pytest.param(
            "from portico.plugins import Enrolment",
            ["Requires-Dist: portico-core>=99"],
            "cannot import name 'Enrolment'",
            ANY,
            id="core is too old for a name",
        ),
        pytest.param(
            PLUGIN.replace("summary=", "colour='red', summary="),
            ["Requires-Dist: portico-core>=99"],
            "Its hook portico_text_searches failed: TypeError:",
            ANY,
            id="or a field of a registration",
        ),
        pytest.param(
            PLUGIN.replace("    return", "    raise KeyError('acme')\n    return"),
            [],
            "Its hook portico_text_searches failed: KeyError: 'acme'.",
            ANY,
            id="a hook raises",
        ),
        pytest.param(
            PLUGIN.replace("[Registration", "(Registration").replace(")]", "))"),
            [],
            "Its hook portico_text_searches returned a value of the type Registration, not a list of Registrations.",
            ANY,
            id="a hook returns no list",
        ),
        pytest.param(
            PLUGIN.replace("return [", "return ['acme', "),
            [],
            "Its hook portico_text_searches returned a value of the type str among its Registrations.",
            ANY,
            id="a hook returns something else",
        ),
        pytest.param(
            PLUGIN.replace("text_searches", "text_search"),
            [],
            "Its function portico_text_search is not a hook and is not called. The nearest is portico_text_searches.",
            ANY,
            id="a hook is misspelt",
        ),
        pytest.param(
            PLUGIN.replace("summary=", "port_version=0, summary="),
            [],
            "port_version is at least 1, not 0",
            ANY,
            id="a version of a port is none",
        ),
        pytest.param(
            PLUGIN.replace("summary=", "port_version=2, summary="),
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
    package(plugin, *metadata)
    found = doctor()
    assert message in found["portico-acme"]["message"]
    assert found["portico-acme"]["mend"] == mend
    assert list(found) == ["portico-acme"], "everything else works"


def test_two_packages_with_one_name(package: Make, doctor: Any) -> None:
    package()
    package(PLUGIN, name="portico-copy")
    found = doctor(CHOSEN)
    assert found["portico-acme"]["message"] == "Text search 'acme' is registered by portico-copy too."
    assert found["portico-acme"]["mend"] == "Run `pip uninstall portico-acme` or `pip uninstall portico-copy`."
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
    package()
    found = doctor(CHOSEN + table, **env)
    assert "its package portico-acme is disabled" in found["text search web"]["message"]
    assert found["text search web"]["mend"] == mend
    assert doctor(table, healthy=True, **env) == {}, "switched off on purpose is no fault"


def test_a_package_that_only_leaves_out(package: Make, doctor: Any, portico: Any) -> None:
    package()
    listed = '["wordllama", "faiss", "basics", "documents"]'
    found = doctor(f"{CHOSEN}[plugins]\nonly = {listed}\n")
    assert found["text search web"]["mend"] == "Add `acme` to `only` in [plugins]."


def test_a_command_that_cannot_be_imported(install: Callable[..., Path], doctor: Any) -> None:
    install(
        "portico-tidy", {"portico.commands": {"tidy": "portico_tidy:tidy"}}, portico_tidy="raise OSError('no tidy')"
    )
    found = doctor()["command tidy"]
    assert "OSError: no tidy" in found["message"]
    assert found["mend"] == ANY.replace("acme", "tidy")


def test_a_name_that_switches_nothing_off_is_to_note(doctor: Any) -> None:
    found = doctor(healthy=True, PORTICO_DISABLE="amce")["amce"]
    assert found["mend"] == "Remove 'amce' there, or correct its spelling."


def test_a_package_without_a_hook_is_to_note(package: Make, doctor: Any, in_process: Any) -> None:
    package(PLUGIN.replace("portico_text", "text"))
    found = doctor(healthy=True)
    assert list(found) == ["portico-acme"]
    assert found["portico-acme"]["state"] == "warn"
    assert found["portico-acme"]["message"].endswith("portico_vector_stores.")
    told = in_process("doctor").out
    assert told.endswith("\n0 failed, 1 to note.\n")
    assert "portico-acme  1.0: nothing" not in told


def test_a_package_whose_hook_returns_nothing_is_to_note_too(package: Make, doctor: Any, in_process: Any) -> None:
    package("def portico_planners(): return []")
    found = doctor(healthy=True)["portico-acme"]
    assert (found["state"], found["mend"]) == ("warn", ANY)
    assert found["message"] == "It registers nothing: what portico_planners returns is empty."
    assert "portico-acme  1.0: nothing" not in in_process("doctor").out


def test_an_asynchronous_hook_is_shown_as_what_it_returns(package: Make, portico: Any) -> None:
    package("async " + PLUGIN[PLUGIN.index("def ") :])
    done = portico("plugins", env={"PYTHONWARNINGS": "default"})
    assert "Its hook portico_text_searches returned a value of the type coroutine" in done.out
    assert done.err == ""


@pytest.mark.parametrize("arguments", [("doctor",), ("plugins",), ("plugins", "acme"), ("plugins", "--json")])
def test_the_traceback_of_what_a_package_raised_is_shown_on_demand(
    package: Make, in_process: Any, site: Path, arguments: tuple[str, ...]
) -> None:
    package("def gone(): raise OSError('no acme')\ngone()")
    assert "Traceback" not in in_process(*arguments).err
    told = in_process(*arguments, "--debug").err
    assert told.count("Traceback (most recent call last):") == 1
    assert f'{site / "portico_acme.py"}", line 1, in gone' in told
    assert told.endswith("OSError: no acme\n")


def test_people_are_told_the_same(package: Make, in_process: Any, folder: Path) -> None:
    package("import acmesdk")
    told = in_process("doctor")
    assert told.code == 1
    lines = told.out.splitlines()
    (failed,) = [number for number, line in enumerate(lines) if line.startswith("fail")]
    assert lines[failed].startswith("fail  portico-acme  Its import failed: ModuleNotFoundError")
    assert lines[failed + 1].startswith("      → Run `pip install --upgrade portico-acme`, ")
    assert told.out.endswith("\n1 failed, 0 to note.\n")


@pytest.mark.parametrize("name", ["portico", "portico-cli"])
def test_a_foreign_distribution_with_our_name_is_named(name: str, install: Any, site: Path, doctor: Any) -> None:
    install(name, {})
    with (site / f"{name.replace('-', '_')}-1.0.dist-info" / "METADATA").open("a") as stream:
        stream.write("Summary: Doors for web servers.\n")
    finding = doctor(healthy=True)[name]
    assert finding["state"] == "warn"
    assert "1.0" in finding["message"]
    assert "Doors for web servers" in finding["message"]
    assert f"`pip uninstall {name}`" in finding["mend"]
