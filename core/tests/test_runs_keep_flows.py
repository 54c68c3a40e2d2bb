"""Random runs under a policy, with no person: what a stranger wrote reaches no effect, and decides about none."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from hypothesis import given, strategies as st

from portico._flows.labels import FunctionLabels
from portico._flows.policy import Policy
from portico._functions.functions import function
from portico._kernel import Kernel
from portico._plans.functions import plan_function
from portico._plans.plan import Each, Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value, When
from portico._plans.task import Answer, Task
from portico.errors import PorticoError
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore

WORDS = ("mark-one@evil.example", "mark-two@evil.example")
"""What strangers write: each is known wherever it is found."""


class Office:
    """Functions that give what strangers wrote, change it, and do something with it."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.noted: list[Any] = []

    @function
    def mail(self) -> Any:
        """Read a mail."""
        return {"a": WORDS[0], "b": [WORDS[1], {"a": WORDS[0]}]}

    @function(gives={"$": "trusted", "b": "untrusted"})
    def form(self) -> Any:
        """Read a form."""
        return {"a": "ada", "b": WORDS[1]}

    @function(gives="as given")
    def echo(self, to: Any) -> Any:
        """Give it back."""
        return to

    @function(gives="trusted")
    def fail(self, to: Any) -> Any:
        """Fail with words of a server."""
        raise ValueError(f"{WORDS[0]}: no {json.dumps(to)}")

    @function(effects=True, gives="trusted", takes={"note": "anything"})
    def send(self, to: Any, note: Any = "") -> str:
        """Send."""
        self.done.append(to)
        return "sent"

    @function(effects=True, gives="trusted", takes={"to.b": "anything", "to.a": "trusted"})
    def post(self, to: Any) -> str:
        """Post."""
        self.done.append({**to, "b": ""} if isinstance(to, dict) else to)
        return "posted"

    @function
    def fetch(self, to: Any) -> str:
        """Fetch."""
        self.done.append(to)
        return "page"

    @function(takes={"to": "anything"})
    def jot(self, to: Any) -> Any:
        """Note what a function that takes what is trusted only was given."""
        self.noted.append(to)
        return to


GUARDED = FunctionLabels.read(takes={"to": "trusted"})
CALLED = ["Office-echo", "Office-fail", "Office-send", "Office-post", "Office-fetch", "relay", "guarded"]
TEMPLATES = ["{{Office.send to=$to}}", "{{relay to=$to}}", "{{Office.mail}}{{Office.echo to=$to}}", "{{$to}}"]


def some_expression(chance: random.Random, sources: list[str], literals: list[Any], depth: int = 0) -> Expression:
    kind = chance.choice(["value", "from", "from", "from", "text", "list", "object"][: None if depth < 2 else 4])
    inner = [some_expression(chance, sources, literals, depth + 1) for _ in range(2)] if kind[0] in "tlo" else []
    match kind:
        case "text":
            return TextOf(tuple(inner))
        case "list":
            return ListOf(tuple(inner))
        case "object":
            return ObjectOf(dict(zip("ab", inner, strict=False)))
        case "from" if sources:
            return From(chance.choice(sources), chance.choice([(), (), ("a",), ("b",), ("b", 0)]))
    return Value(chance.choice(literals))


def some_plan(chance: random.Random, prefix: str, literals: list[Any], known: list[str], depth: int = 0) -> Plan:
    steps: list[Step] = []
    for number in range(chance.randint(1, 3)):
        sources = [*known, *(step.id for step in steps)]
        each = when = None
        if sources and chance.random() < 0.2:
            items = [some_expression(chance, sources, literals) for _ in range(2)]
            each = Each(ListOf(tuple(items)), failed=chance.choice(["skip", "stop"]))
        if sources and chance.random() < 0.2:
            when = When("present", (some_expression(chance, sources, literals),))
        kind = chance.random()
        called: Any = chance.choice(CALLED)
        if kind < 0.2:
            called = chance.choice(["Office-mail", "Office-form"])
        elif kind < 0.4 and depth < 2:
            called = some_plan(chance, "n", literals, ["input"], depth + 1)
        elif kind < 0.5:
            called = PlanTemplate(chance.choice(TEMPLATES), "semantic-kernel")
        given = [*sources, "item"] if each is not None else sources
        arguments = {"to": some_expression(chance, given, literals)}
        arguments = {} if called in ("Office-mail", "Office-form") else arguments
        steps.append(Step(f"{prefix}{number}", called, arguments, each=each, when=when))
    result = some_expression(chance, [step.id for step in steps], literals) if depth else None
    return Plan("g", tuple(steps), result)


def marks_in(value: Any) -> set[str]:
    text = json.dumps(value)
    return {word for word in WORDS if word in text}


async def run(seed: int) -> tuple[list[Any], list[Any], set[str], bool]:
    """Return what the first plan did, and the second, which marks the user said, and whether the planner read any."""
    chance, office, before = random.Random(seed), Office(), list[Any]()
    read = False
    policy = Policy("enforce", {"Office-fetch": FunctionLabels(reaches_out=True), "guarded": GUARDED})
    kernel = Kernel(policy=policy, run_store=MemoryRunStore())
    kernel.add_plugin(office)
    to = {"to": From("input", ("to",))}
    kernel.add_function(plan_function("relay", Plan("r", (Step("a", "Office-send", to),), From("a"))))
    kernel.add_function(plan_function("guarded", Plan("g", (Step("a", "Office-jot", to),), From("a"))))
    said = chance.choice([[], [], [WORDS[0]]])

    def second(task: Task) -> Plan:
        nonlocal read
        seen = [each for record in task.steps for each in (record.result, record.error) if each is not None]
        read = bool(marks_in(seen) - set(said))
        before.extend(office.done)
        known = [record.step.id for record in task.steps if record.error is None and record.step.own]
        return some_plan(chance, "t", [*seen, *WORDS, "ada"] if read else ["ada"], known)

    first = some_plan(chance, "r", ["ada", *said], [])
    try:
        planner = ScriptedPlanner(first, second, Answer("done"))
        await kernel.run_goal(" ".join(["Write to ada", *said]), planner=planner)
    except PorticoError:
        pass
    if len(planner.tasks) < 2:
        before.extend(office.done)
    return [*before, *office.noted], office.done[len(before) :], set(said), read


@given(st.integers(0, 2**40))
def test_what_a_stranger_wrote_reaches_no_effect_and_decides_about_none(seed: int) -> None:
    before, after, said, read = asyncio.run(run(seed))
    assert not marks_in(before) - said
    assert not marks_in(after) - said
    assert not (read and after)
