"""`portico doctor` tells of every mistake in a configuration, and what mends it."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PLUGIN = (Path(__file__).parent / "acme" / "portico_acme.py").read_text()
WITH_SETTINGS = PLUGIN.replace("settings=None", "settings='portico_acme_search:Settings'")
CHOSEN = '[search.web]\nuse = "acme"\n'
CORRECT = "Correct the configuration."
Make = Callable[..., None]


@pytest.mark.parametrize(
    ("settings", "subject", "message", "mend"),
    [
        ("", "search.web.key", "is missing; expected a secret", CORRECT),
        (
            'key = { env = "ACME_KEY_NOT_SET" }',
            "search.web.key",
            "the environment variable ACME_KEY_NOT_SET is not set.",
            "Run `export ACME_KEY_NOT_SET=…` first.",
        ),
        (
            'key = { file = "/nowhere/key" }',
            "search.web.key",
            "the secret's file '/nowhere/key' cannot be read: No such file or directory.",
            "Write the secret into it, or correct its path.",
        ),
        ('key = { env = "HOME" }\nlimt = 3', "search.web.limt", "is not a setting here. Nearest: limit.", CORRECT),
        (
            'key = { env = "HOME" }\nlimit = "3"',
            "search.web.limit",
            "expected an integer, got '3' (a string).",
            CORRECT,
        ),
    ],
)
def test_a_setting_that_is_wrong(
    package: Make, doctor: Any, settings: str, subject: str, message: str, mend: str
) -> None:
    package(WITH_SETTINGS)
    found = doctor(f"{CHOSEN}{settings}\n", HOME="/home/ada")
    assert message in found[subject]["message"]
    assert found[subject]["mend"] == mend


def test_a_variable_that_is_wrong_is_named(package: Make, doctor: Any) -> None:
    package(WITH_SETTINGS)
    found = doctor(CHOSEN + 'key = "k"\n', PORTICO_SEARCH__WEB__LIMIT="many")
    assert found["search.web.limit"]["message"].startswith("PORTICO_SEARCH__WEB__LIMIT: search.web.limit: ")


def test_a_secret_in_the_file_is_only_to_note(package: Make, doctor: Any) -> None:
    package(WITH_SETTINGS)
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
    assert check["mend"] == "Write the secret into it, or correct its path."


@pytest.mark.parametrize(
    ("configuration", "subject", "mend"),
    [
        ("[search.web", "configuration", CORRECT),
        ("[serach.web]\nuse = 'acme'", "serach", CORRECT),
        ("[search.web]\npath = '.'", "search.web.use", CORRECT),
        ("[search.web]\nuse = 'exa'", "text search web", "Choose another, or install the package that registers it."),
        ("[chat]\nuse = 'extractiv'", "chat service", "Did you mean extractive?"),
        ("[chat]\nuse = 'extractve'", "chat service", "Did you mean extractive?"),
        (
            "[search.web]\nuse = 'documents'\n[plugins]\ndisable = ['documents']",
            "text search web",
            "Take `documents` out of `disable` in [plugins].",
        ),
    ],
)
def test_a_configuration_that_is_wrong(doctor: Any, configuration: str, subject: str, mend: str) -> None:
    found = doctor(configuration)
    assert mend in {check["mend"] for check in found.values()}
    assert any(subject in each for each in found), list(found)


@pytest.mark.parametrize(
    ("configuration", "subject"),
    [
        ("[search.web", "configuration"),
        ("max_steps = 3", "max_steps"),
        ("[planner]\nmax_steps = 'three'", "planner.max_steps"),
        ("[plugins]\ndisable = 5", "plugins.disable"),
    ],
)
def test_a_mistake_in_it_is_one_finding_and_the_rest_is_looked_at_all_the_same(
    package: Make, doctor: Any, in_process: Any, install: Callable[..., Path], configuration: str, subject: str
) -> None:
    package("raise OSError('no acme')")
    install("portico-tidy", {"portico.commands": {"tidy": "portico_tidy:tidy"}}, portico_tidy="raise OSError('no')")
    assert set(doctor(configuration)) == {subject, "portico-acme", "command tidy"}
    checks = in_process("doctor", "--json").json["checks"]
    told = [check["message"] for check in checks if check["subject"] == "portico-acme"]
    assert [message.partition(":")[0] for message in told] == ["Its import failed"]
    assert len([check for check in checks if check["subject"] == subject]) == 1
    assert {"Python", "portico-shelf", "cache folder"} <= {
        check["subject"] for check in checks if check["state"] == "ok"
    }


def test_labels_that_no_function_has_are_named_with_the_nearest(doctor: Any, folder: Path) -> None:
    policy = '[search.web]\nuse = "documents"\npath = "."\n[policy.functions."web-serch"]\ngives = "trusted"\n'
    found = doctor(policy)["policy.functions.web-serch"]
    assert found["message"].endswith("or a pattern of one. Nearest: web-Search.")
    takes = policy.replace("serch", "S*") + "takes = { quary = 'trusted' }\n"
    found = doctor(takes)["policy.functions.'web-S*'.takes.quary"]
    assert found["message"].endswith("takes.quary: is not a parameter here. Nearest: query.")
    assert doctor(takes.replace("quary", "query"), healthy=True) == {}
