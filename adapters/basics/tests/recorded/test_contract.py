"""The recorded planner keeps the contract of planners, with a plan from a file and with a run of the journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from portico import Kernel, function
from portico.errors import StoreDamaged
from portico.plans import Answer, From, Plan, Step, TextOf, Value, plan_to_json
from portico.ports import RunStore
from portico_basics.config import RecordedSettings
from portico_basics.recorded.planner import RecordedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices
from portico_testkit.planner import PlannerKit

GOAL = "Shout hello twice"


class Tone:
    """Tones of voice."""

    @function
    def shout(self, text: str) -> str:
        """Shout a text."""
        return text.upper()


PLAN = Plan(
    GOAL,
    (
        Step("s1", "Tone-shout", {"text": Value("hello")}),
        Step("s2", "Tone-shout", {"text": TextOf((From("s1"), " again"))}, after=("s1",)),
    ),
    result=From("s2"),
)


class _Tones(PlannerKit):
    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(plugins=[Tone])

    @pytest.fixture
    def goal(self) -> str:
        return GOAL


class TestAPlanFromAFile(_Tones):
    @pytest.fixture
    def planner(self, tmp_path: Path) -> RecordedPlanner:
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(plan_to_json(PLAN)))
        return RecordedPlanner(RecordedSettings(plan=file), FixedServices())

    @pytest.fixture
    def failing_planner(self, tmp_path: Path) -> RecordedPlanner:
        return RecordedPlanner(RecordedSettings(plan=tmp_path), FixedServices())  # a folder, and no file


class TestARunOfTheJournal(_Tones):
    @pytest.fixture
    def planner(self) -> RecordedPlanner:
        class OneByOne:
            name = "one by one"

            async def propose(self, task: Any, *, emit: Any) -> Plan | Answer:
                left = PLAN.steps[len(task.steps) :]
                return Plan(task.goal, left[:1]) if left else Answer("HELLO AGAIN")

        store = MemoryRunStore()
        run = asyncio.run(Kernel(plugins=[Tone], run_store=store).run_goal(GOAL, planner=OneByOne()))
        return RecordedPlanner(RecordedSettings(run=run.name), FixedServices({RunStore: store}))

    @pytest.fixture
    def failing_planner(self) -> RecordedPlanner:
        class Damaged(MemoryRunStore):
            async def read(self, run: str) -> list[Mapping[str, Any]]:
                raise StoreDamaged(f"The run {run} cannot be read.")

        return RecordedPlanner(RecordedSettings(run="r1"), FixedServices({RunStore: Damaged()}))
