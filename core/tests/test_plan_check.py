"""Checking: every fault is found before anything runs, and what checks clean runs."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.strategies import plans

from portico._functions.functions import Function, FunctionSpec
from portico._plans.check import check_plan, path_problem
from portico._plans.checking.shapes import known_of
from portico._plans.plan import Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value
from portico._runs.scheduling import run_steps
from portico._types.compiling import compile_type


@dataclass
class Day:
    date: str
    highs: tuple[float, float]
    wind: float | None = None
    next: Day | None = None


def weather(place: str, days: int = 1, scale: Literal["c", "f"] = "c") -> list[Day]: ...
def say(text: str) -> str: ...
def total(numbers: list[float]) -> float: ...
def tell(who: dict[str, str]) -> None: ...
def anything(value: Any) -> Any: ...


CATALOGUE: Mapping[str, FunctionSpec] = {
    made.full_name: made.spec for made in (Function.of(each) for each in (weather, say, total, tell, anything))
}


def findings(*steps: Step, result: Expression | None = None, **options: Any) -> list[str]:
    return [str(finding) for finding in check_plan(Plan("g", steps, result), CATALOGUE, **options)]


CLEAN = Step("w", "weather", {"place": Value("Oslo")})


def test_a_sound_plan_has_no_findings() -> None:
    assert (
        findings(
            Step("t", "total", {"numbers": From("w", (0, "highs"))}),
            CLEAN,
            Step("s", "say", {"text": TextOf(("It is ", From("t")))}, after=("w",)),
            Step("n", Plan("inner", (CLEAN,), From("w", (-1, "date")))),
            Step("d", "tell", {"who": ObjectOf({"day": From("n")})}),
            result=ListOf((From("s"), From("w", (0, "next", "next", "date")))),
        )
        == []
    )


@pytest.mark.parametrize(
    ("step", "finding"),
    [
        (Step("x", "wether", {}), "x function: there is no function 'wether'; nearest: weather"),
        (Step("x", "zzz", {}), "x function: there is no function 'zzz'"),
        (Step("x", "weather", {}), "x arguments: weather needs the argument 'place'"),
        (
            Step("x", "say", {"text": Value("a"), "loud": Value(True)}),
            "x arguments.loud: say has no parameter 'loud'; it has: text",
        ),
        (Step("x", "say", {"text": Value(1)}), "x arguments.text: $: expected string, got integer"),
        (
            Step("x", "weather", {"place": Value("a"), "scale": Value("k")}),
            "x arguments.scale: $: expected one of 'c', 'f'",
        ),
        (Step("x", "total", {"numbers": Value([1, "2"])}), "x arguments.numbers: $[1]: expected number, got string"),
        (Step("x", "say", {"text": From("y")}), "x arguments.text: there is no step 'y'; the steps are: w, x"),
        (
            Step("x", "say", {"text": TextOf(("a", ListOf((ObjectOf({"k": From("y")}),))))}),
            "x arguments.text.text[1].list[0].object.k: there is no step 'y'; the steps are: w, x",
        ),
        (Step("x", "say", {"text": Value("a")}, after=("y",)), "x after: there is no step 'y'; the steps are: w, x"),
        (
            Step("x", "say", {"text": From("w", (0, "dat"))}),
            "x arguments.text: $[0].dat of w: there can be nothing at $[0].dat; it has: date, highs, next, wind",
        ),
        (
            Step("x", "say", {"text": From("w", ("date",))}),
            "x arguments.text: $.date of w: there can be nothing at $.date",
        ),
        (
            Step("x", "total", {"numbers": ListOf((From("w", (0, "highs", 2)),))}),
            "x arguments.numbers.list[0]: $[0].highs[2] of w: there can be nothing at $[0].highs[2]",
        ),
        (Step("x", "say", {"text": From("x")}), "x: waits for itself: x → x"),
        (Step("w", "say", {"text": Value("a")}), "w: the id 'w' is taken; ids are unique in a run"),
        (Step("", "say", {"text": Value("a")}), "id: '' is not an id; it is a word without '/'"),
        (Step("w/1", "say", {"text": Value("a")}), "w/1 id: 'w/1' is not an id; it is a word without '/'"),
        (Step("x", Plan("inner"), {"a": Value(1)}), "x: the plan has neither steps nor a result"),
        (
            Step("x", Plan("inner", (Step("y", "say", {"text": From("w")}),))),
            "x y arguments.text: there is no step 'w'; the steps are: y",
        ),
        (Step("x", "say", {"text": From("w")}), "x arguments.text: array is given where say takes string"),
        (Step("x", "say", {"text": From("w", (0, "highs", 0))}), "x arguments.text: number is given"),
        (Step("x", "say", {"text": From("w", (0, "wind"))}), "x arguments.text: null or number is given"),
        (
            Step("x", "total", {"numbers": TextOf(("a",))}),
            "x arguments.numbers: string is given where total takes array",
        ),
        (Step("x", "say", {"text": ListOf(())}), "x arguments.text: array is given where say takes string"),
        (Step("x", "say", {"text": ObjectOf({})}), "x arguments.text: object is given where say takes string"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_each_fault_is_found(step: Step, finding: str) -> None:
    found = findings(CLEAN, step)
    assert any(each.startswith(finding) for each in found), "\n".join(found)


def test_a_result_is_checked_too() -> None:
    assert findings(CLEAN, result=From("y")) == ["result: there is no step 'y'; the steps are: w"]
    assert "nothing at $.a" in findings(CLEAN, result=From("w", ("a",)))[0]


def test_a_plan_of_nothing_is_no_plan() -> None:
    assert findings() == ["the plan has neither steps nor a result"]
    assert findings(result=Value(1)) == []


def test_steps_of_the_run_may_be_referred_to_and_their_ids_not_taken_again() -> None:
    step = Step("x", "say", {"text": From("w0", (0, "date"))})
    assert findings(step, finished={"w0": CATALOGUE["weather"]}) == []
    assert findings(step, finished={"w0": None}) == []
    assert findings(step, finished={"w0": CATALOGUE["say"]}) != []
    assert findings(CLEAN, finished={"w": None}) == findings(CLEAN, taken={"w"}) != []


def test_an_unknown_schema_keyword_is_a_warning_not_a_refusal() -> None:
    spec = FunctionSpec(
        "f", "", {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}, "b": True}}, {}
    )
    found = check_plan(Plan("g", (Step("s", "f", {"a": Value("b"), "b": Value(1)}),)), {"f": spec})
    assert [(finding.severity, finding.place) for finding in found] == [("warning", "arguments.a")]


def chain(count: int, *, closed: bool) -> Plan:
    steps = [Step(f"s{n}", "anything", {"value": From(f"s{(n + 1) % count}")}) for n in range(count)]
    if not closed:
        steps[-1] = Step(f"s{count - 1}", "anything", {"value": Value(1)})
    return Plan("g", tuple(steps))


def test_long_chains_and_circles_are_followed_to_the_end() -> None:
    assert check_plan(chain(1000, closed=False), CATALOGUE) == []
    (finding,) = check_plan(chain(1000, closed=True), CATALOGUE)
    assert finding.message.count("→") == 1000


def test_a_plan_of_nothing_but_circles_is_answered_with_one_of_them() -> None:
    names = [f"s{n}" for n in range(300)]
    plan = Plan("g", tuple(Step(name, "anything", {"value": Value(1)}, after=tuple(names)) for name in names))
    assert len(check_plan(plan, CATALOGUE)) == 1


def test_many_unknown_functions_are_not_each_looked_for_in_a_large_catalogue() -> None:
    catalogue = {f"Plugin-function_{n}": CATALOGUE["say"] for n in range(3000)}
    plan = Plan("g", tuple(Step(f"s{n}", f"Plugin-functoin_{n}") for n in range(1000)))
    found = check_plan(plan, catalogue)
    assert len(found) == 1000
    assert 0 < sum("nearest" in finding.message for finding in found) <= 20


def test_an_expression_nested_without_end_is_a_finding() -> None:
    expression: Expression = Value(1)
    for _ in range(100_000):
        expression = ListOf((expression,))
    assert findings(result=expression) == ["result: expressions nest deeper than 50 levels"]
    found = findings(Step("s", "total", {"numbers": expression}))
    assert found[0] == "s arguments.numbers: expressions nest deeper than 50 levels"


@pytest.mark.parametrize("depth", [0, 1, 9, 50])
@pytest.mark.parametrize("over", [0, 1])
def test_the_plans_around_an_argument_are_of_its_levels(depth: int, over: int) -> None:
    expression: Expression = From("t")
    for _ in range(50 - depth + over):
        expression = ListOf((expression,))
    plan = Plan("g", (Step("t", "say", {"text": Value("a")}), Step("x", "anything", {"value": expression})))
    for _ in range(depth):
        plan = Plan("g", (Step("p", plan),))
    where = " ".join([*["p"] * depth, "x"])
    expected = [f"{where} arguments.value: expressions nest deeper than 50 levels"]
    assert [str(finding) for finding in check_plan(plan, CATALOGUE)] == expected * over


@pytest.mark.parametrize(
    "anything", [{}, True, {"description": "Anything."}, {"anyOf": [True, {"type": "string"}]}, {"$ref": "#/$defs/any"}]
)
def test_where_anything_is_taken_only_names_alike_are_near(anything: Any) -> None:
    catalogue = {**CATALOGUE, "f": FunctionSpec("f", "", {"properties": {"a": anything}, "$defs": {"any": {}}}, {})}
    (found,) = check_plan(Plan("g", (CLEAN, Step("x", "f", {"a": From("w", (0, "dat"))}))), catalogue)
    assert found.nearest == ("$[0].date",)


def test_an_input_of_the_same_type_that_never_fits_is_said_to_be_no_such_one() -> None:
    limits = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    given = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    (found,) = check_plan(Plan("g", (CLEAN,), input=limits), CATALOGUE, input=given)
    assert str(found) == "input: object is given where the plan takes object, but never one like this"


FORGOTTEN: Any = "Oslo"


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        (FORGOTTEN, ""),
        (ListOf((Value("a"), FORGOTTEN)), ".list[1]"),
        (ObjectOf({"a": FORGOTTEN}), ".object.a"),
        (TextOf(("a", ListOf((FORGOTTEN,)))), ".text[1].list[0]"),
    ],
)
@pytest.mark.parametrize("step", [Step("x", "anything"), Step("x", "anythin"), Step("x", Plan("i", result=Value(1)))])
def test_a_value_that_is_written_without_its_tag_is_no_expression(
    step: Step, expression: Expression, place: str
) -> None:
    found = findings(replace(step, arguments={"value": expression}))
    assert f"x arguments.value{place}: 'Oslo' is no expression" in found
    assert len(found) == 1 + (step.function == "anythin")


def test_what_is_kept_of_a_function_goes_with_its_manual() -> None:
    spec = Function.of(say).spec
    plan = Plan("g", (Step("s", "f", {"text": Value("a")}), Step("t", "f", {"text": From("s")})))
    assert check_plan(plan, {"f": spec}) == []
    kept = weakref.ref(known_of(spec))
    assert kept() is known_of(spec)
    del spec
    gc.collect()
    assert kept() is None


def test_a_manual_that_was_checked_is_copied_and_sent_as_any_other() -> None:
    spec = Function.of(say).spec
    plan = Plan("g", (Step("s", "f", {"text": Value("a")}),))
    check_plan(plan, {"f": spec})
    for again in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec)), replace(spec)):
        assert again == spec
        assert repr(again) == repr(spec)
        assert check_plan(plan, {"f": again}) == []


def test_plans_nested_without_end_are_refused() -> None:
    plan = Plan("g", result=Value(1))
    for _ in range(60):
        plan = Plan("g", (Step("s", plan),))
    assert "nest deeper than 50" in str(check_plan(plan, CATALOGUE)[0])


def test_a_long_path_into_a_recursive_union_takes_no_time_that_doubles_with_each_part() -> None:
    schema = {
        "$defs": {
            name: {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}
            for name in "ab"
        },
        "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    }
    started = time.process_time()
    assert path_problem(schema, ("next",) * 2000) is None
    assert time.process_time() - started < 30, "it would be more than the age of the world"
    assert path_problem(schema, (*("next",) * 3, 0)) == (
        "there can be nothing at $.next.next.next[0]; $.next.next.next is object"
    )


@pytest.mark.parametrize(
    ("hint", "path", "possible"),
    [
        (Any, ("a", 0), True),
        (dict[str, int], ("a",), True),
        (dict[str, int], ("a", "b"), False),
        (list[int], (5,), True),
        (list[int], ("a",), False),
        (tuple[int, str], (1,), True),
        (tuple[int, str], (-2,), True),
        (tuple[int, str], (-3,), False),
        (int | dict[str, int], ("a",), True),
        (int | None, ("a",), False),
        (Literal["a"], (), True),
        (Day, ("next", "next", "date"), True),
        (Day, ("next", "next", "data"), False),
    ],
    ids=str,
)
def test_a_path_is_possible_when_the_type_has_something_there(hint: Any, path: Any, possible: bool) -> None:
    assert (path_problem(compile_type(hint).schema, path) is None) == possible


FUNCTIONS = {"say": ["text"], "total": ["numbers"], "tell": ["who"], "anything": ["value"]}
STAND_INS = {"say": "said", "total": 2.5, "tell": None, "anything": {"a": [1, "b"]}}


@settings(max_examples=50)
@given(plans(FUNCTIONS))
def test_a_plan_that_checks_clean_runs(plan: Plan) -> None:
    """Nothing is missing, unknown, unreachable or of a kind that cannot be: what the checker answers for."""
    functions = {made.full_name: made for made in map(Function.of, (say, total, tell, anything))}

    async def execute(step: Step, arguments: dict[str, Any]) -> Any:
        if isinstance(step.function, Plan):
            inner: dict[str, Any] = {}
            assert await run_steps(step.function, inner, execute) == []
            return None
        schema = functions[step.function].spec.parameters
        assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
        for name, expression in step.arguments.items():
            if isinstance(expression, Value):
                functions[step.function].structure_arguments({name: arguments[name]})
        return STAND_INS[step.function]

    if check_plan(plan, CATALOGUE) == []:
        results: dict[str, Any] = {}
        assert asyncio.run(run_steps(plan, results, execute)) == []
        assert set(results) == {step.id for step in plan.steps}


@settings(max_examples=50)
@given(st.data())
def test_a_plan_with_a_step_taken_away_is_found_out_if_the_step_was_needed(data: st.DataObject) -> None:
    plan = data.draw(plans({"anything": ["value"]}, nested=False).filter(lambda plan: plan.steps))
    assert check_plan(plan, CATALOGUE) == []
    lost = data.draw(st.sampled_from(plan.steps))
    rest = Plan(plan.goal, tuple(step for step in plan.steps if step is not lost), Value(None))
    needed = any(lost.id in step.depends_on() for step in rest.steps)
    assert bool(check_plan(rest, CATALOGUE)) == needed
