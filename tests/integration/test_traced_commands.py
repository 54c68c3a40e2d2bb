"""`--trace FILE` of commands: each writes there, also one that is stopped; without the package it says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_worker_commands import Workshop
from tests.support.command_line import run_command
from tests.support.processes import PATIENCE, started

FERRY = "The ferry to Oslo leaves at nine in the morning."
WITHOUT_THE_PACKAGE = """
import importlib.metadata as metadata, sys
found = metadata.distributions
metadata.distributions = lambda **about: (each for each in found(**about) if each.name != "portico-opentelemetry")
from portico_cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def spans_of(file: Path) -> list[dict[str, Any]]:
    """Return the spans of a file."""
    lines = file.read_text("ascii").splitlines()
    return [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in lines]


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry.md").write_text(FERRY)
    return folder


@pytest.fixture
def workshop(tmp_path: Path, outer_environment: dict[str, str]) -> Iterator[Workshop]:
    made = Workshop(tmp_path, outer_environment)
    with made.running:
        yield made


def test_chat_writes_the_turns_of_its_agent(docs: Path, outer_environment: dict[str, str]) -> None:
    asked = b"When does the ferry leave?\n"
    command = ("chat", "--docs", "docs", "--trace", "trace.jsonl", "--json")
    code, _, err = run_command(*command, cwd=docs.parent, env=outer_environment, stdin=asked)
    assert code == 0, err
    spans = {span["name"]: span for span in spans_of(docs.parent / "trace.jsonl")}
    turn = spans["invoke_agent portico"]
    inside = {name.partition(" ")[0] for name, span in spans.items() if span.get("parentSpanId") == turn["spanId"]}
    assert {"chat", "retrieval"} <= inside
    assert attributes_of(spans["retrieval docs"])["portico.retrieval.results"] == "1"


@pytest.mark.process
def test_a_worker_writes_the_runs_that_it_carries_out(workshop: Workshop) -> None:
    workshop.run("submit", "Count")
    workshop.run("worker", "--until-empty", "--trace", "trace.jsonl", "--json")
    spans = spans_of(workshop.folder / "trace.jsonl")
    (whole,) = [span for span in spans if span["name"] == "invoke_workflow ten-steps"]
    assert len([span for span in spans if span.get("parentSpanId") == whole["spanId"]]) >= 11


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is a signal elsewhere")
def test_a_run_that_is_stopped_by_ctrl_c_has_its_span(workshop: Workshop) -> None:
    workshop.configure(seconds=PATIENCE)
    command = [sys.executable, "-m", "portico_cli", "ask", "Count", "--trace", "trace.jsonl"]
    calls = workshop.folder / "log" / "calls"
    with started(command, cwd=workshop.folder, env=workshop.environment, until=calls.exists) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    whole, step = spans_of(workshop.folder / "trace.jsonl")[::-1][:2]
    assert (whole["name"], step["name"]) == ("invoke_workflow ten-steps", "execute_tool steps-Work")
    assert attributes_of(whole)["error.type"] == "CancelledError"
    assert step["parentSpanId"] == whole["spanId"]


@pytest.mark.parametrize("file", ["docs", "none/trace.jsonl"])
def test_a_file_that_cannot_be_written_is_said_before_anything_runs(
    docs: Path, outer_environment: dict[str, str], file: str
) -> None:
    (docs.parent / "portico.toml").write_text(f'[observers.opentelemetry]\nfile = "{file}"\n')
    code, out, err = run_command("ask", "When?", "--docs", "docs", cwd=docs.parent, env=outer_environment)
    assert (code, out) == (2, b"")
    assert file.encode() in err
    assert b"Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_disk_costs_the_trace_and_not_the_answer(docs: Path, outer_environment: dict[str, str]) -> None:
    command = ("ask", "When does the ferry leave?", "--docs", "docs", "--trace", "/dev/full")
    code, out, err = run_command(*command, cwd=docs.parent, env=outer_environment)
    assert (code, err) == (0, b"")
    assert FERRY.encode() in out


@pytest.mark.parametrize("command", [("ask", "When?", "--docs", "docs"), ("chat", "--docs", "docs"), ("worker",)])
def test_without_the_package_a_trace_says_what_to_install(docs: Path, command: tuple[str, ...]) -> None:
    asked = [sys.executable, "-c", WITHOUT_THE_PACKAGE, *command, "--trace", "trace.jsonl"]
    done = subprocess.run(asked, cwd=docs.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install portico-opentelemetry" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (docs.parent / "trace.jsonl").exists()
