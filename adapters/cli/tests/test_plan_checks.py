"""Where `portico plan --check` says that something is wrong, and what it mends, in whatever is given to it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from portico.errors import PlanFormatError
from portico.plans import Plan, Step
from portico.ports import SavedPlan
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.store import FolderPlanStore
from portico_cli.plan_files import write_plan

SHOUT = {"id": "s1", "function": "tools-shout", "arguments": {"text": {"value": "hey"}}}
DAMAGED = '<plan>\n <function.tools.shout text="salt & pepper"/>\n<function.tools.send text="x">'


@pytest.fixture(autouse=True)
def functions(configured: Path) -> None:
    configured.write_text(configured.read_text() + '[functions.tools]\nuse = "tools"\n')


def check(in_process: Any, folder: Path, name: str, content: str | bytes, *words: str) -> Any:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return in_process("plan", "--check", name, *words)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00\x01\x02", "line 1, column 1: not JSON"),
        ("[" * 100_000 + "]" * 100_000, "recursion depth"),
        ('{"version": 1,\n "goal": "a",\n "goal": "b", "steps": []}', "one object has the key 'goal' twice"),
        ("null", "plan.txt: $"),
        ("<plan>" * 50_000, "line 1, column 7"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><plan/>', "a document type is refused"),
    ],
    ids=["binary", "deep", "key", "null", "tags", "entities"],
)
def test_what_is_no_plan_is_one_line_that_says_where(
    in_process: Any, folder: Path, content: str | bytes, said: str
) -> None:
    done = check(in_process, folder, "plan.txt", content)
    assert done.code == 1
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert done.err.startswith("Error: plan.txt")
    assert said in done.err
    assert len(done.err) < 600


def test_a_saved_plan_that_was_edited_is_checked_and_said_to_be(in_process: Any, folder: Path) -> None:
    saved = SavedPlan("Greet", "c1", {"version": 1, "goal": "Greet", "steps": [SHOUT]}, "2026-01-01T00:00:00+00:00")
    asyncio.run(FolderPlanStore(PlanFolderSettings(path=folder)).put(saved))
    (file,) = folder.glob("greet-*.json")
    text = file.read_text()
    assert "0 errors, 0 warnings" in check(in_process, folder, file.name, text).out
    edited = text.replace("hey", "hi there")
    line = edited[: edited.index('"digest"')].count("\n") + 1
    done = check(in_process, folder, file.name, edited)
    assert done.out.startswith(f"{file.name}:{line}:3: warning: digest: the plan was edited since it was saved")
    assert done.code == in_process("run", file.name).code == 0
    # What is around the plan is not a plan, and is not written over.
    wrong = text.replace("tools-shout", "tools.shout")
    done = check(in_process, folder, file.name, wrong, "--fix")
    assert (done.code, file.read_text()) == (2, wrong)


@pytest.mark.parametrize("rest", [{"plan": {"version": 1, "goal": "g", "steps": [SHOUT]}}, {"steps": []}])
def test_a_saved_plan_of_another_version_is_not_taken(in_process: Any, folder: Path, rest: dict[str, Any]) -> None:
    done = check(in_process, folder, "plan.json", json.dumps({"portico_saved_plan": 99, **rest}))
    said = "Error: plan.json: it is of version 99; version 1 is read here.\n"
    assert (done.code, done.out, done.err) == (1, "", said)
    assert in_process("run", "plan.json").err == said


def test_a_file_that_is_not_text_is_misuse(in_process: Any, folder: Path) -> None:
    done = check(in_process, folder, "plan.txt", b"\x89PNG\r\n\x1a\n\x00\x00")
    assert (done.code, done.err) == (2, "Error: plan.txt is not UTF-8 text.\n")


@pytest.mark.parametrize("name", [".", "nowhere.json"])
def test_what_is_no_file_is_misuse(in_process: Any, name: str) -> None:
    done = in_process("plan", "--check", name)
    assert done.code == 2
    assert done.err.startswith(f"Error: {name} cannot be read: ")


def test_the_value_of_a_key_that_is_there_twice_is_not_guessed_when_it_runs(in_process: Any, folder: Path) -> None:
    plan = json.dumps({"version": 1, "goal": "g", "steps": [SHOUT]}).replace('"hey"', '"hey", "value": "ho"')
    (folder / "plan.json").write_text(plan)
    done = in_process("run", "plan.json")
    assert done.code == 1
    assert "the key 'value' twice" in done.err


def test_findings_in_xml_have_the_place_of_the_attribute(in_process: Any, folder: Path) -> None:
    xml = (
        '<plan>\n  <function.tools.shout\n     txet="hey"\n     setContextVariable="A"/>\n'
        "<function.tools.send text='$A'\n  color = 'x > y'/>\n</plan>"
    )
    done = check(in_process, folder, "plan.xml", xml)
    assert done.code == 1
    places = re.findall(r"^plan.xml:(\d+):(\d+): error: \w+ ([\w.]+):", done.out, re.MULTILINE)
    assert places == [("3", "6", "arguments.txet"), ("2", "3", "arguments"), ("6", "3", "arguments.color")]


def test_a_template_that_cannot_be_read_is_one_line(in_process: Any, folder: Path) -> None:
    template = {"id": "s1", "function": {"template": "{{#each x}} {{tools-send", "language": "handlebars"}}
    plan = {"version": 1, "goal": "g", "steps": [{**template, "arguments": {}}]}
    done = check(in_process, folder, "plan.json", json.dumps(plan, indent=1))
    assert done.code == 1
    found, summary = done.out.splitlines()
    assert summary == "plan.json: 1 error, 0 warnings."
    assert found.count("line 1, column") == 1


def test_damaged_xml_of_standard_input_is_mended_too(portico: Any, in_process: Any, folder: Path) -> None:
    done = portico("plan", "--check", "-", "--fix", stdin=DAMAGED.encode())
    assert done.code == 0, done.err
    assert done.err == ""
    mended = done.out
    as_json = portico("plan", "--check", "-", "--fix", "--json", stdin=DAMAGED.encode()).json
    assert (as_json["file"], as_json["written"], as_json["text"]) == ("standard input", None, mended.rstrip("\n"))
    assert len(as_json["fixed"]) == 3
    assert check(in_process, folder, "mended.xml", mended).code == 0
    assert check(in_process, folder, "damaged.xml", DAMAGED, "--fix").code == 0
    assert (folder / "damaged.xml").read_text() == mended


def test_a_plan_that_xml_cannot_hold_is_told_what_can() -> None:
    nested = Plan("g", (Step("s1", Plan("inner", (Step("a", "tools-shout"),))),))
    with pytest.raises(PlanFormatError, match="XML cannot hold this plan"):
        write_plan(nested, "xml")


def test_the_last_line_counts_flows_by_what_their_lines_say(in_process: Any, folder: Path, configured: Path) -> None:
    send = {"id": "s2", "function": "tools-send", "arguments": {"text": {"from": "s1"}}}
    plan = json.dumps({"version": 1, "goal": "g", "steps": [{**SHOUT, "function": "tools-fetch"}, send]})
    configured.write_text(configured.read_text() + '[policy]\nmode = "enforce"\n')
    done = check(in_process, folder, "plan.json", plan)
    assert (done.code, done.out.count(": ask: ")) == (0, 1), done.out
    assert done.out.splitlines()[-1] == "plan.json: 0 errors, 0 warnings, 1 flow to ask about."


@pytest.mark.parametrize("version", [1, 2])
def test_a_plan_of_version_1_with_what_version_2_adds_is_a_warning(in_process: Any, folder: Path, version: int) -> None:
    for more in ({"each": {"items": {"value": [1]}}}, {"when": {"true": {"value": True}}}, {}):
        plan = json.dumps({"goal": "g", "version": version, "steps": [SHOUT | more]}, indent=1)
        done = check(in_process, folder, "plan.json", plan)
        assert done.code == 0
        assert ("plan.json:3:2: warning: version: " in done.out) == (version == 1 and bool(more))
