"""What is this planner's own."""

from collections.abc import Callable

import pytest
from portico import Answer, Infeasible, Kernel, function, search_plugin
from portico.errors import PlanError
from portico_testkit.fakes.text_search import ListEntry, ListSearch

from portico_acme_planner.config import AcmeSettings
from portico_acme_planner.planner import AcmePlanner


@function
def length(text: str) -> int:
    """Count the letters."""
    return len(text)


@function
def backwards(text: str) -> str:
    """Turn a text round."""
    return text[::-1]


@function
def fail(text: str) -> str:
    """Fail."""
    raise ConnectionError("nothing works today")


@function
def repeat(text: str, times: int) -> str:
    """Say it several times."""
    return text * times


@function(effects=True)
def send(text: str) -> str:
    """Send it to all readers."""
    raise AssertionError("it was sent")


async def run_goal(goal: str, *functions: Callable[..., object], most: int = 3) -> object:
    kernel = Kernel()
    for each in functions:
        kernel.add_function(each)
    settings = AcmeSettings(functions=most)
    planner = AcmePlanner(settings, None)
    return (await kernel.run_goal(goal, planner=planner)).outcome


async def test_every_function_that_fits_is_asked() -> None:
    outcome = await run_goal("abc", length, backwards)
    assert outcome == Answer("length: 3\n\nbackwards: cba")


async def test_the_words_of_the_goal_decide_which_function_comes_first() -> None:
    assert await run_goal("turn it round", length, backwards, most=1) == Answer("backwards: dnuor ti nrut")


async def test_functions_with_effects_or_other_parameters_are_left_alone() -> None:
    outcome = await run_goal("abc", send, repeat)
    assert isinstance(outcome, Infeasible)
    assert outcome.missing == ("a function of one text",)


async def test_passages_are_cited() -> None:
    docs = ListSearch([ListEntry("The door is red.", "House", "https://docs.example/house")])
    kernel = Kernel(plugins=[search_plugin(docs, "docs")])
    planner = AcmePlanner(AcmeSettings(), None)
    outcome = (await kernel.run_goal("Which colour is the door?", planner=planner)).outcome
    assert isinstance(outcome, Answer)
    assert outcome.text == "The door is red. [1]"
    assert outcome.citations[0].link == "https://docs.example/house"


async def test_a_function_that_fails_is_told_of_and_the_others_answer() -> None:
    outcome = await run_goal("abc", fail, length)
    assert isinstance(outcome, Answer)
    assert outcome.text == "length: 3"
    assert "nothing works today" in outcome.warnings[0]


async def test_when_all_fail_that_is_the_error() -> None:
    with pytest.raises(PlanError, match="nothing works today"):
        await run_goal("abc", fail)


@pytest.mark.parametrize("functions", [0, 10])
def test_settings_out_of_range_are_refused(functions: int) -> None:
    with pytest.raises(ValueError, match="functions is"):
        AcmeSettings(functions=functions)
