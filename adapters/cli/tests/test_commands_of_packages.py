"""Commands that other packages add."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HELLO = """
import click
@click.command()
@click.argument("name")
def hello(name):
    "Greet somebody."
    click.echo(f"Hello {name}!")
"""


@pytest.fixture
def extended(site: Path, install: Callable[..., Path]) -> None:
    install("portico-hello", {"portico.commands": {"hello": "portico_hello:hello"}}, portico_hello=HELLO)
    install("portico-torn", {"portico.commands": {"torn": "portico_torn:torn"}}, portico_torn="1 / 0")
    install("portico-odd", {"portico.commands": {"odd": "portico_odd:odd"}}, portico_odd="odd = 3")
    install("portico-cuckoo", {"portico.commands": {"ask": "portico_hello:hello"}})


@pytest.mark.usefixtures("extended")
def test_help_lists_them_and_imports_none(portico: Any) -> None:
    done = portico("--help")
    assert done.code == 0
    assert "hello" in done.out
    assert "From portico-hello." in done.out
    assert "torn" in done.out
    assert done.err == ""


@pytest.mark.usefixtures("extended")
def test_they_run_like_ours(portico: Any) -> None:
    assert portico("hello", "Ada").out == "Hello Ada!\n"
    assert "Greet somebody." in portico("hello", "--help").out
    assert portico("hello").code == 2


@pytest.mark.usefixtures("extended")
@pytest.mark.parametrize(("name", "cause"), [("torn", "ZeroDivisionError"), ("odd", "not a click command")])
def test_a_broken_one_fails_by_itself(portico: Any, name: str, cause: str) -> None:
    done = portico(name)
    assert done.code == 2
    assert cause in done.err
    assert f"portico-{name}" in done.err
    assert "Traceback" not in done.err
    assert portico("plugins").code == 0
    doctor = portico("doctor")
    assert doctor.code == 1
    assert re.search(rf"^fail +command {name} .*{cause}", doctor.out, re.MULTILINE)


@pytest.mark.usefixtures("extended")
def test_none_takes_the_place_of_ours(portico: Any) -> None:
    assert "Answer GOAL" in portico("ask", "--help").out


@pytest.mark.usefixtures("extended")
def test_a_disabled_package_has_no_command(portico: Any) -> None:
    env = {"PORTICO_DISABLE": "hello, portico-torn,odd"}
    for arguments in (("--help",), ("plugins",), ("doctor",)):
        assert not re.search(r"hello|torn|odd", portico(*arguments, env=env).out), arguments
    assert portico("hello", "Ada", env=env).code == 2


@pytest.mark.usefixtures("extended")
def test_a_package_that_the_configuration_switches_off_is_not_imported_for_its_command(
    portico: Any, folder: Path
) -> None:
    (folder / "portico.toml").write_text('[plugins]\ndisable = ["torn", "portico-odd"]\n')
    doctor = portico("doctor")
    assert "command hello" in doctor.out
    assert not re.search("command (torn|odd)", doctor.out)
    assert "ZeroDivisionError" not in doctor.out + doctor.err
    assert "torn (" not in portico("plugins").out


@pytest.mark.usefixtures("extended")
def test_shell_completion_knows_them_and_survives_the_broken(portico: Any) -> None:
    env = {"_PORTICO_COMPLETE": "bash_complete", "COMP_WORDS": "portico ", "COMP_CWORD": "1"}
    offered = portico(env=env).out
    assert "hello" in offered
    assert "ask" in offered
    env["COMP_WORDS"], env["COMP_CWORD"] = "portico ask --so", "2"
    assert "--source" in portico(env=env).out
