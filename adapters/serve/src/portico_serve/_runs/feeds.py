"""Streams of changes for any number of watchers: bounded for each, and gone with the last one."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from portico.errors import PorticoError, RunNotFound
from portico_serve._json import to_json
from portico_serve._runs.steps import STEP_ENTRIES, StepStates
from portico_serve._runs.views import VOLATILE

_LOG = logging.getLogger(__name__)

Piece = tuple[str, str]
"""An event and its data as JSON."""

_MOST_PIECES = 200
_MOST_CHARACTERS = 100_000
_SHORTEST = 0.05
"""Seconds between two readings of a run."""
_TOGETHER = 0.01
"""Seconds after news: where a step ends, the next one begins at once."""
_SHARE = 4
"""A feed rests for so many times what a reading took."""
_POLL = 0.2
_SLOW_POLL = 1.0


class Watcher:
    """What one page has still to be sent. One that is too slow gets a snapshot in place of what it has missed."""

    def __init__(self, snapshot: Callable[[], str]) -> None:
        self._snapshot = snapshot
        self._pieces: list[Piece] = []
        self._size = 0
        self._behind = True
        self._ended = False
        self._news = asyncio.Event()
        self._news.set()

    def put(self, event: str, data: str) -> None:
        """Add a piece; nothing where a snapshot is to be sent, which is made then and has this."""
        if not self._behind:
            self._pieces.append((event, data))
            self._size += len(data)
            if len(self._pieces) > _MOST_PIECES or self._size > _MOST_CHARACTERS:
                self.refresh()
        self._news.set()

    def refresh(self) -> None:
        """Let a snapshot take the place of all that is to be sent."""
        self._behind = True
        self._pieces.clear()
        self._size = 0
        self._news.set()

    def end(self) -> None:
        """Let the stream end when everything is sent."""
        self._ended = True
        self._news.set()

    async def take(self, seconds: float) -> Sequence[Piece] | None:
        """Return what is to be sent, nothing after so many seconds without news, None at the end."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return ()
        self._news.clear()
        pieces, self._pieces, self._size = self._pieces, [], 0
        if self._behind:
            self._behind = False
            pieces = [("snapshot", self._snapshot()), *pieces]
        if self._ended:
            self._news.set()
            return pieces or None
        return pieces


class Seen:
    """A run as a feed saw it last: its shape, and the states of its steps."""

    def __init__(self, description: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        self.shape = {key: value for key, value in description.items() if key not in VOLATILE}
        self.volatile = {key: description[key] for key in VOLATILE}
        self.count = len(entries)
        self._states = StepStates.of(entries)

    @property
    def state(self) -> str:
        """The state of the run."""
        return str(self.shape["state"])

    def takes(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether what is new in the journal changes nothing but steps of a run at work."""
        new = entries[self.count :]
        return (
            self.state == "running"
            and len(entries) >= self.count
            and all(each["type"] in STEP_ENTRIES and not each.get("warnings") for each in new)
        )

    def take(self, entries: Sequence[Mapping[str, Any]], seconds: Callable[[str], float]) -> Seen:
        """Return the run with what is new in the journal, which `takes` allowed."""
        if len(entries) == self.count:
            return self
        made = Seen.__new__(Seen)
        made.shape, made.count = self.shape, len(entries)
        made._states = self._states  # noqa: SLF001 - the earlier one is not asked again
        for each in entries[self.count :]:
            made._states.take(each)  # noqa: SLF001
        at = entries[-1]["at"]
        steps = made._states.shown(at_work=True)  # noqa: SLF001
        made.volatile = self.volatile | {"steps": steps, "updated_at": at, "seconds": seconds(at)}
        if used := [each["used"] for each in entries[self.count :] if "used" in each]:
            made.volatile |= {"cost": used[-1].get("cost"), "services": list(used[-1].get("services", ()))}
        return made

    def changed(self, before: Seen) -> dict[str, Any] | None:
        """Return the ``steps`` event since ``before``; None where more has changed than it can say."""
        now, then = self.volatile["steps"], before.volatile["steps"]
        if self.shape != before.shape or not now.keys() >= then.keys():
            return None
        steps = {id: each for id, each in now.items() if then.get(id) != each}
        others = {key: self.volatile[key] for key in VOLATILE if key not in ("steps", "writing")}
        return {"steps": steps, **others}


class Watched(Protocol):
    """Where a feed finds its run."""

    async def look(self, run: str, before: Seen | None) -> Seen:
        """Read the run again; raises ``PorticoError``."""

    def present(self, run: str) -> tuple[bool, Mapping[str, Any]]:
        """Tell whether the run is carried out here, and what only this process knows of it."""


class _Feed:
    """One run for all who watch it; a task reads the journal as long as there is one."""

    def __init__(self, run: str, source: Watched) -> None:
        self.watchers: list[Watcher] = []
        self.news = asyncio.Event()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.first.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also if no one waits
        self._run = run
        self._source = source
        self._seen: Seen | None = None
        self._text: str | None = None
        self.task = asyncio.create_task(self._follow())

    def snapshot(self) -> str:
        """Return the whole run as JSON, made once for all watchers."""
        if self._text is None:
            assert self._seen is not None  # noqa: S101 - watchers wait for the first look
            known = self._source.present(self._run)[1]
            self._text = to_json({**self._seen.shape, **self._seen.volatile, **known})
        return self._text

    def refresh(self) -> None:
        """Give every watcher a new snapshot."""
        self._text = None
        for each in self.watchers:
            each.refresh()

    def put(self, event: str, data: Any) -> None:
        """Give a piece to every watcher."""
        self._text = None
        text = to_json(data)
        for each in self.watchers:
            each.put(event, text)

    def end(self) -> None:
        """End the streams of all watchers."""
        for each in self.watchers:
            each.end()

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        costs: deque[float] = deque(maxlen=3)
        while True:
            self.news.clear()
            began = clock()
            lost = None
            try:
                self._take(await self._source.look(self._run, self._seen))
            except PorticoError as error:
                lost = error
                if self._seen is None or isinstance(error, RunNotFound):
                    self._fail(error)
                    return
            except Exception as error:  # noqa: BLE001 - a page must not wait for ever
                _LOG.exception("The run %s cannot be shown.", self._run)
                self._fail(error)
                return
            # The least of several: what it costs, without what the disk and the host did meanwhile.
            costs.append(clock() - began)
            took = min(costs) if len(costs) > 1 else 0.0
            await asyncio.sleep(max(_SHORTEST, _SHARE * took))
            try:
                async with asyncio.timeout(_SLOW_POLL if lost is not None else self._patience(took)):
                    await self.news.wait()
                    await asyncio.sleep(_TOGETHER)
            except TimeoutError:
                pass

    def _take(self, seen: Seen) -> None:
        before, self._seen = self._seen, seen
        if before is None:
            self.first.set_result(None)
        elif seen is not before:
            changed = seen.changed(before)
            if changed is None:
                self.refresh()
            elif changed["steps"] or seen.volatile != before.volatile:
                self.put("steps", changed)

    def _fail(self, error: Exception) -> None:
        if not self.first.done():
            self.first.set_exception(error)
        self.put("error", {"message": str(error), "kind": type(error).__name__})
        self.end()

    def _patience(self, took: float) -> float | None:
        """Return the seconds until the next look without news: of a run at work elsewhere no news comes."""
        assert self._seen is not None  # noqa: S101 - there was a look
        if self._source.present(self._run)[0]:
            return _SLOW_POLL
        match self._seen.state:
            case "running" | "waiting":
                return max(_POLL, _SHARE * took)
            case "done" | "infeasible":
                return None
            case _:
                return _SLOW_POLL


class Feeds:
    """The runs that are watched now."""

    def __init__(self, source: Watched) -> None:
        self._source = source
        self._feeds: dict[str, _Feed] = {}
        self._closed = False

    @asynccontextmanager
    async def watch(self, run: str) -> AsyncIterator[Watcher]:
        """Watch a run as long as the block; raises what looking for it raises."""
        feed = self._feeds.get(run)
        if feed is None or feed.task.done():
            feed = self._feeds[run] = _Feed(run, self._source)
        watcher = Watcher(feed.snapshot)
        feed.watchers.append(watcher)
        try:
            await asyncio.shield(feed.first)
            if self._closed:
                watcher.end()
            yield watcher
        finally:
            feed.watchers.remove(watcher)
            if not feed.watchers:
                feed.task.cancel()
                if self._feeds.get(run) is feed:
                    del self._feeds[run]

    def wake(self, run: str) -> None:
        """Say that there is something new in the journal of a run."""
        if (feed := self._feeds.get(run)) is not None:
            feed.news.set()

    def put(self, run: str, event: str, data: Any) -> None:
        """Give all who watch a run something that is not in its journal."""
        if (feed := self._feeds.get(run)) is not None and feed.first.done():
            feed.put(event, data)

    def refresh(self, run: str) -> None:
        """Give all who watch a run a new snapshot."""
        if (feed := self._feeds.get(run)) is not None and feed.first.done():
            feed.refresh()

    def close(self) -> None:
        """End all streams, also those that begin from now on."""
        self._closed = True
        for each in self._feeds.values():
            each.end()


class TellingStore:
    """A journal that tells which run it has just written to."""

    def __init__(self, store: Any, tell: Callable[[str], None]) -> None:
        self._store = store
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, lease: Any, entries: Iterable[Mapping[str, Any]]) -> None:
        """Write entries, and tell it when they are there."""
        await self._store.append(lease, entries)
        self._tell(lease.run)
