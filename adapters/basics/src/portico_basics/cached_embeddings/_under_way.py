"""Which texts are being embedded in this process, so that no other call of it asks for them too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Rows: TypeAlias = Mapping[str, "bytes | memoryview"]
"""Vectors by their texts, as float32 bytes."""

Outcome: TypeAlias = Rows | Literal["failed", "stopped"]
"""What a call's batch came to: ``stopped`` when the call was cancelled, which is no fault of the texts."""


@dataclass(eq=False, slots=True)
class Batch:
    """The texts that one call has taken upon itself; the future is one of threads, since loops may be several."""

    texts: list[str] = field(default_factory=list)
    _future: Future[Outcome] = field(default_factory=Future)

    def end(self, outcome: Outcome) -> None:
        """Tell those who wait how it ended; only the first time counts."""
        if not self._future.done():
            self._future.set_result(outcome)

    async def outcome(self) -> Outcome:
        """Wait for the end. Whoever stops waiting leaves the others as they are."""
        return await asyncio.shield(asyncio.wrap_future(self._future))


class UnderWay:
    """The batches under way, by text and purpose. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._batches: dict[tuple[str, str], Batch] = {}
        self._lock = threading.Lock()
        self.ended = 0
        """How many batches have ended: when it has grown, the cache may have what it had not."""

    def claim(self, purpose: str, texts: Iterable[str]) -> tuple[Batch, dict[Batch, list[str]]]:
        """Return a new batch of those texts that nobody has, and the batches of others with the texts awaited."""
        own = Batch()
        awaited: dict[Batch, list[str]] = {}
        with self._lock:
            for text in texts:
                batch = self._batches.setdefault((purpose, text), own)
                if batch is own:
                    own.texts.append(text)
                else:
                    awaited.setdefault(batch, []).append(text)
        return own, awaited

    def release(self, purpose: str, batch: Batch) -> None:
        """Let go of a batch's texts."""
        with self._lock:
            self.ended += 1
            for text in batch.texts:
                self._batches.pop((purpose, text), None)
