"""What a replay does, and what it refuses to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico import Citation, Kernel, Paused, RequireApproval, function
from portico.errors import ConfigurationError, PlanError, PlanFormatError, PlanStale, PluginNotInstalled, RunNotFound
from portico.plans import (
    Answer,
    Budget,
    Emit,
    Event,
    From,
    Infeasible,
    Plan,
    RunEvent,
    Step,
    Task,
    TextOf,
    Value,
    plan_to_json,
)
from portico.ports import RunStore
from portico_basics.config import RecordedSettings
from portico_basics.recorded.planner import RecordedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices

GOAL = "Shout"
PLAN = Plan(GOAL, (Step("s1", "Tone-shout", {"text": Value("hey")}),), result=TextOf((From("s1"), "!")))


class Tone:
    """Tones of voice."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.broken = False

    @function
    def shout(self, text: str) -> str:
        """Shout a text."""
        self.said.append(text)
        if self.broken:
            raise ConnectionError("no voice today")
        return text.upper()


class Proposing:
    """Proposes what a test says, one after the other."""

    name = "proposing"

    def __init__(self, *proposals: Plan | Answer | Infeasible) -> None:
        self.proposals = list(proposals)

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        return self.proposals.pop(0)


Write = Callable[..., RecordedPlanner]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def made(content: Plan | dict[str, Any] | str | bytes, name: str = "plan.json") -> RecordedPlanner:
        file = tmp_path / name
        if isinstance(content, Plan):
            content = plan_to_json(content)
        if isinstance(content, dict):
            content = json.dumps(content)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return RecordedPlanner(RecordedSettings(plan=file), FixedServices())

    return made


async def replay_of(store: MemoryRunStore, kernel: Kernel, *proposals: Any, goal: str = GOAL) -> RecordedPlanner:
    """Let a planner run into the journal, and return the one that replays it."""
    kernel.run_store = store
    try:
        run = (await kernel.run_goal(goal, planner=Proposing(*proposals))).name
    except PlanError:
        [run] = await store.runs()
    kernel.run_store = None
    return RecordedPlanner(RecordedSettings(run=run), FixedServices({RunStore: store}))


@pytest.mark.parametrize(
    "content",
    [
        plan_to_json(PLAN),
        {"answer": "HEY!", "citations": [], "plan": plan_to_json(PLAN), "run": "r1"},
        b"\xef\xbb\xbf" + json.dumps(plan_to_json(PLAN)).encode(),
        '<plan><function.Tone.shout text="hey" appendToResult="RESULT__X"/></plan>',
    ],
    ids=["JSON", "what ask --json prints", "a byte order mark", "XML"],
)
async def test_a_plan_from_a_file_is_run_and_its_result_is_the_answer(write: Write, content: Any) -> None:
    tone = Tone()
    run = await Kernel(plugins=[tone]).run_goal(GOAL, planner=write(content))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text.startswith("HEY")
    assert run.outcome.warnings == ()
    assert tone.said == ["hey"]
    assert run.services == (), "a model was asked"
    assert run.plan.result is not None, "the replay itself cannot be replayed"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "neither JSON nor XML"),
        ("{", "neither JSON nor XML"),
        ("[]", "expected an object"),
        ('{"version": 3, "goal": "", "steps": []}', "version"),
        ('{"plan": {"version": 1}}', "missing"),
        ("<plan><function.Tone.shout", "plan.json is no plan"),
        ("<html></html>", "plan.json is no plan"),
        ("[" * 100_000, "neither JSON nor XML"),
    ],
)
async def test_a_file_that_is_no_plan_is_named_with_the_place(write: Write, content: str, said: str) -> None:
    with pytest.raises(PlanFormatError, match=said) as raised:
        await Kernel(plugins=[Tone]).run_goal(GOAL, planner=write(content))
    assert "plan.json" in str(raised.value)


async def test_what_ask_printed_is_replayed_with_its_answer_and_citations(write: Write) -> None:
    cited = {"number": 1, "name": "a", "link": None, "quote": "HEY"}
    printed = {"answer": "They shout [1].", "citations": [cited], "plan": plan_to_json(Plan(GOAL, PLAN.steps))}
    outcome = (await Kernel(plugins=[Tone]).run_goal(GOAL, planner=write(printed))).outcome
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.citations) == ("They shout [1].", (Citation(1, "a", None, "HEY"),))
    assert "the answer is the recorded one of the plan in" in outcome.warnings[-1]
    odd = {**printed, "citations": [{"page": 3}]}
    with pytest.raises(PlanFormatError, match=r"plan\.json is no plan"):
        await Kernel(plugins=[Tone]).run_goal(GOAL, planner=write(odd))


async def test_a_file_that_cannot_be_read_is_named_with_the_reason(write: Write, tmp_path: Path) -> None:
    kernel = Kernel(plugins=[Tone])
    for content, said in ((b"\xff\xfe\x00", "utf-8"), (b" " * 16_000_001, "more than 16,000,000 bytes")):
        with pytest.raises(PlanError, match=rf"plan\.json cannot be read: .*{said}"):
            await kernel.run_goal(GOAL, planner=write(content))
    for path, said in ((tmp_path / "none.json", "No such file"), (tmp_path, "directory")):
        planner = RecordedPlanner(RecordedSettings(plan=path), FixedServices())
        with pytest.raises(PlanError, match=said):
            await kernel.run_goal(GOAL, planner=planner)


async def test_a_plan_in_xml_finds_its_variables_in_the_input(write: Write) -> None:
    planner = write('<plan><function.Tone.shout text="Dear $NAME"/></plan>')
    run = await Kernel(plugins=[Tone]).run_goal(GOAL, planner=planner, input={"name": "Ada"})
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == "DEAR ADA"


@pytest.mark.parametrize("settings", [RecordedSettings(), RecordedSettings(plan=Path("a"), run="b")])
async def test_one_thing_to_replay_is_needed(settings: RecordedSettings) -> None:
    with pytest.raises(ConfigurationError, match="set one of the two"):
        await Kernel(plugins=[Tone]).run_goal(GOAL, planner=RecordedPlanner(settings, FixedServices()))


async def test_an_empty_plan_says_that_there_is_no_way(write: Write) -> None:
    outcome = (await Kernel(plugins=[Tone]).run_goal(GOAL, planner=write("<plan/>"))).outcome
    assert isinstance(outcome, Infeasible)


async def test_a_plan_that_answers_nothing_is_refused_before_it_runs(write: Write) -> None:
    tone = Tone()
    with pytest.raises(PlanError, match="has no result"):
        await Kernel(plugins=[tone]).run_goal(GOAL, planner=write(Plan(GOAL, PLAN.steps)))
    assert tone.said == []


async def test_another_goal_than_the_recorded_one_is_a_warning(write: Write) -> None:
    events: list[RunEvent] = []
    run = await Kernel(plugins=[Tone]).run_goal("Whisper", planner=write(PLAN), emit=events.append)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == run.outcome.value == "HEY!"
    [warning] = run.outcome.warnings
    assert "recorded goal is 'Shout'" in warning
    assert [event.warning for event in events if isinstance(event, Event.Warned)] == [warning]
    assert (await Kernel(plugins=[Tone]).run_goal(f" {GOAL}\n", planner=write(PLAN))).outcome == Answer(
        "HEY!", value="HEY!"
    )


async def test_functions_that_changed_are_a_warning_or_say_why_the_plan_cannot_run(write: Write) -> None:
    recorded = (await Kernel(plugins=[Tone]).run_goal(GOAL, planner=write(PLAN))).plan
    assert recorded.fingerprints
    planner = write(recorded)

    def kernel_with(shout: Any) -> Kernel:
        shout.__name__ = "shout"
        from portico import FunctionPlugin

        class Changed:
            pass

        Changed.shout = staticmethod(shout)  # type: ignore[attr-defined]
        return Kernel(plugins=[FunctionPlugin.of(Changed(), "Tone")])

    @function
    def longer(text: str, times: int = 1) -> str:
        return text.upper() * times

    @function
    def needing(text: str, times: int) -> str:
        return text.upper() * times

    @function(effects=True)
    def effective(text: str) -> str:
        return text.upper()

    outcome = (await kernel_with(longer).run_goal(GOAL, planner=planner)).outcome
    assert isinstance(outcome, Answer)
    assert outcome.text == "HEY!"
    assert "the parameter 'times' is new" in outcome.warnings[0]
    for changed, said in ((needing, "'times' is new and needed"), (effective, "effects now")):
        with pytest.raises(PlanStale, match=said):
            await kernel_with(changed).run_goal(GOAL, planner=planner)
    other = Kernel()
    other.add_function(longer)
    with pytest.raises(PlanStale, match="it is gone"):
        await other.run_goal(GOAL, planner=planner)


async def test_a_plan_that_its_check_refuses_is_not_proposed_again(write: Write) -> None:
    planner = write(Plan(GOAL, (Step("s1", "Tone-whisper"),), result=From("s1")))
    with pytest.raises(PlanError, match=r"cannot run with these functions:\n.*Tone-whisper"):
        await Kernel(plugins=[Tone]).run_goal(GOAL, planner=planner)


async def test_after_a_failed_step_nothing_else_is_proposed(write: Write) -> None:
    tone = Tone()
    tone.broken = True
    steps = (*PLAN.steps, Step("s2", "Tone-shout", {"text": From("s1")}))
    with pytest.raises(PlanError, match=r"failed at the step s1.*no voice today"):
        await Kernel(plugins=[tone]).run_goal(GOAL, planner=write(Plan(GOAL, steps, From("s2"))))
    assert tone.said == ["hey"]


async def test_a_plan_that_needs_its_input_says_so_and_takes_it(write: Write) -> None:
    planner = write(Plan(GOAL, (Step("s1", "Tone-shout", {"text": From("input", ("word",))}),), result=From("s1")))
    kernel = Kernel(plugins=[Tone])
    with pytest.raises(PlanError, match="needs an input"):
        await kernel.run_goal(GOAL, planner=planner)
    assert (await kernel.run_goal(GOAL, planner=planner, input={"word": "hi"})).outcome == Answer("HI", value="HI")


async def test_a_run_whose_plan_gave_the_answer_is_replayed_as_that_plan() -> None:
    tone, store = Tone(), MemoryRunStore()
    kernel = Kernel(plugins=[tone])
    move = Plan(GOAL, (Step("s0", "Tone-shout", {"text": Value("one")}),))
    last = Plan(GOAL, PLAN.steps, TextOf((From("s0"), From("s1"))))
    planner = await replay_of(store, kernel, move, last)
    tone.said.clear()
    run = await kernel.run_goal(GOAL, planner=planner)
    assert run.outcome == Answer("ONEHEY", value="ONEHEY")
    assert sorted(tone.said) == ["hey", "one"]
    assert run.plan.result == last.result


async def test_a_run_that_its_planner_answered_is_replayed_and_the_answer_is_said_to_be_the_recorded_one() -> None:
    tone, store, events = Tone(), MemoryRunStore(), list[RunEvent]()
    kernel = Kernel(plugins=[tone])
    said = Answer("They shout [1].", (Citation(1, "a", None, "HEY"),), warnings=("One source failed.",))
    planner = await replay_of(store, kernel, Plan(GOAL, PLAN.steps), said)
    tone.said.clear()
    outcome = (await kernel.run_goal(GOAL, planner=planner, emit=events.append)).outcome
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.citations) == (said.text, said.citations)
    assert outcome.warnings[0] == "One source failed."
    assert "run again, but the answer is the recorded one of the run" in outcome.warnings[-1]
    assert tone.said == ["hey"]
    assert [event.text for event in events if isinstance(event, Event.TextDelta)] == [said.text]


async def test_a_run_of_no_steps_gives_its_recorded_answer() -> None:
    kernel = Kernel(plugins=[Tone])
    planner = await replay_of(MemoryRunStore(), kernel, Answer("So."))
    outcome = (await kernel.run_goal(GOAL, planner=planner)).outcome
    assert isinstance(outcome, Answer)
    assert outcome.text == "So."
    assert outcome.warnings


async def test_steps_that_failed_in_the_run_are_not_run_again() -> None:
    tone, store = Tone(), MemoryRunStore()
    kernel = Kernel(plugins=[tone])
    wrong = Plan(GOAL, (Step("s0", "Tone-shout", {"text": From("s9")}),))
    fine = Plan(GOAL, (Step("s1", "Tone-shout", {"text": Value("a")}),), result=From("s1"))
    planner = await replay_of(store, kernel, wrong, fine)
    tone.said.clear()
    assert (await kernel.run_goal(GOAL, planner=planner)).outcome == Answer("A", value="A")
    assert tone.said == ["a"]


async def test_an_infeasible_run_is_infeasible_again() -> None:
    kernel = Kernel(plugins=[Tone])
    planner = await replay_of(MemoryRunStore(), kernel, Infeasible("No way.", ("wings",)))
    assert (await kernel.run_goal(GOAL, planner=planner)).outcome == Infeasible("No way.", ("wings",))


async def test_a_run_that_came_to_no_answer_is_refused_with_its_state() -> None:
    kernel = Kernel(plugins=[Tone])

    async def hold(context: Any, proceed: Any) -> Any:
        return RequireApproval("ask Ada")

    kernel.middleware.plan.append(hold)
    planner = await replay_of(MemoryRunStore(), kernel, PLAN)
    kernel.middleware.plan.clear()
    with pytest.raises(PlanError, match=r"is held \(ask Ada\).*portico resume"):
        await kernel.run_goal(GOAL, planner=planner)


async def test_a_run_that_is_not_there_and_a_journal_that_is_not_there_say_so() -> None:
    kernel = Kernel(plugins=[Tone])
    store = MemoryRunStore()
    kernel.run_store = store
    run = (await kernel.run_goal(GOAL, planner=Proposing(Answer("So.")))).name
    kernel.run_store = None
    for name in (run[:-2], run.split("-")[-1][:8]):
        short = RecordedPlanner(RecordedSettings(run=name), FixedServices({RunStore: store}))
        assert isinstance((await kernel.run_goal(GOAL, planner=short)).outcome, Answer), name
    missing = RecordedPlanner(RecordedSettings(run=f"{run}0"), FixedServices({RunStore: store}))
    with pytest.raises(RunNotFound) as raised:
        await kernel.run_goal(GOAL, planner=missing)
    assert raised.value.nearest == (run,)
    with pytest.raises(PluginNotInstalled):
        await kernel.run_goal(GOAL, planner=RecordedPlanner(RecordedSettings(run="r"), FixedServices()))


async def test_a_replay_is_checked_approved_and_bounded_as_every_plan_is(write: Write) -> None:
    kernel = Kernel(plugins=[Tone])

    async def hold(context: Any, proceed: Any) -> Any:
        return RequireApproval("ask Ada")

    kernel.middleware.plan.append(hold)
    outcome = (await kernel.run_goal(GOAL, planner=write(PLAN), budget=Budget(steps=5))).outcome
    assert outcome == Paused("ask Ada")
