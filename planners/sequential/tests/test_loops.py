"""Plans with forEach and runIf: written, repaired, and planned again after a failure half-way."""

from __future__ import annotations

import re
from typing import Any, TypedDict

import pytest

from portico import Each, Kernel, When, function
from portico.plans import Answer, From, Step, StepRecord, Task, Value
from portico.ports import ChatService
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices


class Mail(TypedDict):
    by: str
    text: str
    paid: bool


class Post:
    """Mails; the first that is sent to Ben fails."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.away = True

    @function
    def mails(self) -> list[Mail]:
        """List mails."""
        return [Mail(by=by, text=f"Hi {by}", paid=by != "cyd") for by in ("ada", "ben", "cyd", "dee")]

    @function(effects=True)
    def send(self, to: str, text: str) -> str:
        """Send a text."""
        if to == "ben" and self.away:
            self.away = False
            raise ValueError("the post is closed")
        self.sent.append(to)
        return f"{to}: {text}"


def kernel_of() -> tuple[Kernel, Post]:
    kernel, post = Kernel(), Post()
    kernel.add_plugin(post)
    return kernel, post


def planner_of(*script: str) -> tuple[SequentialPlanner, ScriptedChat]:
    chat = ScriptedChat(*script)
    return SequentialPlanner(SequentialSettings(), FixedServices({ChatService: chat})), chat


def plan_of(send: str, before: str = '<function.Post.mails setContextVariable="MAILS"/>') -> str:
    return f"<plan>{before}<function.Post.send {send}/></plan>"


SEND = 'to="$ITEM.by" text="So: $ITEM.text" appendToResult="RESULT__SENT"'


async def test_after_a_loop_that_failed_half_way_the_rest_of_the_list_is_done() -> None:
    rest = plan_of(f'forEach="$MAILS[1:]" runIf="$ITEM.paid" {SEND}', before="")
    planner, chat = planner_of(plan_of(f'forEach="$MAILS" {SEND}'), rest)
    kernel, post = kernel_of()
    run = await kernel.run_goal("Answer all.", planner=planner)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == ["ben: So: Hi ben", None, "dee: So: Hi dee"]
    assert post.sent == ["ada", "ben", "dee"]
    told = chat.requests[1].messages[-1].text
    assert "the post is closed. It ran already for the items at 0 of its list" in told
    assert "s2[0]" not in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('forEach="$MAILS[0].by" to="$ITEM" text="x"', "attribute forEach: string is given where"),
        ('forEach="$MAILS" runIf="$ITEM.by" to="$ITEM.by" text="x"', "attribute runIf: string is given where"),
        ('forEach="$MAILS" to="$ITEM.name" text="x"', r"arguments.to: in \$item there can be nothing at .*name"),
        ('forEach="$MAILS" runIf="$ITEM.by > 3" to="$ITEM.by" text="x"', "line 1, column .*: runIf is .*; it is"),
        ('forEach="$INPUT" to="$ITEM" text="x"', r"needs a value for forEach: there is no \$INPUT"),
    ],
)
async def test_what_is_wrong_in_a_loop_goes_back_with_its_attribute(wrong: str, told: str) -> None:
    planner, chat = planner_of(plan_of(wrong), plan_of('to="dee" text="x"'))
    kernel, _ = kernel_of()
    run = await kernel.run_goal("Answer.", planner=planner)
    assert isinstance(run.outcome, Answer)
    said = chat.requests[1].messages[-1].text
    assert re.search(told, said), said


async def test_what_another_planner_ran_in_a_loop_or_skipped_is_said() -> None:
    kernel, _ = kernel_of()
    loop, when = Each(From("s1"), failed="skip"), When("true", (Value(value=False),))
    steps: tuple[Any, ...] = (
        StepRecord(Step("s2[0]", "Post-send", {"to": From("item")}), "a"),
        StepRecord(Step("s2", "Post-send", {"to": From("item")}, each=loop), ["a", None]),
        StepRecord(Step("s3", "Post-send", {"to": Value("ben")}, when=when), skipped=True),
    )
    planner, chat = planner_of('<plan><function.Post.send to="$s2[0]" text="$s3"/></plan>')
    plan = await planner.propose(Task("g", tuple(kernel.specs.values()), steps), emit=lambda event: None)
    assert plan.steps[0].arguments == {"to": From("s2", (0,)), "text": From("s3")}
    told = chat.requests[0].messages[-1].text
    assert '$s2 is the output of Post.send: ["a", null]\n' in told
    assert "$s3 is the output of Post.send: null (It was skipped, since its condition does not hold.)" in told
