"""`portico submit` and `portico worker` on DBOS in SQLite: real processes of one machine, with nothing to set up."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support import processes
from tests.support.command_line import run_command
from tests.support.packages import write_metadata

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")

PLUGIN = Path(__file__).with_name("ten_steps.py")
STEPS = {f"s{number}" for number in range(1, 11)}
SECRET = "s3cr3t-of-ada"


@dataclass
class Workshop:
    """A folder with a configuration, in which commands run."""

    folder: Path
    environment: Mapping[str, str]
    running: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        library = self.folder / "library"
        write_metadata(library, "portico-ten-steps", {"portico": {"ten-steps": "ten_steps"}})
        shutil.copy(PLUGIN, library)
        (self.folder / "log").mkdir()
        self.environment = {**self.environment, "PYTHONPATH": str(library), "PYTHONWARNINGS": "error"}
        self.configure()

    def configure(
        self, *, seconds: float = 0.02, paying: float = 0.02, database: str = 'path = "jobs.sqlite3"'
    ) -> None:
        """Write a configuration: how long a step takes, and one with effects, and where the queue is."""
        (self.folder / "portico.toml").write_text(
            '[planner]\nuse = "ten-steps"\n'
            f'[functions.steps]\nuse = "ten-steps"\nlog = "log"\nseconds = {seconds}\npaying = {paying}\n'
            '[runs]\nuse = "sqlite"\n[runs.sqlite]\npath = "runs.sqlite3"\n'
            f'[runner]\nuse = "dbos"\n[runner.dbos]\nworker_timeout = 1.5\nconcurrency = 2\n{database}\n'
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end and return what it wrote to standard output."""
        ended, *written = run_command(*arguments, cwd=self.folder, env=self.environment, timeout=processes.PATIENCE)
        out, err = (each.decode("utf-8") for each in written)
        assert ended == code, f"{out}\n{err}"
        assert "Traceback" not in err
        assert SECRET not in out + err
        return out + (err if code else "")

    def start(self, *arguments: str, until: Callable[[], object] | None = None) -> subprocess.Popen[str]:
        """Start a command, and wait until something is so."""
        command = [sys.executable, "-m", "portico_cli", *arguments]
        return self.running.enter_context(
            processes.started(command, cwd=self.folder, env=self.environment, until=until)
        )

    def calls(self, what: str) -> Counter[tuple[str, str]]:
        """Return how often each goal's steps did that, "begins" or "ends"."""
        file = self.folder / "log" / "calls"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return Counter((goal, step) for did, goal, step, _ in lines if did == what)

    def listed(self) -> dict[str, dict[str, Any]]:
        """Return the runs by goal, as `portico runs` lists them."""
        return {run["goal"]: run for run in json.loads(self.run("runs", "--json"))["runs"]}


@pytest.fixture
def workshop(tmp_path: Path, outer_environment: dict[str, str]) -> Iterator[Workshop]:
    made = Workshop(tmp_path, outer_environment)
    with made.running:
        yield made


def ended(process: subprocess.Popen[str], said: str = "") -> list[dict[str, Any]]:
    """Wait until a worker has ended, and return its events; ``said`` is what it wrote to standard error."""
    out, err = process.communicate(timeout=processes.PATIENCE)
    assert (process.returncode, err) == (0, said), out
    return [json.loads(line) for line in out.splitlines()]


def test_goals_of_a_file_wait_and_two_workers_share_them(workshop: Workshop) -> None:
    goals = [f"goal-{number}" for number in range(6)]
    (workshop.folder / "goals.txt").write_text("\n".join(goals))
    names = workshop.run("submit", "--file", "goals.txt").split()
    waiting = json.loads(workshop.run("runs", "--json"))["runs"]
    assert {run["run"]: (run["state"], run["worker"]) for run in waiting} == dict.fromkeys(names, ("waiting", None))
    assert {run["run"]: run["goal"] for run in waiting} == dict(zip(names, goals, strict=True))
    assert json.loads(workshop.run("runs", names[0], "--json"))["goal"] == goals[0]
    workers = [workshop.start("worker", "--until-empty") for _ in range(2)]
    told = [event for worker in workers for event in ended(worker)]
    assert Counter(each["event"] for each in told if each["event"].startswith("job")) == {
        "job-begun": 6,
        "job-ended": 6,
    }
    assert {each["job"] for each in told if each["event"] == "job-ended" and each["state"] == "done"} == set(names)
    assert workshop.calls("begins") == Counter((goal, step) for goal in goals for step in STEPS)
    assert {goal: (run["state"], run["steps_done"]) for goal, run in workshop.listed().items()} == dict.fromkeys(
        goals, ("done", 10)
    )


def test_a_run_of_a_worker_that_is_killed_goes_on_in_another(workshop: Workshop) -> None:
    workshop.configure(seconds=600.0, paying=600.0)
    name = workshop.run("submit", "goal").strip()
    first = workshop.start("worker", until=lambda: workshop.calls("begins"))
    run = workshop.listed()["goal"]
    assert (run["state"], run["worker"].split(":")[1]) == ("running", str(first.pid))
    first.kill()
    first.wait()
    workshop.configure()
    said = f"The worker of the job {name!r} is gone; it waits for another.\n"
    events = ended(workshop.start("worker", "--until-empty"), said)
    (begun,) = [each for each in events if each["event"] == "job-begun"]
    assert (begun["job"], begun["attempt"], events[-1]["ended"]) == (name, 2, {"done": 1})
    run = workshop.listed()["goal"]
    assert (run["state"], run["attempts"], run["worker"]) == ("done", 2, None)
    assert workshop.calls("ends") == Counter({("goal", step): 1 for step in STEPS})


def test_who_waits_for_a_run_sees_nothing_of_a_worker_that_is_replaced(workshop: Workshop) -> None:
    workshop.configure(seconds=0.3, paying=0.3)
    waiting = workshop.start("submit", "goal", "--run", "r", "--wait", "--json")
    first = workshop.start("worker", until=lambda: workshop.calls("begins"))
    first.send_signal(signal.SIGTERM)
    events = ended(first)
    assert [each["event"] for each in events][-3:] == ["stopping", "job-ended", "stopped"]
    assert (events[-2]["state"], events[-1]["given_back"]) == ("waiting", 1)
    assert ended(workshop.start("worker", "--until-empty"))[-1]["ended"] == {"done": 1}
    out, err = waiting.communicate(timeout=processes.PATIENCE)
    none_yet = "No worker is running. This waits until `portico worker` starts one.\n"
    assert (waiting.returncode, err.replace(none_yet, "")) == (0, "")
    answer = json.loads(out)
    assert (answer["outcome"], answer["run"], answer["value"]) == ("answer", "r", "goal/s10")
    assert {step["id"] for step in answer["steps"]} == STEPS
    # Submitted again under its name it is that run, which has its answer.
    assert json.loads(workshop.run("submit", "goal", "--run", "r", "--wait", "--json"))["value"] == "goal/s10"
    assert workshop.calls("ends") == Counter({("goal", step): 1 for step in STEPS})


def test_a_database_that_does_not_answer_is_one_sentence_without_its_password(workshop: Workshop) -> None:
    workshop.configure(database=f'uri = "postgresql://ada:{SECRET}@127.0.0.1:1/jobs"')
    for command in (("worker", "--until-empty"), ("submit", "goal")):
        said = workshop.run(*command, code=1)
        assert said.startswith("Error: "), said
        assert "127.0.0.1" in said
        assert len(said.strip().splitlines()) <= 3, said
    assert json.loads(workshop.run("runs", "--json"))["runs"] == []
    assert SECRET not in workshop.run("config", "show", "--json")


def test_a_run_that_waits_is_cancelled_and_no_worker_begins_it(workshop: Workshop) -> None:
    workshop.run("submit", "given-up", "--run", "r1")
    workshop.run("submit", "goal", "--run", "r2")
    assert workshop.run("cancel", "r1") == "The run r1 is cancelled.\n"
    run = json.loads(workshop.run("cancel", "r1", "--json"))  # twice is no mistake
    assert (run["run"], run["state"], run["goal"], run["attempts"]) == ("r1", "cancelled", "given-up", 0)
    assert ended(workshop.start("worker", "--until-empty"))[-1]["ended"] == {"done": 1}
    assert not [goal for goal, _ in workshop.calls("begins") if goal == "given-up"]
    assert {goal: run["state"] for goal, run in workshop.listed().items()} == {"given-up": "cancelled", "goal": "done"}
    said = workshop.run("cancel", "r2", code=2)
    assert said == "Error: The run r2 is done: it neither waits for a worker nor is in one.\n"


def test_a_run_is_cancelled_in_its_worker_which_goes_on_with_others(workshop: Workshop) -> None:
    workshop.configure(seconds=600.0)
    workshop.run("submit", "goal", "--run", "r")
    worker = workshop.start("worker", until=lambda: workshop.calls("begins"))
    assert workshop.run("cancel", "r") == "The run r is cancelled. `portico resume r` continues it.\n"
    assert not workshop.calls("ends")
    workshop.run("submit", "other", "--run", "r2")
    assert json.loads(workshop.run("cancel", "r2", "--json"))["state"] == "cancelled"
    worker.send_signal(signal.SIGTERM)
    events = ended(worker)
    assert [(each["job"], each["state"]) for each in events if each["event"] == "job-ended"][:1] == [("r", "cancelled")]
    assert events[-1]["given_back"] == 0
    # A person may think better of it: what had begun goes on here.
    workshop.configure()
    assert json.loads(workshop.run("resume", "r", "--json"))["value"] == "goal/s10"
    assert workshop.calls("ends") == Counter({("goal", step): 1 for step in STEPS})


def test_a_step_with_effects_that_cancelling_breaks_off_is_uncertain(workshop: Workshop) -> None:
    workshop.configure(paying=600.0)
    workshop.run("submit", "goal", "--run", "r")
    worker = workshop.start("worker", until=lambda: workshop.calls("begins")["goal", "s4"])
    run = json.loads(workshop.run("cancel", "r", "--json"))
    assert (run["state"], run["uncertain"], run["steps_done"]) == ("uncertain", ["s4"], 3)
    assert workshop.listed()["goal"]["state"] == "uncertain"
    said = " ".join(workshop.run("cancel", "r").split())
    assert "whether these steps happened: s4. `portico resume r` says what to do" in said
    worker.send_signal(signal.SIGTERM)
    assert ended(worker)[-1]["ended"] == {"cancelled": 1}
    workshop.configure()
    assert "s4" in workshop.run("resume", "r", code=4)
    workshop.run("resume", "r", "--result", "s4", "paid")
    assert (workshop.calls("begins")["goal", "s4"], workshop.calls("ends")["goal", "s4"]) == (1, 0)


def test_only_what_workers_have_can_be_cancelled(workshop: Workshop) -> None:
    assert "There is no run 'nobody'." in workshop.run("cancel", "nobody", code=2)
    own = json.loads(workshop.run("ask", "goal", "--json"))["run"]
    assert f"The run {own} is done: it neither waits for a worker" in workshop.run("cancel", own, code=2)
    workshop.configure(database=f'uri = "postgresql://ada:{SECRET}@127.0.0.1:1/jobs"')
    assert "127.0.0.1" in workshop.run("cancel", own, code=1)
    file = workshop.folder / "portico.toml"
    file.write_text(file.read_text().partition("[runner]")[0])
    said = workshop.run("cancel", own, code=2)
    assert said.startswith("Error: There is no runner. Set `use` under [runner] to one that has workers; ")
