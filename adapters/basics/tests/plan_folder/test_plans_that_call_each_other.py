"""Plans of a folder that call each other: in a circle they are refused before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from portico import FunctionPlugin, Kernel
from portico.errors import PlanInvalid
from portico.plans import Answer, From, Plan, Step, Value, plan_to_json
from portico_basics.plan_folder.config import PlanFilesSettings
from portico_basics.plan_folder.functions import PlanFiles


async def recipes(folder: Path, plans: Mapping[str, Plan]) -> FunctionPlugin:
    for name, plan in plans.items():
        (folder / f"{name}.json").write_text(json.dumps(plan_to_json(plan)), "utf-8")
    return await PlanFiles(PlanFilesSettings(path=folder)).load("recipes")


FOLDERS = st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("abcd"), max_size=3), min_size=1)


@given(FOLDERS)
async def test_the_check_of_a_plan_finds_exactly_the_circles_that_it_leads_to(calls: dict[str, list[str]]) -> None:
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
        findings = kernel.check_plan(plan)
        circling = {each for each in reached(name) if each in reached(each)}
        assert bool(findings) == bool(circling), f"{name} of {calls}: {findings}"
        assert all("calls itself: recipes-" in finding.message for finding in findings)
        if circling:
            with pytest.raises(PlanInvalid, match="calls itself: recipes-"):
                await kernel.run_plan(plan)
        else:
            assert (await kernel.run_plan(plan)).outcome == Answer(name, value=name)


async def test_plans_in_a_circle_are_told_with_the_way_round(tmp_path: Path) -> None:
    def calling(name: str) -> Plan:
        return Plan("Go", (Step("s1", f"recipes-{name}"),), From("s1"))

    kernel = Kernel()
    kernel.add_plugin(await recipes(tmp_path, {"a": calling("b"), "b": calling("a")}))
    outer = Plan("Go", (Step("go", "recipes-a"),), From("go"))
    (finding,) = kernel.check_plan(outer)
    assert str(finding) == (
        "go function: the plan recipes-a calls itself: recipes-a -> recipes-b -> recipes-a; "
        "take one of these calls away"
    )
    with pytest.raises(PlanInvalid, match="recipes-a -> recipes-b -> recipes-a"):
        await kernel.run_plan(outer)
