"""Plan functions to the letter: what they take, give and are said to be, before and after they enter a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from portico import Function, Kernel, RequireApproval, function
from portico._functions.functions import FunctionSpec
from portico._functions.middleware import Middleware, PlanReview
from portico._plans.functions import plan_function
from portico._plans.plan import Expression, From, ListOf, Plan, PlanTemplate, Step, TextOf, Value
from portico.errors import ArgumentsInvalid, PlanError
from portico_testkit.fakes.run_store import MemoryRunStore


class Post:
    """Letters."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.sent: list[str] = []

    @function
    def look(self) -> str:
        """Look whether there are letters."""
        return f"none for {self.name}"

    @function(effects=True)
    def send(self, text: str) -> str:
        """Send a letter."""
        self.sent.append(text)
        return text


def kernel(*functions: Function, post: Post | None = None, **options: Any) -> Kernel:
    made = Kernel(**options)
    made.add_plugin(post or Post(), "Post")
    for each in functions:
        made.add_function(each)
    return made


def calling(*names: str) -> Plan:
    return Plan("g", tuple(Step(f"s{place}", name) for place, name in enumerate(names)), Value(1))


def taking(schema: Mapping[str, Any] | None, *read: Expression) -> Plan:
    return Plan("g", result=ListOf(read), input=schema)


LETTER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"$ref": "#/$defs/Person", "description": "Who."},
        "any": True,
        "by": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "copies": {"type": "integer", "default": 1},
    },
    "required": ["to", "by"],
    "$defs": {"Person": {"type": "string", "enum": ["Ada", "Bob"]}},
}
WORDS = ("description", "$defs")
"""What is told of a parameter apart from its own schema."""


@pytest.mark.parametrize(
    ("plan", "parameters"),
    [
        (
            taking(LETTER),
            [
                ("to", "Who.", {"$ref": "#/$defs/Person"}, True),
                ("by", "", LETTER["properties"]["by"], True),
                ("any", "", {}, False),
                ("copies", "", {"type": "integer"}, False),
            ],
        ),
        (taking({"type": "object", "properties": {"a": {"type": "array"}}}), [("a", "", {"type": "array"}, False)]),
        (taking({"type": "string", "description": "Words."}), [("input", "Words.", {"type": "string"}, True)]),
        (taking({"enum": ["a"]}), [("input", "", {"enum": ["a"]}, True)]),
        (taking({"type": "object"}), [("input", "", {"type": "object"}, True)]),
        (taking({"properties": {"a": {}}}), [("input", "", {"properties": {"a": {}}}, True)]),
        (taking(None), []),
        (Plan("a move", calling("Post-look").steps), []),
        (
            taking(None, From("input", ("b", 1)), TextOf((From("input", ("a",)),))),
            [("b", "", {}, True), ("a", "", {}, True)],
        ),
        (taking(None, From("input", ("b",)), From("input")), [("input", "", {}, True)]),
        (taking(None, From("input", (0,))), [("input", "", {}, True)]),
    ],
)
def test_its_parameters_are_what_the_input_says_and_the_plan_reads(
    plan: Plan, parameters: list[tuple[str, str, dict[str, Any], bool]]
) -> None:
    found = plan_function("f", plan).parameters
    said = [{key: each.compiled.schema[key] for key in each.compiled.schema if key not in WORDS} for each in found]
    told = [(each.name, each.description, schema, each.required) for each, schema in zip(found, said, strict=True)]
    assert told == parameters


def test_its_manual_has_the_definitions_of_the_input() -> None:
    assert plan_function("f", taking(LETTER)).spec.parameters == {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Person", "description": "Who."},
            "by": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
            "any": {},
            "copies": {"type": "integer", "default": 1},
        },
        "required": ["to", "by"],
        "additionalProperties": False,
        "$defs": LETTER["$defs"],
    }


class Even:
    """A schema validator that knows one keyword more."""

    name = "even"

    def compile(self, schema: Mapping[str, Any]) -> Any:
        return lambda value: ["$: is odd"] if schema.get("even") and value % 2 else []


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (taking({"even": True}), "input"),
        (taking({"type": "object", "properties": {"n": {"even": True}}}, From("input", ("n",))), "n"),
    ],
)
async def test_a_validator_that_knows_more_is_asked(plan: Plan, name: str) -> None:
    made = kernel(plan_function("f", plan, validator=Even()), schema_validator=Even())
    await made.invoke_json("f", {name: 2})
    with pytest.raises(ArgumentsInvalid, match="is odd"):
        await made.invoke_json("f", {name: 3})


async def test_a_name_that_is_read_without_a_schema_may_be_anything_that_the_validator_takes() -> None:
    asked: list[Any] = []

    class Asked:
        name = "asked"

        def compile(self, schema: Mapping[str, Any]) -> Any:
            asked.append(schema)
            return lambda value: []

    plan_function("f", taking(None, From("input", ("x",))), validator=Asked())
    assert asked == [{}]


def test_before_it_enters_a_kernel_nothing_is_known_but_what_is_said() -> None:
    plan = calling("Post-look")
    assert plan_function("f", plan).spec == FunctionSpec(
        "f", "g", {"type": "object", "properties": {}, "required": [], "additionalProperties": False}, {}, True
    )
    said = plan_function("f", plan, returns={"const": 1}, effects=False, tags=["a", "b"], description="Count.").spec
    assert (said.returns, said.effects, said.tags) == ({"const": 1}, False, frozenset("ab"))
    assert said.description == "Count."


def test_its_result_is_json_both_ways() -> None:
    given = plan_function("f", calling("Post-look")).returns
    assert (given.structure([1]), given.unstructure([1])) == ([1], [1])


def test_what_is_said_of_it_stays_in_a_kernel() -> None:
    made = kernel(plan_function("f", calling("Post-look"), returns={"const": 1}, effects=True, tags=["a"]))
    spec = made.specs["f"]
    assert (spec.returns, spec.effects, spec.tags) == ({"const": 1}, True, frozenset("a"))
    told = kernel(plan_function("f", calling("Post-look"))).specs["f"]
    assert (told.returns, told.effects, told.tags) == ({"type": "integer"}, False, frozenset())


async def test_what_a_kernel_returned_stays_in_that_kernel() -> None:
    one, other = Post("one"), Post("other")
    plan = Plan("g", (Step("s", "Post-look"),), From("s"))
    bound = kernel(plan_function("f", plan), post=one).function("f")
    assert await kernel(bound, post=other).invoke("f") == "none for one"


class Silent:
    """A template language whose templates do not tell what they call."""

    name = "silent"

    def compile(self, source: str, *, name: str = "prompt") -> Any:
        return object()


def templated(source: str, language: str = "semantic-kernel") -> Plan:
    return Plan("g", (Step("s", PlanTemplate(source, language)),), From("s"))


@pytest.mark.parametrize(
    ("plan", "effects"),
    [
        (calling("P-quiet", "P-quiet", "Post-look"), False),
        (calling("P-quiet", "P-loud"), True),
        (calling("P-circle"), False),
        (calling("P-circle", "Post-send"), True),
        (Plan("g", (Step("s", calling("P-quiet", "P-circle")),), Value(1)), False),
        (templated("{{P.quiet}} {{P.circle}}"), False),
        (templated("{{P.loud}}"), True),
        (templated("words"), False),
        (templated("words", "silent"), True),
    ],
)
def test_it_has_effects_where_anything_inside_may_have(plan: Plan, effects: bool) -> None:
    siblings = {
        "P-quiet": calling("Post-look"),
        "P-loud": calling("P-quiet", "Post-send"),
        "P-circle": calling("P-round"),
        "P-round": calling("P-quiet", "P-circle"),
    }
    made = kernel(plan_function("f", plan, siblings=siblings), template_languages=[Silent()])
    assert made.specs["f"].effects is effects


async def test_one_that_is_held_as_a_whole_says_so() -> None:
    async def hold(review: PlanReview, proceed: Any) -> Any:
        return RequireApproval("ask Ada")

    store = MemoryRunStore()
    made = kernel(plan_function("f", calling("Post-look")), middleware=Middleware(plan=[hold]), run_store=store)
    with pytest.raises(PlanError) as raised:
        await made.invoke("f")
    (run,) = await store.runs()
    assert str(raised.value) == f"f: the plan is paused: ask Ada. It is the run {run}."
