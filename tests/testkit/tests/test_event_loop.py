"""A stall of the event loop is found, and one pause of the host is not taken for it."""

from __future__ import annotations

import asyncio
import time

import pytest

from portico_testkit.event_loop import leaves_the_event_loop_free


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
