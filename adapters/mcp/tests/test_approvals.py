"""What was approved of a server is what is used, and what it says otherwise later is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from portico import Kernel
from portico.errors import ConfigurationError, PlanStale
from portico.plans import plan_from_json
from portico_cli.command_table import run_command
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

Processes: TypeAlias = Callable[[], list[Any]]
ODD = Path(__file__).parent / "servers" / "odd.py"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written = f"""
[functions.odd]
use = "mcp"
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(ODD))}, "normal"]
approvals = "approved"
include = ["a*"]
"""
    (tmp_path / "portico.toml").write_text(written)
    return tmp_path


def source(folder: Path, behaviour: str = "normal", **more: Any) -> MCPFunctions:
    return MCPFunctions(MCPSettings(command=sys.executable, args=(str(ODD), behaviour), approvals=folder, **more))


def edit(folder: Path, before: str, after: str) -> None:
    """Change the approved file: as if the server had said something else then."""
    (file,) = folder.glob("*.json")
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after), "utf-8")


async def approve(folder: Path, behaviour: str = "normal") -> None:
    made = source(folder, behaviour)
    server = made.server("odd")
    server.approvals.write(await server.listing())
    await made.aclose()


async def test_an_approved_server_is_started_by_the_first_call_and_not_before(
    tmp_path: Path, processes: Processes
) -> None:
    await approve(tmp_path)
    made, kernel = source(tmp_path), Kernel()
    kernel.add_plugin(await made.load("odd"))
    assert not processes()
    assert await kernel.invoke("odd-add", a=1, b=2) == {"sum": 3}
    await made.aclose()


@pytest.mark.parametrize("approved", [False, True])
async def test_a_tool_that_breaks_the_protocol_can_be_named_like_any_other(tmp_path: Path, approved: bool) -> None:
    if approved:
        await approve(tmp_path, "no_schema")
    for names, functions, lost in (
        ({"exclude": ("none", "5")}, 18, ["without a name"]),
        ({"include": ("none", "add")}, 1, ["none", "without a name"]),
    ):
        made = source(tmp_path, "no_schema", **names)
        assert len((await made.load("odd")).functions) == functions
        assert [each.partition(" (")[0] for each in made.lost] == lost
        await made.aclose()


async def test_a_tool_that_says_something_else_than_was_approved_is_refused_and_the_others_are_not(
    tmp_path: Path,
) -> None:
    await approve(tmp_path)
    edit(tmp_path, "The tool add.", "Add two numbers.")
    made, kernel = source(tmp_path), Kernel()
    kernel.add_plugin(await made.load("odd"))
    with pytest.raises(ConfigurationError, match=r"functions\.odd: the tool add .*portico mcp approve odd"):
        await kernel.invoke("odd-add", a=1, b=2)
    assert await kernel.invoke("odd-echo", text="hello") == "hello"
    await made.aclose()


async def test_other_arguments_of_the_command_warn_that_the_approval_is_of_the_old_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await approve(tmp_path)
    assert source(tmp_path, "other").server("odd").approvals.read() is None
    assert "had another `command`, `args` or `url`" in caplog.text
    assert "run `portico mcp approve odd`" in caplog.text


async def test_a_plan_is_stale_when_the_description_of_its_tool_changed(tmp_path: Path) -> None:
    plan = plan_from_json(
        {
            "version": 1,
            "goal": "Add.",
            "steps": [{"id": "s1", "function": "odd-add", "arguments": {"a": {"value": 1}, "b": {"value": 2}}}],
            "result": {"from": "s1", "path": "$.sum"},
        }
    )
    await approve(tmp_path)
    made, kernel = source(tmp_path), Kernel()
    kernel.add_plugin(await made.load("odd"))
    written = (await kernel.run_plan(plan)).plan
    await made.aclose()
    edit(tmp_path, "The tool add.", "Add two numbers.")
    made, kernel = source(tmp_path), Kernel()
    kernel.add_plugin(await made.load("odd"))
    with pytest.raises(PlanStale, match="odd-add: its description changed"):
        await kernel.run_plan(written)
    await made.aclose()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": 1, "tools": [{"name": 5}], "prompts": [], "resources": 1}']
)
async def test_a_damaged_file_of_approvals_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    await approve(tmp_path)
    (file,) = tmp_path.glob("*.json")
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"functions\.odd: .* Delete the file"):
        await source(tmp_path).load("odd")


def test_the_command_finds_a_server_by_the_name_that_errors_give_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured = project / "portico.toml"
    configured.write_text(configured.read_text().replace("[functions.odd]", "[functions.my-odd]"))
    assert run_command(["mcp", "list", "my_odd", "--json"], json=True) == 0
    assert run_command(["mcp", "list", "my-odd", "--json"], json=True) == 0
    assert run_command(["mcp", "list", "my", "--json"], json=True) == 2


def test_the_command_approves_after_it_was_told_to_and_lists_what_changed_since(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["mcp", "approve", "odd"], json=False) == 2
    assert not (project / "approved").exists()
    assert run_command(["mcp", "approve", "odd", "--yes"], json=False) == 0
    capsys.readouterr()
    assert run_command(["mcp", "list", "odd", "--json"], json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["approved"]
    assert [each["name"] for each in found["functions"]] == ["odd-add"]
    edit(project / "approved", "The tool add.", "Add two numbers.")
    assert run_command(["mcp", "list", "odd", "--json"], json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["approved"], found["changes"]) == (False, ["the tool 'add' has another description"])
    assert run_command(["doctor"], json=False) == 1
    assert "the tool 'add' has another description" in " ".join(capsys.readouterr().out.split())


def test_the_list_of_another_kind_of_functions_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "portico.toml").write_text('[functions.prompts]\nuse = "prompts"\npath = "."\n')
    assert run_command(["mcp", "list", "prompts"], json=False) == 2
    assert "does not use `mcp`" in capsys.readouterr().err
