"""The local runner keeps the contract of runners."""

from __future__ import annotations

import pytest

from portico_basics.config import LocalRunnerSettings
from portico_basics.local_runner.runner import LocalRunner
from portico_testkit.runner import RunnerKit


class TestLocalRunner(RunnerKit):
    concurrency = 8

    @pytest.fixture
    def runner(self) -> LocalRunner:
        return LocalRunner(LocalRunnerSettings())  # as it is without settings


class TestLocalRunnerOneAtATime(RunnerKit):
    concurrency = 1

    @pytest.fixture
    def runner(self) -> LocalRunner:
        return LocalRunner(LocalRunnerSettings(concurrency=1))
