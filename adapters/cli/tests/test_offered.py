"""Which functions a model is told of, where a function selector chooses: seen by people and by programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FEW = """
from portico.plans import Answer, Infeasible, Plan, Step, Value
from portico.plugins import Registration
from portico import Considered, Selection


def portico_function_selectors():
    return [Registration(name="few", factory="portico_handful:Few", summary="Functions whose names are in the text.")]


def portico_planners():
    return [Registration(name="modelled", factory="portico_handful:Modelled", summary="As if by a model.")]


class Few:
    name = "few"
    limit = 3

    def __init__(self, settings, services):
        pass

    async def select(self, functions, context, *, limit=None):
        text = " ".join(context)
        chosen = [each.name for each in functions if each.name.rpartition("-")[2] in text]
        return Selection(
            tuple(Considered(name, "chosen", 0.75, 0.5, 0.25) for name in chosen),
            tuple(Considered(each.name, "beyond the limit", 0.1) for each in functions if each.name not in chosen),
            len(functions),
            tuple(text.split(" and ")),
        )


class Modelled:
    name = "modelled"
    asks_model = True

    def __init__(self, settings, services):
        pass

    async def propose(self, task, *, emit):
        if "impossible" in task.goal:
            return Infeasible("No.")
        if "sneak" in task.goal:
            return Plan(task.goal, (Step("s1", "tools-fetch", {"text": Value("x")}),))
        return Answer(" ".join(each.name for each in task.functions))
"""


@pytest.fixture
def few(folder: Path, site: Path, install: Callable[..., Path]) -> Iterator[Path]:
    """Configure four functions, the selector and a planner that says which it was told of."""
    install("portico-handful", {"portico": {"handful": "portico_handful"}}, portico_handful=FEW)
    file = folder / "portico.toml"
    file.write_text('[functions]\nselect = "few"\n[functions.tools]\nuse = "tools"\n[planner]\nuse = "modelled"\n')
    yield file
    sys.modules.pop("portico_handful", None)


def test_functions_for_a_question_are_shown_with_scores_reasons_and_what_was_left_out(
    in_process: Any, few: Path
) -> None:
    out = in_process("functions", "--for", "shout it and send it").out
    assert out.startswith("Offered: 2 of 4 functions.\n")
    assert "looking for: send it" in out
    assert "0.75   0.50   0.25    tools-shout" in out
    assert "tools-fetch  beyond the limit" in out.partition("Left out")[2]


def test_programs_get_the_functions_and_the_selection(in_process: Any, few: Path) -> None:
    told = in_process("functions", "--for", "send it", "--json").json
    assert [each["name"] for each in told["functions"]] == ["tools-send"]
    assert told["selection"]["considered"] == 4
    assert told["selection"]["offered"] == [
        {"name": "tools-send", "reason": "chosen", "score": 0.75, "lexical": 0.5, "vector": 0.25}
    ]
    assert len(told["selection"]["left_out"]) == 3


def test_the_manual_for_a_question_is_that_of_what_is_offered(in_process: Any, few: Path) -> None:
    out = in_process("functions", "--for", "send it", "--manual").out
    assert out.startswith("tools.send:")
    assert "shout" not in out
    as_json = in_process("functions", "--for", "send it", "--manual", "--json").json
    assert (as_json["manual"], as_json["selection"]["considered"]) == (out.rstrip("\n"), 4)
    assert "selection" not in in_process("functions", "--json").json


def test_all_or_no_functions_may_be_offered(in_process: Any, few: Path) -> None:
    out = in_process("functions", "--for", "shout send stay fetch").out
    assert out.startswith("Offered: 4 of 4 functions.\n")
    assert in_process("functions", "--for", "nothing").out.startswith("Offered: 0 of 4 functions.\n")


def test_without_a_selector_a_question_is_answered_with_what_to_set(in_process: Any, configured: Path) -> None:
    done = in_process("functions", "--for", "send it")
    assert done.code == 2
    assert "No function selector is configured: set `select` in [functions] of portico.toml." in done.err
    assert in_process("functions", "--for", " ").code == 2


def test_a_plan_tells_programs_what_its_model_was_told_of(in_process: Any, few: Path) -> None:
    assert in_process("plan", "send it", "--json").json["selection"]["offered"][0]["name"] == "tools-send"
    few.write_text(few.read_text().replace('select = "few"\n', ""))
    assert in_process("plan", "send it", "--json").json["selection"] is None


def test_an_infeasible_plan_says_how_little_the_model_knew(in_process: Any, few: Path) -> None:
    done = in_process("plan", "send the impossible")
    assert done.code == 3
    assert "Of 4 functions the function selector 'few' chose 1 for the goal" in done.out
    assert in_process("plan", "sing").code == 3


def test_a_plan_that_calls_what_was_not_offered_fails_its_check(in_process: Any, few: Path) -> None:
    done = in_process("plan", "sneak and send")
    assert done.code == 1
    assert "the function 'tools-fetch' was not offered" in done.err


def test_ask_tells_programs_what_was_offered(in_process: Any, few: Path) -> None:
    told = in_process("ask", "send it", "--json").json
    assert told["answer"] == "tools-send"
    assert told["selection"]["considered"] == 4


def test_the_selector_is_listed_examined_and_shown(in_process: Any, few: Path) -> None:
    offers = [each for package in in_process("plugins", "--json").json["packages"] for each in package["offers"]]
    told = [(each["port"], each["name"], each["summary"]) for each in offers]
    assert ("FunctionSelector", "few", "Functions whose names are in the text.") in told
    assert "function selector few" in in_process("doctor").out
    assert in_process("config", "show", "--json").json["settings"]["functions.select"]["value"] == "few"
    schema = in_process("config", "schema").json
    assert "few" in schema["properties"]["functions"]["properties"]["select"]["enum"]
