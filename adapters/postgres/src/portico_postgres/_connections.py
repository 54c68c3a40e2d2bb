"""The connections to the database: a pool for each event loop, calls that end in time, and servers that go away.

A store gives its work as a function of a connection. It is called once, and once more where the connection was lost
before the answer came; so it must be written such that what happened already does not happen again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, errors, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from portico.errors import ConfigurationError, StoreError, StoreUnavailable
from portico_postgres.config import ConnectionSettings

Migration: TypeAlias = Callable[[AsyncConnection[Any], sql.Identifier], Awaitable[None]]
"""Leads from one version to the next: it is given a connection inside a transaction, and the schema."""

MIGRATION_SECONDS = 120.0
"""How long bringing the tables up to date may take, with waiting for other processes that do."""

# By the catalogue: `to_regclass` answers from what the session remembers, also that there was no such table before
# another process made it.
_FIND = """SELECT 1 FROM pg_catalog.pg_class AS made
    JOIN pg_catalog.pg_namespace AS schema ON schema.oid = made.relnamespace
    WHERE schema.nspname = %s AND made.relname = 'portico_versions'"""
_CREATE = """CREATE TABLE IF NOT EXISTS {} (
    part text PRIMARY KEY, version integer NOT NULL, migrated timestamptz NOT NULL)"""
_WRITE = """INSERT INTO {} VALUES (%s, %s, now())
    ON CONFLICT (part) DO UPDATE SET version = EXCLUDED.version, migrated = EXCLUDED.migrated"""


@dataclass(frozen=True, slots=True)
class Part:
    """One store's tables: its version is the number of its migrations, which are only ever added to."""

    name: str
    migrations: tuple[Migration, ...]


async def version_of(connection: AsyncConnection[Any], part: Part, schema: str) -> int:
    """Return the version of a part, 0 where it was not made. Raises ``StoreError`` for one that is not known here."""
    cursor = await connection.execute(_FIND, (schema,))
    if await cursor.fetchone() is None:
        return 0
    versions = sql.Identifier(schema, "portico_versions")
    cursor = await connection.execute(sql.SQL("SELECT version FROM {} WHERE part = %s").format(versions), (part.name,))
    row = await cursor.fetchone()
    version = 0 if row is None else int(row[0])
    if not 0 <= version <= len(part.migrations):
        raise StoreError(
            f"The {part.name} in the schema {schema!r} are of version {version}, and this portico-postgres knows up to "
            f"{len(part.migrations)}. Run `pip install --upgrade portico-postgres`."
        )
    return version


async def bring_up(connection: AsyncConnection[Any], part: Part, schema: str) -> None:
    """Make the part, or bring it to the version that is known here.

    Each step is one transaction with the version that it leads to, so that a kill leaves the old or the new version.
    Processes that start at once wait for the first one, by an advisory lock of PostgreSQL.
    """
    name = sql.Identifier(schema)
    versions = sql.Identifier(schema, "portico_versions")
    for _ in part.migrations:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL statement_timeout = {int(MIGRATION_SECONDS * 1000)}")
            lock = f"portico schema {schema}"
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
            version = await version_of(connection, part, schema)
            if version == len(part.migrations):
                return
            # "IF NOT EXISTS" alone needs the right to make schemas also where there is one.
            cursor = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
            if await cursor.fetchone() is None:
                await connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            await connection.execute(sql.SQL(_CREATE).format(versions))
            await part.migrations[version](connection, name)
            await connection.execute(sql.SQL(_WRITE).format(versions), (part.name, version + 1))


T = TypeVar("T")
Connection: TypeAlias = AsyncConnection[Any]
Configure: TypeAlias = Callable[[Connection], Awaitable[None]]
Work: TypeAlias = Callable[[Connection], Awaitable[T]]
_Pool: TypeAlias = AsyncConnectionPool[Connection]

_GRACE = 2.0
"""Seconds beyond the server's own time limit after which it is taken not to answer, and that a cancellation has."""
_BETWEEN_ATTEMPTS = 0.25
"""Seconds between attempts to connect while calls wait for a server that is away."""

_DEFAULTS = {
    "fallback_application_name": "portico",
    # A connection that was silently cut is noticed while it is idle, and within half a minute while it is written to.
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_OPTIONS = "https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS"
# A transaction whose client is silent for a minute is ended by the server: it may hold locks.
_SESSION = """SELECT
    set_config('statement_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', '60000', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false)"""

_COLLISIONS = (errors.SerializationFailure, errors.DeadlockDetected)
"""The server took a statement back because of others: nothing of it happened."""
_ENDS = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)
"""The server ends the session."""

_LOG = logging.getLogger("psycopg")


class _Lost(Exception):
    """The connection was lost, or gave no answer, before it was known what became of the work."""

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
        self._loops: dict[asyncio.AbstractEventLoop, _Loop] = {}
        self._made = False
        self.table = table
        self.place = settings.uri.database_place()
        try:
            conninfo_to_dict(settings.uri.reveal())
        except psycopg.Error:
            # Without its message, which may quote a password.
            raise ConfigurationError(
                f"{table}: uri has an option, or a value of one, that PostgreSQL's library does not take; {_OPTIONS} "
                "lists them."
            ) from None

    async def write(self, work: Work[T], *, seconds: float | None = None) -> T:
        """Do the work and return what it gives; the tables are made where they are missing.

        ``seconds`` is how long the whole of it may take, without the time until there is a connection; by default as
        long as one statement. Raises ``StoreUnavailable`` where the server was not reached or its answer was lost,
        ``StoreError`` and its other kinds for what PostgreSQL reports; other errors of the work are raised unchanged.
        """
        await self._prepare(create=True)
        return await self._do(work, seconds)

    async def read(self, work: Work[T], absent: T) -> T:
        """Do the work as `write` does; return ``absent`` where the tables were never made, and make none."""
        return await self._do(work, None) if await self._prepare(create=False) else absent

    async def aclose(self) -> None:
        """Close this loop's connections; the next call opens others. A call that is under way comes to its end."""
        loop = self._loops.pop(asyncio.get_running_loop(), None)
        if loop is not None:
            await loop.close()

    async def _prepare(self, *, create: bool) -> bool:
        if self._made:
            return True

        async def prepare(connection: Connection) -> bool:
            version = await version_of(connection, self._part, self._settings.schema)
            if version == 0 and not create:
                return False
            if version < len(self._part.migrations):
                await bring_up(connection, self._part, self._settings.schema)
            return True

        self._made = await self._do(prepare, MIGRATION_SECONDS)
        return self._made

    async def _do(self, work: Work[T], seconds: float | None) -> T:
        for again in (True, False):
            try:
                return await self._attempt(work, seconds)
            except _Lost as lost:
                if not again:
                    raise lost.error from lost.cause
            except psycopg.Error as error:
                if again and isinstance(error, _COLLISIONS):
                    continue
                if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
                    self._made = False
                raise self._settings.uri.database_error(error, table=self.table) from error
        raise AssertionError("the second attempt returns or raises")

    async def _attempt(self, work: Work[T], seconds: float | None) -> T:
        allowed = (seconds or self._settings.statement_timeout) + _GRACE
        pool = await self._loop().open()
        connection = await self._take(pool)
        try:
            # The second cancels the cancelling: psycopg asks the server to stop, which may not answer that either.
            async with asyncio.timeout(allowed + _GRACE) as last, asyncio.timeout(allowed) as first:
                return await work(connection)
        except TimeoutError as error:
            if not (first.expired() or last.expired()):
                raise
            said = f"{self.place} gave no answer within {allowed:g} s."
            raise await self._discard(pool, connection, error, said) from error
        except psycopg.OperationalError as error:
            if not (connection.closed or isinstance(error, _ENDS)):
                raise
            said = f"The connection to {self.place} was lost ({error.diag.message_primary or 'it was cut'})."
            raise await self._discard(pool, connection, error, said) from error
        finally:
            await pool.putconn(connection)

    async def _discard(self, pool: _Pool, connection: Connection, cause: Exception, said: str) -> _Lost:
        await connection.close()
        # What else is in the pool is as likely to be lost: a server that goes down ends its sessions one by one.
        await pool.drain()
        said += " What was being written may or may not have been written. Raise `statement_timeout` in "
        return _Lost(StoreUnavailable(f"{said}{self.table} if the server is only slow."), cause)

    async def _take(self, pool: _Pool) -> Connection:
        try:
            return await pool.getconn(timeout=self._settings.connect_timeout)
        except PoolTimeout as error:
            raise self._loop().unreachable() from (self._loop().failed or error)
        except PoolClosed as error:
            raise StoreError(f"The connections to {self.place} were closed meanwhile.") from error

    def _loop(self) -> _Loop:
        running = asyncio.get_running_loop()
        loop = self._loops.get(running)
        if loop is None:
            for other in [each for each in list(self._loops) if each.is_closed()]:
                self._loops.pop(other, None)
            loop = self._loops[running] = _Loop(self._settings, self._configure, self.table)
        return loop


class _Loop:
    """The pool of one event loop, and how its connections are made: `connect` is what the pool calls."""

    def __init__(self, settings: ConnectionSettings, configure: Configure | None, table: str) -> None:
        self.failed: psycopg.Error | None = None
        """Why the newest connection could not be made; None when it was made."""
        self._settings = settings
        self._configure = configure
        self._table = table
        self._opening = asyncio.Lock()
        self._pool: _Pool | None = None
        self._first: Connection | None = None
        self._made: WeakSet[Connection] = WeakSet()
        self._at_end: AsyncGenerator[None, None] | None = None

    async def open(self) -> _Pool:
        async with self._opening:
            if self._pool is None:
                # Here rather than in the pool, which tries for long before it says that a password is wrong.
                try:
                    self._first = await self.connect()
                except psycopg.Error as error:
                    raise self.unreachable() from error
                self._pool = await self._open()
            return self._pool

    async def close(self) -> None:
        """Close the pool and what is not in use; the rest is closed when it is given back."""
        try:
            if self._pool is not None:
                await self._pool.close(_GRACE)
        finally:
            self._made.clear()
            if self._first is not None:
                await self._first.close()
            if self._at_end is not None:
                await self._at_end.aclose()

    async def connect(self, conninfo: str = "", **options: Any) -> Connection:
        """Return a connection; the arguments are those that a pool gives."""
        connection, self._first = self._first, None
        if connection is not None:
            return connection
        try:
            async with asyncio.timeout(self._settings.connect_timeout) as limit:
                connection = await self._connect()
        except psycopg.Error as error:
            # Without the frames that it went through, whose local variables hold the password.
            self.failed = error.with_traceback(None)
            raise self.failed from None
        except TimeoutError:
            if not limit.expired():
                raise
            self.failed = errors.ConnectionTimeout(f"there was no answer within {self._settings.connect_timeout:g} s")
            raise self.failed from None
        self.failed = None
        self._made.add(connection)
        return connection

    def unreachable(self) -> StoreError:
        """Return the error for a connection that was not to be had in time."""
        seconds = f"{self._settings.connect_timeout:g} s"
        busy = sum(not connection.closed for connection in self._made) >= self._settings.pool_size
        if self.failed is None and busy:
            return StoreUnavailable(
                f"All {self._settings.pool_size} connections to {self._settings.uri.database_place()} were in use for "
                f"{seconds}. Raise `pool_size` in {self._table}."
            )
        failed = self.failed or errors.ConnectionTimeout(f"it made no connection within {seconds}")
        return self._settings.uri.database_error(failed, table=self._table)

    async def _connect(self) -> Connection:
        settings = self._settings
        parts = conninfo_to_dict(settings.uri.reveal())
        hosts = str(parts.get("host") or parts.get("hostaddr") or "").count(",") + 1
        options: dict[str, Any] = {
            **_DEFAULTS,
            # For each host: one that is silent leaves time for the next.
            "connect_timeout": math.ceil(settings.connect_timeout / hosts),
            **parts,
            "client_encoding": "UTF8",
            "prepare_threshold": None if settings.transaction_pooler else 5,
        }
        connection = await AsyncConnection.connect("", autocommit=True, **options)
        try:
            if not settings.transaction_pooler:
                await connection.execute(_SESSION, (str(math.ceil(settings.statement_timeout * 1000)),))
            if self._configure is not None:
                await self._configure(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _open(self) -> _Pool:
        # The pool reports each connection that it loses or cannot make. Python would print that to the terminal.
        if not _LOG.handlers:
            _LOG.addHandler(logging.NullHandler())
        pool: _Pool = AsyncConnectionPool(
            connection_class=cast("Any", self),
            min_size=0,
            max_size=self._settings.pool_size,
            open=False,
            timeout=self._settings.connect_timeout,
            # It gives up at once, and tries again while a call waits, rather than after longer and longer pauses.
            reconnect_timeout=0,
            reconnect_failed=_try_again,
            num_workers=2,
        )
        # When a loop ends it closes its asynchronous generators: the one moment at which connections that were left
        # open can be closed properly.
        self._at_end = _closing(self._made)
        await anext(self._at_end)
        await pool.open()
        return pool


async def _try_again(pool: _Pool) -> None:
    await asyncio.sleep(_BETWEEN_ATTEMPTS)
    if pool.get_stats().get("requests_waiting"):
        await pool.check()


async def _closing(made: WeakSet[Connection]) -> AsyncGenerator[None, None]:
    # Without the pool, whose tasks have been cancelled when a loop comes to this.
    try:
        yield
    finally:
        for connection in list(made):
            await connection.close()
