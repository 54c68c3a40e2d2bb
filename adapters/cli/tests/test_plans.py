"""Plans on the command line: proposed, checked, compared, run, resumed, and listed."""

from __future__ import annotations

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import PATIENCE

PLAN: dict[str, Any] = {
    "version": 1,
    "goal": "Tell them",
    "steps": [
        {"id": "s1", "function": "tools-shout", "arguments": {"text": {"value": "hey"}}},
        {"id": "s2", "function": "tools-send", "arguments": {"text": {"from": "s1"}}},
        {"id": "s3", "function": "tools-fetch", "arguments": {"text": {"from": "s2"}}},
    ],
    "result": {"from": "s3"},
}


@pytest.fixture
def plan(folder: Path, configured: Path) -> Path:
    """Write a plan of three steps, and let its functions be configured."""
    configured.write_text(configured.read_text() + '[functions.tools]\nuse = "tools"\n')
    file = folder / "plan.json"
    file.write_text(json.dumps(PLAN, indent=2))
    return file


def sent(folder: Path) -> list[str]:
    file = folder / "sent.txt"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def change(plan: Path, old: str, new: str) -> None:
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new))


def newest(run: Any) -> Any:
    return run("runs", "last", "--json").json


def test_a_plan_is_run_and_its_result_is_the_answer(in_process: Any, plan: Path, folder: Path) -> None:
    done = in_process("run", "plan.json")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("sent HEY\n")
    assert sent(folder) == ["HEY"]
    as_json = in_process("run", "plan.json", "--json").json
    assert (as_json["outcome"], as_json["value"], as_json["planner"]) == ("answer", "sent HEY", "plan")
    assert [step["id"] for step in as_json["steps"]] == ["s1", "s2", "s3"]


def test_of_a_loop_only_the_items_that_are_not_done_are_shown(in_process: Any, plan: Path, folder: Path) -> None:
    away = {"not": {"equal": [{"from": "item"}, {"value": "a7"}]}}
    texts = {"value": [f"a{number}" for number in range(40)]}
    steps: list[dict[str, Any]] = [
        {"id": "s1", "function": "tools-send", "each": {"items": texts}, "when": away,
         "arguments": {"text": {"from": "item"}}},
        {"id": "s2", "function": "tools-fetch", "each": {"items": {"from": "s1"}},
         "when": {"present": {"from": "item"}}, "arguments": {"text": {"from": "item"}}},
        {"id": "s3", "function": "tools-shout", "when": {"not": {"present": {"from": "s1"}}},
         "arguments": {"text": {"value": "none"}}},
    ]  # fmt: skip
    plan.write_text(json.dumps({**PLAN, "version": 2, "steps": steps, "result": {"from": "s2", "path": "$[:2]"}}))
    (folder / "broken").touch()
    failed = in_process("run", "plan.json")
    assert failed.code == 1
    assert failed.err.count("the line is cut") == 1
    shown = in_process("runs", "last").out
    lines = [line.split("  ") for line in shown.splitlines() if line.startswith(("  ✓", "  ✗", "  –"))]
    assert [(mark.strip(), *rest[:1]) for _, mark, *rest in lines] == [
        ("✓ s1", "tools-send"), ("– s3", "tools-shout"), ("✗ s2[0]", "tools-fetch"), ("✗ s2", "tools-fetch"),
    ]  # fmt: skip
    assert "40 items, 1 skipped" in shown
    assert "0 of 40 items" in shown
    (folder / "broken").unlink()
    done = in_process("resume", "last", "--retry", "s2", "--json").json
    assert done["value"] == ["sent a0", "sent a1"]
    assert [step["id"] for step in done["steps"] if step.get("skipped")] == ["s1[7]", "s3", "s2[7]"]
    assert len(sent(folder)) == 39
    steps_shown = in_process("runs", "last", "--json").json["steps"]
    assert [(step["id"], step["items"]) for step in steps_shown if "items" in step] == [("s1", 40), ("s2", 40)]


def test_the_command_that_continues_an_item_can_be_pasted(portico: Any, plan: Path, folder: Path) -> None:
    step = {"id": "s1", "function": "tools-send", "each": {"items": {"value": ["a"]}}}
    plan.write_text(json.dumps({**PLAN, "version": 2, "steps": [{**step, "arguments": {"text": {"from": "item"}}}],
                                "result": {"from": "s1"}}))  # fmt: skip
    (folder / "crash-before").touch()
    portico("run", "plan.json")
    (folder / "crash-before").unlink()
    asked = portico("resume", "last")
    assert "--retry 's1[0]'" in asked.out
    assert portico("resume", "last", "--retry", "s1[0]").code == 0
    assert sent(folder) == ["a"]


def test_a_plan_on_standard_input_is_run_and_so_is_one_in_xml(portico: Any, plan: Path, folder: Path) -> None:
    done = portico("run", "-", stdin=plan.read_bytes())
    assert done.code == 0, done.err
    xml = '<plan><function.tools.shout text="ho" setContextVariable="A"/><function.tools.send text="$A"/></plan>'
    (folder / "plan.xml").write_text(xml)
    done = portico("run", "plan.xml", "--json")
    assert done.code == 0, done.err + done.out
    assert sent(folder) == ["HEY", "HO"]


@pytest.mark.parametrize(
    ("given", "value"), [('{"word": "Ada"}', "ADA"), ("@input.json", "FILE"), ('{"word": "caf\u00e9"}', "CAF\u00c9")]
)
def test_a_plan_is_given_its_input(in_process: Any, plan: Path, folder: Path, given: str, value: str) -> None:
    (folder / "input.json").write_text('{"word": "file"}')
    change(plan, '"value": "hey"', '"from": "input", "path": "$.word"')
    done = in_process("run", "plan.json", "--input", given, "--json")
    assert done.json["value"] == f"sent {value}", done.out


def test_a_plan_in_xml_finds_its_variables_in_the_input(in_process: Any, plan: Path, folder: Path) -> None:
    function = json.loads(plan.read_text("utf-8"))["steps"][0]["function"].replace("-", ".")
    (folder / "plan.xml").write_text(f'<plan><function.{function} text="to $WORD"/></plan>')
    done = in_process("run", "plan.xml", "--input", '{"word": "Ada"}', "--json")
    assert json.loads(done.out)["answer"] == "TO ADA"


def test_a_plan_that_wants_an_input_says_how_to_give_it(in_process: Any, plan: Path, folder: Path) -> None:
    change(plan, '"goal": "Tell them",', '"goal": "Tell them", "input": {"type": "string"},')
    done = in_process("run", "plan.json")
    assert (done.code, sent(folder)) == (1, [])
    assert done.out.splitlines()[-1].endswith("Give the input of the plan with --input.")
    done = in_process("run", "plan.json", "--input", "3")
    assert (done.code, sent(folder)) == (1, [])
    assert done.out.splitlines()[-1].endswith("Give the input of the plan with --input.")
    assert in_process("run", "plan.json", "--input", "word").code == 0


def test_a_plan_that_only_refers_to_its_input_names_the_option_too(in_process: Any, plan: Path, folder: Path) -> None:
    change(plan, '"value": "hey"', '"from": "input"')
    done = in_process("run", "plan.json")
    assert (done.code, sent(folder)) == (1, [])
    assert "--input" in done.out


@pytest.mark.parametrize("given", ["{word: 1}", "@nowhere.json", '["open"'])
def test_an_input_that_is_none_is_a_mistake_and_nothing_runs(
    in_process: Any, plan: Path, folder: Path, given: str
) -> None:
    done = in_process("run", "plan.json", "--input", given)
    assert (done.code, sent(folder)) == (2, [])
    assert "--input" in done.err


def test_a_plan_that_cannot_run_is_refused_with_every_place(in_process: Any, plan: Path, folder: Path) -> None:
    change(plan, "tools-shout", "tools-shuot")
    change(plan, '"from": "s2"', '"from": "s9"')
    done = in_process("run", "plan.json")
    assert (done.code, sent(folder)) == (1, [])
    lines = plan.read_text().split("\n")
    for wrong, above in (("tools-shuot", 0), ('"s9"', 1)):
        # A reference begins with its brace, which is on the line above.
        number = next(number for number, line in enumerate(lines, 1) if wrong in line) - above
        (found,) = [line for line in done.out.split("\n") if line.startswith(f"plan.json:{number}:")]
        assert "error:" in found
    assert "tools-shout" in done.out, "the nearest name is told"
    assert done.out.endswith("plan.json cannot run: its check found errors.\n")
    as_json = in_process("run", "plan.json", "--json")
    assert as_json.code == 1
    assert len(as_json.json["error"]["findings"]) == 2


def test_a_check_finds_nothing_in_a_good_plan(in_process: Any, plan: Path) -> None:
    done = in_process("plan", "--check", "plan.json")
    assert (done.code, done.out) == (0, "plan.json: 0 errors, 0 warnings.\n")
    assert in_process("plan", "--check", "plan.json", "--json").json["ok"] is True


def test_a_check_mends_what_is_certain(in_process: Any, plan: Path) -> None:
    change(plan, "tools-shout", "tools.shout")
    before = plan.read_text()
    done = in_process("plan", "--check", "plan.json")
    assert (done.code, plan.read_text()) == (1, before)
    assert "--fix mends it" in done.out
    done = in_process("plan", "--check", "plan.json", "--fix")
    assert done.code == 0, done.out + done.err
    assert json.loads(plan.read_text()) == PLAN
    assert in_process("plan", "--check", "plan.json", "--fix").out == "plan.json: 0 errors, 0 warnings.\n"


def test_a_mended_plan_of_standard_input_goes_to_standard_output(portico: Any, plan: Path) -> None:
    change(plan, "tools-shout", "tools.shout")
    done = portico("plan", "--check", "-", "--fix", stdin=plan.read_bytes())
    assert done.code == 0, done.err
    assert json.loads(done.out) == PLAN


def test_xml_that_is_nearly_right_is_mended(in_process: Any, plan: Path, folder: Path) -> None:
    file = folder / "plan.xml"
    file.write_text("<plan>\n<function.tools.shout text='hey'>\n</plan>")
    done = in_process("plan", "--check", "plan.xml")
    assert done.code == 1
    assert "plan.xml: line 2" in done.err or "plan.xml: line 3" in done.err, done.err
    done = in_process("plan", "--check", "plan.xml", "--fix")
    assert done.code == 0, done.out + done.err
    assert in_process("plan", "--check", "plan.xml").code == 0


@pytest.mark.parametrize(
    ("content", "place"),
    [("{\n  oops}", "line 2, column 3"), ('{"version": 1,\n "goal": 7, "steps": []}', "$.goal"), ("", "")],
)
def test_what_is_no_plan_says_where(in_process: Any, plan: Path, content: str, place: str) -> None:
    plan.write_text(content)
    for command in (("run", "plan.json"), ("plan", "--check", "plan.json")):
        done = in_process(*command)
        assert done.code == 1
        assert f"plan.json: {place}" in done.err


def test_a_plan_is_proposed_and_nothing_runs(in_process: Any, plan: Path, configured: Path, folder: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ncall = "tools-send"\n')
    done = in_process("plan", "Tell them")
    assert (done.code, sent(folder)) == (0, [])
    assert done.out.startswith("Goal: Tell them\n\n1. s1: tools-send (has effects)\n")
    assert in_process("plan", "Tell them", "--format", "mermaid").out.startswith("flowchart TD\n")
    assert "<function.tools.send" in in_process("plan", "Tell them", "--format", "xml").out
    proposed = in_process("plan", "Tell them", "--format", "json").json
    assert proposed["steps"][0]["function"] == "tools-send"
    whole = in_process("plan", "Tell them", "--json").json
    assert (whole["outcome"], whole["plan"], whole["findings"]) == ("plan", proposed, [])
    assert in_process("plan", "Tell them", "--output", "made.json").code == 0
    assert json.loads((folder / "made.json").read_text()) == proposed
    assert in_process("plan", "Tell them", "--output", "made.xml").code == 0
    assert in_process("plan", "--check", "made.xml").code == 0
    assert in_process("runs").out.startswith("There are no runs yet.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with names")
def test_what_is_no_regular_file_is_written_and_not_replaced(
    in_process: Any, plan: Path, configured: Path, folder: Path
) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ncall = "tools-send"\n')
    os.mkfifo(folder / "pipe.json")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((folder / "pipe.json").read_text, "utf-8")
        assert in_process("plan", "Tell them", "--output", "pipe.json").code == 0
        assert (folder / "pipe.json").is_fifo()
        assert read.result(PATIENCE).startswith("{")


def test_a_proposal_that_is_no_plan_is_told(in_process: Any, plan: Path, configured: Path) -> None:
    done = in_process("plan", "q")
    assert done.code == 0
    assert "needs no plan" in done.out
    configured.write_text(configured.read_text() + '[planner.scripted]\nend = "infeasible"\n')
    done = in_process("plan", "q")
    assert done.code == 3
    assert "nobody can do this" in done.out
    assert in_process("plan", "q", "--json").json["outcome"] == "infeasible"


def test_a_proposal_that_fails_its_check_is_shown_with_what_is_wrong(
    in_process: Any, plan: Path, configured: Path
) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ncall = "tools-sned"\n')
    done = in_process("plan", "q")
    assert done.code == 1
    assert "tools-sned" in done.out
    assert "error: s1 function" in done.err


def test_two_plans_are_compared(in_process: Any, plan: Path, folder: Path) -> None:
    (folder / "other.json").write_text(plan.read_text().replace("hey", "ho"))
    done = in_process("plan", "--diff", "plan.json", "other.json")
    assert (done.code, '"hey" → "ho"' in done.out) == (0, True)
    assert in_process("plan", "--diff", "plan.json", "plan.json", "--json").json["same"] is True


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("q", "--check", "plan.json"),
        ("q", "--fix"),
        ("--diff", "plan.json"),
        ("--check", "plan.json", "--output", "other.json"),
        ("--diff", "plan.json", "plan.json", "--output", "other.json"),
    ],
)
def test_plan_wants_one_thing_at_a_time(in_process: Any, plan: Path, words: tuple[str, ...]) -> None:
    assert in_process("plan", *words).code == 2


def test_a_planner_that_nobody_registers_is_named_and_none_is_guessed(in_process: Any, plan: Path) -> None:
    for command in (("plan", "q"), ("ask", "q")):
        done = in_process(*command, "--planner", "dreaming")
        assert done.code == 2
        assert "Planner 'dreaming' is not installed." in done.err
        assert "pip install" not in done.err


def test_a_failed_run_names_the_command_that_tries_again(in_process: Any, plan: Path, folder: Path) -> None:
    (folder / "broken").touch()
    done = in_process("run", "plan.json")
    assert done.code == 1
    assert "the line is cut" in done.err
    command = re.search(r"`portico (resume \w+ --retry s3)`", done.err)
    assert command is not None, done.err
    as_json = in_process("resume", "last", "--retry", "s3", "--json")
    assert (as_json.code, as_json.json["error"]["run"]) == (1, newest(in_process)["run"])
    shown = in_process("runs", "last")
    assert "the line is cut" in shown.out
    assert command[1] in shown.out
    (folder / "broken").unlink()
    done = in_process(*command[1].split())
    assert done.code == 0, done.err
    assert done.out.startswith("sent HEY\n")
    assert sent(folder) == ["HEY"], "what was done is not done again"
    assert newest(in_process)["state"] == "done"


def test_a_run_that_failed_before_any_result_is_not_offered_to_be_resumed(
    in_process: Any, plan: Path, folder: Path
) -> None:
    (folder / "broken").touch()
    first = {"id": "s1", "function": "tools-fetch", "arguments": {"text": {"value": "hey"}}}
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "steps": [first], "result": {"from": "s1"}}))
    done = in_process("run", "plan.json")
    assert done.code == 1
    assert "the line is cut" in done.err
    assert "portico resume" not in done.err
    assert "portico resume" not in in_process("runs", "last").out
    assert in_process("run", "plan.json", "--json").json["error"]["run"], "its journal can be read"


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_step_that_was_broken_off_waits_for_somebody_to_say_what_became_of_it(
    portico: Any, in_process: Any, plan: Path, folder: Path, crash: str
) -> None:
    (folder / f"crash-{crash}").touch()
    assert portico("run", "plan.json").code == 137
    (folder / f"crash-{crash}").unlink()
    assert newest(in_process)["state"] == "uncertain"
    done = in_process("resume", "last")
    assert done.code == 4
    assert "Step s2 may or may not have happened" in done.out
    assert 'text = "HEY"' in done.out
    commands = re.findall(r"portico (resume \w+ --(?:retry|result) s2)", done.out)
    assert len(commands) == 2
    asked = in_process("resume", "last", "--json")
    assert (asked.code, asked.json["uncertain"]) == (
        4,
        [{"id": "s2", "function": "tools-send", "arguments": {"text": "HEY"}}],
    )
    done = in_process(*(commands[0].split() if crash == "before" else [*commands[1].split(), "sent by hand"]))
    assert done.code == 0, done.err + done.out
    assert sent(folder) == ["HEY"]
    assert done.out.startswith("sent HEY\n" if crash == "before" else "sent by hand\n")


def test_a_step_is_not_retried_and_given_a_result_at_once(in_process: Any, plan: Path) -> None:
    done = in_process("resume", "last", "--retry", "s1", "--result", "s1", "x")
    assert done.code == 2
    assert "both" in done.err


def test_where_nobody_is_there_to_approve_a_run_is_held_and_resuming_approves(
    in_process: Any, plan: Path, folder: Path
) -> None:
    for option, step in (("--approve", None), ("--approve-effects", "s2")):
        before = sent(folder)
        done = in_process("run", "plan.json", option, "--json")
        assert (done.code, done.json["outcome"], done.json["step"]) == (4, "held", step)
        assert sent(folder) == before
        done = in_process("resume", done.json["run"], option)
        assert done.code == 4, "asked again, and nobody is there again"
        assert "`portico resume" in done.out
        done = in_process("resume", "last")
        assert done.code == 0, done.err
        assert len(sent(folder)) == len(before) + 1


def test_ask_holds_what_is_to_be_approved(in_process: Any, plan: Path, configured: Path, folder: Path) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\ncall = "tools-send"\n')
    done = in_process("ask", "Tell them", "--approve-effects")
    assert (done.code, sent(folder)) == (4, [])
    assert "Held before step s1" in done.out
    assert in_process("resume", "last").code == 0
    assert sent(folder) == ["Tell them"]


def test_runs_are_listed_and_shown(in_process: Any, plan: Path) -> None:
    assert "There are no runs yet" in in_process("runs").out
    assert in_process("runs", "--json").json == {"runs": [], "workers": []}
    in_process("run", "plan.json")
    in_process("ask", "q")
    lines = in_process("runs").out.split("\n")
    assert lines[0].split() == ["run", "state", "goal", "planner", "steps", "age"]
    assert "q" in lines[1]
    assert "Tell them" in lines[2]
    assert "3/3" in lines[2]
    assert len(in_process("runs", "--limit", "1", "--json").json["runs"]) == 1
    short = lines[2].split()[0]
    shown = in_process("runs", short).out
    for part in ("Tell them", "s2", "tools-send", 'text = "HEY"', '→ "sent HEY"', "= sent HEY"):
        assert part in shown
    whole = in_process("runs", short, "--json").json
    assert [step["arguments"] for step in whole["steps"]] == [{"text": "hey"}, {"text": "HEY"}, {"text": "sent HEY"}]
    assert all(step["started_at"] <= step["ended_at"] for step in whole["steps"])


def test_a_run_that_is_not_there_is_a_mistake(in_process: Any, plan: Path) -> None:
    for command in ("runs", "resume"):
        done = in_process(command, "nothing")
        assert done.code == 2
        assert "There is no run 'nothing'" in done.err


def test_a_run_that_ended_is_not_resumed(in_process: Any, plan: Path) -> None:
    in_process("run", "plan.json")
    done = in_process("resume", "last")
    assert done.code == 1
    assert done.err.startswith("Error: ")


def test_without_a_journal_there_is_nothing_to_resume(in_process: Any, plan: Path, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[runs]\nuse = "none"\n')
    assert in_process("run", "plan.json").code == 0
    for command in (("runs",), ("resume", "last")):
        done = in_process(*command)
        assert done.code == 2
        assert "No journal is kept" in done.err
    done = in_process("run", "plan.json", "--approve")
    assert done.code == 4
    assert "cannot be resumed" in done.out
