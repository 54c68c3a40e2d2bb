"""What has no end fails as that, sooner where there is little patience, and nothing of it goes on."""

from __future__ import annotations

import asyncio
import time

import pytest

from portico_testkit.tasks import in_time, no_tasks_but, with_patience


async def never() -> None:
    await asyncio.Event().wait()


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
