"""Plans of a folder that call each other: a plan may not be called inside of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from portico import FunctionPlugin, Kernel
from portico.errors import LimitExceeded, PlanError
from portico.plans import Answer, Plan, Step, Value, plan_to_json
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.functions import PlanFiles


async def recipes(folder: Path, plans: Mapping[str, Plan]) -> FunctionPlugin:
    for name, plan in plans.items():
        (folder / f"{name}.json").write_text(json.dumps(plan_to_json(plan)), "utf-8")
    return await PlanFiles(PlanFolderSettings(path=folder)).load("recipes")


FOLDERS = st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("abcd"), max_size=3), min_size=1)


@given(FOLDERS)
async def test_a_run_refuses_exactly_the_circles_that_a_plan_leads_to(calls: dict[str, list[str]]) -> None:
    calls = {**{missing: [] for each in calls.values() for missing in each}, **calls}
    plans = {
        name: Plan("g", tuple(Step(f"s{index}", f"recipes-{each}") for index, each in enumerate(called)), Value(name))
        for name, called in calls.items()
    }
    kernel = Kernel()
    with TemporaryDirectory() as folder:
        kernel.add_plugin(await recipes(Path(folder), plans))

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        left = [start]
        while left:
            new = set(calls[left.pop()]) - found
            found |= new
            left += new
        return found

    for name, plan in plans.items():
        if any(each in reached(each) for each in reached(name)):
            # It may have run as many steps as it may before it is in the circle.
            with pytest.raises((PlanError, LimitExceeded)):
                await kernel.run_plan(plan)
        else:
            assert (await kernel.run_plan(plan)).outcome == Answer(name, value=name)
