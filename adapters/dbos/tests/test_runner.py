"""The runner in one process: what it shares, what it leaves alone, what it records, and how it ends."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle  # what nobody may read
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from portico.errors import StoreBusy, StoreError, StoreUnavailable
from portico.plugins import Secret
from portico.ports import Job, JobStatus
from portico_dbos._opened import Opened
from portico_dbos._process import PROCESS
from portico_dbos._worker import tidy
from portico_dbos.config import DbosSettings, Rate
from portico_dbos.runner import DbosRunner
from portico_testkit.event_loop import heartbeat

Open = Callable[..., DbosRunner]
PATIENCE = 60.0


async def done() -> str:
    """Be an action."""
    return "done"


@asynccontextmanager
async def at_work(runner: DbosRunner, carry_out: Any, **options: Any) -> Any:
    working = asyncio.ensure_future(runner.jobs.work(carry_out, **options))
    try:
        yield working
    finally:
        working.cancel()
        await asyncio.wait([working])


async def ended(runner: DbosRunner, *names: str) -> list[JobStatus]:
    """Wait until jobs have ended."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told = [each for each in await runner.jobs.status(names) if each is not None]
            if len(told) == len(names) and all(each.state not in ("waiting", "running") for each in told):
                return told
            await asyncio.sleep(0.02)


def enqueued(opened: Opened, *, id: str, body: str) -> None:
    """Put a row into the queue of the kind "k" as another program may."""
    opened.client.enqueue(
        {"workflow_name": "portico.job.k", "queue_name": "portico.k", "workflow_id": id, "app_version": "portico-1"},
        body,
    )


async def until(so: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not so():
            await asyncio.sleep(0.01)


def ours(before: set[threading.Thread]) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread not in before]


async def test_closing_ends_all_threads_and_it_may_be_used_again(opened: Open) -> None:
    await asyncio.to_thread(time.sleep, 0)  # the loop's own
    before = set(threading.enumerate())
    runner = opened()
    for number in range(2):
        assert await runner.durable.run(f"r{number}", partial(runner.execute, f"r{number}", "s", done)) == "done"
        async with at_work(runner, {"k": lambda job: done()}):
            await runner.jobs.submit([Job(f"j{number}", "k")])
            await ended(runner, f"j{number}")
        await runner.aclose()
        await until(lambda: not ours(before))
        await runner.aclose()


async def test_closing_while_it_works_puts_the_jobs_back(opened: Open) -> None:
    runner, began = opened(), asyncio.Event()

    async def endless(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    await runner.jobs.submit([Job("j", "k")])
    working = asyncio.ensure_future(runner.jobs.work({"k": endless}))
    await asyncio.wait_for(began.wait(), PATIENCE)
    await runner.aclose()
    await asyncio.wait([working], timeout=PATIENCE)
    assert working.done()
    (told,) = await runner.jobs.status(["j"])
    assert told is not None
    assert told.state == "waiting"


@pytest.mark.parametrize("late", ["", "before DBOS ends", "after it"])
async def test_an_action_that_begins_while_the_runner_is_closed_fails_and_does_not_wait(
    opened: Open, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbos import DBOS

    runner, reached, goes_on = opened(), threading.Event(), threading.Event()
    destroy = DBOS.destroy

    def destroy_late() -> None:
        if late == "after it":
            destroy()
        reached.set()
        goes_on.wait(PATIENCE)
        if late != "after it":
            destroy()

    async def end_with(closing: asyncio.Future[None]) -> None:
        await closing

    async def work() -> None:
        running = PROCESS.running
        assert running is not None
        if late:
            monkeypatch.setattr(DBOS, "destroy", destroy_late)
        else:
            running.loop.call_soon_threadsafe(goes_on.wait, PATIENCE)
        closing = asyncio.ensure_future(runner.aclose())
        await (until(reached.is_set) if late else asyncio.sleep(0.2))
        # Its step begins after those that were there were cancelled, or is cancelled before it begins.
        executing = asyncio.ensure_future(runner.execute("r", "s", partial(end_with, closing)))
        await asyncio.sleep(0.1)
        goes_on.set()
        await closing
        await asyncio.wait_for(executing, 10)

    with pytest.raises(StoreError, match="was closed meanwhile"):
        await runner.durable.run("r", work)


async def test_a_run_that_ends_while_the_runner_is_closed_has_its_result(opened: Open) -> None:
    runner, goes_on, closings = opened(), threading.Event(), list[asyncio.Future[None]]()

    async def work() -> str:
        running = PROCESS.running
        assert running is not None
        running.loop.call_soon_threadsafe(goes_on.wait, PATIENCE)
        closings.append(asyncio.ensure_future(runner.aclose()))
        await asyncio.sleep(0.2)
        asyncio.get_running_loop().call_later(0.1, goes_on.set)
        return "done"

    running = asyncio.ensure_future(runner.durable.run("r", work))
    await asyncio.wait([running], timeout=PATIENCE)
    await asyncio.gather(*closings)
    assert not running.cancelled()
    assert await running == "done"


async def test_a_worker_whose_end_is_cut_short_is_not_heard_of_again(opened: Open) -> None:
    runner, began = opened(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        began.set()
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3)

    await runner.jobs.submit([Job("j", "k")])
    async with at_work(runner, {"k": stubborn}) as working:
        await asyncio.wait_for(began.wait(), PATIENCE)
        before = asyncio.all_tasks()
        working.cancel()
        await asyncio.sleep(0.3)  # it waits for the job, which takes its time
        inner = [task for task in before & asyncio.all_tasks() if "DbosJobs._work" in repr(task)]
        for task in inner:
            task.cancel()  # as a loop does that ends
        await asyncio.wait(inner)
        assert len(inner) == 1
        assert await runner.jobs.workers() == []
        await asyncio.sleep(1.5)
        assert await runner.jobs.workers() == []
        [job] = await runner.jobs.status(["j"])
        assert job is not None
        assert job.state == "waiting"


async def test_the_pool_of_the_applications_loop_stays_its_own(opened: Open) -> None:
    def name() -> str:
        return threading.current_thread().name

    first = await asyncio.to_thread(name)
    runner = opened()
    await runner.durable.run("r", partial(runner.execute, "r", "s", done))
    assert (await asyncio.to_thread(name)).rpartition("_")[0] == first.rpartition("_")[0]
    await runner.aclose()
    assert (await asyncio.to_thread(name)).rpartition("_")[0] == first.rpartition("_")[0]


async def test_the_loop_goes_on_while_a_server_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"postgresql://ada@127.0.0.1:{silent.getsockname()[1]}/portico?connect_timeout=2"

        runner = DbosRunner(DbosSettings(uri=Secret(uri)))
        async with heartbeat() as beat:
            first = asyncio.ensure_future(runner.jobs.status(["j"]))
            connection, _ = await asyncio.to_thread(silent.accept)  # so it is being opened
            told = await asyncio.gather(first, runner.jobs.status(["j"]), return_exceptions=True)
            await runner.aclose()
        connection.close()
    assert [type(each) for each in told] == [StoreUnavailable] * 2
    assert beat.longest < 1.5


async def test_runners_on_one_database_run_at_once(opened: Open) -> None:
    one, other = opened(), opened()
    together = asyncio.Barrier(2)

    async def meet() -> str:
        await together.wait()
        return "met"

    runs = [
        each.durable.run(f"r{at}", partial(each.execute, f"r{at}", "s", meet)) for at, each in enumerate((one, other))
    ]
    assert await asyncio.wait_for(asyncio.gather(*runs), PATIENCE) == ["met", "met"]
    await one.aclose()
    assert await other.durable.run("r2", partial(other.execute, "r2", "s", done)) == "done"


async def test_a_second_database_is_refused_as_long_as_the_first_one_is_in_use(opened: Open, tmp_path: Path) -> None:
    first = opened()
    second = DbosRunner(DbosSettings(path=tmp_path / "another.sqlite3"))

    async def inside() -> str:
        with pytest.raises(StoreBusy, match="DBOS is there once in a process"):
            await second.durable.run("r", done)
        with pytest.raises(StoreBusy, match="DBOS is there once in a process"):
            await second.jobs.work({"k": lambda job: done()})
        await second.jobs.submit([Job("j", "k")])  # this needs no DBOS of the process
        return "inside"

    try:
        assert await first.durable.run("r", inside) == "inside"
        assert await second.durable.run("r", partial(second.execute, "r", "s", done)) == "done"
        assert await first.durable.run("r", done) == "done"
    finally:
        await second.aclose()


async def test_a_second_worker_in_one_process_is_refused(opened: Open) -> None:
    one, other = opened(), opened()
    async with at_work(one, {"k": lambda job: done()}):
        await until_workers(one, 1)
        with pytest.raises(StoreBusy, match=r"is a worker on .* already"):
            await other.jobs.work({"k": lambda job: done()})
        await until_workers(one, 1)


async def until_workers(runner: DbosRunner, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await runner.jobs.workers()) != count:
            await asyncio.sleep(0.02)


def test_an_application_with_a_dbos_of_its_own_is_told(tmp_path: Path) -> None:
    program = f"""
import asyncio, logging
from pathlib import Path
logging.getLogger("dbos").addHandler(logging.NullHandler())
from dbos import DBOS
DBOS(config={{"name": "theirs", "system_database_url": "sqlite:///{tmp_path}/theirs.sqlite3"}})
from portico.errors import StoreError
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner
async def main():
    runner = DbosRunner(DbosSettings(path=Path("{tmp_path}/ours.sqlite3")))
    async def work(): return 1
    try:
        await runner.durable.run("r", work)
    except StoreError as error:
        print(error)
    await runner.aclose()
    print(DBOS.application_version is not None)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("This process runs its own DBOS"), done.stdout + done.stderr
    assert done.stdout.endswith("True\n")


def test_a_process_that_forgets_to_close_ends_all_the_same_and_says_nothing(tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from portico.ports import Job
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner
async def main():
    runner = DbosRunner(DbosSettings(path=Path("{tmp_path}/dbos.sqlite3"), poll=0.05))
    async def carry_out(job): raise ValueError("no")
    async def work(): return 1
    await runner.jobs.submit([Job("j", "k")])
    working = asyncio.ensure_future(runner.jobs.work({{"k": carry_out}}))
    await runner.durable.run("r", work)
    while (await runner.jobs.status(["j"]))[0].state != "failed":
        await asyncio.sleep(0.05)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == ("", "")


async def test_a_failure_leaves_nothing_in_the_database_but_the_text_of_a_job(opened: Open) -> None:
    runner = opened()

    class Told(Exception):
        data = "what nobody may read"

    async def fail() -> None:
        raise Told("the text")

    async def work() -> str:
        with pytest.raises(Told, match="the text"):
            await runner.execute("r", "s", fail)
        return await runner.execute("r", "s", done)

    assert await runner.durable.run("r", work) == "done"
    await runner.jobs.submit([Job("j", "k")])
    async with at_work(runner, {"k": lambda job: fail()}):
        (told,) = await ended(runner, "j")
    assert (told.state, told.error) == ("failed", "the text")

    def everything(database: Any) -> str:
        rows = []
        for table in sa.inspect(database.engine).get_table_names(schema=database.schema):
            with database.engine.connect() as connection:
                rows += connection.execute(
                    sa.select(sa.text("*")).select_from(sa.table(table, schema=database.schema))
                ).all()
        return repr(rows)

    written = await runner._database.call(everything)
    assert "the text" in written
    assert "what nobody may read" not in written
    assert "py_pickle" not in written


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (open, (str(self.file), "w"))


@pytest.mark.parametrize("column", ["inputs", "output"])
async def test_a_pickle_in_the_database_is_never_read(opened: Open, tmp_path: Path, column: str) -> None:
    runner, file = opened(), tmp_path / "sprung"
    trap = base64.b64encode(pickle.dumps(Trap(file))).decode()
    await runner.jobs.submit([Job("j", "k")])
    if column == "output":
        async with at_work(runner, {"k": lambda job: done()}):
            await ended(runner, "j")

    def set_it(database: Any) -> None:
        table = {"inputs": "workflow_input", "output": "workflow_output"}[column]
        where = sa.table(table, sa.column("workflow_uuid"), sa.column(column), schema=database.schema)
        status = sa.table(
            "workflow_status", sa.column("workflow_uuid"), sa.column("serialization"), schema=database.schema
        )
        with database.engine.begin() as connection:
            connection.execute(sa.update(where).values({column: trap}))
            connection.execute(sa.update(status).values(serialization="py_pickle"))

    await runner._database.call(set_it)
    async with at_work(runner, {"k": lambda job: done()}):
        with suppress(StoreError, ValueError):
            await ended(runner, "j")
        await asyncio.sleep(0.3)
    assert not file.exists()


async def test_what_has_ended_can_be_forgotten_and_nothing_else(opened: Open) -> None:
    runner, began, stopped = opened(), asyncio.Event(), asyncio.Event()

    async def carry_out(job: Job) -> str:
        if job.name == "endless":
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return await runner.execute(job.name, "s", done)

    names = ["short", "endless", "waiting", "unknown", ""]
    await runner.jobs.submit([Job("short", "k"), Job("endless", "k"), Job("waiting", "other")])
    async with at_work(runner, {"k": carry_out}):
        await ended(runner, "short")
        await asyncio.wait_for(began.wait(), PATIENCE)
        await runner.jobs.forget(names)
        told = await runner.jobs.status(names)
        assert [each and each.state for each in told] == [None, "running", "waiting", None, None]
        assert await runner.durable.recorded("short") == {}
        await runner.jobs.cancel(["endless"])
        await runner.jobs.forget(["endless"])
        await asyncio.wait_for(stopped.wait(), PATIENCE)
        await runner.jobs.submit([Job("short", "k")])
        await ended(runner, "short")


@pytest.mark.parametrize("body", ["{", "[" * 100_000, "[1]", "null", '"text"'])
async def test_a_job_whose_body_cannot_be_read_fails_and_is_told_of(opened: Open, body: str) -> None:
    runner, told = opened(), list[JobStatus]()
    await runner.jobs.submit([Job("good", "k")])
    await runner._database.call(partial(enqueued, id="bad", body=body))
    async with at_work(runner, {"k": lambda job: done()}, emit=told.append):
        good, bad = await ended(runner, "good", "bad")
        await until(lambda: any(each.name == "bad" for each in told))
    assert (good.state, bad.state) == ("done", "failed")
    assert (bad.error or "").startswith("The body of the job ")
    assert [each.error for each in told if each.name == "bad"] == [bad.error]


async def test_a_row_that_somebody_else_wrote_stops_no_worker(opened: Open) -> None:
    runner = opened()
    await runner.jobs.submit([Job("good", "k")])
    await runner._database.call(partial(enqueued, id="not%ffours", body="{}"))
    async with at_work(runner, {"k": lambda job: done()}):
        await ended(runner, "good")
        async with asyncio.timeout(PATIENCE):
            while await runner.jobs.jobs("k"):
                await asyncio.sleep(0.05)
    assert {each.name for each in await runner.jobs.jobs("k", states=["done"])} == {"good", "not%ffours"}


async def test_jobs_begin_at_the_rate_that_is_set(opened: Open) -> None:
    runner = opened(rate=Rate(2, 1.0), concurrency=10)
    began: list[float] = []

    async def carry_out(job: Job) -> None:
        began.append(time.monotonic())

    names = [f"j{number}" for number in range(6)]
    await runner.jobs.submit([Job(name, "k") for name in names])
    async with at_work(runner, {"k": carry_out}):
        await ended(runner, *names)
    # Between the first two and the last two lie two seconds; a machine that is busy begins the first ones late.
    assert began[-1] - began[0] > 1.0, f"6 jobs began within {began[-1] - began[0]:.2f} seconds, and 2 may in one"


async def test_workers_of_another_version_leave_a_job_alone(opened: Open) -> None:
    old, new = opened(version="1"), opened(version="2")
    await new.jobs.submit([Job("new", "k")])
    await old.jobs.submit([Job("old", "k")])
    async with at_work(old, {"k": lambda job: done()}):
        await ended(old, "old")
        await asyncio.sleep(0.3)
        (told,) = await old.jobs.status(["new"])
        assert told is not None
        assert told.state == "waiting"
    async with at_work(new, {"k": lambda job: done()}):
        assert (await ended(new, "new"))[0].state == "done"


async def test_a_job_given_back_in_order_is_not_given_up(opened: Open) -> None:
    runner = opened(attempts=1)
    went = asyncio.Event()
    await runner.jobs.submit([Job("j", "k")])
    for _ in range(3):
        began = asyncio.Event()

        async def carry_out(job: Job, began: asyncio.Event = began) -> str:
            began.set()
            await went.wait()
            return "well"

        async with at_work(runner, {"k": carry_out}):
            await asyncio.wait_for(began.wait(), PATIENCE)
    went.set()
    async with at_work(runner, {"k": carry_out}):
        (told,) = await ended(runner, "j")
    assert (told.state, told.result, told.attempts) == ("done", "well", 4)


async def test_an_emit_that_fails_and_a_result_that_is_no_json_harm_nobody_else(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    runner = opened()

    def emit(status: JobStatus) -> None:
        raise OSError("the screen is gone")

    async def carry_out(job: Job) -> Any:
        return object() if job.name == "ill" else "well"

    await runner.jobs.submit([Job("ill", "k"), Job("well", "k")])
    with caplog.at_level(logging.CRITICAL, "portico_dbos"):
        async with at_work(runner, {"k": carry_out}, emit=emit):
            ill, well = await ended(runner, "ill", "well")
    assert (ill.state, well.state, well.result) == ("failed", "done", "well")
    assert "its result is not JSON" in (ill.error or "")


async def test_jobs_are_taken_in_the_order_in_which_they_were_submitted(opened: Open) -> None:
    runner = opened(concurrency=1, poll=0.02)
    names = [f"{number * 7 % 10}" for number in range(10)]
    await runner.jobs.submit([Job(name, "k") for name in names])
    began: list[str] = []

    async def carry_out(job: Job) -> None:
        began.append(job.name)

    async with at_work(runner, {"k": carry_out}):
        await ended(runner, *names)
    assert began == names
    assert [each.name for each in await runner.jobs.jobs("k", states=("done",), limit=3)] == names[:-4:-1]


async def test_what_ended_long_ago_is_removed_and_nothing_else(opened: Open) -> None:
    runner = opened()
    await runner.jobs.submit([Job(name, "k") for name in ("ended", "waits")])
    await runner.jobs.cancel(["waits"])
    await runner.jobs.submit([Job("still", "k")])
    await runner.durable.run("r", partial(runner.execute, "r", "s", done))
    removed = await runner._database.call(lambda database: tidy(database, 1.0))
    assert removed == 0
    await asyncio.sleep(1.1)
    removed = await runner._database.call(lambda database: tidy(database, 1 / 86_400))
    assert removed == 2
    assert [each and each.state for each in await runner.jobs.status(["waits", "ended", "still"])] == [
        None,
        "waiting",
        "waiting",
    ]
    assert await runner.durable.recorded("r") == {}


@pytest.mark.parametrize("schema", ["select", "with-hyphen", "_A"])
async def test_a_schema_is_a_name_whatever_it_means_to_a_server(
    schema: str, opened: Open, where: dict[str, Any]
) -> None:
    if "path" in where:
        pytest.skip("SQLite has no schemas")
    runner = opened(schema=f"{schema}_{time.time_ns() % 10**9}")
    await runner.jobs.submit([Job("j", "k")])
    async with at_work(runner, {"k": lambda job: done()}):
        assert (await ended(runner, "j"))[0].result == "done"
    assert await runner.durable.run("r", partial(runner.execute, "r", "s", done)) == "done"
    assert await runner.durable.recorded("r") == {"s": "done"}


async def test_a_job_of_a_run_takes_what_a_run_of_it_recorded_and_the_other_way_round(opened: Open) -> None:
    runner = opened()
    called: list[str] = []

    async def do(name: str) -> Any:
        async def action() -> str:
            called.append(name)
            return f"{name} {len(called)}"

        return await runner.execute("r", name, action)

    assert await runner.durable.run("r", partial(do, "a")) == "a 1"
    await runner.jobs.submit([Job("r", "k")])

    async def carry_out(job: Job) -> list[str]:
        return [await do("b"), await do("a")]

    async with at_work(runner, {"k": carry_out}):
        assert (await ended(runner, "r"))[0].result == ["b 2", "a 1"]
    assert [await runner.durable.run("r", partial(do, name)) for name in ("a", "b", "c")] == ["a 1", "b 2", "c 3"]
    assert (
        json.dumps(dict(await runner.durable.recorded("r")), sort_keys=True) == '{"a": "a 1", "b": "b 2", "c": "c 3"}'
    )
