"""The FunctionSelector kit passes a correct selector and catches broken ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from portico.selection.selection import Considered
from portico_testkit.fakes.function_selector import WordSelector
from portico_testkit.function_selector import FunctionSelectorKit


class TestWordSelector(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self) -> WordSelector:
        return WordSelector(3)


class Broken(WordSelector):
    """Does right what a variant does not do wrong."""

    def __init__(self):
        super().__init__(3)


class Nameless(Broken):
    name = " "


class OffersWhatVanished(Broken):
    def __init__(self):
        super().__init__()
        self.known = {}

    async def select(self, functions, context, *, limit=None):
        self.known |= {each.name: each for each in functions}
        return await super().select(tuple(self.known.values()), context, limit=limit)


class OffersTwice(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=(*found.offered[:1], *found.offered[:1], *found.offered[2:]))


class IgnoresTheLimit(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context, limit=None if limit is None or limit < 0 else 4)


class TakesNegativeLimits(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context, limit=None if limit is None else max(limit, 0))


class ChoosesWhereAllFit(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=found.offered[:1]) if len(functions) == 2 else found


class ChoosesWithoutWords(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context if any(map(str.strip, context)) else ["the"], limit=limit)


class CountsBlankTexts(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context[:1], limit=limit)


class FirstOnes(Broken):
    async def select(self, functions, context, *, limit=None):
        limit = self.limit if limit is None else limit
        found = await super().select(functions, context, limit=limit)
        if len(found.offered) in (0, len(functions)):
            return found
        names = [each.name for each in functions]
        return replace(found, offered=tuple(Considered(name, "chosen") for name in names[:limit]), left_out=())


class LastTextOnly(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, [text for text in context if text.strip()][-1:], limit=min(limit or 3, 1)
                                    if limit == 5 else limit)  # fmt: skip


class RemembersTheFirst(Broken):
    async def select(self, functions, context, *, limit=None):
        key = tuple(context)
        self.first = getattr(self, "first", {})
        found = await super().select(functions, context, limit=limit)
        return self.first.setdefault((key, limit, len(functions)), found)


class DependsOnTheOrderOfAsking(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        self.asked = getattr(self, "asked", 0) + 1
        return replace(found, offered=found.offered[: max(3 - self.asked // 2, 1)])


class NoReasons(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, left_out=tuple(replace(each, reason="chosen") for each in found.left_out))


class WorstFirst(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=found.offered[::-1])


class CountsWrong(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, considered=len(found.offered))


class StumblesOverSurrogates(Broken):
    async def select(self, functions, context, *, limit=None):
        "".join(context).encode()
        return await super().select(functions, context, limit=limit)


class MixesCalls(Broken):
    async def select(self, functions, context, *, limit=None):
        self.functions = functions
        await asyncio.sleep(0)
        return await super().select(self.functions, context, limit=limit)


class StaysBusyWhenCancelled(Broken):
    busy = False

    async def select(self, functions, context, *, limit=None):
        if self.busy:
            raise RuntimeError("still busy")
        if limit is None and len(functions) == 11:
            self.busy = True
            await asyncio.sleep(0)
            self.busy = False
        return await super().select(functions, context, limit=limit)


class LeavesTasks(Broken):
    async def select(self, functions, context, *, limit=None):
        self.task = asyncio.create_task(asyncio.sleep(60))
        return await super().select(functions, context, limit=limit)


BROKEN = Broken.__subclasses__()


async def failures(kind: type[WordSelector]) -> list[str]:
    found = []
    for name in sorted(dir(FunctionSelectorKit)):
        if name.startswith("test_"):
            try:
                await getattr(FunctionSelectorKit(), name)(kind())
            except (Exception, ExceptionGroup, pytest.fail.Exception):
                found.append(name)
    return found


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[WordSelector]) -> None:
    assert await failures(variant), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_what_the_broken_ones_share() -> None:
    assert await failures(Broken) == []


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (OffersWhatVanished, "test_only_functions_that_were_given_are_offered_each_once"),
        (IgnoresTheLimit, "test_the_limit_holds"),
        (TakesNegativeLimits, "test_a_negative_limit_is_refused"),
        (ChoosesWhereAllFit, "test_when_there_are_no_more_than_may_be_offered_all_are"),
        (ChoosesWithoutWords, "test_without_any_words_nothing_is_chosen"),
        (CountsBlankTexts, "test_blank_texts_count_for_nothing"),
        (FirstOnes, "test_it_finds_what_is_asked_for"),
        (LastTextOnly, "test_every_text_of_the_context_counts"),
        (DependsOnTheOrderOfAsking, "test_equal_functions_and_context_give_an_equal_selection"),
        (RemembersTheFirst, "test_a_function_that_changed_is_chosen_by_what_it_is_now"),
        (StumblesOverSurrogates, "test_odd_texts_do_no_harm"),
        (MixesCalls, "test_calls_at_once_do_not_mix"),
        (StaysBusyWhenCancelled, "test_a_cancelled_call_leaves_it_usable"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[WordSelector], test: str) -> None:
    assert test in await failures(variant)
