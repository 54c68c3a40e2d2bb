"""Files that an earlier commit wrote stay readable: plans, journals, threads, vectors, chats, traces, reports.

`formats` holds them as they were written on 2026-11-23; conversations, traces and reports on 2026-11-30. They are never
written again. Indexes and embeddings are caches: those of another version are made anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest
from tests.support.command_line import run_command

from portico import (
    From,
    Kernel,
    ListOf,
    ObjectOf,
    Paused,
    Plan,
    Step,
    TextOf,
    Thread,
    Value,
    function,
    plan_from_json,
    plan_to_json,
)
from portico.plans import XmlPlan
from portico.plugins import RunState
from portico.ports import ChatService
from portico.search import Vectors
from portico_basics.config import PlanFolderSettings, SqliteSettings
from portico_basics.plan_folder.store import FolderPlanStore
from portico_basics.sqlite.store import SqliteRunStore
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_serve._chats import Chats
from portico_serve._runs.traces import spans_of_file
from portico_testkit.fakes.chat_service import ScriptedChat

HERE = Path(__file__).parent / "formats"
RUNS = json.loads((HERE / "runs.json").read_text("utf-8"))

LETTER = Plan(
    "Send Ada a letter",
    (
        Step("s1", "write", {"to": Value("Ada"), "tone": Value("warm")}, reason="first the letter"),
        Step("s2", "send", {"letter": TextOf(("To: ", From("s1", From.parse_path("$.text"))))}, after=("s1",)),
        Step("s3", "write", {"to": From("s1", From.parse_path("$.words[0]"))}),
    ),
    result=ObjectOf(
        {"sent": From("s2"), "all": ListOf((From("s3", From.parse_path("$.text")), Value({"from": "s1"})))}
    ),
)
ANSWER = {"sent": "sent To: Dear Ada!", "all": ["Dear Ada!", {"from": "s1"}]}


@function
async def write(to: str, tone: str = "kind") -> dict:
    """Write a letter."""
    return {"text": f"Dear {to}!", "words": [to, tone]}


@function(effects=True)
async def send(letter: str) -> str:
    """Send a letter."""
    return f"sent {letter}"


@pytest.fixture
def formats(tmp_path: Path) -> Path:
    """Give a copy, since reading may bring a file up to date."""
    return Path(shutil.copytree(HERE, tmp_path / "formats"))


@pytest.fixture
async def kernel(formats: Path):
    store = SqliteRunStore(SqliteSettings(path=formats / "runs.sqlite3"))
    kernel = Kernel(run_store=store)
    kernel.add_function(write)
    kernel.add_function(send)
    yield kernel
    await store.aclose()


def test_a_plan_in_json_is_read_and_written_again_as_it_was() -> None:
    text = (HERE / "plan.json").read_text("utf-8")
    assert plan_from_json(json.loads(text)) == LETTER
    assert plan_to_json(LETTER) == json.loads(text)


def test_a_plan_in_xml_is_read() -> None:
    plan = XmlPlan.read((HERE / "plan.xml").read_text("utf-8")).plan
    assert [step.function for step in plan.steps] == ["write", "send"]


def test_a_thread_is_read_and_written_again_as_it_was() -> None:
    data = json.loads((HERE / "thread.json").read_text("utf-8"))
    assert Thread.from_json(data).to_json() == data


async def test_a_saved_plan_is_found(formats: Path) -> None:
    saved = await FolderPlanStore(PlanFolderSettings(path=formats / "plans")).get("Send Ada a letter", "catalogue-1")
    assert saved is not None
    assert plan_from_json(saved.plan) == LETTER


async def test_vectors_are_found(formats: Path) -> None:
    store = FaissVectorStore(FaissSettings(path=formats / "vectors"))
    ((match,),) = await store.search("letters", Vectors.from_rows([(0, 1)]), top=1)
    assert match.id == "b"
    await store.aclose()


async def test_a_conversation_of_the_page_is_shown_and_continued(formats: Path) -> None:
    kernel = Kernel({ChatService: ScriptedChat("It is due in May.")})
    chats = Chats(kernel, [], formats / "chats")
    [listed] = await chats.listing()
    assert listed["title"] == "How often do I descale the kettle?"
    said = chats.describe(listed["chat"])["messages"]
    assert said[1]["citations"][0]["quote"] == "Descale the kettle with vinegar once a month."
    chats.send(listed["chat"], "When?")
    while chats.describe(listed["chat"])["busy"]:
        await asyncio.sleep(0.01)
    assert [each["text"] for each in chats.describe(listed["chat"])["messages"]][2:] == ["When?", "It is due in May."]
    await chats.aclose()


def test_a_file_of_traces_is_shown(formats: Path) -> None:
    spans = spans_of_file(formats / "trace.jsonl", "20261130-120003-65ae87d2ae54")
    assert "invoke_workflow" in " ".join(each["name"] for each in spans)


def test_an_evaluation_is_compared_with_an_earlier_report(formats: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kettle.md").write_text("# Kettle\n\nDescale the kettle with vinegar once a month.\n")
    case = json.loads((formats / "report.json").read_text("utf-8"))["cases"][0]
    asked = {"id": case["id"], "question": case["question"], "facts": ["twice a month"]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(asked) + "\n")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    words = ("eval", "cases.jsonl", "--docs", "docs", "--against", str(formats / "report.json"), "--json")
    code, output, said = run_command(*words, cwd=tmp_path, env=environment)
    assert code == 1, said
    assert json.loads(output)["against"]["worse"] == ["kettle"]


@pytest.mark.parametrize(("run", "state"), [("done", "done"), ("held", "held"), ("failed", "failed")])
async def test_a_journal_is_read(kernel: Kernel, run: str, state: str) -> None:
    entries = await kernel.run_store.read(RUNS[run])
    assert entries == json.loads((HERE / "journal.json").read_text("utf-8"))[run]
    assert RunState.of(entries).state == state


async def test_a_run_that_waited_for_approval_goes_on(kernel: Kernel) -> None:
    run = await kernel.resume(RUNS["held"])
    assert run.outcome.value == ANSWER


async def test_an_uncertain_step_stays_uncertain_until_a_person_decides(kernel: Kernel) -> None:
    run = await kernel.resume(RUNS["uncertain"])
    assert isinstance(run.outcome, Paused)
    assert (run.outcome.step, run.outcome.uncertain) == ("s2", True)
    run = await kernel.resume(RUNS["uncertain"], retry=["s2"])
    assert run.outcome.value == ANSWER
