"""What has no end fails as that, sooner where there is little patience, and nothing of it goes on."""

from __future__ import annotations

import asyncio
import time

import pytest

from portico_testkit.tasks import in_time, no_tasks_but, still_answers, with_patience


async def never() -> None:
    await asyncio.Event().wait()


async def test_a_call_that_ends_gives_its_result_or_its_error() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    assert await in_time(asyncio.sleep(0, "done"), "it has no end") == "done"
    with pytest.raises(ValueError, match="no"):
        await in_time(fails(), "it has no end")


async def test_a_call_without_an_end_fails_and_is_cancelled() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(pytest.fail.Exception, match=r"^it has no end after 0\.05 seconds$"):
        await in_time(never(), "it has no end", seconds=0.05)
    assert asyncio.all_tasks() == before


async def test_patience_bounds_every_wait_within_its_block() -> None:
    with with_patience(0.04):
        with pytest.raises(pytest.fail.Exception, match=r"a wait after 0\.04 seconds"):
            await in_time(never(), "a wait", seconds=60)
        left = asyncio.create_task(never(), name="left over")
        with pytest.raises(pytest.fail.Exception, match=r"1 tasks go on 0\.04 seconds after .*left over"):
            await no_tasks_but({task for task in asyncio.all_tasks() if task is not left})
        await asyncio.wait([left])


async def test_a_host_that_stops_the_process_takes_nothing_of_the_time() -> None:
    async def held_up() -> str:
        for _ in range(3):
            await asyncio.sleep(0.001)
            time.sleep(0.05)
        return "done"

    assert await in_time(held_up(), "it has no end", seconds=0.08) == "done"


async def test_a_call_without_an_answer_after_a_cancelled_one_fails_as_that() -> None:
    assert await still_answers(asyncio.sleep(0, "here")) == "here"
    with with_patience(0.02), pytest.raises(pytest.fail.Exception, match="after a cancelled call it never answers"):
        await still_answers(never())
