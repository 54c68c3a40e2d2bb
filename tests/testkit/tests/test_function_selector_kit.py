"""The FunctionSelector kit passes a correct selector and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from portico.selection.selection import Considered
from portico_testkit.fakes.function_selector import WordSelector
from portico_testkit.function_selector import FunctionSelectorKit
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit


class TestWordSelector(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self) -> WordSelector:
        return WordSelector(3)


FAULTS = KnownFaults(FunctionSelectorKit, lambda kind: {"function_selector": kind})


class Broken(WordSelector):
    """Does right what a variant does not do wrong."""

    def __init__(self):
        super().__init__(3)


@FAULTS.caught_by("it_has_a_name_and_a_limit")
class Nameless(Broken):
    name = " "


@FAULTS.caught_by("only_functions_that_were_given_are_offered_each_once")
class OffersWhatVanished(Broken):
    def __init__(self):
        super().__init__()
        self.known = {}

    async def select(self, functions, context, *, limit=None):
        self.known |= {each.name: each for each in functions}
        return await super().select(tuple(self.known.values()), context, limit=limit)


@FAULTS.caught_by("only_functions_that_were_given_are_offered_each_once")
class OffersTwice(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=(*found.offered[:1], *found.offered[:1], *found.offered[2:]))


@FAULTS.caught_by("the_limit_holds")
class IgnoresTheLimit(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context, limit=None if limit is None or limit < 0 else 4)


@FAULTS.caught_by("a_negative_limit_is_refused")
class TakesNegativeLimits(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context, limit=None if limit is None else max(limit, 0))


@FAULTS.caught_by("when_there_are_no_more_than_may_be_offered_all_are")
class ChoosesWhereAllFit(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=found.offered[:1]) if len(functions) == 2 else found


@FAULTS.caught_by("without_any_words_nothing_is_chosen")
class ChoosesWithoutWords(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context if any(map(str.strip, context)) else ["the"], limit=limit)


@FAULTS.caught_by("blank_texts_count_for_nothing")
class CountsBlankTexts(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, context[:1], limit=limit)


@FAULTS.caught_by("it_finds_what_is_asked_for")
class FirstOnes(Broken):
    async def select(self, functions, context, *, limit=None):
        limit = self.limit if limit is None else limit
        found = await super().select(functions, context, limit=limit)
        if len(found.offered) in (0, len(functions)):
            return found
        names = [each.name for each in functions]
        return replace(found, offered=tuple(Considered(name, "chosen") for name in names[:limit]), left_out=())


@FAULTS.caught_by("every_text_of_the_context_counts")
class LastTextOnly(Broken):
    async def select(self, functions, context, *, limit=None):
        return await super().select(functions, [text for text in context if text.strip()][-1:], limit=min(limit or 3, 1)
                                    if limit == 5 else limit)  # fmt: skip


@FAULTS.caught_by("a_function_that_changed_is_chosen_by_what_it_is_now")
class RemembersTheFirst(Broken):
    async def select(self, functions, context, *, limit=None):
        key = tuple(context)
        self.first = getattr(self, "first", {})
        found = await super().select(functions, context, limit=limit)
        return self.first.setdefault((key, limit, len(functions)), found)


@FAULTS.caught_by("equal_functions_and_context_give_an_equal_selection")
class DependsOnTheOrderOfAsking(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        self.asked = getattr(self, "asked", 0) + 1
        return replace(found, offered=found.offered[: max(3 - self.asked // 2, 1)])


@FAULTS.caught_by("what_is_left_out_has_its_reason")
class NoReasons(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, left_out=tuple(replace(each, reason="chosen") for each in found.left_out))


@FAULTS.caught_by("the_limit_holds")
class WorstFirst(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, offered=found.offered[::-1])


@FAULTS.caught_by("what_is_left_out_has_its_reason")
class CountsWrong(Broken):
    async def select(self, functions, context, *, limit=None):
        found = await super().select(functions, context, limit=limit)
        return replace(found, considered=len(found.offered))


@FAULTS.caught_by("odd_texts_do_no_harm")
class StumblesOverSurrogates(Broken):
    async def select(self, functions, context, *, limit=None):
        "".join(context).encode()
        return await super().select(functions, context, limit=limit)


@FAULTS.caught_by("calls_at_once_do_not_mix")
class MixesCalls(Broken):
    async def select(self, functions, context, *, limit=None):
        self.functions = functions
        await asyncio.sleep(0)
        return await super().select(self.functions, context, limit=limit)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable")
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


@FAULTS.caught_by("odd_texts_do_no_harm")
class LeavesTasks(Broken):
    async def select(self, functions, context, *, limit=None):
        self.task = asyncio.create_task(asyncio.sleep(60))
        return await super().select(functions, context, limit=limit)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    select = keeps_its_lock(Broken.select)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def select(self, functions, context, *, limit=None):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().select(functions, context, limit=limit)


@FAULTS.caught_by("a_selection_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoop(Broken):
    async def select(self, functions, context, *, limit=None):
        time.sleep(0.05)
        return await super().select(functions, context, limit=limit)


@FAULTS.caught_by("a_selection_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopForWhatItDoesNotKnow(Broken):
    known: frozenset[str] = frozenset()

    async def select(self, functions, context, *, limit=None):
        described = {each.description for each in functions}
        if described - self.known:
            time.sleep(0.05)
        self.known |= described
        return await super().select(functions, context, limit=limit)


class TestTheFunctionSelectorKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken,)
