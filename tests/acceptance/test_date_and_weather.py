"""The date and weather example of the type-information design, from Python and on the command line.

The first step gives an object with a date; the forecast takes that part of it, as a `date`; the result is a part of
what the forecast gives.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import run_command
from tests.support.packages import write_metadata

from portico import From, Kernel, Plan, Step, Value, plan_to_json
from portico.errors import PlanInvalid

FUNCTIONS = '''
"""The functions of the example, as a package that an application would install."""

from dataclasses import dataclass
from datetime import date, timedelta

from portico import FunctionPlugin, function
from portico.plugins import Registration

SEEN = []


@dataclass(frozen=True)
class Day:
    date: date
    weekday: str


@dataclass(frozen=True)
class Forecast:
    degreesFahrenheit: float
    summary: str


class Calendar:
    """Days."""

    @function
    def after(self, day: date, days: int) -> Day:
        """Tell the day so many days after another."""
        found = day + timedelta(days=days)
        return Day(found, found.strftime("%A"))


class Weather:
    """The weather."""

    @function
    def forecast(self, date: date) -> Forecast:
        """Forecast the weather of a day."""
        SEEN.append(date)
        return Forecast(43.5 + date.day, f"Rain, said a {type(date).__name__}.")


class Source:
    def __init__(self, settings, services):
        pass

    async def load(self, name):
        return FunctionPlugin.of({"calendar": Calendar, "weather": Weather}[name](), name)


def portico_function_plugins():
    return [Registration(name="days", factory="portico_days:Source", summary="Days and their weather.")]
'''

PLAN = Plan(
    "Tell how warm it is two days after the second of March",
    (
        Step("s1", "calendar-after", {"day": Value("2026-03-02"), "days": Value(2)}),
        Step("s2", "weather-forecast", {"date": From("s1", ("date",))}),
    ),
    result=From("s2", ("degreesFahrenheit",)),
)
WRONG = Plan(PLAN.goal, (PLAN.steps[0], Step("s2", "weather-forecast", {"date": From("s1", ("day",))})), PLAN.result)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Give a folder of packages, with the functions of the example in it."""
    site = tmp_path / "site"
    write_metadata(site, "portico-days", {"portico": {"days": "portico_days"}})
    (site / "portico_days.py").write_text(FUNCTIONS)
    return site


@pytest.fixture
def days(site: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the module of the example, imported from its package."""
    monkeypatch.syspath_prepend(str(site))
    import portico_days

    yield portico_days
    sys.modules.pop("portico_days")


@pytest.fixture
def kernel(days: Any) -> Kernel:
    kernel = Kernel()
    kernel.add_plugin(days.Calendar(), name="calendar")
    kernel.add_plugin(days.Weather(), name="weather")
    return kernel


@pytest.fixture
def portico(site: Path, tmp_path: Path) -> Any:
    """Return what runs the command line in a folder where the functions are configured."""
    folder = tmp_path / "work"
    (folder / "recipes").mkdir(parents=True)
    (folder / "portico.toml").write_text(
        '[functions.calendar]\nuse = "days"\n[functions.weather]\nuse = "days"\n'
        '[functions.recipes]\nuse = "plans"\npath = "recipes"\n'
    )
    # Another plan calls this one, so that the folder is never empty.
    given = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}
    first = Step("s1", "calendar-after", {"day": From("input", ("day",)), "days": Value(2)})
    recipe = Plan("Forecast the day after the next", (first, PLAN.steps[1]), PLAN.result, input=given)
    (folder / "recipes" / "warmth.json").write_text(json.dumps(plan_to_json(recipe)))
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "LOCALAPPDATA": str(tmp_path / "state")}
    environment = os.environ | state | {"PYTHONPATH": str(site), "PYTHONWARNINGS": "error"}

    def run(plan: Plan, *arguments: str) -> tuple[int, Any]:
        (folder / "plan.json").write_text(json.dumps(plan_to_json(plan), indent=2))
        code, out, err = run_command(*arguments, "--json", cwd=folder, env=environment)
        assert out, err
        return code, json.loads(out)

    return run


async def test_the_forecast_takes_the_date_of_the_first_step_as_a_date(kernel: Kernel, days: Any) -> None:
    run = await kernel.run_plan(PLAN)
    (seen,) = days.SEEN
    assert seen == date(2026, 3, 4)
    assert type(seen) is date
    assert run.outcome.value == 47.5
    assert run.steps[0].result == {"date": "2026-03-04", "weekday": "Wednesday"}


async def test_a_part_that_the_first_step_does_not_give_is_refused_before_anything_runs(
    kernel: Kernel, days: Any
) -> None:
    with pytest.raises(PlanInvalid, match=r"day") as refused:
        await kernel.run_plan(WRONG)
    (finding,) = refused.value.findings
    assert (finding.step, finding.place, finding.severity) == ("s2", "arguments.date", "error")
    assert "$.date" in " ".join(finding.nearest), f"the part that is there is not named: {finding}"
    assert days.SEEN == []


async def test_a_part_of_another_kind_is_refused_too(kernel: Kernel, days: Any) -> None:
    whole = Step("s2", "weather-forecast", {"date": From("s1")})
    with pytest.raises(PlanInvalid, match="s2"):
        await kernel.run_plan(Plan(PLAN.goal, (PLAN.steps[0], whole), PLAN.result))
    assert days.SEEN == []


def test_the_command_line_checks_the_plan_and_runs_it(portico: Any) -> None:
    code, checked = portico(PLAN, "plan", "--check", "plan.json")
    assert (code, checked["ok"], checked["findings"]) == (0, True, [])
    code, ran = portico(PLAN, "run", "plan.json")
    assert (code, ran["outcome"], ran["value"]) == (0, "answer", 47.5)
    assert ran["steps"][1]["result"]["summary"] == "Rain, said a date."


def test_the_command_line_refuses_the_wrong_part_with_line_and_column(portico: Any) -> None:
    code, checked = portico(WRONG, "plan", "--check", "plan.json")
    assert (code, checked["ok"]) == (1, False)
    (finding,) = checked["findings"]
    text = json.dumps(plan_to_json(WRONG), indent=2).split("\n")
    line = text[finding["line"] - 1]
    assert line[finding["column"] - 1 :].startswith('"date"'), f"{finding} is not at the argument: {line!r}"
    assert "$.date" in " ".join(finding["nearest"])
    code, ran = portico(WRONG, "run", "plan.json")
    assert code == 1
    assert ran["error"]["type"] == "PlanInvalid"


def test_a_plan_of_a_folder_is_a_function_that_another_plan_calls(portico: Any) -> None:
    # Named after its file; it takes what the plan's input says, and gives the date as every function gets it.
    step = Step("warm", "recipes-warmth", {"day": Value("2026-03-02")})
    calling = Plan("Tell how warm it will be", (step,), From("warm"))
    code, checked = portico(calling, "plan", "--check", "plan.json")
    assert (code, checked["findings"]) == (0, [])
    code, ran = portico(calling, "run", "plan.json")
    assert (code, ran["value"]) == (0, 47.5)
    code, listed = portico(calling, "functions")
    (recipe,) = [each for each in listed["functions"] if each["name"] == "recipes-warmth"]
    assert recipe["description"] == "Forecast the day after the next"
    assert recipe["returns"]["type"] == "number", "what the plan gives is known from the functions inside"
    assert recipe["effects"] is False


def test_what_a_plan_of_a_folder_is_given_is_checked_as_that_of_any_function(portico: Any) -> None:
    step = Step("warm", "recipes-warmth", {"dya": Value("2026-03-02")})
    code, checked = portico(Plan("Tell how warm", (step,), From("warm")), "plan", "--check", "plan.json")
    assert code == 1
    assert any("day" in finding["nearest"] for finding in checked["findings"]), checked["findings"]
