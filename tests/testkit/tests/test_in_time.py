"""What has no end is told as that, sooner where there is little patience, and nothing of it goes on."""

from __future__ import annotations

import asyncio
import time

import pytest

from portico_testkit.raw_server import RawServer, whole
from portico_testkit.tasks import in_time, no_tasks_but, still_answers, tasks_begun, with_patience


async def never() -> None:
    await asyncio.Event().wait()


async def test_what_comes_to_an_end_gives_its_result_or_its_error() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    assert await in_time(asyncio.sleep(0, "done"), "it has no end") == "done"
    with pytest.raises(ValueError, match="no"):
        await in_time(fails(), "it has no end")


async def test_what_has_no_end_fails_and_is_cancelled() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(pytest.fail.Exception, match=r"^it has no end after 0\.05 seconds$"):
        await in_time(never(), "it has no end", seconds=0.05)
    assert asyncio.all_tasks() == before


async def test_patience_bounds_every_wait_within_its_block_and_in_its_threads() -> None:
    def in_a_thread() -> str:
        with pytest.raises(pytest.fail.Exception) as failed:
            asyncio.run(in_time(never(), "a thread"))
        return str(failed.value)

    with with_patience(0.04):
        with pytest.raises(pytest.fail.Exception, match=r"a wait after 0\.04 seconds"):
            await in_time(never(), "a wait", seconds=60)
        assert await asyncio.to_thread(in_a_thread) == "a thread after 0.04 seconds"
        with pytest.raises(pytest.fail.Exception, match=r"after 0\.01 seconds"):
            await in_time(never(), "a shorter one", seconds=0.01)
        left = asyncio.create_task(never(), name="left over")
        with pytest.raises(pytest.fail.Exception, match=r"1 tasks go on 0\.04 seconds after .*left over"):
            await no_tasks_but({task for task in asyncio.all_tasks() if task is not left})
        await asyncio.wait([left])
    with pytest.raises(pytest.fail.Exception, match=r"after 0\.06 seconds"):
        await in_time(never(), "afterwards", seconds=0.06)


async def test_a_host_that_stops_the_process_takes_nothing_of_the_time() -> None:
    async def held_up() -> str:
        for _ in range(3):
            await asyncio.sleep(0.001)
            time.sleep(0.05)
        return "done"

    assert await in_time(held_up(), "it has no end", seconds=0.08) == "done"


async def test_who_gives_the_wait_up_ends_what_it_waits_for() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await never()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(in_time(work(), "it has no end"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    await asyncio.wait_for(ended.wait(), 30)


async def test_a_call_that_does_not_answer_after_a_cancelled_one_is_told_so() -> None:
    assert await still_answers(asyncio.sleep(0, "here")) == "here"
    with with_patience(0.02), pytest.raises(pytest.fail.Exception, match="after a cancelled call it never answers"):
        await still_answers(never())


async def test_tasks_are_the_callers_whoever_has_their_code_and_those_of_a_server_are_not() -> None:
    """A server in the same loop begins a task for each connection."""
    served: list[asyncio.Task[object]] = []

    async def inside() -> asyncio.Task[object]:
        return asyncio.create_task(asyncio.sleep(30))

    async with RawServer(whole()) as server:
        address = server.url.removeprefix("http://").split(":")
        before = asyncio.all_tasks()
        with tasks_begun() as begun:
            task = await asyncio.create_task(inside())
            reader, writer = await asyncio.open_connection(address[0], int(address[1]))
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readline()
            served += asyncio.all_tasks() - before - begun
            writer.close()
        outside = asyncio.create_task(never())
        assert task in begun
        assert outside not in begun
        assert served, "the server has no task: this shows nothing"
        for each in (task, outside):
            each.cancel()
        await asyncio.wait([task, outside])


async def test_another_task_factory_is_used_and_is_there_afterwards() -> None:
    loop = asyncio.get_running_loop()

    def named(loop, coroutine, **options):
        return asyncio.Task(coroutine, loop=loop, name="mine", **options)

    loop.set_task_factory(named)
    try:
        with tasks_begun() as begun:
            await asyncio.ensure_future(asyncio.sleep(0))
        assert [task.get_name() for task in begun] == ["mine"]
        assert loop.get_task_factory() is named
    finally:
        loop.set_task_factory(None)
