"""The table of workers: who is at work, and when it was last heard of, by the clock of the database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from portico.ports import Worker

if TYPE_CHECKING:
    import sqlalchemy as sa


_MAKING = 0x506F7274_69636F00
"""The lock under which the table is made: two processes that make one table at once, PostgreSQL refuses."""


def moment(seconds: float | None) -> str:
    """Return a moment in UTC as ISO 8601; empty for none.

    >>> moment(0.0)
    '1970-01-01T00:00:00.000+00:00'
    """
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


class WorkersTable:
    """Reads and writes the heartbeats; a living worker is one that was heard of within ``timeout`` seconds."""

    def __init__(self, engine: sa.Engine, schema: str | None, timeout: float) -> None:
        import sqlalchemy as sa

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
        """Make the table where it is missing."""
        import sqlalchemy as sa

        with self._engine.begin() as connection:
            if self._postgres:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
            else:
                connection.execute(sa.text("BEGIN IMMEDIATE"))
            self._table.create(connection, checkfirst=True)

    def beat(self, name: str, jobs: int) -> None:
        """Say that a worker is there, and how many jobs it has."""
        from sqlalchemy.dialects import postgresql, sqlite

        insert = (postgresql if self._postgres else sqlite).insert(self._table)
        row = insert.values(name=name, since=self._now, seen=self._now, jobs=jobs)
        with self._engine.begin() as connection:
            connection.execute(
                row.on_conflict_do_update(index_elements=["name"], set_={"seen": self._now, "jobs": jobs})
            )

    def living(self) -> list[Worker]:
        """Return the workers that are there, the longest at work first."""
        return self.living_at()[0]

    def living_at(self) -> tuple[list[Worker], float]:
        """Return the workers that are there, and the moment by the clock of the database, in seconds."""
        import sqlalchemy as sa

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
        """Forget a worker that ended."""
        import sqlalchemy as sa

        with self._engine.begin() as connection:
            connection.execute(sa.delete(self._table).where(self._table.c.name == name))

    def sweep(self) -> None:
        """Forget the workers that were not heard of for long; their jobs have gone to others since."""
        import sqlalchemy as sa

        with self._engine.begin() as connection:
            long_ago = self._now - max(100 * self._timeout, 600)
            connection.execute(sa.delete(self._table).where(self._table.c.seen < long_ago))
