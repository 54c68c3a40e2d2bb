"""Making one connection: its options, what is set on its session, and why the last one could not be made."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from portico_postgres.config import ConnectionSettings

Connection: TypeAlias = AsyncConnection[Any]
Configure: TypeAlias = Callable[[Connection], Awaitable[None]]

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
_IDLE_IN_TRANSACTION = 60_000
"""Milliseconds after which the server ends a transaction whose client is not heard of: it may hold locks."""

_SESSION = """SELECT
    set_config('statement_timeout', %(statement)s, false),
    set_config('idle_in_transaction_session_timeout', %(idle)s, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false)"""


def server_of(settings: ConnectionSettings) -> str:
    """Return how messages name the server, ``host:port/database``: never the user, never a password.

    Raises ``ValueError`` for what PostgreSQL's library cannot read, without its message: that may quote a password.
    """
    parts = _parts(settings)
    hosts = str(parts.get("host") or "the default host").split(",")
    ports = str(parts.get("port") or "5432").split(",")
    # One port may be for all hosts.
    named = [f"{host}:{ports[min(number, len(ports) - 1)]}" for number, host in enumerate(hosts)]
    return f"{','.join(named)}/{parts.get('dbname') or ''}"


class Door:
    """Makes connections for a pool; ``first`` is given to it before any other.

    ``failed`` is why the newest attempt failed, None when it did not. ``made`` are those that still are.
    """

    def __init__(self, settings: ConnectionSettings, configure: Configure | None) -> None:
        self._settings = settings
        self._configure = configure
        self.first: Connection | None = None
        self.failed: psycopg.Error | None = None
        self.made: WeakSet[Connection] = WeakSet()

    async def connect(self, conninfo: str = "", **options: Any) -> Connection:
        """Return a connection; the arguments are those that a pool gives."""
        connection, self.first = self.first, None
        if connection is not None:
            return connection
        try:
            async with asyncio.timeout(self._settings.connect_timeout) as bound:
                connection = await self._connect()
        except psycopg.Error as error:
            # Without the frames that it went through, whose local variables hold the password.
            self.failed = error.with_traceback(None)
            raise self.failed from None
        except TimeoutError:
            if not bound.expired():
                raise
            self.failed = psycopg.errors.ConnectionTimeout(
                f"there was no answer within {self._settings.connect_timeout:g} s"
            )
            raise self.failed from None
        self.failed = None
        self.made.add(connection)
        return connection

    async def _connect(self) -> Connection:
        pooler = self._settings.transaction_pooler
        parts = _parts(self._settings)
        hosts = str(parts.get("host") or parts.get("hostaddr") or "").count(",") + 1
        options = {
            **_DEFAULTS,
            # For each host: one that is silent leaves time for the next.
            "connect_timeout": math.ceil(self._settings.connect_timeout / hosts),
            **parts,
            "client_encoding": "UTF8",
        }
        connection = await AsyncConnection.connect(
            "", autocommit=True, prepare_threshold=None if pooler else 5, **options
        )
        try:
            if not pooler:
                timeout = math.ceil(self._settings.statement_timeout * 1000)
                await connection.execute(_SESSION, {"statement": str(timeout), "idle": str(_IDLE_IN_TRANSACTION)})
            if self._configure is not None:
                await self._configure(connection)
        except BaseException:
            await connection.close()
            raise
        return connection


def _parts(settings: ConnectionSettings) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(settings.uri.reveal()))
    except psycopg.Error:
        raise ValueError(
            f"uri has an option, or a value of one, that PostgreSQL's library does not take; {_OPTIONS} lists them"
        ) from None
