"""What the check says where names are alike, or where the name of a function is none that a kernel gives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.findings import told

from portico._functions.functions import FunctionSpec
from portico._plans.check import check_plan
from portico._plans.plan import From, Plan, Step

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def spec(name: str, returns: Any, **parameters: Any) -> FunctionSpec:
    schema = {"type": "object", "properties": parameters, "required": list(parameters), "additionalProperties": False}
    return FunctionSpec(name, "", schema, returns)


CATALOGUE = {
    each.name: each
    for each in (
        spec("word", TEXT),
        spec("number", COUNT),
        spec("other.number", COUNT),
        spec("other number", COUNT),
        spec("say", TEXT, text=TEXT),
    )
}
MISFIT = ["error in x arguments.text: integer is given where say takes string"]


@pytest.mark.parametrize(("step", "findings"), [("t", []), ("T", MISFIT)])
def test_of_steps_whose_ids_differ_in_case_alone_each_is_referred_to_by_its_own(step: str, findings: list[str]) -> None:
    made = Plan("g", (Step("t", "word"), Step("T", "number"), Step("x", "say", {"text": From(step)})))
    assert told(check_plan(made, CATALOGUE)) == findings


@pytest.mark.parametrize("function", ["number", "other.number", "other number"])
def test_what_a_function_gives_is_known_whatever_stands_in_its_name(function: str) -> None:
    made = Plan("g", (Step("t", function), Step("x", "say", {"text": From("t")})))
    assert told(check_plan(made, CATALOGUE)) == MISFIT
