"""What help and a bare start import, so that they stay quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
from portico_cli.main import main
main(sys.argv[1:])
print("\\n" + json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    "rich",
    "asyncio",
    "numpy",
    "attrs",
    "cattrs",
    "faiss",
    "wordllama",
    "portico._kernel",
    "portico_host.application",
}


def modules_after(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(json.loads(done.stdout.rstrip().rpartition("\n")[2]))


def test_help_and_version_import_nothing_heavy() -> None:
    for arguments in (("--help",), ("--version",), ("search", "--help"), ("chat", "--help")):
        modules = modules_after(*arguments)
        # The help of a command imports what the command itself prints with.
        light = {"rich", "asyncio"} if len(arguments) > 1 else set()
        assert modules & HEAVY <= light, arguments
        assert not any(name.endswith("._plugin") for name in modules)


def test_the_entry_imports_nothing_before_it_can_catch_an_interrupt() -> None:
    script = "import sys; before = set(sys.modules); import portico_cli.main; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) <= {"__future__", "gc", "portico_cli", "portico_cli.main"}


def test_the_root_help_imports_no_command() -> None:
    assert not any(name.startswith("portico_cli.commands.") for name in modules_after("--help"))


def test_what_the_table_says_of_a_command_is_what_its_own_help_says() -> None:
    from importlib import import_module

    from portico_cli.command_table import BUILT_IN

    for name, summary in BUILT_IN.items():
        command = import_module(f"portico_cli.commands.{name}").command
        assert command.name == name
        assert len(summary) <= 60
        assert (Path(__file__).parents[1] / "src" / "portico_cli" / "commands" / f"{name}.py").is_file()
