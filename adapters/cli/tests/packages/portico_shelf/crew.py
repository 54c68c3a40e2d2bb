"""A runner with workers whose queue is in memory, and holds what the settings say from the beginning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico.errors import StoreError
from portico.ports import Job, Runner
from portico_testkit.fakes.job_queue import MemoryJobQueue


@dataclass(frozen=True)
class CrewSettings:
    concurrency: int = 4
    goals: tuple[str, ...] = ()
    planner: str = ""
    problem: str = ""
    kind: str = "pursuit"
    marker: bool = False
    """Whether a file says that somebody has looked how a job is."""


class Queue(MemoryJobQueue):
    """What is in it in the beginning is submitted when it is first used."""

    place = "memory of the test"

    def __init__(self, settings: CrewSettings) -> None:
        super().__init__(concurrency=settings.concurrency)
        self.settings: CrewSettings | None = settings
        self.marker = settings.marker

    async def filled(self) -> None:
        if self.settings is None:
            return
        settings, self.settings = self.settings, None
        if settings.problem:
            self.settings = settings
            raise StoreError(settings.problem)
        more = {"planner": settings.planner} if settings.planner else {}
        for number, goal in enumerate(settings.goals):
            name = f"20260101-0000{number:02d}-{number:08x}aaaa"
            await super().submit([Job(name, settings.kind, {"version": 1, "goal": goal, **more})])

    async def submit(self, jobs: Any) -> None:
        await self.filled()
        await super().submit(jobs)

    async def work(self, carry_out: Any, *, emit: Any = None) -> None:
        await self.filled()
        await super().work(carry_out, emit=emit)

    async def status(self, names: Any, **options: Any) -> Any:
        await self.filled()
        if self.marker:
            Path("looked").touch()
        return await super().status(names, **options)

    async def jobs(self, kind: str, **options: Any) -> Any:
        await self.filled()
        return await super().jobs(kind, **options)

    async def workers(self) -> Any:
        await self.filled()
        return await super().workers()


SHARED: list[Queue] = []
"""The one queue of this process: commands that run in it one after the other are as if they had a database."""


class Crew(Runner):
    name = "crew"

    def __init__(self, settings: CrewSettings, services: Any) -> None:
        if not SHARED:
            SHARED.append(Queue(settings))
        self.jobs = SHARED[0]

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()
