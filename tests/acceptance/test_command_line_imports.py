"""Help and the list of plugins come without a vendor's package being imported."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What the command line and the host stand on themselves, by top-level module.
APPLICATION = {"portico", "portico_cli", "portico_host", "click", "rich", "attr", "attrs", "cattrs", "pluggy"}
APPLICATION |= {"platformdirs", "typing_extensions", "pygments", "markdown_it", "mdurl"}

SCRIPT = """
import json, sys
before = {name.partition(".")[0] for name in sys.modules}
sys.argv = ["portico", *sys.argv[1:]]
from portico_cli.main import main
try:
    code = main()
except SystemExit as stop:
    code = stop.code
after = {name.partition(".")[0] for name in sys.modules}
print("\\n" + json.dumps({"code": code or 0, "modules": sorted(after - before)}))
"""


def run(*arguments: str, folder: Path) -> tuple[str, set[str]]:
    """Run the command line in an interpreter of its own; return what it said and what it imported."""
    command = [sys.executable, "-W", "error", "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said, _, last = done.stdout.rstrip().rpartition("\n")
    report = json.loads(last)
    assert report["code"] == 0, said + done.stderr
    return said, set(report["modules"]) - sys.stdlib_module_names


def plugin_packages() -> set[str]:
    found = set()
    for pattern in ("adapters/*", "connectors/*", "planners/*"):
        for file in ROOT.glob(f"{pattern}/pyproject.toml"):
            project = tomllib.loads(file.read_text("utf-8"))["project"]
            found |= {value.partition(".")[0] for value in project.get("entry-points", {}).get("portico", {}).values()}
    return found


def test_help_imports_no_plugin_package(tmp_path: Path) -> None:
    said, modules = run("--help", folder=tmp_path)
    assert "ask" in said
    assert modules & plugin_packages() == set()
    assert modules - APPLICATION == set()


@pytest.mark.parametrize("arguments", [("plugins",), ("plugins", "--json")], ids=" ".join)
def test_listing_plugins_imports_no_vendor(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said, modules = run(*arguments, folder=tmp_path)
    assert "faiss" in said
    assert "documents" in said
    assert modules - plugin_packages() - APPLICATION == set()


def test_core_brings_no_event_loop_and_no_reflection() -> None:
    """The bench has the figures; this keeps what they rest on: the modules that would double the cost."""
    script = "import sys; before = set(sys.modules); import portico; print(*set(sys.modules) - before)"
    command = [sys.executable, "-I", "-c", script]
    modules = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    heavy = {"asyncio", "dataclasses", "inspect", "json", "logging", "ssl", "xml", "importlib.metadata"}
    assert modules & heavy == set()
