"""`portico worker`: what it shows, to people and to programs, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.terminal import CTRL_C

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals are POSIX's")

BASE = '[functions.tools]\nuse = "tools"\n[functions.errands]\nuse = "errands"\n[runner]\nuse = "crew"\n[runner.crew]\n'
Started = Callable[..., "subprocess.Popen[str]"]
Configure = Callable[..., None]


@pytest.fixture
def crew(folder: Path) -> Configure:
    """Return what writes a configuration: goals that wait from the beginning, and what the planner makes of each."""

    def write(*goals: str, planner: str = "", **runner: object) -> None:
        settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {"goals": goals, **runner}.items())
        script = f'[planner]\nuse = "scripted"\n[planner.scripted]\n{planner}\n'
        (folder / "portico.toml").write_text(f"{BASE}{settings}{script}")

    return write


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def runs_of(portico: Any) -> dict[str, str]:
    """Return the states of the runs of the journal by goal, as another process reads them."""
    return {run["goal"]: run["state"] for run in portico("runs", "--json").json["runs"]}


def test_a_pipe_gets_a_line_of_json_for_each_event(portico: Any, crew: Configure) -> None:
    crew("hey", "ho", planner='call = "tools-shout"', concurrency=1)
    done = portico("worker", "--until-empty")
    assert (done.code, done.err) == (0, "")
    told = events(done.out)
    assert [each["event"] for each in told] == [
        "ready",
        *(2 * ["job-begun", "step-begun", "step-ended", "job-ended"]),
        "stopped",
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", each["at"]) for each in told)
    ready, begun, step, over, ended = told[:5]
    assert {name: ready[name] for name in ("runner", "place", "concurrency")} == {
        "runner": "crew",
        "place": "memory of the test",
        "concurrency": 1,
    }
    assert "pursuit" in ready["kinds"]
    assert ready["pid"] > 0
    assert (begun["kind"], begun["about"], begun["attempt"]) == ("pursuit", "hey", 1)
    assert (step["job"], step["step"], step["function"]) == (begun["job"], "s1", "tools-shout")
    assert (over["error"], ended["state"], ended["reason"]) == (None, "done", None)
    assert told[-1]["ended"] == {"done": 2}
    assert "HEY" not in done.out, "neither arguments nor results are told"


def test_how_a_run_ended_is_told(portico: Any, crew: Configure) -> None:
    crew("q", planner='end = "infeasible"')
    ended = events(portico("worker", "--until-empty", "--json").out)[-2:]
    assert (ended[0]["state"], ended[0]["reason"]) == ("infeasible", "nobody can do this")
    assert ended[1]["ended"] == {"infeasible": 1}


def test_a_failed_run_is_told_with_its_reason(portico: Any, crew: Configure, folder: Path) -> None:
    (folder / "broken").touch()
    crew("q", planner='call = "tools-fetch"\nend = "crash"')
    done = portico("worker", "--until-empty")
    assert (done.code, done.err) == (0, "")
    told = events(done.out)
    assert "the line is cut" in told[3]["error"]
    assert told[4]["state"] == "failed"
    assert told[4]["reason"].startswith("the planner fell over")
    assert told[5]["ended"] == {"failed": 1}


@pytest.mark.parametrize(("option", "planner"), [("--approve", "tools-shout"), ("--approve-effects", "tools-send")])
def test_what_waits_for_approval_is_held_and_a_person_resumes_it(
    portico: Any, crew: Configure, folder: Path, option: str, planner: str
) -> None:
    crew("hey", planner=f'call = "{planner}"')
    told = events(portico("worker", "--until-empty", option).out)
    assert told[-1]["ended"] == {"held": 1}
    assert not (folder / "sent.txt").exists()
    assert portico("resume", "last").code == 0
    assert runs_of(portico) == {"hey": "done"}


def test_concurrency_is_set_for_this_worker(portico: Any, crew: Configure) -> None:
    crew(concurrency=7)
    assert events(portico("worker", "--until-empty").out)[0]["concurrency"] == 7
    assert events(portico("worker", "--until-empty", "--concurrency", "2").out)[0]["concurrency"] == 2
    done = portico("worker", "--concurrency", "0")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 0, id="terminated"), pytest.param(signal.SIGINT, 130, id="Ctrl-C")],
)
def test_a_signal_gives_back_what_is_under_way_and_it_can_be_gone_on_with(
    started: Started, portico: Any, crew: Configure, folder: Path, number: int, code: int
) -> None:
    crew("hey", planner='call = "errands-dawdle"')
    process = started("worker", until="begun")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, "")
    told = events(out)
    assert [each["event"] for each in told] == ["ready", "job-begun", "step-begun", "stopping", "job-ended", "stopped"]
    assert told[3]["jobs"] == [told[1]["job"]]
    assert told[4]["state"] == "waiting"
    assert (told[5]["ended"], told[5]["given_back"]) == ({}, 1)
    # In memory the queue is another one, in which it waits too.
    assert runs_of(portico) == {"hey": "waiting"}
    (folder / "on").touch()
    assert portico("resume", "last").code == 0


def test_a_step_with_effects_ends_before_the_worker_does(
    started: Started, portico: Any, crew: Configure, folder: Path
) -> None:
    crew("hey", planner='call = "errands-deliver"')
    process = started("worker", "--grace", "60", until="begun")
    process.send_signal(signal.SIGTERM)
    (folder / "on").touch()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert [each["event"] for each in events(out)][3:5] == ["stopping", "step-ended"]
    assert (folder / "sent.txt").read_text() == "hey\n"
    assert "uncertain" not in runs_of(portico).values()
    assert portico("worker", "--until-empty").code == 0
    assert (folder / "sent.txt").read_text() == "hey\n", "what is done is not done again"
    assert runs_of(portico) == {"hey": "done"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(
    started: Started, portico: Any, crew: Configure, folder: Path, number: int
) -> None:
    crew("hey", planner='call = "errands-deliver"')
    process = started("worker", "--grace", "600", until="begun")
    process.send_signal(number)
    assert process.stdout is not None
    while '"stopping"' not in process.stdout.readline():
        pass
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert process.returncode == (130 if number == signal.SIGINT else 0)
    assert not (folder / "sent.txt").exists()
    (run,) = portico("runs", "--json").json["runs"]
    assert portico("resume", run["run"]).code == 4, "nobody knows whether it happened"


def test_who_reads_no_more_ends_the_worker_and_no_job(
    started: Started, portico: Any, crew: Configure, folder: Path
) -> None:
    crew("hey", planner='call = "errands-dawdle"')
    process = started("worker", until="begun")
    assert process.stdout is not None
    process.stdout.close()
    (folder / "on").touch()
    assert process.wait(timeout=30) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_a_worker_in_the_background_can_be_terminated(crew: Configure, folder: Path, environment: Any) -> None:
    crew()
    # A shell has what it starts in the background ignore interrupts.
    script = f'"{sys.executable}" -m portico_cli worker > out & worker=$!; while ! grep -q ready out; do :; done; '
    script += "kill -TERM $worker; wait $worker"
    done = subprocess.run(["sh", "-c", script], cwd=folder, env=environment, timeout=60, check=False)
    assert done.returncode == 0
    assert [each["event"] for each in events((folder / "out").read_text())] == ["ready", "stopping", "stopped"]


def test_at_a_terminal_each_event_is_a_line_of_words(terminal: Any, crew: Configure) -> None:
    crew("Sum up the week", "Forecast", planner='call = "errands-dawdle"')
    shown = terminal("worker", steps=[("Forecast", CTRL_C)], columns=100)
    assert shown.code == 130
    assert "about: Sum up the week" in shown.text
    assert "runner: crew  place: memory of the test" in shown.text
    assert shown.text.count("state: waiting") == 2
    assert "given_back: 2" in shown.text


def test_goals_and_errors_move_no_terminal(terminal: Any, crew: Configure, folder: Path) -> None:
    crew("a\u001b[31mred\u001b]0;title\u0007 [bold]x[/bold]", planner='call = "errands-dawdle"')
    shown = terminal("worker", steps=[("[bold]x[/bold]", CTRL_C)], columns=120)
    assert "\x1b]0;title" not in shown.written
    assert "a\x1b[31mred" not in shown.written
