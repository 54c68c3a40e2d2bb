"""What a person at a terminal is asked, and how Ctrl-C ends it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.terminal import CTRL_C, Shown

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")

PLAN = {
    "version": 1,
    "goal": "Tell them",
    "steps": [
        {"id": "s1", "function": "tools-shout", "arguments": {"text": {"value": "hey"}}},
        {"id": "s2", "function": "tools-send", "arguments": {"text": {"from": "s1"}}},
    ],
    "result": {"from": "s2"},
}
Talk = Callable[..., tuple[int, str]]


@pytest.fixture
def talk(folder: Path, terminal: Callable[..., Shown]) -> Talk:
    """Return what runs the command line at a terminal of its own and answers each question as it comes."""
    (folder / "portico.toml").write_text(
        '[search.shelf]\nuse = "shelf"\nsearching = 30.0\n[functions.tools]\nuse = "tools"\n'
    )
    (folder / "plan.json").write_text(json.dumps(PLAN))

    def run(
        *arguments: str, answers: Sequence[tuple[str, str]] = (), env: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        done = terminal(*arguments, steps=answers, env=env)
        return done.code, done.text

    return run


def sent(folder: Path) -> str:
    file = folder / "sent.txt"
    return file.read_text() if file.exists() else ""


def test_a_plan_with_effects_is_shown_and_asked_for(talk: Talk, folder: Path) -> None:
    code, shown = talk("run", "plan.json", answers=[("[n]o:", "y\n")])
    assert code == 0, shown
    assert "s2: tools-send (has effects)" in shown
    assert "✓ s2  tools-send" in shown
    assert sent(folder) == "HEY\n"


def test_a_no_holds_the_plan_and_says_how_it_goes_on(talk: Talk, folder: Path) -> None:
    code, shown = talk("run", "plan.json", answers=[("[n]o:", "maybe\n"), ("[n]o:", "n\n")])
    assert (code, sent(folder)) == (4, "")
    assert "`portico resume" in shown


def test_a_result_that_is_no_text_is_shown_as_it_is(talk: Talk, folder: Path) -> None:
    (folder / "list.json").write_text(json.dumps(PLAN | {"steps": [], "result": {"value": ["*a*"]}}))
    assert '  "*a*"' in talk("run", "list.json")[1]


def test_a_narrow_terminal_cuts_no_name_of_a_run(talk: Talk, folder: Path) -> None:
    talk("run", "plan.json", "--yes")
    for columns in ("24", "40", "60", "90"):
        code, shown = talk("runs", env={"COLUMNS": columns})
        assert code == 0
        lines = [line.rstrip() for line in shown.splitlines() if line.strip()]
        assert max(map(len, lines)) <= int(columns)
        assert re.match(r"[0-9a-f]{8} +done", lines[1]), shown


def test_yes_is_not_asked(talk: Talk, folder: Path) -> None:
    code, shown = talk("run", "plan.json", "--yes")
    assert (code, sent(folder)) == (0, "HEY\n")
    assert "Run this plan?" not in shown


def test_each_step_with_effects_is_asked_for(talk: Talk, folder: Path) -> None:
    code, shown = talk("run", "plan.json", "--approve-effects", answers=[("Run it?", "y\n")])
    assert (code, sent(folder)) == (0, "HEY\n")
    assert 'text = "HEY"' in shown
    code, shown = talk("run", "plan.json", "--approve-effects", answers=[("Run it?", "n\n")])
    assert (code, sent(folder)) == (4, "HEY\n")


def test_ctrl_c_at_a_question_or_in_a_step_is_one_line_and_the_run_can_be_resumed(talk: Talk, folder: Path) -> None:
    code, shown = talk("run", "plan.json", answers=[("[n]o:", CTRL_C)])
    assert code == 130
    assert re.search(r"Interrupted\. `portico resume \w+` continues the run\.\s*$", shown)
    assert "Traceback" not in shown
    slow = {**PLAN, "steps": [{"id": "s1", "function": "shelf-Search", "arguments": {"query": {"value": "q"}}}]}
    (folder / "slow.json").write_text(json.dumps({**slow, "result": {"from": "s1"}}))
    code, shown = talk("run", "slow.json", answers=[("Running shelf-Search", CTRL_C)])
    assert code == 130
    assert re.search(r"Interrupted\. `portico resume \w+` continues the run\.\s*$", shown)


def test_a_run_that_broke_off_at_the_question_asks_it_again(talk: Talk, folder: Path) -> None:
    code, _ = talk("run", "plan.json", answers=[("[n]o:", CTRL_C)])
    assert code == 130
    code, shown = talk("resume", "last", answers=[("[n]o:", "n\n")])
    assert (code, sent(folder)) == (4, ""), shown
    code, shown = talk("resume", "last", answers=[("[n]o:", "y\n")])
    assert (code, sent(folder)) == (0, "HEY\n"), shown


def test_what_was_approved_once_is_not_asked_for_again(talk: Talk, folder: Path) -> None:
    (folder / "broken").touch()
    last = {"id": "s3", "function": "tools-fetch", "arguments": {"text": {"from": "s2"}}}
    (folder / "plan.json").write_text(json.dumps({**PLAN, "steps": [*PLAN["steps"], last]}))
    code, _ = talk("run", "plan.json", answers=[("[n]o:", "y\n")])
    assert (code, sent(folder)) == (1, "HEY\n")
    (folder / "broken").unlink()
    code, shown = talk("resume", "last", "--retry", "s3")
    assert (code, sent(folder)) == (0, "HEY\n"), shown
    assert "Run this plan?" not in shown


@pytest.mark.parametrize(
    ("source", "language", "asked"),
    [
        ("{{tools-send 'hey'}}", "handlebars", True),
        ("{{tools-shout 'hey'}}", "handlebars", False),
        ("{{tools.send 'hey'}}", "semantic-kernel", True),
        ("{{tools.shout 'hey'}}", "semantic-kernel", False),
    ],
)
def test_effects_inside_a_template_are_asked_for(
    talk: Talk, folder: Path, source: str, language: str, asked: bool
) -> None:
    template = {"id": "s1", "function": {"template": source, "language": language}, "arguments": {}}
    (folder / "plan.json").write_text(json.dumps({**PLAN, "steps": [template], "result": {"from": "s1"}}))
    code, shown = talk("run", "plan.json", answers=[("[n]o:", "n\n")] if asked else [])
    assert (code, sent(folder)) == (4 if asked else 0, ""), shown


def test_effects_inside_a_nested_plan_are_asked_for(talk: Talk, folder: Path) -> None:
    nested = {"id": "s1", "function": PLAN, "arguments": {}}
    (folder / "plan.json").write_text(json.dumps({**PLAN, "steps": [nested], "result": {"from": "s1"}}))
    code, shown = talk("run", "plan.json", answers=[("[n]o:", "y\n")])
    assert (code, sent(folder)) == (0, "HEY\n"), shown


def test_a_plan_that_a_planner_made_is_asked_for_as_one_of_a_file_is(talk: Talk, folder: Path) -> None:
    (folder / "portico.toml").write_text(
        '[functions.tools]\nuse = "tools"\n[planner]\nuse = "scripted"\n[planner.scripted]\ncall = "tools-send"\n'
    )
    code, shown = talk("ask", "Tell them", answers=[("[n]o:", "n\n")])
    assert (code, sent(folder)) == (4, ""), shown
    code, shown = talk("ask", "Tell them", "--yes")
    assert (code, sent(folder)) == (0, "Tell them\n"), shown


@pytest.fixture
def guarded(talk: Talk, folder: Path) -> Path:
    """Say where values may flow: what `tools-fetch` gives is untrusted, and `tools-send` takes trusted texts only."""
    file = folder / "portico.toml"
    file.write_text(file.read_text() + '[policy]\nmode = "enforce"\n')
    first = {"id": "s1", "function": "tools-fetch", "arguments": {"text": {"value": "hey"}}}
    (folder / "plan.json").write_text(json.dumps({**PLAN, "steps": [first, PLAN["steps"][1]]}))  # type: ignore[index]
    return folder


def test_a_flow_is_asked_about_with_the_value_and_where_it_comes_from(talk: Talk, guarded: Path) -> None:
    code, shown = talk("run", "plan.json", "--yes", answers=[("[n]o:", "y\n")])
    assert code == 0, shown
    assert "ask: s2 arguments.text: text of tools-send comes from s1, which is untrusted" in " ".join(shown.split())
    assert "Step s2 calls tools-send with what you did not say yourself." in " ".join(shown.split())
    assert "s1 is what tools-fetch gave." in shown
    assert shown.count("Let it run") == 1


def test_a_no_to_a_flow_holds_the_run_and_it_is_asked_again(talk: Talk, guarded: Path) -> None:
    code, shown = talk("run", "plan.json", "--yes", answers=[("Let it run", "n\n")])
    assert (code, sent(guarded)) == (4, ""), shown
    assert "the user did not agree" in " ".join(shown.split())
    code, shown = talk("resume", "last", "--yes", answers=[("Let it run", "y\n")])
    assert code == 0, shown
    assert sent(guarded)
    assert "Thinking" not in shown, "a plan of a file has nothing that thinks"


def test_a_plan_that_a_planner_made_is_shown_with_its_flows(talk: Talk, guarded: Path) -> None:
    recorded = '[planner]\nuse = "recorded"\n[planner.recorded]\nplan = "plan.json"\n'
    file = guarded / "portico.toml"
    file.write_text(file.read_text() + recorded)
    code, shown = talk("ask", "Tell them", answers=[("Run this plan?", "n\n")])
    assert (code, sent(guarded)) == (4, ""), shown
    assert "ask: s2 arguments.text: text of tools-send comes from s1, which is untrusted" in " ".join(shown.split())


def test_a_step_whose_effect_is_asked_about_says_the_flow_and_is_asked_once(talk: Talk, guarded: Path) -> None:
    code, shown = talk("run", "plan.json", "--approve-effects", answers=[("Run it?", "y\n")])
    assert code == 0, shown
    assert shown.count("which is untrusted.") == 1
    assert "Let it run" not in shown


def test_the_values_of_all_items_are_shown_once(talk: Talk, guarded: Path) -> None:
    document = json.loads((guarded / "plan.json").read_text())
    both = {"list": [{"from": "s1"}, {"text": [{"from": "s1"}, " you"]}]}
    document["steps"][1] |= {"each": {"items": both}, "arguments": {"text": {"from": "item"}}}
    (guarded / "plan.json").write_text(json.dumps({**document, "version": 2}))
    for options in (["--yes"], ["--approve-effects"]):
        code, shown = talk("run", "plan.json", *options, answers=[("[n]o:", "y\n")])
        assert code == 0, shown
        assert "calls tools-send for 2 items with what you did not say yourself." in " ".join(shown.split())
        assert 'text = ["hey", "hey you"]' in shown
        assert (shown.count("Let it run"), shown.count("Run it?")) == (1, 0)
        assert sent(guarded) == "hey\nhey you\n"
        (guarded / "sent.txt").unlink()


def test_without_a_terminal_a_flow_holds_the_run_and_the_text_says_what_continues_it(
    portico: Callable[..., object], guarded: Path
) -> None:
    done = portico("run", "plan.json")
    assert (done.code, sent(guarded)) == (4, "")  # type: ignore[attr-defined]
    assert re.search(r"`portico resume \w+` at a terminal asks, and continues\.", done.out)  # type: ignore[attr-defined]
    found = portico("plan", "--check", "plan.json", "--json").json["findings"]  # type: ignore[attr-defined]
    assert [(each["verdict"], each["severity"], each["place"]) for each in found] == [
        ("ask", "warning", "arguments.text")
    ]


def test_an_application_that_says_nothing_is_asked_no_more_than_before(talk: Talk, guarded: Path) -> None:
    file = guarded / "portico.toml"
    file.write_text(file.read_text().partition("[policy]")[0])
    code, shown = talk("run", "plan.json", answers=[("[n]o:", "y\n")])
    assert code == 0, shown
    assert "untrusted" not in shown


def test_a_step_that_ends_while_a_question_is_open_is_shown_after_the_answer(talk: Talk, folder: Path) -> None:
    each = {"items": {"list": [{"value": "hey"}, {"value": "you"}]}, "at_once": 2}
    first = {"id": "s1", "function": "tools-shout", "arguments": {"text": {"from": "input", "path": "$.said"}}}
    inner = {**PLAN, "steps": [first, PLAN["steps"][1]]}  # type: ignore[index]
    loop = {"id": "s1", "function": inner, "each": each, "arguments": {"said": {"from": "item"}}}
    document = {**PLAN, "version": 2, "steps": [loop], "result": {"from": "s1"}}
    (folder / "plan.json").write_text(json.dumps(document))
    answers = [("[n]o:", "y\n"), ("[n]o:", "y\n")]
    code, shown = talk("run", "plan.json", "--approve-effects", answers=answers)
    assert code == 0, shown
    assert all(f"✓ s1[{index}]/s1" in shown for index in (0, 1))
    assert not [line for line in shown.splitlines() if "[n]o:" in line and "✓" in line], shown


def test_a_planner_makes_another_plan_where_the_person_says_what_must_be_different(talk: Talk, folder: Path) -> None:
    file = folder / "portico.toml"
    file.write_text(file.read_text() + '[planner]\nuse = "recorded"\n[planner.recorded]\nplan = "plan.json"\n')
    answers = [("[a]nother", "a\n"), ("What must be different?", "greet Ada\n")]
    code, shown = talk("ask", "Tell them", answers=answers)
    assert (code, sent(folder)) == (1, ""), shown
    assert "greet Ada" in shown
    assert "[a]nother" not in talk("run", "plan.json", answers=[("[n]o:", "n\n")])[1]
