"""The plans of AgentDojo's tasks are honest: what decides where something goes is the user's literal, or from data.

The package itself is not needed. A date may be in another notation than the user's, and a planner knows today's.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "agentdojo"
PLANS = {
    f"{file.parent.name}/{file.stem}": json.loads(file.read_text("utf-8")) for file in FOLDER.glob("tasks/*/*.json")
}
LABELS = tomllib.loads((FOLDER / "labels.toml").read_text("utf-8"))
WRITTEN = {
    (pattern, name)
    for pattern, labels in LABELS["strict"]["functions"].items()
    for name, word in labels.get("takes", {}).items()
    if word == "anything"
}
"""Parameters whose values decide nothing, so that a planner may word them."""
OWN_WORDS = {"permission", "type", "subject", "body"}
"""The words of an interface, and messages that a planner words."""


def calls(plan: dict[str, Any], within: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    for step in plan["steps"]:
        id = f"{within}{step['id']}"
        if isinstance(step["function"], dict):
            yield from calls(step["function"], f"{id}/")
        else:
            yield id, step["function"], step.get("arguments", {})


def texts(name: str, expression: Any) -> Iterator[tuple[str, str]]:
    """Yield the literal texts of an argument, with the name of the argument or the member that they are."""
    if isinstance(expression, str):
        yield name, expression
    elif isinstance(expression, list):
        for part in expression:
            yield from texts(name, part)
    elif isinstance(expression, dict) and "from" not in expression:
        for key, part in expression.items():
            yield from texts(name if key in ("value", "list", "object", "text") else key, part)


def test_there_is_a_plan_for_each_of_the_97_tasks() -> None:
    assert len(PLANS) == 97


def test_a_literal_that_decides_something_is_what_the_user_said() -> None:
    own = {
        (task, name, text)
        for task, document in PLANS.items()
        for _, function, arguments in calls(document["plan"])
        for argument, expression in arguments.items()
        for name, text in texts(argument, expression)
        if not function.startswith("Model-")
        and name not in OWN_WORDS
        and not any(fnmatchcase(function, pattern) and argument == parameter for pattern, parameter in WRITTEN)
        and not re.match(r"\d{4}-\d\d-\d\d", text)
        and text.casefold() not in document["plan"]["goal"].casefold()
    }
    assert own == set()


def test_replies_are_given_to_the_model_only() -> None:
    for document in PLANS.values():
        asked = {id for id, function, _ in calls(document["plan"]) if function.startswith("Model-")}
        assert set(document["replies"]) == asked
