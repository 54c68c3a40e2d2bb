"""`portico submit`: goals go into the queue, are listed while they wait, and are followed to their end."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CREW = '[runner]\nuse = "crew"\n'
NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{12}")


@pytest.fixture
def crew(configured: Path) -> Path:
    """Configure a runner with workers; its queue lives as long as the test."""
    configured.write_text(configured.read_text() + CREW)
    return configured


def configure(file: Path, more: str) -> None:
    """Add settings of the planner, which is the one that the test wrote a script for."""
    file.write_text(f"{file.read_text()}[planner.scripted]\n{more}\n")


def test_the_name_of_the_run_is_all_that_is_printed(in_process: Any, crew: Path) -> None:
    done = in_process("submit", "Sum up the week")
    assert (done.code, done.err) == (0, "")
    assert NAME.fullmatch(done.out.strip())
    assert done.out == f"{done.out.strip()}\n"


def test_with_json_it_is_one_object(in_process: Any, crew: Path) -> None:
    submitted = in_process("submit", "Sum up", "--json").json
    assert list(submitted) == ["run", "goal"]
    assert submitted["goal"] == "Sum up"


def test_a_run_that_waits_is_listed_with_its_goal_and_shown(in_process: Any, crew: Path) -> None:
    name = in_process("submit", "Sum up the week").out.strip()
    listed = in_process("runs").out
    assert re.search(rf"{name[16:24]} +waiting +Sum up the week", listed), listed
    shown = in_process("runs", "last").out
    assert shown.startswith(f"Run {name}  waiting\n  Sum up the week\n  submitted ")
    (run,) = in_process("runs", "--json").json["runs"]
    assert (run["run"], run["state"], run["goal"], run["worker"]) == (name, "waiting", "Sum up the week", None)
    assert (run["planner"], run["started_at"], run["attempts"]) == (None, None, 0)
    assert run["submitted_at"].endswith("+00:00")


def test_a_goal_that_is_a_book_leaves_room_for_the_other_columns(in_process: Any, crew: Path) -> None:
    in_process("submit", "word " * 100_000, "--run", "book")
    lines = in_process("runs").out.splitlines()
    assert re.match(r"run +state +goal +planner", lines[0])
    assert re.match(r"book +waiting +word word", lines[1])
    assert len(lines[1]) < 3_000


def test_a_worker_carries_it_out_and_the_run_is_as_any_other(in_process: Any, crew: Path) -> None:
    name = in_process("submit", "Sum up").out.strip()
    done = in_process("worker", "--until-empty")
    assert (done.code, done.err) == (0, "")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["event"] for event in events] == ["ready", "job-begun", "job-ended", "stopped"]
    assert (events[1]["job"], events[1]["about"], events[2]["state"]) == (name, "Sum up", "done")
    run = in_process("runs", name, "--json").json
    assert (run["state"], run["planner"], run["answer"]) == ("done", "scripted", "> Retry is set in settings.py. [1]")


def test_a_run_that_waits_cannot_be_resumed_and_that_is_said(in_process: Any, crew: Path) -> None:
    name = in_process("submit", "Sum up").out.strip()
    done = in_process("resume", name)
    assert done.code == 2
    assert "it has not begun" in done.err
    assert "There is no run" in in_process("resume", "nothing").err


def test_a_run_that_is_submitted_again_under_its_name_is_that_one(in_process: Any, crew: Path) -> None:
    for _ in range(2):
        assert in_process("submit", "Sum up", "--run", "weekly 7").out == "weekly 7\n"
    assert len(in_process("runs", "--json").json["runs"]) == 1
    done = in_process("submit", "Sum up", "--run", " ")
    assert done.code == 2
    assert done.err.startswith("Error: --run: the name of a run has 1 to 200 characters")


def test_every_line_of_a_file_is_a_goal_and_json_brings_an_input(in_process: Any, crew: Path, folder: Path) -> None:
    (folder / "goals.txt").write_text('One\n\n{"goal": "Two", "input": {"city": "Berlin"}}\r\n  Three  \n')
    names = in_process("submit", "--file", "goals.txt").out.split()
    assert len(set(names)) == 3
    assert all(NAME.fullmatch(name) for name in names)
    runs = in_process("runs", "--json").json["runs"]
    assert {run["run"]: run["goal"] for run in runs} == dict(zip(names, ("One", "Two", "Three"), strict=True))
    assert in_process("worker", "--until-empty").code == 0
    assert in_process("runs", names[1], "--json").json["input"] == {"city": "Berlin"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\n \n", "goals.txt: the file has no goal"),
        ('One\n{"goal": "x"', "goals.txt, line 2: not JSON"),
        ('{"goal": " "}', "goals.txt, line 1: an object has a text"),
        ('{"goal": "x", "inputs": 1}', "goals.txt, line 1: an object has a text"),
        ('{"goal": "x", "input": NaN}', "goals.txt, line 1: not JSON: NaN is not JSON"),
    ],
)
def test_a_mistake_in_a_file_names_its_line_and_nothing_is_submitted(
    in_process: Any, crew: Path, folder: Path, content: str, said: str
) -> None:
    (folder / "goals.txt").write_text(content)
    done = in_process("submit", "--file", "goals.txt")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert in_process("runs", "--json").json["runs"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "There is nothing to submit."),
        (("a", "--file", "f"), "leave out GOAL"),
        (("--file", "f", "--run", "r"), "leave out GOAL"),
        (("--file", "missing.txt"), "missing.txt cannot be read: No such file or directory."),
        (("-", "--input", "-"), "cannot both be read from standard input"),
        (("  ",), "The goal is blank."),
        (("q", "--planner", "scriptde"), "'scriptde' is not installed"),
    ],
)
def test_what_cannot_be_meant_is_refused(in_process: Any, crew: Path, arguments: tuple[str, ...], said: str) -> None:
    done = in_process("submit", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_runner_without_workers_is_a_mistake_of_the_configuration(in_process: Any, configured: Path) -> None:
    for use in ("", '[runner]\nuse = "local"\n'):
        configured.write_text(configured.read_text().partition("[runner]")[0] + use)
        for command in (("submit", "q"), ("worker",)):
            done = in_process(*command)
            assert (done.code, done.out) == (2, "")
            assert "[runner]" in done.err
        assert in_process("runs", "--json").json == {"runs": [], "workers": []}


def test_a_queue_that_cannot_be_reached_is_one_sentence(in_process: Any, crew: Path) -> None:
    crew.write_text(crew.read_text() + '[runner.crew]\nproblem = "The database db1 does not answer."\n')
    for command in (("submit", "q"), ("submit", "q", "--wait"), ("worker",), ("worker", "--until-empty")):
        done = in_process(*command)
        assert (done.code, done.out, done.err) == (1, "", "Error: The database db1 does not answer.\n"), command
    done = in_process("worker", "--json")
    assert json.loads(done.out) == {"error": {"type": "StoreError", "message": "The database db1 does not answer."}}
    assert done.out.count("\n") == 1, "an error is a line among lines"


def test_the_journal_is_shown_also_where_the_queue_cannot_be_reached(in_process: Any, crew: Path) -> None:
    crew.write_text(crew.read_text().replace(CREW, ""))
    assert in_process("ask", "q").code == 0
    crew.write_text(f'{crew.read_text()}{CREW}[runner.crew]\nproblem = "The database db1 does not answer."\n')
    done = in_process("runs", "--json")
    assert (done.code, len(done.json["runs"])) == (0, 1)
    assert done.err == "Only the journal is shown: The database db1 does not answer.\n"
    assert in_process("runs", "last").code == 0


def test_submitting_and_working_need_a_journal(in_process: Any, crew: Path) -> None:
    crew.write_text(crew.read_text() + '[runs]\nuse = "none"\n')
    for command in (("submit", "q"), ("worker",)):
        done = in_process(*command)
        assert (done.code, done.out) == (2, "")
        assert "No journal is kept." in done.err


ENDS = {
    "answer": ("", 0, "answer"),
    "infeasible": ('end = "infeasible"', 3, "infeasible"),
    "held": ('call = "tools-send"', 4, "held"),
    "failed": ('end = "crash"', 1, None),
}


@pytest.mark.parametrize("end", ENDS)
def test_waiting_ends_as_asking_does(in_process: Any, crew: Path, end: str) -> None:
    script, code, outcome = ENDS[end]
    crew.write_text(f'{crew.read_text()}[functions.tools]\nuse = "tools"\n')
    configure(crew, script)
    options = ("--approve",) if end == "held" else ()
    name = in_process("submit", "q", "--run", end).out.strip()
    assert in_process("worker", "--until-empty", *options).code == 0
    done = in_process("submit", "q", "--run", end, "--wait", "--json")
    asked = in_process("ask", "q", "--json", *options)
    assert (done.code, asked.code) == (code, code), done.out
    if outcome is None:
        assert done.json["error"]["type"] == "RunFailed"
        assert done.json["error"]["message"].startswith("the planner fell over"), done.out
        assert done.json["error"]["run"] == name
        return
    assert done.json["outcome"] == outcome
    assert (done.json["usage"], done.json["service"]) == (None, None)
    assert list(done.json) == [key for key in asked.json if key != "indexes"]
    # What is of this run alone, and what the journal does not keep.
    own = {"run", "usage", "service", "indexes"}
    assert {key: value for key, value in done.json.items() if key not in own} == {
        key: value for key, value in asked.json.items() if key not in own
    }
    assert done.json["run"] == name


def test_people_get_the_name_first_and_then_the_answer(in_process: Any, crew: Path) -> None:
    in_process("submit", "q", "--run", "r")
    in_process("worker", "--until-empty")
    done = in_process("submit", "q", "--run", "r", "--wait")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("r\n> Retry is set in settings.py. [1]\n\n[1] /shelf/book.md:7  Chapter\n"), done.out


@pytest.mark.skipif(sys.platform == "win32", reason="no signal is like Ctrl-C there")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_ends_the_waiting_and_says_that_the_run_goes_on(
    started: Any, crew: Path, folder: Path, options: tuple[str, ...]
) -> None:
    crew.write_text(f"{crew.read_text()}[runner.crew]\nmarker = true\n")
    process = started("submit", "q", "--run", "r", "--wait", *options, until="looked")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=50)
    assert process.returncode == 130
    said = "Interrupted. The run continues without this command; `portico runs r` shows how far it is."
    if options:
        assert json.loads(out) == {"error": {"type": "Interrupted", "message": said, "run": "r"}}
    else:
        assert (out, err.splitlines()[-1]) == ("r\n", said)


def test_of_many_the_exit_code_is_that_of_the_worst_and_all_are_told(
    in_process: Any, crew: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(crew, 'end = "infeasible"')
    (folder / "goals.txt").write_text("One\nTwo\n")
    done = carried_out_meanwhile(in_process, monkeypatch, "submit", "--file", "goals.txt", "--wait", "--json")
    assert done.code == 3, done.err
    assert [(run["goal"], run["state"]) for run in done.json["runs"]] == [("One", "infeasible"), ("Two", "infeasible")]
    done = carried_out_meanwhile(in_process, monkeypatch, "submit", "--file", "goals.txt", "--wait")
    assert done.code == 3
    assert len(re.findall(r"^[0-9a-f]{8} +infeasible +(?:One|Two)", done.out, re.MULTILINE)) == 2, done.out


def carried_out_meanwhile(in_process: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Run a command, and what it submitted before it looks how that is."""
    from portico_cli.commands import submit

    follow: Callable[..., Any] = submit._Work.follow_all

    def first(work: Any, runs: list[str]) -> Any:
        async def then() -> Any:
            from portico_cli.commands.worker import Working
            from portico_cli.sources import choose_sources

            chosen = choose_sources(work.invocation)
            async with chosen.application.kernel(chosen.sources) as kernel:
                await Working(kernel, kernel.runner.jobs, lambda event: None, grace=1.0).work(until_empty=True)
            return await follow(work, runs)

        return then()

    with monkeypatch.context() as patch:
        patch.setattr(submit._Work, "follow_all", first)
        return in_process(*arguments)


def test_a_job_that_fails_before_its_run_begins_is_a_failed_run(in_process: Any, crew: Path) -> None:
    in_process("submit", "q", "--run", "r", "--planner", "sequential")
    crew.write_text(crew.read_text() + '[plugins]\ndisable = ["sequential-planner"]\n')
    assert in_process("worker", "--until-empty").code == 0
    run = in_process("runs", "r", "--json").json
    assert (run["state"], run["goal"]) == ("failed", "q")
    assert "sequential" in run["reason"]
    assert "sequential" in in_process("runs", "r").out
    done = in_process("submit", "q", "--run", "r", "--wait")
    assert done.code == 1
    assert "sequential" in done.err
    assert "resume" not in done.err, "the journal does not have it"
