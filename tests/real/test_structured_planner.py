"""Plans of a real model that is held to a schema for each step: each parses, passes the check and runs.

The model has 135 million parameters and no idea of planning; what is tested is that no invalid plan can be written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal

import pytest

from portico import Kernel, function
from portico.errors import PorticoError
from portico.plans import Answer, Event, Plan, RunEvent, Task, check_plan, plan_from_json, plan_to_json, references
from portico.ports import ChatService, Planner
from portico_llamacpp.chat import LlamaCppChat
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_testkit.fakes.services import FixedServices

SETTINGS = StructuredSettings(
    min_steps=3, max_steps=5, force_references=True, give_up=False, repairs=0, text_length=60, max_tokens=300, seed=7
)


@dataclass(frozen=True)
class Today:
    date: date
    weekday: str


@dataclass(frozen=True)
class Forecast:
    degreesFahrenheit: float  # noqa: N815 - as the design of the type information has it
    summary: str


@dataclass(frozen=True)
class Contact:
    name: str
    address: str


@dataclass(frozen=True)
class Price:
    amount: float
    currency: Literal["EUR", "USD", "GBP"]


@dataclass(frozen=True)
class Appointment:
    id: int
    day: date
    title: str


class Clock:
    @function
    def today(self) -> Today:
        """Tell the date of today."""
        return Today(date(2026, 3, 2), "Monday")


class Weather:
    @function
    def forecast(self, date: date, city: str = "Oslo") -> Forecast:
        """Tell the weather of a day."""
        return Forecast(41.0 + date.day, f"Rain in {city}")


class WriterPlugin:
    @function
    def ShortPoem(self, input: str) -> str:  # noqa: N802 - as the article on planners has it
        """Write a short poem about something."""
        return f"O {input}, how you are {input}!"

    @function
    def Translate(self, input: str, language: str) -> str:  # noqa: N802 - as the article on planners has it
        """Translate a text into another language."""
        return f"[{language}] {input}"


class Mail:
    @function
    def find(self, name: str) -> Contact:
        """Find the mail address of a person."""
        return Contact(name, f"{name.replace(' ', '.').lower()}@example.com")

    @function
    def send(self, to: Contact, subject: str, body: str, copies: list[Contact] | None = None) -> int:
        """Send a mail and give its number."""
        return len(subject) + len(body) + len(copies or [])


class Shop:
    @function
    def price(self, article: str) -> Price:
        """Tell what an article costs."""
        return Price(float(len(article)), "EUR")

    @function
    def convert(self, price: Price, currency: Literal["EUR", "USD", "GBP"]) -> Price:
        """Give a price in another currency."""
        return Price(price.amount * 1.1, currency)


class Calendar:
    @function
    def book(self, day: date, title: str, minutes: int = 30) -> Appointment:
        """Enter an appointment."""
        return Appointment(minutes, day, title)

    @function
    def move(self, appointment: Appointment, days: int) -> Appointment:
        """Move an appointment by some days."""
        return appointment


PLUGINS: Sequence[Any] = (Clock, Weather, WriterPlugin, Mail, Shop, Calendar)
GOALS = (
    "Write a poem about John Doe, then translate it into Chinese.",
    "What will the weather be today in Oslo, in degrees Fahrenheit?",
    "Mail Ada Lovelace what a bicycle costs in dollars.",
    "Book a dentist for today and move it by two days.",
    "Write a poem about rain and mail it to John Smith.",
    "Tell me the price of a piano in pounds.",
    "Translate today's weather in Bergen into Norwegian.",
    "Find the address of Grace Hopper and send her a poem about compilers.",
    "Enter an appointment called Lunch for today, 45 minutes.",
    "What does a kettle cost, and what is that in dollars?",
    "Write a poem about the weekday of today.",
    "Send Alan a mail with today's date.",
    "Translate a poem about the sea into Welsh and mail it to Dylan.",
    "Move the appointment Standup, which is today, by seven days.",
    "How warm will it be today in Rome?",
    "Mail the price of coffee to Bob.",
    "Write a poem about the price of gold.",
    "Book an hour for the poem about winter.",
    "Tell Mary by mail that it will rain.",
    "Translate the summary of the forecast into French.",
    "What is the mail address of Linus?",
    "Write two lines about Paris and translate them into Italian.",
    "Give the price of a house in euros.",
    "Send a poem about spring to Emma and John.",
    "Remind me today of the price of bread.",
    "Book a meeting with the title of the poem about trees.",
    "What day is it, in Japanese?",
    "Convert the price of a phone into pounds and mail it to Tim.",
    "Write a poem about tomorrow's weather.",
    "Find Ada, then find Bob, then mail Ada.",
    "Translate 'good morning' into Spanish and mail it to Pablo.",
    "Is it cold today?",
    "Book the forecast as an appointment.",
    "Mail Eve the weekday of today.",
    "Write a poem about a robot, translate it into German and book time to read it.",
    "Price a car, convert it to dollars and to pounds.",
    "Send the address of John to Mary.",
    "Move my appointment with Ada from today to next week.",
    "Write a poem about an empty list.",
    "Plan my day.",
)


@dataclass
class Counts:
    goals: int = 0
    parsed: int = 0
    checked: int = 0
    ran: int = 0
    with_references: int = 0
    steps: int = 0
    truncated: int = 0
    problems: list[str] = field(default_factory=list)


def kernel_of_ten() -> Kernel:
    kernel = Kernel()
    for plugin in PLUGINS:
        kernel.add_plugin(plugin)
    assert len(kernel.functions) == 10
    return kernel


async def count(planner: Planner, goals: Sequence[str], *, at_once: int = 4) -> Counts:
    """Ask for a plan for each goal, check it as the loop does, and run it."""
    kernel, counts, turns = kernel_of_ten(), Counts(), asyncio.Semaphore(at_once)

    async def try_goal(goal: str) -> None:
        counts.goals += 1
        async with turns:
            try:
                plan = await planner.propose(Task(goal, tuple(kernel.specs.values())), emit=lambda event: None)
            except PorticoError as error:
                counts.truncated += "cut short" in str(error)
                counts.problems.append(f"{goal}: {error}")
                return
        if not isinstance(plan, Plan):
            counts.problems.append(f"{goal}: {plan}")
            return
        counts.parsed += plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan
        counts.steps += len(plan.steps)
        counts.with_references += any(
            True for step in plan.steps for argument in step.arguments.values() for _ in references(argument)
        )
        findings = check_plan(plan, kernel.specs)
        counts.problems += [f"{goal}: {finding}" for finding in findings]
        counts.checked += not findings
        if findings:
            return
        try:
            run = await kernel.run_goal(goal, planner=Given(plan))
        except PorticoError as error:
            counts.problems.append(f"{goal}: {error}")
            return
        counts.ran += isinstance(run.outcome, Answer)

    await asyncio.gather(*map(try_goal, goals))
    return counts


class Given:
    """Proposes one plan."""

    name = "given"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    async def propose(self, task: Task, *, emit: Any) -> Plan:
        return self._plan


def structured(chat: ChatService, settings: StructuredSettings = SETTINGS) -> StructuredPlanner:
    return StructuredPlanner(settings, FixedServices({ChatService: chat}))


async def all_are_good(chat: ChatService, goals: Sequence[str]) -> None:
    counts = await count(structured(chat), goals)
    print(counts)
    shown = "\n".join(counts.problems)
    wanted = (len(goals),) * 3
    assert (counts.parsed, counts.checked, counts.ran) == wanted, f"{counts.truncated} cut short:\n{shown}"
    assert counts.steps >= 3 * len(goals)
    assert counts.with_references > len(goals) // 2


@pytest.mark.slow
@pytest.mark.timeout(7_200)
async def test_forty_of_forty_plans_parse_pass_the_check_and_run(local_chat: LlamaCppChat) -> None:
    assert len(set(GOALS)) == 40
    await all_are_good(local_chat, GOALS)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
async def test_the_same_model_is_counted_with_the_sequential_planner(local_chat: LlamaCppChat) -> None:
    """It is no test of that planner: a model of this size cannot write XML plans, which is why this one is here."""
    settings = SequentialSettings(repairs=0, max_tokens=300, seed=7)
    planner = SequentialPlanner(settings, FixedServices({ChatService: local_chat}))
    counts = await count(planner, GOALS)
    print(replace(counts, problems=counts.problems[:5]))
    assert counts.goals == 40
    assert counts.ran <= counts.checked <= counts.parsed


async def test_the_poem_of_the_planner_article_is_planned_and_runs(local_chat: LlamaCppChat) -> None:
    events: list[RunEvent] = []
    kernel = Kernel()
    kernel.add_plugin(WriterPlugin)
    settings = StructuredSettings(min_steps=2, max_steps=2, force_references=True, give_up=False, repairs=0, seed=7)
    run = await kernel.run_goal(GOALS[0], planner=structured(local_chat, settings), emit=events.append)
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text
    assert len(run.steps) == 2
    assert all(step.error is None for step in run.steps)
    assert [event.findings for event in events if isinstance(event, Event.Proposed)] == [()]
