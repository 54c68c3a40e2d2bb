"""What a process holds over time: memory, open files, tasks; and whether it grows."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import psutil


@dataclass(frozen=True, slots=True)
class Level:
    """What a process held when so much was done."""

    done: int
    megabytes: float
    files: int
    tasks: int


@dataclass(slots=True)
class Levels:
    """The levels of a process, taken while it works; ``tasks`` counts those of its event loop."""

    process: psutil.Process = field(default_factory=psutil.Process)
    tasks: Callable[[], int] = lambda: len(asyncio.all_tasks())
    seen: list[Level] = field(default_factory=list)

    def take(self, done: int) -> Level:
        """Take the level now."""
        level = Level(done, self.process.memory_info().rss / 1e6, self.process.num_fds(), self.tasks())
        self.seen.append(level)
        return level

    def slopes(self, per: int = 1_000) -> dict[str, float]:
        """Return how much each grows with so much done, by least squares over the later three quarters."""
        later = self.seen[len(self.seen) // 4 :]
        done = [each.done for each in later]
        if len(set(done)) < 2:
            return {}
        return {
            name: statistics.linear_regression(done, [getattr(each, name) for each in later]).slope * per
            for name in ("megabytes", "files", "tasks")
        }


def judge(bars: Mapping[str, bool]) -> int:
    """Print which bars are kept, and return the exit code."""
    for what, kept in bars.items():
        print(f"{'ok' if kept else 'BROKEN'}  {what}", flush=True)
    return 0 if all(bars.values()) else 1
