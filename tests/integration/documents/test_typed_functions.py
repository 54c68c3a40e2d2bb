"""The example of the design of typed functions: tomorrow's weather, where one output has what the next input takes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.replayed_model import ReplayedModel, Saying

import portico_host
from portico import Answer, From, FunctionPlugin, FunctionSpec, Kernel, Plan, Run, Step, ToolCall, Value, function
from portico.errors import PlanInvalid

GOAL = "What is the weather forecast for tomorrow?"
DATE, WEATHER = "DatePluginSimpleComplex-GetDate1", "WeatherPluginSimpleComplex-GetWeatherForecast1"


@dataclass
class Day:
    """The date."""

    date: str


@dataclass
class Forecast:
    """The forecasted temperature in Fahrenheit."""

    degreesFahrenheit: int  # noqa: N815


class DatePluginSimpleComplex:
    @function
    def GetDate1(self, numDays: int) -> Day:  # noqa: N802, N803
        """Gets the date with the current date offset by the specified number of days.

        Args:
            numDays: The number of days to offset the date by from today. Positive for future, negative for past.
        """
        return Day(f"2023-11-{8 + numDays:02}")


class WeatherPluginSimpleComplex:
    def __init__(self) -> None:
        self.asked: list[str] = []

    @function
    def GetWeatherForecast1(self, date: str) -> Forecast:  # noqa: N802
        """Gets the weather forecast for the specified date and the current location, and time.

        Args:
            date: The date for the forecast
        """
        self.asked.append(date)
        return Forecast(61 if date == "2023-11-09" else 0)


@pytest.fixture
def weather() -> WeatherPluginSimpleComplex:
    return WeatherPluginSimpleComplex()


@pytest.fixture
def kernel(weather: WeatherPluginSimpleComplex) -> Kernel:
    return Kernel(plugins=[FunctionPlugin.of(DatePluginSimpleComplex), FunctionPlugin.of(weather)])


def test_the_manual_as_text(kernel: Kernel) -> None:
    manual = FunctionSpec.write_text(kernel.specs.values())

    assert [line.strip() for line in manual.splitlines() if line] == [
        "DatePluginSimpleComplex.GetDate1:",
        "description: Gets the date with the current date offset by the specified number of days.",
        "inputs:",
        "- numDays: The number of days to offset the date by from today. Positive for future, negative for past.",
        "WeatherPluginSimpleComplex.GetWeatherForecast1:",
        "description: Gets the weather forecast for the specified date and the current location, and time.",
        "inputs:",
        "- date: The date for the forecast",
    ]


def test_the_manual_as_json_schema_of_inputs_and_outputs(kernel: Kernel) -> None:
    manual = [spec.to_openapi() for spec in kernel.specs.values()]

    date, forecast = manual
    assert date["parameters"]["required"] == ["numDays"]
    assert date["parameters"]["properties"]["numDays"]["type"] == "integer"
    described = {"type": "string", "description": "The date for the forecast"}
    assert forecast["parameters"]["properties"] == {"date": described}
    for each, name, kind, says in (
        (date, "date", "string", "The date."),
        (forecast, "degreesFahrenheit", "integer", "The forecasted temperature in Fahrenheit."),
    ):
        given = each["responses"]["200"]["content"]["application/json"]["schema"]
        assert (given["properties"], given["description"]) == ({name: {"type": kind}}, says)


def test_the_description_of_a_function_has_what_plans_need(kernel: Kernel) -> None:
    [days] = kernel.function(DATE).parameters

    assert (days.name, days.required, days.schema["type"]) == ("numDays", True, "integer")
    assert days.description.startswith("The number of days to offset the date by from today.")
    assert kernel.function(DATE).spec.returns["properties"] == {"date": {"type": "string"}}


async def test_a_property_of_the_first_output_is_the_input_and_a_property_of_the_second_is_the_answer(
    kernel: Kernel,
) -> None:
    day = Step("day", DATE, {"numDays": Value(1)})
    forecast = Step("forecast", WEATHER, {"date": From("day", ("date",))})
    run = await kernel.run_plan(Plan(GOAL, (day, forecast), From("forecast", ("degreesFahrenheit",))))

    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == 61


async def test_the_whole_first_output_is_refused_before_anything_runs_and_the_fitting_part_is_named(
    kernel: Kernel, weather: WeatherPluginSimpleComplex
) -> None:
    day = Step("day", DATE, {"numDays": Value(1)})
    with pytest.raises(PlanInvalid) as refused:
        await kernel.run_plan(Plan(GOAL, (day, Step("forecast", WEATHER, {"date": From("day")})), From("forecast")))

    assert "$.date" in str(refused.value)
    assert weather.asked == []


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, name, json.dumps(arguments))


def step(function: str, **arguments: Any) -> str:
    return json.dumps({"next": {"function": function, "reason": "It is asked for.", "arguments": arguments}})


def move(action: dict[str, Any]) -> str:
    return json.dumps({"thought": "It is asked for.", "action": action})


SAYINGS: dict[str, list[Saying]] = {
    "sequential": [
        """<plan>
  <function.DatePluginSimpleComplex.GetDate1 numDays="1" setContextVariable="DAY"/>
  <function.WeatherPluginSimpleComplex.GetWeatherForecast1 date="$DAY.date"
    appendToResult="RESULT__FORECAST.degreesFahrenheit"/>
</plan>"""
    ],
    "structured": [
        step(DATE, numDays={"value": 1}),
        step(WEATHER, date={"from": "s1", "path": "$.date"}),
        json.dumps({"next": {"function": "finish", "result": {"from": "s2", "path": "$.degreesFahrenheit"}}}),
    ],
    "handlebars": [
        f"""```handlebars
{{{{set "day" ({DATE} numDays=1)}}}}
{{{{set "forecast" ({WEATHER} date=day.date)}}}}
{{{{json forecast.degreesFahrenheit}}}}
```"""
    ],
    "stepwise": [
        move({"function": DATE, "arguments": {"numDays": 1}}),
        move({"function": WEATHER, "arguments": {"date": {"from": "s1", "path": "$.date"}}}),
        move({"final": "61"}),
    ],
    "function_calling": [call(DATE, numDays=1), call(WEATHER, date="2023-11-09"), "61"],
}
PLANNERS = pytest.mark.parametrize("planner", SAYINGS)

TOO_MUCH: dict[str, Saying] = {
    "sequential": str(SAYINGS["sequential"][0]).replace("$DAY.date", "$DAY"),
    "structured": step(WEATHER, date={"from": "s1", "path": "$"}),
    "handlebars": str(SAYINGS["handlebars"][0]).replace("day.date", "day"),
    "stepwise": move({"function": WEATHER, "arguments": {"date": {"from": "s1", "path": "$"}}}),
    "function_calling": call(WEATHER, date={"date": "2023-11-09"}),
}
"""What gives the whole output of the first function to the second one, which takes a text."""


async def reach_goal(model: ReplayedModel, planner: str, folder: Path) -> tuple[Run, list[str]]:
    """Return the run, and the dates that a forecast was asked for."""
    file = folder / "portico.toml"
    file.write_text(model.configuration)
    weather = WeatherPluginSimpleComplex()
    async with portico_host.open(file) as kernel:
        kernel.add_plugin(DatePluginSimpleComplex)
        kernel.add_plugin(weather)
        return await kernel.run_goal(GOAL, planner=planner), weather.asked


@PLANNERS
async def test_each_planner_shows_the_types_of_inputs_and_outputs_and_reaches_the_degrees(
    model: ReplayedModel, planner: str, tmp_path: Path
) -> None:
    model.sayings = SAYINGS[planner]
    run, asked = await reach_goal(model, planner, tmp_path)
    assert isinstance(run.outcome, Answer), run.outcome
    assert (run.outcome.text, asked) == ("61", ["2023-11-09"])
    shown = re.sub(r"[\\\s\"]", "", json.dumps([model.asked[0]["messages"], model.asked[0].get("tools")]))
    of_date, _, of_weather = shown.partition("WeatherPluginSimpleComplex")
    for about, name, kind in ((of_date, "numDays", "integer"), (of_weather, "date", "string")):
        assert re.search(rf"{name}\W*(\(required\):)?(\{{type:)?{kind}", about), "the type of an input is not shown"
    for about, name, kind in ((of_date, "date", "string"), (of_weather, "degreesFahrenheit", "integer")):
        assert re.search(rf"\{{{name}:(\{{type:)?{kind}", about), "the type of an output is not shown"


@PLANNERS
async def test_the_whole_output_is_refused_where_its_date_fits_and_no_forecast_is_asked_with_it(
    model: ReplayedModel, planner: str, tmp_path: Path
) -> None:
    right = SAYINGS[planner]
    at = 1 if len(right) > 1 else 0
    model.sayings = [*right[:at], TOO_MUCH[planner], *right[at:]]
    run, asked = await reach_goal(model, planner, tmp_path)
    assert isinstance(run.outcome, Answer), run.outcome
    assert (run.outcome.text, asked) == ("61", ["2023-11-09"])
    assert len(model.asked) == len(right) + 1
