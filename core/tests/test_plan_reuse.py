"""Plans are found again by their goal and by what the functions are like; stale ones say what changed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import FunctionSpec
from portico._plans.plan import From, Plan, Step, Value
from portico._plans.reuse import catalogue_hash, find_plan, saved_plan
from portico.errors import PlanFormatError, StoreDamaged
from portico_testkit.fakes.plan_store import MemoryPlanStore

A, B, C = (FunctionSpec(f"F-{name}", name, {"type": "object"}, {"type": "string"}) for name in "abc")
PLAN = Plan("Tell", (Step("s1", "F-a"), Step("s2", Plan("in", (Step("s", "F-b"),), From("s")))), result=From("s2"))


def catalogue(*specs: FunctionSpec) -> dict[str, FunctionSpec]:
    return {spec.name: spec for spec in specs}


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 0, minute, tzinfo=UTC)


@given(st.permutations([A, B, C]))
def test_the_hash_does_not_depend_on_the_order(specs: list[FunctionSpec]) -> None:
    assert catalogue_hash(specs) == catalogue_hash([A, B, C])


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "F-d"},
        {"parameters": {"type": "object", "properties": {"x": {}}}},
        {"returns": {"type": "integer"}},
        {"effects": True},
    ],
)
def test_the_hash_is_another_when_a_function_is(changes: dict[str, Any]) -> None:
    assert catalogue_hash([A, B, replace(C, **changes)]) != catalogue_hash([A, B, C])
    assert catalogue_hash([A, B]) != catalogue_hash([A, B, C])


def test_a_mended_description_changes_no_hash() -> None:
    assert catalogue_hash([replace(A, description="better")]) == catalogue_hash([A])


def test_the_hash_is_the_same_in_another_process() -> None:
    source = (
        "from portico import FunctionSpec as M; from portico._plans.reuse import catalogue_hash as h;"
        "print(h([M(f'F-{n}', n, {'type': 'object'}, {'type': 'string'}) for n in 'cab']))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", source], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        assert done.stdout.strip() == catalogue_hash([A, B, C])


async def test_a_saved_plan_is_found_by_its_goal() -> None:
    store, specs = MemoryPlanStore(), catalogue(A, B, C)
    await store.put(saved_plan(" Tell me ", PLAN, specs, planner="structured"))
    found = await find_plan(store, "Tell me", specs)
    assert found is not None
    assert found.stale == ()
    assert found.saved.planner == "structured"
    assert found.plan.steps == PLAN.steps
    assert set(found.plan.fingerprints) == {"F-a", "F-b"}
    assert await find_plan(store, "Tell you", specs) is None
    assert await find_plan(MemoryPlanStore(), "Tell me", specs) is None


async def test_a_plan_fits_while_its_own_functions_are_as_they_were() -> None:
    store = MemoryPlanStore()
    await store.put(saved_plan("Tell", PLAN, catalogue(A, B, C)))
    for specs in (catalogue(A, B), catalogue(A, B, replace(C, effects=True))):
        found = await find_plan(store, "Tell", specs)
        assert found is not None
        assert found.stale == ()


async def test_a_stale_plan_says_what_changed() -> None:
    store = MemoryPlanStore()
    saved = saved_plan("Tell", PLAN, catalogue(A, B), at=at(1))
    await store.put(saved)
    found = await find_plan(store, "Tell", catalogue(replace(A, returns={"type": "integer"}), C))
    assert found is not None
    assert (found.plan.steps, found.saved) == (PLAN.steps, saved)
    assert [str(each) for each in found.stale] == ["F-a: its result changed", "F-b: it is gone"]


async def test_the_newest_that_fits_comes_before_newer_ones_that_do_not() -> None:
    store = MemoryPlanStore()
    one, two = Plan("1", (Step("s", "F-a"),), From("s")), Plan("2", (Step("s", "F-a"),), From("s"))
    await store.put(saved_plan("Tell", one, catalogue(A), at=at(1)))
    await store.put(saved_plan("Tell", two, catalogue(A, B), at=at(2)))
    await store.put(saved_plan("Tell", PLAN, catalogue(A, replace(B, effects=True)), at=at(3)))
    found = await find_plan(store, "Tell", catalogue(A, B, C))
    assert found is not None
    assert found.plan.goal == "2"


async def test_plans_for_other_goals_are_passed_by() -> None:
    store = MemoryPlanStore()
    await store.put(saved_plan("Tell", PLAN, catalogue(A, B), at=at(1)))
    await store.put(saved_plan("Else", PLAN, catalogue(A, B), at=at(2)))
    found = await find_plan(store, "Tell", catalogue(A, B, C))
    assert found is not None
    assert found.saved.goal == "Tell"


async def test_what_a_template_calls_is_watched_where_it_is_said() -> None:
    store = MemoryPlanStore()
    await store.put(saved_plan("Tell", Plan("g", result=Value(1)), catalogue(A, B), called=["F-b"]))
    found = await find_plan(store, "Tell", catalogue(A))
    assert found is not None
    assert [each.function for each in found.stale] == ["F-b"]


@pytest.mark.parametrize(
    ("goal", "plan", "says"),
    [
        (" \n", PLAN, "the goal is blank: nothing would find the plan"),
        (
            "Tell",
            Plan("a move", (Step("s", "F-a"),)),
            "a plan without a result answers nothing: it cannot be used again",
        ),
    ],
)
def test_what_nothing_would_find_or_answer_is_not_saved(goal: str, plan: Plan, says: str) -> None:
    with pytest.raises(ValueError) as raised:
        saved_plan(goal, plan, catalogue(A))
    assert raised.value.args == (says,)


def test_what_json_does_not_have_is_not_saved() -> None:
    with pytest.raises(PlanFormatError, match=r"\$\.result\.value: JSON has no nan"):
        saved_plan("Tell", Plan("g", result=Value(float("nan"))), {})


async def test_what_is_kept_and_is_no_plan_is_told() -> None:
    store = MemoryPlanStore()
    saved = saved_plan("T" * 61, PLAN, catalogue(A, B))
    await store.put(replace(saved, plan={"version": 1, "goal": "g"}))
    with pytest.raises(StoreDamaged) as raised:
        await find_plan(store, "T" * 61, catalogue(A, B))
    assert str(raised.value) == (
        f"The plan saved for '{'T' * 60}' is no plan: $: steps is missing. Remove it from the plan store."
    )


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "FAR-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process is fixed on this system")
@pytest.mark.usefixtures("far_from_utc")
def test_the_time_is_that_of_utc_wherever_the_computer_is() -> None:
    assert datetime(2026, 1, 1).astimezone().utcoffset() == timedelta(hours=9)
    assert saved_plan("g", PLAN, {}, at=at(5)).saved_at == "2026-01-01T00:05:00.000000+00:00"


def test_the_time_is_that_of_utc() -> None:
    later = datetime(2026, 1, 1, 2, 5, tzinfo=timezone(timedelta(hours=2)))
    assert saved_plan("g", PLAN, {}, at=later).saved_at == "2026-01-01T00:05:00.000000+00:00"
    now = datetime.fromisoformat(saved_plan("g", PLAN, {}).saved_at)
    assert now.utcoffset() is not None
    assert abs((datetime.now(UTC) - now).total_seconds()) < 600


def test_a_plan_that_nobody_is_said_to_have_made_has_no_planner() -> None:
    assert saved_plan("g", PLAN, {}).planner == ""


def test_a_name_that_is_no_text_of_unicode_has_a_hash_too() -> None:
    assert catalogue_hash([replace(A, name="\ud800")]) != catalogue_hash([replace(A, name="\ud801")])
