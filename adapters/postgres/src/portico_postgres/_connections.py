"""The way to the database: a pool for each event loop, calls that end in time, and what happens when a server goes.

What a store wants done is a function of a connection. It is called once; and once more where the connection was lost
before the answer came, so it must be written such that what happened already does not happen again.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from portico.errors import ConfigurationError, StoreError, StoreUnavailable
from portico_postgres._door import Configure, Connection, Door, server_of
from portico_postgres._errors import Place, is_collision, is_end, mapped, unreachable
from portico_postgres._migrations import MIGRATION_SECONDS, Part, bring_up, version_of
from portico_postgres.config import ConnectionSettings

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], Awaitable[T]]
_Pool: TypeAlias = AsyncConnectionPool[Connection]

_GRACE = 2.0
"""Seconds beyond the server's own time limit after which it is taken not to answer, and that a cancellation has."""

_BETWEEN_ATTEMPTS = 0.25
"""Seconds between attempts to connect while calls wait for a server that is away."""

_LOG = logging.getLogger("psycopg")


@dataclass(slots=True)
class _Here:
    """What there is on one event loop."""

    door: Door
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    pool: _Pool | None = None
    until_the_loop_ends: AsyncGenerator[None, None] | None = None


class _Lost(Exception):
    """The connection went, or gave no answer, before it was known what became of the work."""

    def __init__(self, error: StoreError, cause: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        self.cause = cause


class Connections:
    """The connections of one store to the tables of its part.

    Nothing is opened before the first call. Each event loop has its own pool, which is closed by `aclose` or when
    the loop ends; a later call opens another. The tables are made by the first `write`.
    Raises ``ConfigurationError`` for an option in the URI that PostgreSQL's library does not take.
    """

    def __init__(
        self, settings: ConnectionSettings, part: Part, *, table: str, configure: Configure | None = None
    ) -> None:
        self._settings = settings
        self._part = part
        self._configure = configure
        self._places: dict[asyncio.AbstractEventLoop, _Here] = {}
        self._made = False
        try:
            server = server_of(settings)
        except ValueError as error:
            # Only the library knows its options: the settings could not tell.
            raise ConfigurationError(f"{table}: {error}.") from None
        self.place = Place(server, settings.schema, table)

    async def write(self, work: Work[T], *, again: bool = True, seconds: float | None = None) -> T:
        """Do the work and return what it gives; the tables are there.

        ``again`` says that it may be done twice with one outcome. ``seconds`` is how long the whole of it may take,
        without the time until there is a connection; otherwise as long as one statement.
        Raises ``StoreUnavailable`` where the server was not reached or its answer was lost, ``StoreError`` and its
        other kinds for what PostgreSQL reports; other errors of the work come out as they are.
        """
        await self._prepare(create=True)
        return await self._do(work, again=again, seconds=seconds)

    async def read(self, work: Work[T], absent: T, *, seconds: float | None = None) -> T:
        """Do the work as `write` does; return ``absent`` where the tables were never made, and make none."""
        if not await self._prepare(create=False):
            return absent
        return await self._do(work, again=True, seconds=seconds)

    async def aclose(self) -> None:
        """Close this loop's connections; the next call opens others. Those of other loops are closed at their end.

        A call that is under way comes to its end.
        """
        here = self._places.pop(asyncio.get_running_loop(), None)
        if here is None:
            return
        try:
            if here.pool is not None:
                await here.pool.close(_GRACE)
        finally:
            # The pool has closed what it had, and closes what is in use when it is given back.
            here.door.made.clear()
            if here.door.first is not None:
                await here.door.first.close()
            if here.until_the_loop_ends is not None:
                await here.until_the_loop_ends.aclose()

    async def _prepare(self, *, create: bool) -> bool:
        if self._made:
            return True

        async def prepared(connection: Connection) -> bool:
            version = await version_of(connection, self._part, self.place)
            if version == 0 and not create:
                return False
            if version < len(self._part.migrations):
                await bring_up(connection, self._part, self.place)
            return True

        self._made = await self._do(prepared, again=True, seconds=MIGRATION_SECONDS)
        return self._made

    async def _do(self, work: Work[T], *, again: bool, seconds: float | None) -> T:
        try:
            return await self._attempt(work, seconds)
        except _Lost as lost:
            if not again:
                raise lost.error from lost.cause
        except psycopg.Error as error:
            if not is_collision(error):
                raise self._mapped(error) from error
        try:
            return await self._attempt(work, seconds)
        except _Lost as lost:
            raise lost.error from lost.cause
        except psycopg.Error as error:
            raise self._mapped(error) from error

    async def _attempt(self, work: Work[T], seconds: float | None) -> T:
        allowed = (seconds or self._settings.statement_timeout) + _GRACE
        door, pool = await self._opened()
        connection = await self._taken(door, pool)
        try:
            # The second cancels the cancelling: psycopg asks the server to stop, which may not answer that either.
            async with asyncio.timeout(allowed + _GRACE) as last, asyncio.timeout(allowed) as first:
                return await work(connection)
        except TimeoutError as error:
            if not (first.expired() or last.expired()):
                raise
            if not last.expired() and connection.info.transaction_status == TransactionStatus.IDLE:
                raise StoreUnavailable(
                    f"{self.place} did not finish within {allowed:g} s and was told to stop. What was being written "
                    "may or may not have been written. Raise `statement_timeout` in "
                    f"{self.place.table} if the server is only slow."
                ) from error
            await connection.close()
            # What else is in the pool goes the same way and will not answer either.
            await pool.drain()
            raise _Lost(
                StoreUnavailable(
                    f"{self.place} gave no answer within {allowed:g} s. What was being written may or may not have "
                    "been written."
                ),
                error,
            ) from error
        except psycopg.OperationalError as error:
            if not (connection.closed or is_end(error)):
                raise
            await connection.close()
            # A server that goes down ends its sessions one by one: another that is in the pool may be the next.
            await pool.drain()
            said = mapped(error, self.place)
            raise _Lost(
                StoreUnavailable(
                    f"The connection to {self.place} was lost. What was being written may or may not have been "
                    f"written. {said}"
                ),
                error,
            ) from error
        finally:
            await pool.putconn(connection)

    async def _taken(self, door: Door, pool: _Pool) -> Connection:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.connect_timeout
        while True:
            try:
                connection = await pool.getconn(timeout=max(until - loop.time(), 0.001))
            except PoolTimeout as error:
                raise self._unreachable(door) from (door.failed or error)
            except PoolClosed as error:
                raise StoreError(f"The connections to {self.place} were closed meanwhile.") from error
            try:
                there = await self._is_there(connection)
            except BaseException:
                await pool.putconn(connection)
                raise
            if there:
                return connection
            # A server that restarted has ended all of them; the pool would try one after another, with pauses.
            await connection.close()
            await pool.putconn(connection)
            await pool.drain()

    async def _is_there(self, connection: Connection) -> bool:
        # An idle connection has nothing to read, unless the server ended it or tells of something: no way there and
        # back for each call.
        if connection.closed or not _has_something(connection.fileno()):
            return not connection.closed
        try:
            async with asyncio.timeout(_GRACE):
                await connection.execute("")
        except (psycopg.Error, TimeoutError):
            return False
        return True

    async def _opened(self) -> tuple[Door, _Pool]:
        loop = asyncio.get_running_loop()
        here = self._places.get(loop)
        if here is None:
            for other in [each for each in list(self._places) if each.is_closed()]:
                self._places.pop(other, None)
            here = self._places[loop] = _Here(Door(self._settings, self._configure))
        if here.pool is None:
            async with here.opening:
                if here.pool is None:
                    await self._open(here)
        assert here.pool is not None  # noqa: S101 - opened above, or an error was raised
        return here.door, here.pool

    async def _open(self, here: _Here) -> None:
        # Here rather than in the pool, which tries for long before it says that a password is wrong.
        try:
            here.door.first = await here.door.connect()
        except psycopg.Error as error:
            raise self._unreachable(here.door) from error
        # The pool tells of each connection that it loses or cannot make. Python would print that where no one asked.
        if not _LOG.handlers:
            _LOG.addHandler(logging.NullHandler())
        pool: _Pool = AsyncConnectionPool(
            connection_class=cast("Any", here.door),
            min_size=0,
            max_size=self._settings.pool_size,
            open=False,
            name=f"portico {self._part.name}",
            timeout=self._settings.connect_timeout,
            # It gives up at once, and tries again when somebody waits, rather than after longer and longer pauses.
            reconnect_timeout=0,
            reconnect_failed=_try_again,
            num_workers=2,
        )
        # When a loop ends it closes its asynchronous generators: the one moment at which connections that no one
        # closed can be closed properly.
        here.until_the_loop_ends = _closing(here.door)
        await anext(here.until_the_loop_ends)
        await pool.open()
        here.pool = pool

    def _mapped(self, error: psycopg.Error) -> StoreError:
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            self._made = False
        return mapped(error, self.place)

    def _unreachable(self, door: Door) -> StoreError:
        if door.failed is not None:
            return unreachable(door.failed, self.place)
        if sum(not connection.closed for connection in door.made) < self._settings.pool_size:
            return StoreUnavailable(
                f"{self.place} cannot be reached: it made no connection within {self._settings.connect_timeout:g} s."
            )
        return StoreUnavailable(
            f"All {self._settings.pool_size} connections to {self.place} were in use for "
            f"{self._settings.connect_timeout:g} s. Raise `pool_size` in {self.place.table}."
        )


async def _try_again(pool: _Pool) -> None:
    await asyncio.sleep(_BETWEEN_ATTEMPTS)
    if pool.get_stats().get("requests_waiting"):
        await pool.check()


async def _closing(door: Door) -> AsyncGenerator[None, None]:
    # It knows nothing of the pool, whose tasks have been cancelled when a loop comes to this.
    try:
        yield
    finally:
        for connection in list(door.made):
            await connection.close()


def _has_something(descriptor: int) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])
