"""The keys of what the commands write with `--json` change only on purpose: they are compared with those accepted."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from portico_cli.command_table import BUILT_IN

HERE = Path(__file__).parent


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("json_keys", HERE / "json_keys.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["json_keys"] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


def test_the_keys_of_every_command_are_those_that_were_accepted() -> None:
    before = SCRIPT.FILE.read_text("utf-8") if SCRIPT.FILE.is_file() else ""
    after = SCRIPT.found()
    lines = [*difflib.unified_diff(before.splitlines(), after.splitlines(), "accepted", "now", lineterm="", n=0)]
    told = "\n".join(line for line in lines if not line.startswith("@@"))
    if any(line.startswith("-") for line in lines[2:]):
        told += "\n\nA key is gone, which breaks whoever reads it: keep it, or say in changes.d how to change over."
    assert before == after, f"{told}\nAccept it: python tests/architecture/api_snapshot.py"


def test_every_command_is_run() -> None:
    assert SCRIPT.commands() == set(BUILT_IN) - {"completion"}, "completion prints a script"


def test_keys_that_the_caller_has_chosen_are_not_told_and_formats_not_looked_into() -> None:
    value = {"indexes": {"docs": {"added": 1}}, "plan": {"version": 1}, "citations": [{"link": "x"}, {"name": "y"}]}
    assert set(SCRIPT._paths(value)) == {
        *("indexes", "indexes.*", "indexes.*.added", "plan"),
        *("citations", "citations[].link", "citations[].name"),
    }
