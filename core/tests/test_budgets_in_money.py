"""A budget in US dollars is looked at before each call of a model, and refuses one of unknown price."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from portico import ChatCapabilities, Kernel, Message, ToolCall, ToolLoopLimits, Usage
from portico.errors import LimitExceeded, StepFailed, UnsupportedOption
from portico.plans import Asking, Budget, Each, From, Plan, Step, Value
from portico.plugins import RunState
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore

TOOLS = ChatCapabilities(tools=True)
PAID = Usage(10, 5, cost=0.02)
CALL = ToolCall("1", "add", '{"a": 1, "b": 2}')


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class AskingPlanner:
    """Asks its model for each proposal, and proposes a step as often as it may."""

    name = "asking"
    asks_model = True

    def __init__(self, chat):
        self.chat = chat

    async def propose(self, task, *, emit):
        await Asking.ask(self.chat, Asking.request([Message.of("user", "?")], Asking.Settings()), emit)
        return Plan(task.goal, (Step(f"s{len(task.steps)}", "add", {"a": 1, "b": 2}),))


async def spent_by_a_turn(chat: ScriptedChat, cost: float | None) -> None:
    kernel = Kernel()
    kernel.add_function(add)
    await kernel.complete("Add.", chat=chat, functions=["add"], limits=ToolLoopLimits(cost=cost))


async def spent_by_a_run(chat: ScriptedChat, cost: float | None) -> None:
    kernel = Kernel()
    kernel.add_function(add)
    await kernel.run_goal("Add.", planner=AskingPlanner(chat), budget=Budget(cost=cost))


WAYS = pytest.mark.parametrize("way", [spent_by_a_turn, spent_by_a_run])


@WAYS
async def test_what_is_spent_ends_it_before_the_next_call(way):
    chat = ScriptedChat(CALL, usage=PAID, capabilities=TOOLS, repeat=True)
    with pytest.raises(LimitExceeded, match=r"0\.05 US dollars.*0\.06"):
        await way(chat, 0.05)
    assert len(chat.requests) == 3


@WAYS
@pytest.mark.parametrize("said", [False, None])
async def test_a_model_of_unknown_price_is_refused_as_soon_as_that_is_known(way, said):
    chat = ScriptedChat(CALL, usage=Usage(10, 5), capabilities=TOOLS, repeat=True)
    if said is not None:
        chat.knows_cost = said
    with pytest.raises(UnsupportedOption, match="not known what replies of the chat service 'scripted' cost"):
        await way(chat, 1.0)
    assert len(chat.requests) == (0 if said is False else 1)


async def test_a_function_that_asks_a_model_spends_the_money_of_its_run():
    chat = ScriptedChat("Rain.", usage=PAID, repeat=True)
    kernel = Kernel()

    async def guess() -> str:
        """Guess the weather."""
        return (await kernel.complete("Rain or shine?", chat=chat)).value

    kernel.add_function(guess)
    steps = [Step(f"s{number}", "guess", after=(f"s{number - 1}",) if number else ()) for number in range(5)]
    plan = Plan("Guess.", tuple(steps))
    with pytest.raises(StepFailed, match="US dollars"):
        await kernel.run_plan(plan, budget=Budget(cost=0.03))
    assert len(chat.requests) == 2


@pytest.mark.parametrize("usage", [PAID, Usage(1, 1)])
async def test_a_loop_that_leaves_out_what_fails_ends_with_the_money(usage):
    chat = ScriptedChat("Rain.", usage=usage, repeat=True)
    kernel = Kernel()

    async def guess() -> str:
        """Guess the weather."""
        return (await kernel.complete("Rain or shine?", chat=chat)).value

    kernel.add_function(guess)
    step = Step("s1", "guess", each=Each(Value([1, 2, 3, 4]), failed="skip"))
    with pytest.raises(StepFailed, match="US dollars"):
        await kernel.run_plan(Plan("Guess.", (step,), From("s1")), budget=Budget(cost=0.01))
    assert len(chat.requests) == 1


async def test_the_usage_of_a_run_counts_what_its_functions_and_runs_inside_them_ask():
    chat = ScriptedChat("Rain.", usage=PAID, repeat=True)
    kernel = Kernel()

    async def guess() -> str:
        """Guess the weather."""
        return (await kernel.complete("Rain or shine?", chat=chat)).value

    async def delegate() -> str:
        """Guess in a run inside."""
        return (await kernel.run_plan(Plan("Guess.", (Step("s1", "guess"),), From("s1")))).outcome.text

    kernel.add_function(guess)
    kernel.add_function(delegate)
    run = await kernel.run_plan(Plan("Guess.", (Step("s1", "guess"), Step("s2", "delegate")), From("s2")))
    assert run.usage == PAID + PAID


@WAYS
async def test_a_model_that_counts_no_tokens_is_of_unknown_price(way):
    chat = ScriptedChat(CALL, usage=Usage(), capabilities=TOOLS, repeat=True)
    with pytest.raises(UnsupportedOption, match="not known"):
        await way(chat, 1.0)


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
async def test_a_budget_of_no_sum_of_money_is_a_mistake(cost):
    with pytest.raises(ValueError, match="cost"):
        await spent_by_a_run(ScriptedChat("x"), cost)


PRICED = st.builds(lambda tokens, cost: Usage(tokens, cost=cost), st.integers(1, 9), st.none() | st.integers(0, 9))


def total(parts: Iterable[Usage]) -> Usage:
    return sum(parts, Usage())


@given(st.lists(st.just(Usage()) | PRICED))
def test_a_sum_is_known_where_every_part_with_tokens_is(parts):
    costs = [part.cost for part in parts if part != Usage()]
    assert total(parts).cost == (sum(costs) if costs and None not in costs else None)


class Steps(AskingPlanner):
    """Asks its model for each step."""

    async def propose(self, task, *, emit):
        await super().propose(task, emit=emit)
        return Plan(task.goal, (Step(f"s{len(task.steps)}", "add", {"a": Value(1), "b": Value(2)}),))


async def test_what_a_run_used_is_in_its_journal_and_counts_when_it_is_resumed():
    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_function(add)
    chat = ScriptedChat("Go.", usage=PAID, capabilities=TOOLS, repeat=True)
    decisions = iter([True, True, False, True, True, True])

    async def decide(_):
        return next(decisions)

    kernel.approve_plans(decide)
    held = await kernel.run_goal("Add.", planner=Steps(chat), budget=Budget(cost=0.09))
    state = RunState.of(await kernel.run_store.read(held.name))
    assert (state.usage, state.services) == (held.usage, (chat.name,))
    assert held.usage.cost == pytest.approx(0.06)
    with pytest.raises(LimitExceeded, match=r"0\.09 US dollars.*0\.1"):
        await kernel.resume(held.name, planner=Steps(chat))
    assert len(chat.requests) == 5
    state = RunState.of(await kernel.run_store.read(held.name))
    assert (state.state, state.usage.cost) == ("failed", pytest.approx(0.10))
