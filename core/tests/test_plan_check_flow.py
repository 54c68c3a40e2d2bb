"""Checking what flows through a plan: inputs, results of nested plans, templates, and what may be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import event, given, strategies as st, target
from tests.support.strategies import plans

from portico._functions.functions import Function, FunctionSpec, function
from portico._plans.check import check_plan
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value, references
from portico._prompts.calling import FunctionCall
from portico._runs.scheduling import run_steps
from portico._schema.compare import fitting_paths
from portico.errors import PluginNotInstalled, TemplateError
from portico_testkit.strategies import json_values


@dataclass
class DateInfo:
    date: str
    weekday: int


@dataclass
class Forecast:
    degreesFahrenheit: int  # noqa: N815 - the name of the example


def today() -> DateInfo: ...
def forecast(date: str, city: str = "Seattle") -> Forecast: ...
def shout(text: str) -> str: ...
def total(numbers: list[int]) -> int: ...
def meet(who: dict[str, int], day: DateInfo | None = None) -> bool: ...
@function(effects=True)
def send(text: str) -> None: ...


CATALOGUE: Mapping[str, FunctionSpec] = {
    made.full_name: made.spec
    for made in (
        Function.of(today, plugin="Time"),
        Function.of(forecast, plugin="Weather"),
        Function.of(shout),
        Function.of(total),
        Function.of(meet),
        Function.of(send),
    )
}
TODAY = Step("s1", "Time-today")


def findings(*steps: Step, result: Expression | None = None, plan: Plan | None = None, **options: Any) -> list[str]:
    return [str(each) for each in check_plan(plan or Plan("g", steps, result), CATALOGUE, **options)]


def test_the_date_of_the_first_step_goes_to_the_forecast() -> None:
    ask = Step("s2", "Weather-forecast", {"date": From("s1", ("date",))})
    assert findings(TODAY, ask, result=From("s2", ("degreesFahrenheit",))) == []


def test_a_field_that_is_not_there_is_refused_with_the_one_that_is() -> None:
    (finding,) = check_plan(
        Plan("g", (TODAY, Step("s2", "Weather-forecast", {"date": From("s1", ("day",))}))), CATALOGUE
    )
    assert str(finding) == (
        "s2 arguments.date: $.day of s1: there can be nothing at $.day; it has: date, weekday; "
        "nearest: $.date, $.weekday"
    )
    assert finding.severity == "error"


def test_an_object_where_its_field_is_wanted_is_refused_with_the_path_that_would_do() -> None:
    (finding,) = check_plan(Plan("g", (TODAY, Step("s2", "Weather-forecast", {"date": From("s1")}))), CATALOGUE)
    assert finding.message == "object is given where Weather-forecast takes string"
    assert finding.hint == "of s1, $.date would do"
    assert str(finding) == f"s2 arguments.date: {finding.message}; {finding.hint}"
    assert finding.nearest == ("$.date",)


@pytest.mark.parametrize(
    "more",
    [
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^x": {}}},
        {"properties": {}},
        {"anyOf": [{"properties": {"b": {}}}, {"type": "object"}]},
    ],
)
def test_an_object_that_says_it_has_more_is_believed(more: dict[str, Any]) -> None:
    returns = {"type": "object", "properties": {"date": {"type": "string"}}, **more}
    if "anyOf" in more:
        returns = {"anyOf": [{"type": "object", **more["anyOf"][0]}, more["anyOf"][1]]}
    catalogue = {**CATALOGUE, "open": FunctionSpec("open", "", {"type": "object", "properties": {}}, returns)}
    plan = Plan("g", (Step("s1", "open"), Step("s2", "shout", {"text": From("s1", ("x",))})), From("s2"))
    assert check_plan(plan, catalogue) == []


def test_letters_that_only_fold_alike_are_not_the_same_name() -> None:
    """In German, ``Maße`` are measures and ``Masse`` is mass; casefold() makes one of the two."""
    returns = {"type": "object", "properties": {"Masse": {"type": "string"}}, "additionalProperties": False}
    catalogue = {**CATALOGUE, "open": FunctionSpec("open", "", {"type": "object", "properties": {}}, returns)}
    plan = Plan("g", (Step("s1", "open"), Step("s2", "shout", {"text": From("s1", ("Maße",))})), From("s2"))
    (found,) = check_plan(plan, catalogue)
    assert found.severity == "error"
    assert found.fix is None


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (ListOf((From("s1", ("date",)), Value(1))), "string is given where total takes integer"),
        (ListOf((From("s1", ("weekday",)), Value("x"))), "$: expected integer, got string"),
        (ListOf((ListOf((From("s1"),)),)), "array is given where total takes integer"),
        (ObjectOf({"a": From("s1")}), "object is given where total takes array"),
    ],
)
def test_what_is_inside_a_list_is_checked(expression: Expression, message: str) -> None:
    (found,) = findings(TODAY, Step("s2", "total", {"numbers": expression}))
    assert found.partition(": ")[2].startswith(message)


def test_a_text_of_literals_alone_is_checked_as_a_literal() -> None:
    catalogue = {"f": FunctionSpec("f", "", {"properties": {"a": {"enum": ["c", "f"]}}}, {})}
    literal: tuple[tuple[str | Expression, ...], ...] = (("c",), (Value("c"),), (TextOf(("c",)),))
    other: tuple[tuple[str | Expression, ...], ...] = (("x",), (), ("c", "f"), (Value({"a": "x"}),), ("c", Value(1)))
    for parts, wrong in (*((each, False) for each in literal), *((each, True) for each in other)):
        found = check_plan(Plan("g", (Step("s", "f", {"a": TextOf(parts)}),), From("s")), catalogue)
        assert bool(found) == wrong, parts


def test_what_is_inside_an_object_is_checked() -> None:
    day = ObjectOf({"date": From("s1", ("weekday",)), "weekdai": Value(1)})
    assert findings(TODAY, Step("s2", "meet", {"who": ObjectOf({"a": From("s1", ("date",))}), "day": day})) == [
        "s2 arguments.who.object.a: string is given where meet takes integer; of s1, $.weekday would do",
        "s2 arguments.day.object.date: integer is given where meet takes string; of s1, $.date would do",
        "s2 arguments.day.object.weekdai: meet takes no member 'weekdai' here; it takes: date, weekday",
        "s2 arguments.day: meet needs the member 'weekday' here: integer",
    ]
    fine = ObjectOf({"date": From("s1", ("date",)), "weekday": Value(1)})
    assert findings(TODAY, Step("s2", "meet", {"who": ObjectOf({}), "day": fine})) == []
    assert findings(TODAY, Step("s2", "meet", {"who": ObjectOf({}), "day": From("s1")})) == []


INPUT_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_the_input_is_what_the_plan_says_or_what_it_is_given() -> None:
    step = Step("a", "shout", {"text": From("input", ("city",))})
    nothing = ["a arguments.text: the plan is given nothing that 'input' could stand for"]
    assert findings(step) == nothing
    assert findings(plan=Plan("g", (step,), input=INPUT_SCHEMA)) == []
    assert findings(step, input={"const": {"city": "Oslo"}}) == []
    assert "nothing at $.city; it has: town" in findings(step, input={"const": {"town": "Oslo"}})[0]
    assert findings(step, input={"const": {"city": 1}}) == ["a arguments.text: 1 is given where shout takes string"]
    (found,) = findings(plan=Plan("g", (step,), input=INPUT_SCHEMA), input={"const": ["Oslo"]})
    assert found == 'input: ["Oslo"] is given where the plan takes object'
    assert findings(plan=Plan("g", (step,), input=INPUT_SCHEMA), input={"const": {"city": "Oslo"}}) == []


def test_no_step_may_take_the_place_of_the_input() -> None:
    assert findings(Step("input", "shout", {"text": Value("a")})) == [
        "input id: 'input' is what the plan is given; no step may have that id"
    ]


def test_the_arguments_of_a_nested_plan_are_its_input() -> None:
    inner = Plan("i", (Step("y", "shout", {"text": From("input", ("city",))}),), From("y"), input=INPUT_SCHEMA)
    outer = Step("n", inner, {"city": From("s1", ("date",))})
    assert findings(TODAY, outer, Step("z", "shout", {"text": From("n")})) == []
    assert findings(TODAY, outer, Step("z", "total", {"numbers": From("n")})) == [
        "z arguments.numbers: string is given where total takes array"
    ]
    assert findings(Step("n", inner)) == ["n arguments: the plan needs the argument 'city': string"]
    assert findings(Step("n", inner, {"city": Value(1)}))[0].startswith("n arguments.city: $: expected string")
    free = Plan("i", (Step("y", "shout", {"text": From("input", ("town",))}),), From("y"))
    assert findings(Step("n", free, {"town": Value("a")})) == []
    assert "it has: city" in findings(Step("n", free, {"city": Value("a")}))[0]


def test_the_result_of_a_nested_plan_is_known_through_all_levels() -> None:
    plan = Plan("i", (TODAY,), ObjectOf({"when": From("s1", ("date",)), "all": ListOf((From("s1"), Value(2)))}))
    for name in "abc":
        plan = Plan("o", (Step(name, plan),), From(name))
    step = Step("n", plan)
    assert findings(step, Step("z", "shout", {"text": From("n", ("when",))})) == []
    assert findings(step, Step("z", "total", {"numbers": ListOf((From("n", ("all", 1)),))})) == []
    assert "there can be nothing at $.who" in findings(step, result=From("n", ("who",)))[0]
    assert "there can be nothing at $.all[2]" in findings(step, result=From("n", ("all", 2)))[0]
    assert findings(Step("n", Plan("i", (TODAY,))), Step("z", "shout", {"text": From("n")})) == [
        "z arguments.text: null is given where shout takes string"
    ]


def test_a_nested_plan_that_waits_for_itself_is_no_endless_check() -> None:
    inner = Plan("i", (Step("y", "shout", {"text": From("input", ("a",))}),), From("y"))
    one, two = Step("m", inner, {"a": From("n")}), Step("n", inner, {"a": From("m")})
    assert findings(one, two) == ["m: waits for itself: m → n → m"]


def test_a_finished_step_may_be_known_by_the_schema_of_its_result() -> None:
    step = Step("x", "shout", {"text": From("s0", ("a",))})
    assert findings(step, finished={"s0": {"const": {"a": "b"}}}) == []
    assert "it has: b" in findings(step, finished={"s0": {"const": {"b": "b"}}})[0]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("a", "shout", {"text": Value("")}, attempts=3, seconds=0.5), None),
        (Step("a", "send", {"text": Value("")}, attempts=1), None),
        (Step("a", "send", {"text": Value("")}, attempts=2), "send has effects: it must not happen twice"),
        (
            Step("a", Plan("i", (Step("b", "send", {"text": Value("")}),)), attempts=2),
            "send has effects: it must not happen twice",
        ),
        (Step("a", "shout", {"text": Value("")}, attempts=0), "expected a whole number from 1 to 100, not 0"),
        (Step("a", "shout", {"text": Value("")}, seconds=0), "expected a number above 0"),
        (Step("a", "shout", {"text": Value("")}, seconds=float("nan")), "expected a number above 0"),
    ],
)
def test_what_has_effects_is_not_tried_again(step: Step, message: str | None) -> None:
    found = findings(step)
    assert (found == []) if message is None else (len(found) == 1 and message in found[0]), found


@dataclass
class Compiled:
    calls: tuple[FunctionCall, ...] = ()
    variables: tuple[str, ...] = ()

    async def render(self, arguments: Any, *, call: Any) -> str:
        return ""


def template(*calls: FunctionCall, source: str = "…", arguments: Any = None, **options: Any) -> list[str]:
    def compile(text: str, language: str) -> Any:
        if language != "handlebars":
            raise PluginNotInstalled(f"There is no template language {language!r}.")
        if text == "{{":
            raise TemplateError("the tag is not closed", line=1, column=3)
        return Compiled(tuple(calls), options.get("variables", ()))

    step = Step("t", PlanTemplate(source, options.get("language", "handlebars")), arguments or {},
                attempts=options.get("attempts"))  # fmt: skip
    return findings(step, templates=compile)


def test_the_calls_in_a_template_are_checked_with_line_and_column() -> None:
    assert template(FunctionCall("shout", 1, (), 1, 3), FunctionCall("Weather.forecast", 0, ("Date",), 2, 1)) == []
    assert template(FunctionCall("shuot", 1, (), 2, 5)) == [
        "t function: line 2, column 5: there is no function 'shuot'; nearest: shout"
    ]
    assert template(FunctionCall("shout", 1, ("loud",), 1, 3)) == [
        "t function: line 1, column 3: shout has no parameter 'loud'; it has: text"
    ]
    assert template(FunctionCall("shout", 2, (), 1, 3)) == [
        "t function: line 1, column 3: shout takes 1 arguments, not 2 without a name"
    ]
    assert template(FunctionCall("Weather-forecast", 0, ("city",), 1, 3)) == [
        "t function: line 1, column 3: Weather-forecast needs the argument 'date'"
    ]


def test_a_parameter_that_a_variable_may_fill_is_not_missing_for_sure() -> None:
    call = FunctionCall("shout", 0, (), 1, 3)
    assert template(call) != []
    assert template(call, arguments={"text": Value("a")}) == []
    assert template(call, arguments={"input": Value("a")}) == []
    assert template(call, source='{{set "text" 1}}') == []


def test_where_a_variable_is_given_its_template_calls_no_function_of_its_name() -> None:
    call = FunctionCall("send", 3, (), 1, 1, variable="send")
    assert len(template(call, attempts=2)) == 2
    assert template(call, attempts=2, arguments={"send": Value(1)}) == []


def test_a_template_that_cannot_be_compiled_is_a_finding() -> None:
    assert template(source="{{") == ["t function: line 1, column 3: the tag is not closed"]
    assert template(language="jinja") == ["t function: There is no template language 'jinja'."]
    assert template(variables=("city",)) == ["t arguments: the template needs the argument 'city'"]
    assert "send has effects" in template(FunctionCall("send", 1, (), 1, 1), attempts=2)[0]
    assert findings(Step("t", PlanTemplate("{{", "any")), Step("s", "shout", {"text": From("t")})) == []


def test_a_plan_of_too_many_steps_is_refused() -> None:
    steps = tuple(Step(f"s{number}", "Time-today") for number in range(1001))
    assert findings(*steps) == ["a plan has at most 1,000 steps, not 1,001"]


@given(plans(), st.none() | st.builds(lambda value: {"const": value}, json_values(3)))
def test_any_plan_at_all_is_answered_with_findings_that_can_be_shown(plan: Plan, given_: Any) -> None:
    for finding in check_plan(plan, CATALOGUE, input=given_):
        assert str(finding)
        assert finding.severity in ("error", "warning")


@pytest.mark.parametrize("odd", [3, "x", [], None, {"type": 3}, {"$ref": "#/$defs/no"}, {"properties": []}, {"a": {}}])
def test_a_schema_that_is_none_is_no_reason_to_break(odd: Any) -> None:
    parameters = {"type": "object", "properties": {"a": odd}, "required": odd}
    for body in (parameters, {"properties": odd}, {"required": odd, "additionalProperties": odd}):
        spec = FunctionSpec("f", "", body, odd)
        step = Step("b", "f", {"a": From("a", ("x", 0))})
        nested = Step("c", Plan("i", result=From("input", ("a", "x")), input=body), {"a": Value({"x": 1})})
        check_plan(Plan("g", (Step("a", "f", {"a": Value("a")}), step, nested), From("c")), {"f": spec}, input=body)


# What a checked plan does when it runs, with functions that honour their schemas and nothing more.

SAMPLES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "text": ({"type": "string"}, ["", "a"]),
    "count": ({"type": "integer"}, [1, 2]),
    "number": ({"type": "number"}, [1.5, 2]),
    "maybe": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [None, 3]),
    "choice": ({"enum": ["c", "f"]}, ["c", "f"]),
    "list": ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]]),
    "pair": (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2},
        [["a", 1]],
    ),
    "record": (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        [{"a": "x"}, {"a": "x", "b": 1}],
    ),
    "either": (
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            ]
        },
        ["s", {"a": 1, "z": None}],
    ),
    "open": ({}, [None, [1], {"a": {"b": 1}}]),
}
KINDS = st.sampled_from(sorted(SAMPLES))
NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def catalogues(draw: st.DrawFn) -> dict[str, tuple[FunctionSpec, str]]:
    made = {}
    for name in draw(st.lists(st.sampled_from(["f", "g", "h", "P-f"]), min_size=1, max_size=3, unique=True)):
        parameters = draw(st.dictionaries(NAMES, KINDS, max_size=3))
        returns = draw(KINDS)
        schema = {
            "type": "object",
            "properties": {each: SAMPLES[kind][0] for each, kind in parameters.items()},
            "required": draw(st.lists(st.sampled_from(sorted(parameters)), unique=True)) if parameters else [],
            "additionalProperties": False,
        }
        made[name] = (FunctionSpec(name, "", schema, SAMPLES[returns][0]), returns)
    return made


PATHS = st.sampled_from([(), (), ("a",), ("b",), (0,), (1,), (-1,), ("a", "b"), (2,)])
LITERALS = st.sampled_from([value for _, values in SAMPLES.values() for value in values])


@cache
def arguments(ids: tuple[str, ...]) -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.builds(Value, LITERALS)
    if ids:
        leaves |= st.builds(From, st.sampled_from(ids), PATHS)
    return leaves | st.recursive(
        leaves,
        lambda inner: (
            st.builds(ListOf, st.lists(inner, max_size=2).map(tuple))
            | st.builds(ObjectOf, st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2))
            | st.builds(TextOf, st.lists(st.just("x") | inner, max_size=2).map(tuple))
        ),
        max_leaves=3,
    )


@st.composite
def plans_over(draw: st.DrawFn, known: Mapping[str, tuple[FunctionSpec, str]], *, nested: bool = True) -> Plan:
    """Draw a plan that is right more often than not: what is wrong with the others is drawn too."""
    steps: list[Step] = []
    ids = () if nested else ("input",)
    for number in range(draw(st.integers(1, 4))):
        if nested and draw(st.integers(0, 5)) == 0:
            inner = draw(plans_over(known, nested=False))
            given = draw(st.dictionaries(NAMES, arguments(ids), max_size=2))
            steps.append(Step(f"s{number}", inner, given))
        else:
            name = draw(st.sampled_from([*sorted(known), *sorted(known), *sorted(known), "none"]))
            spec = known[name][0] if name in known else None
            wanted = spec.parameters["properties"] if spec else {}
            chosen = [each for each in wanted if draw(st.integers(0, 5))]
            if draw(st.integers(0, 15)) == 0:
                chosen.append("z")
            steps.append(Step(f"s{number}", name, {each: draw(arguments(ids)) for each in chosen}))
        ids = (*ids, f"s{number}")
    return Plan("g", tuple(draw(st.permutations(steps))), draw(st.none() | arguments(ids)))


@given(st.data())
def test_a_checked_plan_never_fails_for_what_the_check_answers_for(data: st.DataObject) -> None:
    known = data.draw(catalogues())
    catalogue = {name: spec for name, (spec, _) in known.items()}
    plan = data.draw(plans_over(known))
    while found := check_plan(plan, catalogue):
        # What is wrong is taken away, step by step, until a plan is left that may run.
        wrong = {finding.step for finding in found}
        steps = tuple(step for step in plan.steps if step.id not in wrong)
        if not steps:
            return
        plan = Plan("g", steps, None if None in wrong else plan.result)
    event(f"{len(plan.steps)} steps")
    target(float(len(plan.steps)))
    picks = data.draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))

    async def execute(step: Step, given: dict[str, Any]) -> Any:
        if isinstance(step.function, Plan):
            return await run(step.function, {"input": given} if given else {})
        spec, returns = known[str(step.function)]
        assert set(spec.parameters["required"]) <= given.keys() <= spec.parameters["properties"].keys(), step
        for name, value in given.items():
            valid = jsonschema.Draft202012Validator(spec.parameters["properties"][name]).is_valid(value)
            assert valid or list(references(step.arguments[name])), f"the literal {value!r} of {step}"
        samples = SAMPLES[returns][1]
        return samples[picks[len(step.arguments) % 8] % len(samples)]

    async def run(plan: Plan, results: dict[str, Any]) -> Any:
        by_id = {step.id: step for step in plan.steps}
        for failure in await run_steps(plan, results, execute):
            assert isinstance(failure.__cause__, LookupError), f"{failure}: {failure.__cause__!r}"
            for reference in (each for value in by_id[failure.step].arguments.values() for each in references(value)):
                assert reference.step in {*by_id, "input"}, f"there is no {reference.step}"
                source = by_id.get(reference.step)
                if reference.step in results and source is not None and isinstance(source.function, str):
                    # What is surely there is read; what may be missing is what the check cannot answer for.
                    schema = known[source.function][0].returns
                    sure = fitting_paths(schema, True, {}) if reference.path else ((),)
                    assert failure_elsewhere(by_id[failure.step], results, reference) or reference.path not in sure
        return None

    asyncio.run(run(plan, {}))


def failure_elsewhere(step: Step, results: dict[str, Any], reference: From) -> bool:
    """Tell whether a reference is not what a step failed for."""
    from portico._plans.plan import evaluate

    try:
        evaluate(reference, results)
    except LookupError:
        return False
    return True
