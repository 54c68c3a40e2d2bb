"""The runner on DBOS keeps the contracts of runners and of queues, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from portico.plugins import Secret
from portico.ports import Runner
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosJobs, DbosRunner
from portico_testkit.durable_runs import DurableRunsKit, Reopen
from portico_testkit.job_queue import JobQueueKit
from portico_testkit.package import PackageKit
from portico_testkit.runner import RunnerKit

Open = Callable[..., DbosRunner]

SILENCE = 3.0
SETTINGS: dict[str, Any] = {"concurrency": 4, "poll": 0.05, "worker_timeout": SILENCE}
PASSWORD = "s3cret-0f-the-database"


def failing(where: dict[str, Any]) -> DbosRunner:
    """Return a runner on a file that is no database, or on a server that is not there."""
    if "path" in where:
        file = where["path"].with_name("damaged.sqlite3")
        file.write_bytes(b"This is no database. " * 200)
        return DbosRunner(DbosSettings(path=file))
    return DbosRunner(DbosSettings(uri=Secret(f"postgresql://ada:{PASSWORD}@127.0.0.1:9/nothing")))


class TestDbosRunner(RunnerKit):
    @pytest.fixture
    async def runner(self, where: dict[str, Any]) -> AsyncIterator[DbosRunner]:
        runner = DbosRunner(DbosSettings(**where))
        yield runner
        await runner.aclose()


class TestDbosRuns(DurableRunsKit):
    @pytest.fixture
    async def runner(self, opened: Open) -> DbosRunner:
        return opened()

    @pytest.fixture
    def reopen(self, opened: Open) -> Reopen:
        async def again(runner: Runner) -> Runner:
            assert isinstance(runner, DbosRunner)
            await runner.aclose()
            return opened()

        return again

    @pytest.fixture
    async def failing_runner(self, where: dict[str, Any]) -> AsyncIterator[DbosRunner]:
        runner = failing(where)
        yield runner
        await runner.aclose()


class TestDbosJobs(JobQueueKit):
    concurrency = 4
    password = PASSWORD

    @pytest.fixture
    async def queue(self, where: dict[str, Any]) -> AsyncIterator[DbosJobs]:
        runner = DbosRunner(DbosSettings(**SETTINGS, **where))
        yield runner.jobs
        await runner.aclose()

    @pytest.fixture
    async def failing_queue(self, where: dict[str, Any]) -> AsyncIterator[DbosJobs]:
        runner = failing(where)
        yield runner.jobs
        await runner.aclose()


class TestPackage(PackageKit):
    distribution = "portico-dbos"
