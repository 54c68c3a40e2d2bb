"""The evaluation of chosen functions reads both formats, and counts what a plan calls and what it misses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eval.choosing import describe, measure, read

from portico import ChatCapabilities, ChatRequest
from portico_testkit.fakes.chat_service import ScriptedChat

COLLECTION = Path(__file__).parent / "collection"
CAPABILITIES = ChatCapabilities(response_schema=True, sampling=frozenset({"temperature", "seed", "max_tokens"}))


def first(schema: Any, root: Any) -> Any:
    """Return a value of a schema; where there are several kinds, one of the first."""
    if "$ref" in schema:
        return first(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return first(schema["anyOf"][0], root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "object":
        return {name: first(each, root) for name, each in schema["properties"].items()}
    if kind == "array":
        return [first(schema["items"], root)] * schema.get("minItems", 0)
    return {"string": "x", "integer": 1, "number": 1, "boolean": True}.get(kind)


def answer(request: ChatRequest) -> str:
    return json.dumps(first(request.response_schema, request.response_schema))


@pytest.mark.parametrize("by_words", [False, True])
async def test_a_plan_of_the_first_alternatives_is_counted(by_words: bool) -> None:
    functions, goals = read(COLLECTION / "calls.json", COLLECTION / "calls-spec.json", size=4, seed=1)
    chat = ScriptedChat(answer, capabilities=CAPABILITIES, repeat=True)
    goals = [goal for goal in goals if goal.text.startswith("Measure the hall")]
    result = await measure(functions, goals, chat, by_words=by_words)
    assert {key: result[key] for key in ("goals", "valid", "ran", "gold_steps")} == {
        "goals": 1, "valid": 1, "ran": 1, "gold_steps": 3,
    }  # fmt: skip
    assert 0 < result["gold"]["planner"] <= 1
    assert 0 < result["gold"]["lots"] < result["gold"]["selector"] <= 1
    assert 0 < result["precision"] <= 1
    assert "gold functions: planner" in "\n".join(describe(result))


def test_goals_are_drawn_with_the_seed_and_both_formats_are_read() -> None:
    files = COLLECTION / "tool-queries.jsonl", COLLECTION / "tools.jsonl"
    functions, goals = read(*files, size=6, seed=1)
    assert goals
    assert (functions, goals) == read(*files, size=6, seed=1)
    assert [goal.text for goal in goals] != [goal.text for goal in read(*files, size=6, seed=2)[1]]
    for goal in goals:
        assert len(set(goal.pool)) == 6
        assert goal.gold <= set(goal.pool)
        assert len(goal.gold) > 1
