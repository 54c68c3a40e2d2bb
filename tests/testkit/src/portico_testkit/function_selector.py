"""What every FunctionSelector must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import pytest

from portico import FunctionSpec, Selection
from portico.ports import FunctionSelector
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["FunctionSelectorKit"]

_REASONS_OFFERED = {"always", "all", "chosen"}
_REASONS_LEFT_OUT = {"beyond the limit", "below the minimum score"}
_LIMIT = 3


def _manual(name: str, description: str, *parameters: str) -> FunctionSpec:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return FunctionSpec(name, description, {"type": "object", "properties": properties}, {"type": "string"})


_MANUALS = (
    _manual("Weather-Forecast", "Tell the weather of a city: rain, sun and wind.", "city"),
    _manual("Mail-Send", "Send a letter by mail.", "recipient", "letter"),
    _manual("Music-Play", "Play songs of a singer.", "singer"),
    _manual("Train-Timetable", "Find trains between two towns.", "departure", "destination"),
    _manual("Bakery-Order", "Order bread and cakes from the bakery.", "bread"),
    _manual("Library-Borrow", "Borrow a book from the library.", "title"),
    _manual("Bank-Transfer", "Transfer money to an account.", "amount", "account"),
    _manual("Doctor-Appointment", "Make an appointment with a doctor.", "day"),
    _manual("Garden-Water", "Water the plants of the garden.", "plants"),
    _manual("Photo-Rotate", "Turn a photograph round.", "photograph"),
)
_QUESTIONS = {
    "Will there be rain or sun, and what wind, in the city?": "Weather-Forecast",
    "Send the letter to Ada by mail.": "Mail-Send",
    "Find trains between the two towns.": "Train-Timetable",
    "Transfer money to this account.": "Bank-Transfer",
    "Borrow the book from the library.": "Library-Borrow",
}


class FunctionSelectorKit:
    """Subclass it and give a fixture named ``function_selector``; a new one for each test, that offers few::

        class TestAcmeSelector(FunctionSelectorKit):
            @pytest.fixture
            def function_selector(self) -> AcmeSelector:
                return AcmeSelector(AcmeSettings(max=3), None)

    It is given ten functions at most. It may have no functions that are always offered, no minimum score, and a limit
    of at most five. ``finds`` is False for one that does not go by what functions are said to do.
    """

    finds: ClassVar[bool] = True

    @pytest.mark.asyncio
    async def test_it_has_a_name_and_a_limit(self, function_selector: FunctionSelector) -> None:
        assert isinstance(function_selector.name, str)
        assert function_selector.name.strip(), "the name is blank"
        assert 0 < function_selector.limit <= 5, f"for this kit the limit is 1 to 5, not {function_selector.limit}"

    @pytest.mark.asyncio
    async def test_only_functions_that_were_given_are_offered_each_once(
        self, function_selector: FunctionSelector
    ) -> None:
        for specs in (_MANUALS, _MANUALS[:6], _MANUALS[4:], _MANUALS[::-1]):
            for question in _QUESTIONS:
                _checked(await function_selector.select(specs, [question]), specs, function_selector.limit)

    @pytest.mark.asyncio
    async def test_the_limit_holds(self, function_selector: FunctionSelector) -> None:
        text = " ".join(_QUESTIONS)
        for limit in (None, 0, 1, _LIMIT, len(_MANUALS) - 1):
            selection = await function_selector.select(_MANUALS, [text], limit=limit)
            _checked(selection, _MANUALS, function_selector.limit if limit is None else limit)

    @pytest.mark.asyncio
    async def test_when_there_are_no_more_than_may_be_offered_all_are(
        self, function_selector: FunctionSelector
    ) -> None:
        for specs, limit in ((_MANUALS, len(_MANUALS)), (_MANUALS, 99), (_MANUALS[:2], 2), ((), 0), ((), None)):
            for context in ([], ["rain"], ["", " "]):
                selection = await function_selector.select(specs, context, limit=limit)
                assert set(selection.names) == {spec.name for spec in specs}, f"limit {limit} of {len(specs)}"
                _checked(selection, specs, len(specs))

    @pytest.mark.asyncio
    async def test_without_any_words_nothing_is_chosen(self, function_selector: FunctionSelector) -> None:
        for context in ([], [""], [" \n\t", ""]):
            selection = await function_selector.select(_MANUALS, context)
            assert selection.names == (), f"{context!r} chose {selection.names}"
            assert selection.considered == len(_MANUALS)

    @pytest.mark.asyncio
    async def test_it_finds_what_is_asked_for(self, function_selector: FunctionSelector) -> None:
        if not self.finds:
            pytest.skip("it does not go by what functions are said to do")
        for question, wanted in _QUESTIONS.items():
            names = (await function_selector.select(_MANUALS, [question])).names
            assert wanted in names, f"{question!r} offered {names}, not {wanted}"

    @pytest.mark.asyncio
    async def test_a_function_that_changed_is_chosen_by_what_it_is_now(
        self, function_selector: FunctionSelector
    ) -> None:
        if not self.finds:
            pytest.skip("it does not go by what functions are said to do")
        specs = list(_MANUALS)
        asked = ["How many penguins are in the zoo? Count them."]
        await function_selector.select(specs, asked)
        specs[9] = _manual("Photo-Rotate", "Count the penguins in the zoo.", "zoo")
        names = (await function_selector.select(specs, asked)).names
        assert "Photo-Rotate" in names, f"a function that changed is not found: {names}"
        del specs[9]
        names = (await function_selector.select(specs, asked)).names
        assert "Photo-Rotate" not in names, "a function that vanished is offered"

    @pytest.mark.asyncio
    async def test_a_cancelled_call_leaves_it_usable(self, function_selector: FunctionSelector) -> None:
        tasks = asyncio.all_tasks()
        for passes in range(24):
            specs = (*_MANUALS, _manual(f"New-Number{passes}", "Count something.", "thing"))
            await give_up(partial(function_selector.select, specs, ["Send the letter by mail."]), turns=passes)
        await no_tasks_but(tasks)
        selection = await still_answers(function_selector.select(_MANUALS, ["Send the letter by mail."]))
        _checked(selection, _MANUALS, function_selector.limit)

    @pytest.mark.asyncio
    async def test_a_selection_leaves_the_event_loop_free(self, function_selector: FunctionSelector) -> None:
        questions = list(_QUESTIONS)

        def select(number: int) -> Awaitable[Selection]:
            new = [replace(each, description=f"{each.description} It is number {number}.") for each in _MANUALS]
            return function_selector.select(new, [questions[number]])

        await leaves_the_event_loop_free(select)


def _checked(selection: Selection, specs: Sequence[FunctionSpec], most: int) -> None:
    given = {spec.name for spec in specs}
    names = selection.names
    assert set(names) <= given, f"{sorted(set(names) - given)} were offered and not given"
    assert len(set(names)) == len(names), f"offered twice: {names}"
    assert len(names) <= most, f"{len(names)} are offered, {most} may be"
    assert selection.considered == len(given), f"{len(given)} were given, {selection.considered} considered"
    left_out = [each.name for each in selection.left_out]
    assert set(left_out) <= given - set(names), "what is left out is offered, or was not given"
    assert len(set(left_out)) == len(left_out), f"left out twice: {left_out}"
    reasons = {each.reason for each in selection.offered}
    assert reasons <= _REASONS_OFFERED, f"{sorted(reasons)} are no reasons to offer"
    reasons = {each.reason for each in selection.left_out}
    assert reasons <= _REASONS_LEFT_OUT, f"{sorted(reasons)} are no reasons to leave out"
    for some in (selection.offered, selection.left_out):
        scores = [each.score for each in some if each.reason in ("chosen", "beyond the limit")]
        assert scores == sorted(scores, reverse=True), f"the best do not come first: {scores}"
