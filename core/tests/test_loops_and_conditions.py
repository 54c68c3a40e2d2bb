"""Steps that run for each item of a list, and steps that run on a condition."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, NotRequired, TypedDict

import pytest
from hypothesis import given, strategies as st
from tests.support.virtual_time import on_virtual_time

from portico._functions.functions import function
from portico._functions.middleware import RequireApproval, StepRun, current_step
from portico._kernel import Kernel
from portico._plans.check import check_plan
from portico._plans.findings import Finding
from portico._plans.functions import result_schema
from portico._plans.plan import Each, From, ListOf, ObjectOf, Plan, Step, TextOf, Value, When
from portico._plans.task import Answer, Budget, Event, RunEvent
from portico._runs.journal import RunState
from portico._runs.outcome import Paused
from portico._schema.paths import EACH, JsonPath
from portico.errors import LimitExceeded, PlanError, PlanInvalid, StepFailed
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore


class Mail(TypedDict):
    id: int
    by: str
    paid: NotRequired[bool]


class Post:
    """Mails, and what happens to them."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.running = self.most = 0

    @function
    def mails(self) -> list[Mail]:
        """List mails."""
        return [{"id": 1, "by": "ada", "paid": True}, {"id": 2, "by": "ben", "paid": False}, {"id": 3, "by": "ada"}]

    @function
    async def read(self, id: int) -> str:
        """Read a mail."""
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(1 + id % 3)
        self.running -= 1
        if id == 13:
            raise ValueError("unlucky")
        return f"mail {id}"

    @function(effects=True)
    def send(self, text: str) -> None:
        """Send a text."""
        step = current_step()
        self.calls.append((step.step if step else "", text))

    @function
    def anything(self) -> Any:
        """Give anything."""
        return "a text"

    @function
    def shout(self, text: str) -> str:
        """Say it louder."""
        return text.upper()


MAILS = Step("s1", "Post-mails")
LISTED = From("s1")


def kernel_of(**options: Any) -> tuple[Kernel, Post]:
    kernel, post = Kernel(**options), Post()
    kernel.add_plugin(post)
    return kernel, post


async def value_of(*steps: Step, result: Any = None, **options: Any) -> Any:
    kernel, _ = kernel_of(**options)
    run = await kernel.run_plan(Plan("g", steps, From(steps[-1].id) if result is None else result))
    assert isinstance(run.outcome, Answer)
    return run.outcome.value


def faults(*steps: Step, result: Any = None) -> list[str]:
    kernel, _ = kernel_of()
    return [str(each) for each in check_plan(Plan("g", steps, result), kernel.specs)]


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5))
def test_results_come_in_the_order_of_the_items_and_no_more_run_at_a_time_than_may(ids: list[int], most: int) -> None:
    @on_virtual_time
    async def run() -> None:
        kernel, post = kernel_of()
        step = Step("s1", "Post-read", {"id": From("item")}, each=Each(Value(ids), most))
        ended = await kernel.run_plan(Plan("g", (step,), From("s1")))
        assert ended.outcome.value == [f"mail {id}" for id in ids]
        assert post.most == min(most, len(ids))

    run()


async def test_the_arguments_of_an_item_are_made_of_its_parts_and_of_what_other_steps_gave() -> None:
    text = TextOf((From("item", ("by",)), " of ", From("s1", (0, "by"))))
    assert await value_of(MAILS, Step("s2", "Post-shout", {"text": text}, each=Each(LISTED))) == [
        "ADA OF ADA", "BEN OF ADA", "ADA OF ADA",
    ]  # fmt: skip


async def test_several_steps_run_for_an_item_as_a_plan_that_is_given_the_item() -> None:
    inner = Plan("", (Step("a", "Post-shout", {"text": From("input", ("by",))}),), TextOf((From("a"), "!")))
    step = Step("s2", inner, {"by": From("item", ("by",))}, each=Each(LISTED, at_once=2))
    assert await value_of(MAILS, step) == ["ADA!", "BEN!", "ADA!"]


@pytest.mark.parametrize("most", [1, 3])
@on_virtual_time
async def test_after_a_failure_no_further_item_begins_and_the_error_names_it(most: int) -> None:
    kernel, _ = kernel_of()
    items = Each(Value([1, 13, 3, 4, 5, 6]), most)
    begun: list[str] = []

    def take(event: RunEvent) -> None:
        if isinstance(event, Event.StepStarted):
            begun.append(event.step.id)

    plan = Plan("g", (Step("s1", "Post-read", {"id": From("item")}, each=items),), From("s1"))
    with pytest.raises(StepFailed, match=r"^Step s1\[1\] failed: .*unlucky"):
        await kernel.run_plan(plan, emit=take)
    assert "s1[5]" not in begun


@on_virtual_time
async def test_what_fails_is_null_and_said_in_a_warning_where_failures_are_skipped() -> None:
    kernel, _ = kernel_of()
    step = Step("s1", "Post-read", {"id": From("item")}, each=Each(Value([1, 13, 3]), failed="skip"))
    outcome = (await kernel.run_plan(Plan("g", (step,), From("s1")))).outcome
    assert isinstance(outcome, Answer)
    assert outcome.value == ["mail 1", None, "mail 3"]
    (warning,) = outcome.warnings
    assert "s1[1]" in warning
    assert "unlucky" in warning


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        (When("true", (From("s1", (0, "paid")),)), True),
        (When("true", (From("s1", (1, "paid")),)), False),
        (When("true", (From("s1", (1, "paid")),), negated=True), True),
        (When("equal", (From("s1", (1, "by")), Value("ben"))), True),
        (When("equal", (From("s1", (1, "id")), Value(2.0))), True),
        (When("present", (From("s1", (2, "paid")),)), False),
        (When("present", (From("s1", (7,)),)), False),
        (When("present", (From("s1", (2, "paid")),), negated=True), True),
        (When("present", (From.parse_path("$[:5]") and From("s1", From.parse_path("$[5:]")),)), False),
    ],
)
async def test_a_step_runs_where_its_condition_holds_and_else_gives_null(when: When, runs: bool) -> None:
    events: list[RunEvent] = []
    kernel, _ = kernel_of()
    plan = Plan("g", (MAILS, Step("s2", "Post-shout", {"text": Value("hey")}, when=when)), From("s2"))
    run = await kernel.run_plan(plan, emit=events.append)
    assert run.outcome.value == ("HEY" if runs else None)
    assert any(isinstance(event, Event.StepSkipped) for event in events) == (not runs)
    assert run.steps[-1].skipped == (not runs)


async def test_a_condition_on_the_item_skips_items_whose_results_are_null() -> None:
    when = When("equal", (From("item", ("by",)), Value("ada")))
    step = Step("s2", "Post-shout", {"text": From("item", ("by",))}, each=Each(LISTED), when=when)
    assert await value_of(MAILS, step) == ["ADA", None, "ADA"]


async def test_a_condition_that_is_neither_true_nor_false_fails_the_step() -> None:
    step = Step("s2", "Post-mails", when=When("true", (From("s1"),)))
    with pytest.raises(StepFailed, match="Step s2 failed: the condition must be true or false, and is string"):
        await value_of(Step("s1", "Post-anything"), step)


async def test_a_run_goes_over_as_many_items_as_its_budget_allows() -> None:
    kernel, _ = kernel_of(budget=Budget(items=5))
    steps = [Step(id, "Post-shout", {"text": Value("x")}, each=Each(Value([1, 2, 3]))) for id in ("s1", "s2")]
    assert (await kernel.run_plan(Plan("g", tuple(steps[:1]), From("s1")))).outcome.value == ["X"] * 3
    with pytest.raises(StepFailed, match="the run has 2 of 5 left") as caught:
        await kernel.run_plan(Plan("g", tuple(steps), From("s1")))
    assert isinstance(caught.value.__cause__, LimitExceeded)


async def test_what_is_no_list_fails_the_step() -> None:
    with pytest.raises(StepFailed, match="Step s2 failed: it runs for each item of a list, and got string"):
        await value_of(Step("s1", "Post-anything"), Step("s2", "Post-mails", each=Each(From("s1"))))


async def test_middleware_sees_each_call_and_a_run_that_it_holds_continues_with_the_item() -> None:
    held: list[str] = []

    async def ask(context: StepRun, proceed: Any) -> Any:
        if context.step.function == "Post-send" and context.step.id not in held:
            held.append(context.step.id)
            return RequireApproval(f"send {context.arguments['text']}?")
        return await proceed()

    kernel, post = kernel_of(run_store=MemoryRunStore())
    kernel.middleware.step.append(ask)
    step = Step("s2", "Post-send", {"text": From("item", ("by",))}, each=Each(LISTED))
    run = await kernel.run_plan(Plan("g", (MAILS, step), Value("sent")))
    reasons = []
    while isinstance(run.outcome, Paused):
        reasons.append((run.outcome.step, run.outcome.reason))
        run = await kernel.resume(run.name)
    assert reasons == [("s2[0]", "send ada?"), ("s2[1]", "send ben?"), ("s2[2]", "send ada?")]
    assert post.calls == [("s2[0]", "ada"), ("s2[1]", "ben"), ("s2[2]", "ada")]


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        (
            (Step("s1", "Post-shout", {"text": From("item")}),),
            "s1 arguments.text: 'item' is the item of a step with 'each', and this one has none",
        ),
        (
            (MAILS, Step("s2", "Post-shout", {"text": From("item", ("id",))}, each=Each(LISTED))),
            "s2 arguments.text: integer is given where Post-shout takes string; of item, $.by would do",
        ),
        (
            (MAILS, Step("s2", "Post-shout", {"text": Value("")}, each=Each(From("s1", (0,))))),
            "s2 each.items: object is given where 'each' takes array; of s1, $ or $[*].id or $[*].by would do",
        ),
        (
            (MAILS, Step("s2", "Post-shout", {"text": Value("")}, each=Each(From("s3")))),
            "s2 each.items: there is no step 's3'; the steps are: s1, s2",
        ),
        (
            (MAILS, Step("s2", "Post-mails", each=Each(LISTED)), Step("s3", "Post-shout", {"text": From("s2", (0,))})),
            "s3 arguments.text: array is given where Post-shout takes string",
        ),
        (
            (Step("s1", "Post-shout", {"text": Value("")}), Step("s2", "Post-mails", when=When("true", (LISTED,)))),
            "s2 when.true: string is given where 'when' takes boolean",
        ),
        (
            (Step("s1", "Post-mails", when=When("equal", (Value(1), Value("1")))),),
            's1 when.equal: 1 and "1" are never equal',
        ),
        (
            (Step("item", "Post-mails"), Step("s2", "Post-mails", each=Each(From("item")))),
            "item id: 'item' is the item of a step with 'each'; no step of this plan may have that id",
        ),
        ((Step("s1", "Post-mails", each=Each(From("s1"))),), "s1: waits for itself: s1 → s1"),
        (
            (Step("s1", "Post-mails", each=Each(Value([1]), 0)),),
            "s1 each.at_once: expected a whole number from 1 to 100, not 0",
        ),
        (
            (Step("s1", "Post-mails", each=Each(Value([1]), "3")),),  # type: ignore[arg-type]
            "s1 each.at_once: expected a whole number from 1 to 100, not '3'",
        ),
        (
            (Step("s1", "Post-mails", each=Each(Value([1]), 2.0)),),  # type: ignore[arg-type]
            "s1 each.at_once: expected a whole number from 1 to 100, not 2.0",
        ),
        (
            (Step("s1", "Post-mails", each=Each(Value([1]), failed="ignore")),),  # type: ignore[arg-type]
            "s1 each.failed: expected 'stop' or 'skip', not 'ignore'",
        ),
        (
            (Step("s1", "Post-mails", when=When("bogus", (Value(1),))),),  # type: ignore[arg-type]
            "s1 when: 1 values and the test 'bogus' are no condition",
        ),
        ((Step("s1", "Post-mails", when=When("true", ())),), "s1 when: 0 values and the test 'true' are no condition"),
        (
            (Step("s1", "Post-mails", each=Each(Value([1])), after=("item",)),),
            "s1 after: 'item' is the item at hand, and no step to wait for",
        ),
    ],
)
def test_what_is_wrong_with_a_loop_or_a_condition_is_found_before_anything_runs(
    steps: tuple[Step, ...], fault: str
) -> None:
    assert fault in faults(*steps)


def test_a_result_that_may_be_null_fits_and_one_that_is_null_for_sure_does_not() -> None:
    maybe = Step("s1", "Post-shout", {"text": Value("x")}, when=When("true", (Value(value=True),)))
    assert not faults(maybe, Step("s2", "Post-shout", {"text": From("s1")}))


def test_the_schema_of_a_plans_result_knows_loops_and_conditions() -> None:
    kernel, _ = kernel_of()
    when = When("present", (From("item"),))
    shout = {"text": Value("x")}
    steps = (
        Step("a", "Post-shout", shout, each=Each(Value([1]))),
        Step("b", "Post-shout", shout, each=Each(Value([1])), when=when),
        Step("c", "Post-shout", shout, when=When("true", (Value(value=False),))),
    )
    text, maybe = {"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema = result_schema(Plan("g", steps, ObjectOf({step.id: From(step.id) for step in steps})), kernel.specs)
    assert schema["properties"] == {
        "a": {"type": "array", "items": text},
        "b": {"type": "array", "items": maybe},
        "c": maybe,
    }


async def test_items_are_literals_and_lists_of_expressions_too() -> None:
    items = Each(ListOf((Value("a"), From("s1", (1, "by")))))
    assert await value_of(MAILS, Step("s2", "Post-shout", {"text": From("item")}, each=items)) == ["A", "BEN"]


async def test_a_later_proposal_is_checked_against_the_list_that_a_loop_gave() -> None:
    read = Step("s2", "Post-read", {"id": From("item", ("id",))}, each=Each(LISTED))
    shout = Step("s3", "Post-shout", {"text": From("s2", (0,))})
    later = [Plan("g", (MAILS, read)), Plan("g", (shout,), From("s3"))]
    kernel, _ = kernel_of()
    run = await kernel.run_goal("g", planner=ScriptedPlanner(*later))
    assert run.outcome == Answer("MAIL 1", value="MAIL 1")
    whole = Plan("g", (Step("s3", "Post-shout", {"text": From("s2")}),), From("s3"))
    with pytest.raises(PlanInvalid, match="array is given where Post-shout takes string"):
        await kernel.run_goal("g", planner=ScriptedPlanner(later[0], whole), budget=Budget(refusals=0))


def test_a_list_that_a_step_gives_may_be_equal_to_an_empty_one() -> None:
    loop = Step("s1", "Post-shout", {"text": From("item")}, each=Each(Value([])))
    when = When("equal", (From("s1"), Value([])))
    assert not faults(loop, Step("s2", "Post-mails", when=when))


def test_items_are_checked_as_the_list_that_was_meant() -> None:
    kernel, _ = kernel_of()
    plan = Plan("g", (Step("s1", "Post-shout", {"text": From("item")}, each=Each(Value("[1, 2]"))),))
    found = check_plan(plan, kernel.specs)
    mended = check_plan(Finding.fix_plan(plan, found), kernel.specs)
    assert [str(each) for each in mended] == ["s1 arguments.text: 1 or 2 is given where Post-shout takes string"]
    assert {str(each) for each in mended} < {str(each) for each in found}


FIRST = From("s1", (0, "by"))
TWO = When("equal", (Value(1), Value(1)))


@pytest.mark.parametrize("when", [None, TWO, When("present", (LISTED,))])
@pytest.mark.parametrize("path", [(), (0, "by"), (EACH, "by")])
@pytest.mark.parametrize("skippable", [False, True])
def test_a_reference_into_what_a_skipped_step_would_give_is_a_warning_unless_a_condition_may_see_to_it(
    when: When | None, path: JsonPath, *, skippable: bool
) -> None:
    first = replace(MAILS, when=TWO if skippable else None)
    step = Step("s2", "Post-anything", after=("s1",), when=when)
    kernel, _ = kernel_of()
    inside = bool(path) and EACH not in path
    for plan, wrong in (
        (Plan("g", (first, step), From("s1", path)), skippable and inside),
        (Plan("g", (first, replace(step, function="Post-shout", arguments={"text": TextOf((From("s1", path),))}))),
         skippable and inside and when is None),
    ):  # fmt: skip
        found = [str(each) for each in check_plan(plan, kernel.specs) if each.severity == "warning"]
        assert [("s1 may be skipped" in each) for each in found] == [True] * wrong


async def test_a_result_that_a_skipped_step_would_give_fails_the_run_says_why_and_is_nothing_to_resume() -> None:
    store = MemoryRunStore()
    kernel, _ = kernel_of(run_store=store)
    never = When("present", (Value(1),), negated=True)
    with pytest.raises(PlanError, match="s1, which was skipped"):
        await kernel.run_plan(Plan("g", (replace(MAILS, when=never),), FIRST))
    assert not RunState.of(await store.read((await store.runs())[-1])).resumable
    shout = Step("s2", "Post-shout", {"text": FIRST})
    with pytest.raises(StepFailed, match="s1, which was skipped"):
        await kernel.run_plan(Plan("g", (replace(MAILS, when=never), shout), From("s2")))
    assert RunState.of(await store.read((await store.runs())[-1])).resumable, "another step may be given its result"
