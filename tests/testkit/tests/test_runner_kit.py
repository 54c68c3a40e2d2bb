"""The kit of runners passes a plain one, and catches what is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest

from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.runner import RunnerKit


class _Plain:
    name = "plain"
    told: ClassVar[Mapping[str, object]] = {}
    """What the class of the kit says of it."""

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


class TestPlainRunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> _Plain:
        return _Plain()


class _Bounded:
    """A correct one that executes three at a time, and lets through what comes from inside of one."""

    name = "bounded"
    told: ClassVar[Mapping[str, object]] = {"concurrency": 3}

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(3)
        self.inside: ContextVar[bool] = ContextVar("inside", default=False)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if self.inside.get():
            return await action()
        async with self.places:
            token = self.inside.set(True)
            try:
                return await action()
            finally:
                self.inside.reset(token)


class TestBoundedRunner(RunnerKit):
    concurrency = 3

    @pytest.fixture
    def runner(self) -> _Bounded:
        return _Bounded()


FAULTS = KnownFaults(RunnerKit, lambda kind: {"runner": kind}, attributes=lambda kind: kind.told)


@FAULTS.caught_by("an_error_comes_out_as_the_action_raised_it", "the step failed")
class _Wrapping(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except Exception as error:
            raise RuntimeError("the step failed") from error


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
