"""The open database: its engine, a client of DBOS and the table of workers.

This module imports DBOS and SQLAlchemy, so `Database` imports it at first use.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from dbos import DBOSClient, DBOSPortableJSONSerializer, EnqueueOptions
from dbos._serialization import DBOSDefaultSerializer
from dbos._sys_db import SystemDatabase
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.dialects import postgresql, sqlite

from portico.plugins import Secret
from portico.ports import Worker
from portico_dbos._names import APPLICATION, moment
from portico_dbos.config import DbosSettings

_lock = threading.Lock()
_open: set[object] = set()


def _refuse_pickles(database: object) -> None:
    """Make DBOS refuse pickles until `_allow_pickles` was called for every database."""
    with _lock:
        _open.add(database)
        # On the one instance that DBOS reads pickles with; it hides the method of its class.
        vars(DBOSDefaultSerializer)["deserialize"] = _refuse


def _allow_pickles(database: object) -> None:
    with _lock:
        _open.discard(database)
        if not _open:
            vars(DBOSDefaultSerializer).pop("deserialize", None)


def _refuse(text: str) -> Any:
    raise ValueError("the database has a pickle, which is never read")


_AT_ONCE = 500
"""Identifiers in one query."""
_NO_CONNECTION = "connection failed"
"""DBOS tries again after an error with these words, which psycopg does not use for a missing socket."""
_WAIT = 30_000
"""Milliseconds to wait while another process writes to the SQLite file."""


_MAKING = 0x506F7274_69636F00
"""The lock under which the table is made: PostgreSQL refuses to make a table twice at once."""


class WorkersTable:
    """Reads and writes heartbeats. A worker lives if its last one is at most ``timeout`` seconds old."""

    def __init__(self, engine: sa.Engine, schema: str | None, timeout: float) -> None:
        self._engine = engine
        self._timeout = timeout
        self._postgres = engine.dialect.name == "postgresql"
        self._table = sa.Table(
            "portico_workers",
            sa.MetaData(),
            sa.Column("name", sa.Text, primary_key=True),
            sa.Column("since", sa.Double, nullable=False),
            sa.Column("seen", sa.Double, nullable=False),
            sa.Column("jobs", sa.Integer, nullable=False),
            schema=schema,
        )
        clock = (
            "extract(epoch FROM clock_timestamp())" if self._postgres else "(julianday('now') - 2440587.5) * 86400.0"
        )
        self._now: Any = sa.literal_column(clock, sa.Double)

    def make(self) -> None:
        with self._engine.begin() as connection:
            if self._postgres:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
            else:
                connection.execute(sa.text("BEGIN IMMEDIATE"))
            self._table.create(connection, checkfirst=True)

    def beat(self, name: str, jobs: int) -> None:
        """Write a worker's heartbeat and its number of jobs."""
        insert = (postgresql if self._postgres else sqlite).insert(self._table)
        row = insert.values(name=name, since=self._now, seen=self._now, jobs=jobs)
        with self._engine.begin() as connection:
            connection.execute(
                row.on_conflict_do_update(index_elements=["name"], set_={"seen": self._now, "jobs": jobs})
            )

    def living(self) -> tuple[list[Worker], float]:
        """Return the living workers, and the time of the database's clock in seconds."""
        columns = self._table.c
        query = (
            sa.select(columns.name, columns.since, columns.seen, columns.jobs)
            .where(columns.seen > self._now - self._timeout)
            .order_by(columns.since, columns.name)
        )
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
            now = connection.execute(sa.select(self._now)).scalar_one()
        return [Worker(row.name, moment(row.since), moment(row.seen), row.jobs) for row in rows], float(now)

    def remove(self, name: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.delete(self._table).where(self._table.c.name == name))

    def sweep(self) -> None:
        """Remove workers that have been silent for long; others have their jobs."""
        with self._engine.begin() as connection:
            long_ago = self._now - max(100 * self._timeout, 600)
            connection.execute(sa.delete(self._table).where(self._table.c.seen < long_ago))


class Opened:
    """The open database: its engine, a client of DBOS and the table of workers."""

    def __init__(self, settings: DbosSettings, file: Path) -> None:
        _quiet()
        _refuse_pickles(self)
        self.schema = None if settings.uri is None else settings.schema
        self._closed = threading.Event()
        connect = _to_sqlite(file) if settings.uri is None else _to_postgres(settings.uri)

        def connect_while_open() -> Any:
            # DBOS asks again for a lost connection until it gets this error, which ends its threads.
            if self._closed.is_set():
                raise RuntimeError("the runner was closed")
            return connect()

        # The engine gets no URL, so it cannot print one.
        self.engine = sa.create_engine(
            "sqlite://" if settings.uri is None else "postgresql+psycopg://",
            creator=connect_while_open,
            poolclass=sa.QueuePool,
            pool_size=settings.pool_size,
            max_overflow=0,
            pool_timeout=30,
            pool_pre_ping=settings.uri is not None,
            hide_parameters=True,
        )
        sa.event.listen(self.engine, "checkin", self._discard_late)
        try:
            # No pickles. Errors are raised at once.
            self.client: DBOSClient = DBOSClient(
                system_database_engine=self.engine,
                dbos_system_schema=self.schema,
                serializer=DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                lazy=True,
                retry_connection_errors=False,
            )
            # A client has no methods to make the tables (`DBOS.migrate` needs a URL) and to put a job back.
            self._system = SystemDatabase.create(
                system_database_url="sqlite://" if settings.uri is None else "postgresql://",
                engine_kwargs={},
                engine=self.engine,
                schema=self.schema,
                serializer=DBOSPortableJSONSerializer(),
                executor_id=None,
                use_listen_notify=False,
                app_name=APPLICATION,
                retry_connection_errors=False,
            )
            self._system.run_migrations()
            columns: list[sa.ColumnClause[Any]] = [
                sa.column(name) for name in ("workflow_uuid", "status", "created_at", "updated_at")
            ]
            self._workflows = sa.table("workflow_status", *columns, schema=self.schema)
            self.workers = WorkersTable(self.engine, self.schema, settings.worker_timeout)
            self.workers.make()
        except BaseException:
            self.engine.dispose()
            _allow_pickles(self)
            raise

    def enqueue(self, rows: Sequence[tuple[EnqueueOptions, str]]) -> None:
        """Put workflows into their queues, all or none. Known ones stay as they are.

        DBOS orders workflows by time, and gives all of one transaction the same time. So each new one gets its own time
        here, and they keep their order.
        """
        ids = [options["workflow_id"] for options, _ in rows]
        table = self._workflows
        with self.engine.begin() as connection:
            known: set[str] = set()
            for at in range(0, len(ids), _AT_ONCE):
                some = sa.select(table.c.workflow_uuid).where(table.c.workflow_uuid.in_(ids[at : at + _AT_ONCE]))
                known.update(connection.execute(some).scalars())
            # Ordered by id, so that two who submit the same jobs never deadlock.
            for options, argument in sorted(rows, key=lambda row: row[0]["workflow_id"]):
                if options["workflow_id"] not in known:
                    self.client.enqueue_in_transaction(connection, options, argument)
            now = time.time_ns() // 1_000_000
            moments = [{"id": id, "moment": now + at} for at, id in enumerate(dict.fromkeys(ids)) if id not in known]
            if moments:
                moment: sa.BindParameter[int] = sa.bindparam("moment")
                mine = sa.update(table).where(table.c.workflow_uuid == sa.bindparam("id"), table.c.status == "ENQUEUED")
                moments.sort(key=lambda each: str(each["id"]))
                connection.execute(mine.values(created_at=moment, updated_at=moment), moments)

    def requeue(self, id: str, executor: str, queue: str) -> bool:
        """Put a job of this executor back; return whether the executor still had it.

        `DBOSClient.resume_workflow` would also take jobs of other workers and cancelled ones, and forget the attempts.
        """
        return self._system.reenqueue_for_recovery(id, [executor], queue)

    def _discard_late(self, connection: Any, record: Any) -> None:
        # A connection that a thread returns after the pool was closed would stay open.
        if self._closed.is_set():
            record.invalidate()

    def close(self) -> None:
        """Close all connections; no new ones are made."""
        self._closed.set()
        self._system.destroy()
        self.client.destroy()
        self.engine.dispose()
        _allow_pickles(self)


def _to_sqlite(file: Path) -> Callable[[], sqlite3.Connection]:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Results may be private; the log beside it gets the same permissions from SQLite.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(file, timeout=_WAIT / 1000, check_same_thread=False)
        # As DBOS sets up its own connections; the log lets others read while one writes.
        connection.isolation_level = "IMMEDIATE"
        for pragma in (f"busy_timeout={_WAIT}", "foreign_keys=ON", "journal_mode=WAL", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    return connect


def _to_postgres(uri: Secret) -> Callable[[], psycopg.Connection[Any]]:
    # A silently lost connection is noticed within seconds. The URI may set other values.
    defaults: dict[str, Any] = {
        "application_name": "portico-dbos",
        "connect_timeout": 10,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }
    options = defaults | {key: value for key, value in conninfo_to_dict(uri.reveal()).items() if value is not None}

    def connect() -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(**options)
        except psycopg.OperationalError as error:
            if _NO_CONNECTION in str(error):
                raise
            raise type(error)(f"{_NO_CONNECTION}: {error}") from error
        try:
            with connection.transaction():
                # A process that stops within a transaction must not keep a job for ever.
                connection.execute("SET idle_in_transaction_session_timeout = '60s'")
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _quiet() -> None:
    """Keep DBOS from writing to the terminal, unless the logger `dbos` has a handler."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
