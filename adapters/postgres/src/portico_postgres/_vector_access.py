"""From the name of a namespace to its tables, which others may drop and make anew at any moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar
from weakref import WeakSet

from psycopg import errors

from portico.errors import StoreDamaged
from portico_postgres._connections import Connections
from portico_postgres._texts import stored
from portico_postgres._vector_tables import PART, Connection, Namespace, drop, find, link, make
from portico_postgres._vector_writing import stage
from portico_postgres._vectors import PackedDumper, PackedVector
from portico_postgres.vector_config import PostgresVectorSettings

T = TypeVar("T")
_Work: TypeAlias = Callable[[Connection, Namespace], Awaitable[T]]

_ATTEMPTS = 10
_LONG_WRITE = 1_000
"""Records from which on a write may take longer than a statement usually may."""
_SECONDS_A_RECORD = 0.05
"""Linking a record in a large graph takes some milliseconds."""
_SECONDS_TO_LINK = 86_400.0

# How a graph is walked. Compiling a statement to machine code takes longer than comparing all vectors. How many records
# a filter keeps is a rough guess of the server's: with a price of disks that turn, a guess too high by half has it read
# all of them, which takes four times as long as those that the index names.
_SESSION = """SELECT set_config('hnsw.ef_search', %(search)s, %(local)s),
    set_config('hnsw.iterative_scan', 'strict_order', %(local)s),
    set_config('hnsw.max_scan_tuples', %(scan)s, %(local)s),
    set_config('jit', 'off', %(local)s),
    set_config('random_page_cost', '1.1', %(local)s)"""


class Access:
    """What there is on the way to the tables: connections, and which namespaces are known.

    What is known of a namespace is its tables' number. It is right or leads to an error, after which it is asked anew.
    """

    def __init__(self, settings: PostgresVectorSettings) -> None:
        self.settings = settings
        self.connections = Connections(settings, PART, table="[vectors.postgres]", configure=self._configure)
        self._known: dict[str, Namespace] = {}
        self._staged: WeakSet[Connection] = WeakSet()

    async def read(self, name: str, work: _Work[T], absent: T, *, dimensions: int | None = None) -> T:
        """Do what is to be done with the namespace; return ``absent`` where there is none.

        Raises ``ValueError`` where its vectors have other ``dimensions`` than those that are given.
        """
        pooler = self.settings.transaction_pooler

        async def done(connection: Connection, namespace: Namespace | None) -> T:
            if namespace is None:
                return absent
            if not pooler:
                return await work(connection, namespace)
            async with connection.transaction():
                await self._settle(connection, local=True)
                return await work(connection, namespace)

        async def reading(connection: Connection) -> T:
            namespace = self._known.get(name)
            if namespace is not None and dimensions in (None, namespace.dimensions) and not pooler:
                # The usual case, in few steps: a search along a graph takes less than a millisecond.
                try:
                    return await work(connection, namespace)
                except errors.UndefinedTable:
                    self._known.pop(name, None)
            return await self._tried(connection, name, dimensions, done)

        return await self.connections.read(reading, absent)

    async def write(self, name: str, dimensions: int, size: int, work: _Work[None]) -> None:
        """Do the work in one transaction, in which the namespace is made where it is not there; then link it.

        ``size`` is how many records it brings, a long text counted as several: so much longer it may take.
        """
        long = size > _LONG_WRITE

        async def written(connection: Connection, namespace: Namespace | None) -> Namespace:
            async with connection.transaction():
                if namespace is None:
                    namespace = await make(connection, self.settings.schema, stored(name), dimensions, self.settings)
                _check(namespace, dimensions)
                if long:
                    await connection.execute("SET LOCAL statement_timeout = 0")
                if connection not in self._staged or self.settings.transaction_pooler:
                    await stage(connection, namespace)
                await work(connection, namespace)
            # Only now: what a transaction made that was taken back is not there.
            self._staged.add(connection)
            return namespace

        async def writing(connection: Connection) -> Namespace:
            return await self._tried(connection, name, dimensions, written)

        seconds = self.settings.statement_timeout + (size * _SECONDS_A_RECORD if long else 0)
        namespace = await self.connections.write(writing, seconds=seconds)
        self._known[name] = namespace
        if self.settings.index == "hnsw" and namespace.takes_graph and not namespace.has_graph:
            await self._link(namespace)

    async def delete(self, name: str, work: _Work[int]) -> int:
        """Do the work in one transaction; return 0 where there is no such namespace.

        It is done again where the connection was lost before the answer came, and counts what was left then.
        """

        async def deleting(connection: Connection, namespace: Namespace) -> int:
            async with connection.transaction():
                return await work(connection, namespace)

        return await self.read(name, deleting, 0)

    async def drop(self, name: str) -> None:
        """Remove the namespace, where there is one."""

        async def dropping(connection: Connection) -> None:
            async with connection.transaction():
                await drop(connection, self.settings.schema, stored(name))

        await self.connections.read(dropping, None)
        self._known.pop(name, None)

    async def _configure(self, connection: Connection) -> None:
        connection.adapters.register_dumper(PackedVector, PackedDumper)
        if not self.settings.transaction_pooler:
            await self._settle(connection, local=False)

    async def _settle(self, connection: Connection, *, local: bool) -> None:
        values = {"search": str(self.settings.hnsw_search), "scan": str(self.settings.hnsw_scan), "local": local}
        await connection.execute(_SESSION, values)

    async def _find(self, connection: Connection, name: str, dimensions: int | None = None) -> Namespace | None:
        namespace = self._known.get(name)
        if namespace is None or dimensions not in (None, namespace.dimensions):
            # Asked anew also for one of other dimensions: it may have been dropped, and be another one now.
            namespace = await find(connection, self.settings.schema, stored(name))
            if namespace is not None:
                _check(namespace, dimensions)
                self._known[name] = namespace
        return namespace

    async def _tried(
        self,
        connection: Connection,
        name: str,
        dimensions: int | None,
        do: Callable[[Connection, Namespace | None], Awaitable[T]],
    ) -> T:
        """Do it with the namespace as it is now; again, where somebody drops it meanwhile."""
        gone: errors.UndefinedTable | None = None
        for _ in range(_ATTEMPTS):
            namespace = await self._find(connection, name, dimensions)
            try:
                return await do(connection, namespace)
            except errors.UndefinedTable as error:
                gone = error
                self._known.pop(name, None)
                # The temporary table may be what is gone: a pooler that nobody told of clears sessions.
                self._staged.discard(connection)
        raise StoreDamaged(
            f"The tables of the namespace {name!r} are gone from {self.connections.place}, schema "
            f"{self.settings.schema!r}. Drop the namespace, and write it again."
        ) from gone

    async def _link(self, namespace: Namespace) -> None:
        async def linking(connection: Connection) -> None:
            try:
                await link(connection, namespace, self.settings)
            except errors.UndefinedTable:
                # Somebody dropped it meanwhile.
                return

        await self.connections.write(linking, seconds=_SECONDS_TO_LINK)


def _check(namespace: Namespace, dimensions: int | None) -> None:
    if dimensions not in (None, namespace.dimensions):
        raise ValueError(f"the vectors have {dimensions} dimensions, those in the namespace {namespace.dimensions}")
