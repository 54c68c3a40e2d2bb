"""The reference page lists every command, option and exit code, and no others."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from portico import errors
from portico_cli import failures
from portico_cli.command_table import BUILT_IN, portico
from portico_cli.invocation import Invocation

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"
EVERYWHERE = {"--config", "--debug", "--help", "-h", "--json"}

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the page is in the repository only")


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in BUILT_IN:
        command = import_module(f"portico_cli.commands.{name}").command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", command.commands[inner]) for inner in command.commands)
        else:
            yield name, command


def options_of(command: click.Command) -> set[str]:
    return {word for option in command.params if isinstance(option, click.Option) for word in option.opts}


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_option_is_described(sections: dict[str, str], name: str) -> None:
    section = sections[f"`portico {name}`"]
    command = dict(commands())[name]
    described = set(re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE))
    # A short name stands beside the long one.
    assert described == {word for word in options_of(command) if word.startswith("--")} - EVERYWHERE
    for argument in command.params:
        if isinstance(argument, click.Argument):
            assert argument.name is not None
            assert argument.name.upper() in section
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section))
    assert mentioned <= options_of(command) | EVERYWHERE | {"--format"}


def test_no_command_is_described_that_is_not_there(sections: dict[str, str]) -> None:
    assert {title for title in sections if title.startswith("`portico ")} == {
        f"`portico {name}`" for name, _ in commands()
    }


def test_the_options_of_every_command_are_described(sections: dict[str, str]) -> None:
    section = sections["Options of every command"]
    for option in EVERYWHERE | options_of(portico):
        assert f"`{option}" in section or f" {option}`" in section
    for name, command in commands():
        assert {"--config", "--debug"} <= options_of(command), name
        assert ("--json" in options_of(command)) == (name not in {"config schema", "config init", "completion"})


def test_every_exit_code_is_described(sections: dict[str, str]) -> None:
    described = {int(code) for code in re.findall(r"^\| (\d+) \|", sections["Exit codes"], re.MULTILINE)}
    assert described == {
        failures.DONE,
        failures.FAILED,
        failures.MISUSED,
        failures.INFEASIBLE,
        failures.HELD,
        failures.INTERRUPTED,
    }


def test_each_error_has_the_exit_code_that_the_page_of_errors_gives_it(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.with_name("errors.md").read_text("utf-8")
    sections = re.split(r"^### (\w+)$", page, flags=re.MULTILINE)
    codes = [re.search(r"^- Exit code: (\d)", section, re.MULTILINE) for section in sections[2::2]]
    written = {name: int(code[1]) for name, code in zip(sections[1::2], codes, strict=True) if code}
    kinds = [getattr(errors, name) for name in written]
    assert kinds
    assert {kind.__name__: failures.report(kind.__new__(kind, "no"), Invocation()) for kind in kinds} == written


def test_the_help_of_every_option_is_a_sentence() -> None:
    for name, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{name} {option.name}"
                assert option.help.endswith((".", "default 0.")), option.help


def test_the_readme_lists_the_same_commands() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| `portico ((?:config )?[a-z]+)", text, re.MULTILINE)
    assert listed == [name for name, _ in commands()]
    for name, command in commands():
        (row,) = [line for line in text.splitlines() if re.match(rf"\| `portico {name}[ `]", line)]
        for option in options_of(command) - {"--config", "--debug"}:
            assert option in row, f"{name} {option}"


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_help_fits_a_terminal_of_40_columns(name: str, in_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(click.Context, "formatter_class", click.HelpFormatter)  # what a narrow terminal changes
    assert max(map(len, in_process(*name.split(), "--help").out.splitlines())) <= 40


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_and_options(portico: Any, folder: Path) -> None:
    script = portico("completion", "bash").out
    (folder / "complete.sh").write_text(
        f"""PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH
{script}
for words in "portico compl" "portico ask --plann"; do
    COMP_WORDS=($words) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMPREPLY=()
    _portico_completion portico
    echo "${{COMPREPLY[@]}}"
done
""",
        "utf-8",
    )
    done = subprocess.run(["bash", "complete.sh"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["completion", "--planner"]
