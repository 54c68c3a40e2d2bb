"""A stall of the event loop is found, and one pause of the host is not taken for it."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.support.virtual_time import on_virtual_time

from portico_testkit.event_loop import heartbeat, leaves_the_event_loop_free


async def test_the_turns_of_a_loop_are_counted_until_the_block_is_left() -> None:
    before = asyncio.all_tasks()
    async with heartbeat() as beat:
        await beat.turned(3)
    turns = beat.turns
    assert turns >= 3
    await asyncio.sleep(0.02)
    assert beat.turns == turns, "it beats on"
    assert asyncio.all_tasks() == before


async def test_a_stall_at_the_end_counts_too() -> None:
    async with heartbeat() as beat:
        time.sleep(0.05)
    assert 0.05 <= beat.longest <= beat.whole


async def test_an_error_ends_the_heartbeat_and_comes_out_as_it_is() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(KeyError, match="mine"):
        async with heartbeat():
            raise KeyError("mine")
    assert asyncio.all_tasks() == before


def computes(seconds: float) -> None:
    """Hold the loop up without a call that waits."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize("stalls", [0, 1])
async def test_work_that_leaves_the_loop_free_once_is_right(stalls: int) -> None:
    async def work(number: int) -> int:
        if number < stalls:
            computes(0.05)
        await asyncio.sleep(0)
        return number

    # One more, where the host itself stands still meanwhile.
    assert await leaves_the_event_loop_free(work, floor=0.04) >= stalls


async def test_work_that_blocks_the_loop_each_time_is_found() -> None:
    asked: list[int] = []

    async def work(number: int) -> None:
        asked.append(number)
        computes(0.05)

    with pytest.raises(AssertionError, match=r"the event loop stood still for 0\.\d\d of .* s, .* s, .* s"):
        await leaves_the_event_loop_free(work, floor=0.01)
    assert asked == [0, 1, 2]


async def test_work_that_waits_in_the_loop_is_found_the_first_time_however_short_it_is() -> None:
    asked: list[int] = []

    async def work(number: int) -> None:
        asked.append(number)
        time.sleep(0.001)

    with pytest.raises(AssertionError, match=r"the event loop waits by time\.sleep"):
        await leaves_the_event_loop_free(work)
    assert asked == [0]


@on_virtual_time
async def test_virtual_time_passes_only_while_all_wait() -> None:
    loop = asyncio.get_running_loop()
    ended: list[tuple[str, float]] = []

    async def nap(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append((name, loop.time()))

    await asyncio.gather(nap("long", 3600), nap("short", 60))
    assert ended == [("short", 60), ("long", 3600)]
    before = loop.time()
    time.sleep(0.02)
    await asyncio.sleep(0)
    assert loop.time() == before, "the time of the host passed"


@on_virtual_time
async def test_a_virtual_time_out_ends_what_waits_and_never_what_is_at_work() -> None:
    async with asyncio.timeout(0.001):
        time.sleep(0.02)
        for _ in range(100):
            await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.Event().wait()


def test_a_failure_on_virtual_time_comes_out_as_it_is() -> None:
    @on_virtual_time
    async def fails() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
