"""The manual for a model: whole functions within a budget, the relevant ones first."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import Message
from portico._functions.functions import FunctionSpec
from portico._planning.prompts import FittedFunctions
from portico._plans.task import Task
from portico.errors import LimitExceeded, PlanError

WORDS = st.sampled_from(["poem", "rain", "mail", "city", "wetter", "詩", "translate", "Poems", "x"])


def spec(name: str, description: str = "", *inputs: str) -> FunctionSpec:
    properties = {each: {"type": "string"} for each in inputs}
    return FunctionSpec(name, description, {"type": "object", "properties": properties}, {"type": "string"})


def sentences() -> st.SearchStrategy[str]:
    return st.lists(WORDS, max_size=12).map(" ".join)


@st.composite
def catalogues(draw: st.DrawFn) -> list[FunctionSpec]:
    descriptions = draw(st.lists(sentences(), min_size=1, max_size=12))
    return [spec(f"P-f{number}", text) for number, text in enumerate(descriptions)]


@given(catalogues(), sentences(), st.integers(1, 200))
def test_what_is_given_fits_and_is_whole(functions: list[FunctionSpec], goal: str, tokens: int) -> None:
    try:
        fitted = FittedFunctions.of(functions, goal, tokens=tokens)
    except LimitExceeded:
        assert all(Message.estimate_tokens(FunctionSpec.write_text([each])) >= tokens for each in functions)
        return
    assert Message.estimate_tokens(fitted.text) <= tokens
    assert fitted.text == FunctionSpec.write_text(fitted.functions), "a manual was cut"
    names = [each.name for each in fitted.functions]
    assert sorted([*names, *fitted.left_out]) == sorted(each.name for each in functions), "a function was lost"


@given(catalogues(), sentences())
def test_with_room_for_all_the_order_is_the_catalogues(functions: list[FunctionSpec], goal: str) -> None:
    for tokens in (None, 100_000):
        assert list(FittedFunctions.of(functions, goal, tokens=tokens).functions) == functions


@given(sentences(), st.integers(2, 40))
def test_the_same_catalogue_and_goal_give_the_same_manual(goal: str, count: int) -> None:
    functions = [spec(f"P-f{number}", "poem rain") for number in range(count)]
    first, second = (FittedFunctions.of(functions, goal, tokens=60) for _ in range(2))
    assert first == second


def test_what_the_goal_speaks_of_comes_first() -> None:
    functions = [
        *(spec(f"Office-Task{number}", "Keeps the office going.", "text") for number in range(200)),
        spec("WriterPlugin-ShortPoem", "Turn a scenario into a short poem.", "input"),
        spec("WriterPlugin-Translate", "Translate the input into another language.", "input", "language"),
    ]
    goal = "Write a poem about John Doe, then translate it into Chinese."
    fitted = FittedFunctions.of(functions, goal, tokens=120)
    assert {each.name for each in fitted.functions[:2]} == {"WriterPlugin-ShortPoem", "WriterPlugin-Translate"}
    assert len(fitted.left_out) > 190


def test_words_inside_names_of_many_humps_are_found() -> None:
    functions = [spec("A-getHTTPForecast"), spec("B-sendEMail"), spec("C-other")]
    assert FittedFunctions.of(functions, "the forecast", tokens=22).functions[0].name == "A-getHTTPForecast"


def test_a_budget_too_small_for_any_function_says_what_is_needed() -> None:
    with pytest.raises(LimitExceeded, match=r"No function's manual fits into 3 tokens; the smallest takes about \d+"):
        FittedFunctions.of([spec("P-f", "words " * 50)], "goal", tokens=3)


def test_a_large_manual_does_not_keep_smaller_ones_out() -> None:
    functions = [spec("P-poem", "poem " * 100), spec("P-short", "Nothing.")]
    assert [each.name for each in FittedFunctions.of(functions, "poem", tokens=40).functions] == ["P-short"]


def test_planning_with_no_functions_says_where_they_come_from() -> None:
    with pytest.raises(PlanError, match=r"no functions to plan with.*portico\.toml"):
        Task("goal").require_functions()
    Task("goal", (spec("f"),)).require_functions()
