"""`portico plugins`: states, versions, and one package with its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REGISTERING = """
from dataclasses import dataclass, field
from typing import Literal
from portico.plugins import Registration, Secret

@dataclass
class Settings:
    key: Secret = field(metadata={"doc": "The key from your account."})
    mode: Literal["a", "b"] = field(default="a", metadata={"doc": "How it is done."})
    limit: int = field(default=5, metadata={"doc": "At most.", "limits": {"minimum": 1}})
    names: tuple[str, ...] = ()

def portico_text_searches():
    return [Registration(name="acme", factory="portico_acme:Settings", settings=Settings, summary="Search Acme.")]

def portico_planners():
    return [Registration(name="old", factory="portico_acme:Settings", summary="Plan as before.", port_version=7)]
"""

Install = Callable[..., Path]


@pytest.fixture
def acme(install: Install, site: Path) -> None:
    install(
        "portico-acme",
        {"portico": {"acme": "portico_acme"}, "portico.commands": {"tidy": "portico_acme:Settings"}},
        portico_acme=REGISTERING,
    )


@pytest.mark.parametrize("name", ["acme", "portico-acme", "Portico_Acme", "old"])
@pytest.mark.usefixtures("acme")
def test_one_package_is_shown_with_every_setting(portico: Any, name: str) -> None:
    done = portico("plugins", name)
    assert done.code == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "portico-acme 1.0 incompatible"
    assert "text search acme built for TextSearch version 1" in lines
    assert 'in [search.NAME] with use = "acme" of portico.toml' in lines
    assert "key required The key from your account." in lines
    assert 'mode "a" How it is done.' in lines
    assert "limit 5 At most." in lines
    assert "names []" in lines
    assert "planner old built for Planner version 7; here it is 1" in lines
    assert "No settings." in lines
    assert "commands: tidy (portico-acme)" in lines
    assert "→ The core is the older side: run `pip install --upgrade portico-core`." in lines


@pytest.mark.usefixtures("acme")
def test_one_package_as_json_has_the_schema_of_its_settings(portico: Any) -> None:
    (package,) = portico("plugins", "acme", "--json").json["packages"]
    assert list(package) == ["name", "distribution", "version", "state", "problem", "mend", "offers", "commands"]
    assert package["commands"] == ["tidy"]
    search, planner = package["offers"]
    assert list(search) == [
        *("port", "name", "summary", "port_version", "compatible"),
        *("installed_port_version", "hook", "table", "settings", "problem"),
    ]
    assert search["settings"]["required"] == ["key"]
    assert search["settings"]["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "description": "At most.",
        "default": 5,
    }
    assert (search["port"], search["port_version"], search["compatible"]) == ("TextSearch", 1, True)
    assert (planner["settings"], planner["port_version"], planner["installed_port_version"]) == (None, 7, 1)
    assert planner["compatible"] is False


@pytest.mark.usefixtures("acme")
def test_the_list_as_json_says_what_was_built_for_what(portico: Any) -> None:
    listed = portico("plugins", "--json").json
    assert list(listed) == ["packages", "commands", "unmatched"]
    package = next(each for each in listed["packages"] if each["name"] == "acme")
    assert list(package) == ["name", "distribution", "version", "state", "problem", "mend", "offers"]
    assert [list(offer) for offer in package["offers"]] == [
        ["port", "name", "summary", "port_version", "compatible"]
    ] * 2
    assert package["state"] == "incompatible"
    assert "was built for version 7 of the port Planner" in package["problem"]
    assert package["mend"] == "The core is the older side: run `pip install --upgrade portico-core`."
    assert {"name": "tidy", "distribution": "portico-acme"} in listed["commands"]


@pytest.mark.usefixtures("acme")
def test_the_list_tells_people_what_mends_a_package(portico: Any) -> None:
    told = portico("plugins").out
    assert "! portico-acme: Planner 'old' of portico-acme was built for version 7 of the port Planner" in told
    assert "\n  → The core is the older side: run `pip install --upgrade portico-core`.\n" in told


def test_settings_that_cannot_be_read_are_told_of_and_the_rest_is_shown(
    portico: Any, install: Install, site: Path
) -> None:
    install(
        "portico-acme",
        {"portico": {"acme": "portico_acme"}},
        portico_acme=REGISTERING.replace("settings=Settings", "settings='portico_gone.config:Settings'"),
    )
    done = portico("plugins", "acme")
    assert done.code == 0
    assert "portico_gone.config:Settings cannot be imported" in done.out
    assert "planner old" in done.out
    (package,) = portico("plugins", "acme", "--json").json["packages"]
    assert package["offers"][0]["settings"] is None
    assert "No module named 'portico_gone'" in package["offers"][0]["problem"]


def test_a_mistake_of_who_configures_a_package_is_none_of_the_package(portico: Any, folder: Path) -> None:
    (folder / "portico.toml").write_text('[search.shelf]\nuse = "shelf"\nnonsense = 5\n')
    assert portico("plugins", "shelf").out.startswith("portico-shelf 1.0 ok\n")


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ("    a: list[Inner] = ()", "its settings class cannot be described: NameError: name 'Nope' is not defined"),
        ("    a: Kind = Kind.OBJECT", "its settings class cannot be described: TypeError: object has no form in JSON"),
        ("    a: Callable[[], int] = len", "not set"),
    ],
)
def test_odd_settings_of_one_package_cost_nobody_the_schema(
    portico: Any, install: Install, site: Path, settings: str, shown: str
) -> None:
    source = (
        "import enum\nfrom collections.abc import Callable\n"
        "from dataclasses import dataclass\nfrom portico.plugins import Registration\n"
        "class Kind(enum.Enum):\n    OBJECT = object()\n"
        "@dataclass\nclass Inner:\n    b: 'Nope' = 1\n"
        f"@dataclass\nclass Settings:\n{settings}\n"
        "def portico_text_searches():\n"
        "    return [Registration(name='odd', factory='a:b', settings=Settings, summary='Odd.')]\n"
    )
    install("portico-odd", {"portico": {"odd": "portico_odd"}}, portico_odd=source)
    done = portico("plugins", "odd")
    assert (done.code, done.err) == (0, "")
    assert shown in done.out
    done = portico("config", "schema")
    assert done.code == 0
    names = done.json["properties"]["search"]["additionalProperties"]["properties"]["use"]["enum"]
    assert "shelf" in names
    assert ("odd" in names) == ("cannot be described" not in shown)


def test_a_package_that_is_broken_can_be_looked_at(portico: Any, install: Install, site: Path) -> None:
    install("portico-torn", {"portico": {"torn": "portico_torn"}}, portico_torn="raise ImportError('no libtorn')")
    done = portico("plugins", "torn")
    assert done.code == 0
    assert done.out.startswith("portico-torn 1.0 broken\n! Its import failed: ImportError: no libtorn.\n  → Run `pip ")


def test_a_name_that_is_not_installed_gives_the_nearest(portico: Any) -> None:
    done = portico("plugins", "wordlama")
    assert (done.code, done.err) == (2, "Error: No package 'wordlama' is installed. Did you mean wordllama?\n")
    assert portico("plugins", "zzzzzz", "--json").json["error"]["type"] == "Misused"
    said = portico("plugins", "nope").err
    assert said == "Error: No package 'nope' is installed. `portico plugins` lists the packages.\n"


def test_every_installed_package_can_be_shown(in_process: Any) -> None:
    for package in in_process("plugins", "--json").json["packages"]:
        (shown,) = in_process("plugins", package["distribution"], "--json").json["packages"]
        assert {key: value for key, value in shown.items() if key not in ("offers", "commands")} == {
            key: value for key, value in package.items() if key != "offers"
        }
        assert [offer["problem"] for offer in shown["offers"]] == [None] * len(package["offers"])
        assert in_process("plugins", package["distribution"]).code == 0
