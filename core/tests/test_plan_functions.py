"""A plan is a function: called by code, models and other plans, with parameters, a result and effects of its own."""

from __future__ import annotations

from typing import Any

import pytest

from portico import Function, FunctionPlugin, Kernel, RequireApproval, function
from portico._functions.middleware import Middleware, StepRun
from portico._plans.functions import plan_function, plan_of, result_schema
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
from portico.errors import ArgumentsInvalid, PlanError, PlanInvalid, SchemaUnsupported, StepFailed
from portico_testkit.fakes.run_store import MemoryRunStore

CITY = {
    "type": "object",
    "properties": {
        "days": {"type": "integer", "default": 2, "description": "How many."},
        "city": {"type": "string", "description": "Where."},
        "note": {"type": "string"},
    },
    "required": ["city"],
}


class Weather:
    """The weather."""

    sent: list[str]

    def __init__(self) -> None:
        self.sent = []

    @function
    def forecast(self, city: str, days: int = 1) -> dict[str, list[str]]:
        """Tell the weather."""
        return {"days": [f"{city} {day}" for day in range(days)]}

    @function(effects=True)
    def send(self, text: str) -> str:
        """Send it."""
        self.sent.append(text)
        return f"sent {text}"


def kernel_with(*functions: Function, **options: Any) -> Kernel:
    kernel = Kernel(**options)
    kernel.add_plugin(Weather())
    for each in functions:
        kernel.add_function(each)
    return kernel


FORECAST = Plan(
    "Tell the\n weather",
    (Step("s1", "Weather-forecast", {"city": From("input", ("city",)), "days": From("input", ("days",))}),),
    result=TextOf(("it is ", From("s1", ("days", 0)))),
    input=CITY,
)
SENDING = Plan("Send", (Step("s1", "Weather-send", {"text": From("input", ("text",))}),), result=From("s1"))


async def test_calling_it_runs_the_plan() -> None:
    kernel = kernel_with(plan_function("tell", FORECAST, plugin="Recipes"))
    assert await kernel.invoke("Recipes-tell", city="Oslo") == "it is Oslo 0"
    assert await kernel.invoke_json("Recipes-tell", {"city": "Rome", "days": 1}) == "it is Rome 0"


def test_its_manual_is_made_of_the_plan() -> None:
    spec = kernel_with(plan_function("tell", FORECAST)).specs["tell"]
    assert spec.description == "Tell the weather"
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "description": "How many.", "default": 2},
            "note": {"type": "string"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert spec.returns == {"type": "string"}
    assert not spec.effects


async def test_arguments_are_checked_as_those_of_any_function() -> None:
    kernel = kernel_with(plan_function("tell", FORECAST))
    with pytest.raises(ArgumentsInvalid, match=r"city: missing"):
        await kernel.invoke_json("tell", {"days": "two", "cty": 1})


async def test_without_a_schema_the_names_that_it_reads_are_its_parameters() -> None:
    kernel = kernel_with(plan_function("send", SENDING))
    assert kernel.specs["send"].parameters["required"] == ["text"]
    assert await kernel.invoke("send", text="hey") == "sent hey"


@pytest.mark.parametrize("schema", [None, {"type": "string"}, {}])
async def test_an_input_that_is_no_object_is_one_parameter(schema: dict[str, Any] | None) -> None:
    plan = Plan("Send", (Step("s1", "Weather-send", {"text": From("input")}),), result=From("s1"), input=schema)
    kernel = kernel_with(plan_function("send", plan))
    assert kernel.specs["send"].parameters["required"] == ["input"]
    assert await kernel.invoke("send", input="hey") == "sent hey"


def test_it_has_effects_where_a_function_inside_has() -> None:
    nested = Plan("g", (Step("n", SENDING, {"text": Value("x")}),), result=From("n"))
    kernel = kernel_with(
        plan_function("sends", SENDING),
        plan_function("nested", nested),
        plan_function("tells", FORECAST),
        plan_function("unknown", Plan("g", (Step("s1", "No-such"),), result=From("s1"))),
        plan_function("said", SENDING, effects=False),
    )
    effects = {name: spec.effects for name, spec in kernel.specs.items() if "-" not in name}
    assert effects == {"sends": True, "nested": True, "tells": False, "unknown": True, "said": False}


def test_plans_that_come_together_know_each_others_effects() -> None:
    first = Plan("g", (Step("s1", "P-second"),), result=From("s1"))
    second = Plan("g", (Step("s1", "P-first"), Step("s2", "Weather-forecast")), result=From("s1"))
    siblings = {"P-first": first, "P-second": second}
    plugin = FunctionPlugin(
        "P",
        tuple(
            plan_function(name[2:], plan, plugin="P", description="x", siblings=siblings)
            for name, plan in siblings.items()
        ),
    )
    kernel = kernel_with()
    kernel.add_plugin(plugin)
    assert not any(kernel.specs[name].effects for name in siblings)


@pytest.mark.parametrize(
    ("result", "schema"),
    [
        (None, {"type": "null"}),
        (From("s1"), {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}),
        (From("s1", ("days", 0)), {"type": "string"}),
        (From("s1", ("days", "x")), {}),
        (From("s9"), {}),
        (From("input", ("city",)), {"type": "string", "description": "Where."}),
        (Value(1), {"type": "integer"}),
        (Value(None), {"type": "null"}),
        (TextOf(()), {"type": "string"}),
        (
            ObjectOf({"a": ListOf((Value(True),))}),
            {
                "type": "object",
                "properties": {
                    "a": {"type": "array", "prefixItems": [{"type": "boolean"}], "minItems": 1, "maxItems": 1}
                },
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_what_it_returns_is_known_as_far_as_its_functions_say(
    result: Expression | None, schema: dict[str, Any]
) -> None:
    plan = Plan("g", FORECAST.steps, result, input=CITY)
    assert result_schema(plan, kernel_with().specs) == schema


def test_definitions_go_along_with_what_refers_to_them() -> None:
    returns = {"type": "object", "properties": {"node": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}}
    spec = type(kernel_with().specs["Weather-send"])("F-f", "", {"type": "object"}, returns)
    plan = Plan("g", (Step("s1", "F-f"),), ListOf((From("s1", ("node",)),)))
    schema = result_schema(plan, {"F-f": spec})
    assert schema["prefixItems"] == [{"$ref": "#/$defs/N"}]
    assert schema["$defs"] == {"N": {"type": "integer"}}


async def test_a_plan_that_cannot_run_says_so_when_it_is_called() -> None:
    kernel = kernel_with(plan_function("bad", Plan("g", (Step("s1", "Weather-forcast"),), result=From("s1"))))
    with pytest.raises(PlanInvalid, match="forcast"):
        await kernel.invoke("bad")


async def test_it_can_be_used_in_other_plans() -> None:
    kernel = kernel_with(plan_function("tell", FORECAST, plugin="Recipes"))
    outer = Plan(
        "Tell and send",
        (Step("a", "Recipes-tell", {"city": Value("Oslo")}), Step("b", "Weather-send", {"text": From("a")})),
        result=From("b"),
    )
    run = await kernel.run_plan(outer)
    assert getattr(run.outcome, "value", None) == "sent it is Oslo 0"
    assert [record.step.id for record in run.steps] == ["a/s1", "a", "b"]


async def test_it_can_be_called_in_templates() -> None:
    kernel = kernel_with(plan_function("tell", FORECAST, plugin="Recipes"))
    assert await kernel.render_prompt("So: {{Recipes.tell 'Oslo'}}") == "So: it is Oslo 0"


async def test_its_run_is_in_the_journal() -> None:
    store = MemoryRunStore()
    kernel = kernel_with(plan_function("tell", FORECAST), run_store=store)
    await kernel.invoke("tell", city="Oslo")
    assert len(await store.runs()) == 1


async def test_one_that_is_held_says_so() -> None:
    async def hold(context: StepRun, proceed: Any) -> Any:
        return RequireApproval("ask Ada")

    kernel = kernel_with(plan_function("send", SENDING), middleware=Middleware(step=[hold]))
    with pytest.raises(PlanError, match=r"send: the plan is paused at step s1: ask Ada\. It is the run"):
        await kernel.invoke("send", text="hey")


async def test_many_that_call_each_other_in_a_row_come_to_a_bound_that_is_said_once() -> None:
    row = [
        plan_function(f"p{number}", Plan("g", (Step("s1", f"p{number + 1}"),), result=From("s1")))
        for number in range(20)
    ]
    with pytest.raises(StepFailed) as raised:
        await kernel_with(*row, plan_function("p20", Plan("g", result=Value(1)))).invoke("p0")
    steps = "/".join(["s1"] * 16)
    assert str(raised.value) == (
        f"Step {steps} failed: Functions of plans and prompts call each other at most 16 deep, "
        "and here it is … > p14 > p15 > p16."
    )


async def test_in_no_kernel_it_says_where_to_get_it() -> None:
    made = plan_function("tell", FORECAST)
    with pytest.raises(RuntimeError, match="tell is in no kernel"):
        await made.callable(city="Oslo")
    assert plan_of(made) is FORECAST


async def test_it_may_be_in_several_kernels() -> None:
    made = plan_function("send", SENDING)
    one, other = Weather(), Weather()
    for weather in (one, other):
        kernel = Kernel()
        kernel.add_plugin(weather)
        kernel.add_function(made)
        assert plan_of(kernel.function("send")) is SENDING
        await kernel.invoke("send", text="x")
    assert (one.sent, other.sent) == (["x"], ["x"])


def test_other_functions_have_no_plan() -> None:
    assert plan_of(kernel_with().function("Weather-send")) is None


def test_a_schema_that_is_not_understood_is_refused_with_the_name() -> None:
    odd = {"type": "object", "properties": {"x": {"if": {"type": "string"}}}}
    with pytest.raises(SchemaUnsupported, match="R-odd, the input of the plan"):
        plan_function("odd", Plan("g", result=Value(1), input=odd), plugin="R")


def test_a_template_inside_has_the_effects_of_what_it_calls() -> None:
    def plan(source: str) -> Plan:
        return Plan("g", (Step("s1", PlanTemplate(source, "semantic-kernel")),), result=From("s1"))

    kernel = kernel_with(
        plan_function("quiet", plan("{{Weather.forecast 'Oslo'}}")), plan_function("loud", plan("{{Weather.send 'x'}}"))
    )
    assert not kernel.specs["quiet"].effects
    assert kernel.specs["loud"].effects
