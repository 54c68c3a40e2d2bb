"""Proposals as a runner records them: given back as they were, or not recorded at all; and told apart by their task."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from tests.support.strategies import plans

from portico._chat.messages import Citation, Usage
from portico._functions.functions import FunctionSpec
from portico._plans.findings import Finding
from portico._plans.json_form import plan_from_json, plan_to_json
from portico._plans.plan import From, Plan, Step, Value
from portico._plans.task import Answer, Budget, Event, Infeasible, Refusal, StepRecord, Task
from portico._runs.recording import PROPOSAL_VERSION, digest_of, proposal_from_json, proposal_to_json
from portico.errors import PlanFormatError, StoreDamaged, StoreError
from portico_testkit.strategies import json_values, near

TEXTS = st.text(max_size=8)
NUMBERS = st.integers(0, 10**6)
CITATIONS = st.builds(Citation, NUMBERS, st.none() | TEXTS, st.none() | TEXTS, TEXTS)
ANSWERS = st.builds(
    Answer, TEXTS, st.lists(CITATIONS, max_size=2).map(tuple), json_values(), st.lists(TEXTS, max_size=2).map(tuple)
)
PROPOSALS = plans() | ANSWERS | st.builds(Infeasible, TEXTS, st.lists(TEXTS, max_size=2).map(tuple))
SAID = st.lists(
    st.builds(Event.Warned, TEXTS)
    | st.builds(Event.ChatUsed, TEXTS, TEXTS, st.builds(Usage, NUMBERS, NUMBERS, NUMBERS, NUMBERS)),
    max_size=3,
).map(tuple)


@given(PROPOSALS, SAID)
def test_what_is_recorded_is_given_back_as_it_was(proposal: Any, said: Any) -> None:
    document = proposal_to_json(proposal, said)
    if document is None:
        # Only what the form of plans does not take is not recorded.
        assert isinstance(proposal, Plan)
        with pytest.raises((PlanFormatError, AssertionError)):
            assert plan_from_json(plan_to_json(proposal)) == proposal
        return
    written = json.loads(json.dumps(document, sort_keys=True))
    assert proposal_from_json(written) == (proposal, said)


@given(ANSWERS, SAID)
def test_every_answer_that_is_json_is_recorded(answer: Answer, said: Any) -> None:
    document = proposal_to_json(answer, said)
    assert document is not None
    assert repr(proposal_from_json(document)) == repr((answer, said)), "also what is empty is what it was"


@given(PROPOSALS, SAID, st.data())
def test_what_is_not_as_it_was_written_is_damage_or_another_proposal(
    proposal: Any, said: Any, data: st.DataObject
) -> None:
    document = proposal_to_json(proposal, said)
    assume(document is not None)
    changed = data.draw(near(document))
    try:
        read = proposal_from_json(changed)
    except StoreError:
        return
    assert proposal_to_json(*read) == changed


@given(json_values())
def test_what_is_no_proposal_is_damage(document: Any) -> None:
    with pytest.raises(StoreDamaged, match="What the runner recorded is no proposal"):
        proposal_from_json(document)


@pytest.mark.parametrize(
    "document",
    [
        {"version": 0, "outcome": {"kind": "infeasible", "reason": "no", "missing": []}},
        {"version": True, "outcome": {"kind": "infeasible", "reason": "no", "missing": []}},
        {"version": 1, "outcome": {"kind": "held", "reason": "wait", "step": None}},
        {"version": 1, "outcome": {"kind": "infeasible", "reason": "no"}},
        {"version": 1, "outcome": {"kind": "infeasible", "reason": "no", "missing": []}, "more": 1},
        {"version": 1, "outcome": {"kind": "infeasible", "reason": "no", "missing": []}, "said": []},
        {
            "version": 1,
            "outcome": {"kind": "infeasible", "reason": "no", "missing": []},
            "said": [{"warning": 5, "x": 1}],
        },
        {"version": 1, "plan": {"version": 1, "goal": "g", "steps": []}, "outcome": {}},
    ],
)
def test_only_what_was_written_is_read(document: Any) -> None:
    with pytest.raises(StoreDamaged):
        proposal_from_json(document)


def test_a_newer_version_is_told() -> None:
    newer = {"version": PROPOSAL_VERSION + 1, "wish": "?"}
    with pytest.raises(
        StoreError, match=rf"version {PROPOSAL_VERSION + 1}.*knows version {PROPOSAL_VERSION}"
    ) as caught:
        proposal_from_json(newer)
    assert not isinstance(caught.value, StoreDamaged)


@pytest.mark.parametrize(
    "proposal",
    [
        Plan("g", (Step("s", "f", {"x": Value(math.nan)}),)),
        Plan("g", (Step("s", "f", {"x": Value((1, 2))}),)),
        Plan("g", (Step("s", "f", {"x": Value({1: 2})}),)),
        Plan("g", (Step("s", "f", attempts=0),)),
        Plan("g", tuple(Step(f"s{number}", "f") for number in range(1001))),
        Answer("a", value=(1, 2)),
        Answer("a", value={1: 2}),
        Answer("a", value=math.inf),
        Answer("a", value=object()),
        Answer(5),  # type: ignore[arg-type]
        "no proposal",
        None,
    ],
)
def test_what_json_would_change_is_not_recorded(proposal: Any) -> None:
    assert proposal_to_json(proposal) is None


def test_a_document_shares_nothing_with_its_proposal() -> None:
    values = [1]
    document = proposal_to_json(Answer("a", value=values))
    assert document is not None
    values.append(2)
    assert document["outcome"]["value"] == [1]


MANUAL = FunctionSpec("f", "Do it.", {"type": "object"}, {"type": "string"}, tags=frozenset("ab"))
TASK = Task(
    "g",
    (MANUAL,),
    (
        StepRecord(Step("s1", "f", {"x": From("input", ("a", 0))}), {"r": 1}),
        StepRecord(Step("s2", Plan("i")), error="no"),
    ),
    (Refusal(Plan("wrong"), (Finding("unknown", "s", "function", nearest=("f",)),)),),
    Budget(5, 10, 2, 60.0),
    {"notes": 1},
    {"who": "me"},
    {"a": [1]},
    (None, "before"),
)
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("goal", {"goal": "h"}),
    ("functions", {"functions": (replace(MANUAL, description="Do it not."),)}),
    ("no functions", {"functions": ()}),
    ("tags", {"functions": (replace(MANUAL, tags=frozenset("ac")),)}),
    ("effects", {"functions": (replace(MANUAL, effects=True),)}),
    ("a step less", {"steps": TASK.steps[:1]}),
    ("another result", {"steps": (replace(TASK.steps[0], result={"r": 2}), TASK.steps[1])}),
    ("another error", {"steps": (TASK.steps[0], replace(TASK.steps[1], error="yes"))}),
    ("another order", {"steps": TASK.steps[::-1]}),
    ("other arguments", {"steps": (StepRecord(Step("s1", "f", {"x": Value("input")}), {"r": 1}), TASK.steps[1])}),
    ("nothing refused", {"refused": ()}),
    ("another finding", {"refused": (Refusal(Plan("wrong"), (Finding("known", "s", "function"),)),)}),
    ("another plan refused", {"refused": (replace(TASK.refused[0], plan=Plan("right")),)}),
    ("proposals left", {"budget": replace(TASK.budget, proposals=4)}),
    ("steps left", {"budget": replace(TASK.budget, steps=9)}),
    ("notes", {"notes": {"notes": 2}}),
    ("context", {"context": {"who": "you"}}),
    ("no context", {"context": None}),
    ("input", {"input": {"a": [2]}}),
    ("notes before", {"notes_before": ("before", None)}),
]


def test_one_state_has_one_digest_in_any_process() -> None:
    digest = digest_of(TASK, "p")
    assert digest is not None
    assert re.fullmatch("[0-9a-f]{32}", digest)
    # What a process has of its own: the clock, the refusals that it bears, and what it could be advised.
    same = replace(TASK, budget=Budget(5, 10, 0, 1.5, 7.0, 3))
    same = replace(same, refused=(Refusal(Plan("wrong"), (Finding("unknown", "s", "function"),)),))
    assert digest_of(same, "p") == digest


@pytest.mark.parametrize(("what", "changes"), OTHERS, ids=[what for what, _ in OTHERS])
def test_another_state_has_another_digest(what: str, changes: dict[str, Any]) -> None:
    assert digest_of(replace(TASK, **changes), "p") not in (None, digest_of(TASK, "p")), what


def test_another_planner_has_another_digest() -> None:
    assert digest_of(TASK, "p") != digest_of(TASK, "q")


@given(plans(), plans())
def test_tasks_after_other_steps_have_other_digests(one: Plan, other: Plan) -> None:
    tasks = [replace(TASK, steps=tuple(StepRecord(step, "r") for step in plan.steps)) for plan in (one, other)]
    assert (digest_of(tasks[0], "p") == digest_of(tasks[1], "p")) == (repr(tasks[0].steps) == repr(tasks[1].steps))


def test_what_the_check_keeps_of_a_function_is_not_part_of_a_digest() -> None:
    checked = replace(MANUAL)
    object.__setattr__(checked, "checked", object())
    assert digest_of(replace(TASK, functions=(checked,)), "p") == digest_of(TASK, "p")


@pytest.mark.parametrize("context", [{"client": object()}, {"n": math.nan}, {1: "a", "b": 2}])
def test_a_task_with_a_context_that_is_not_json_has_none(context: Any) -> None:
    assert digest_of(replace(TASK, context=context), "p") is None
