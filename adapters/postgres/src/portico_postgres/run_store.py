"""The run store in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from psycopg import sql

from portico.errors import StoreBusy, StoreDamaged, StoreError, StoreUnavailable
from portico.plugins import Rows, Services
from portico.ports import Lease, RunStore
from portico_postgres._connections import Connection, Connections, Part
from portico_postgres.config import PostgresRunSettings

_TABLES = (
    # The next token. A sequence never gives a token twice, also after a run was removed.
    "CREATE SEQUENCE {schema}.tokens",
    # `owner` is null when the run is free. `presence` identifies its process on the same system. `length` is the number
    # of entries. `finished` is when the run ended. The fill factor leaves room for updates, which are frequent.
    """CREATE TABLE {schema}.runs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name bytea NOT NULL,
        created timestamptz NOT NULL DEFAULT clock_timestamp(),
        finished timestamptz,
        length bigint NOT NULL DEFAULT 0,
        token bigint NOT NULL,
        owner bytea,
        presence text,
        expires timestamptz NOT NULL) WITH (fillfactor = 70)""",
    # A name may be too long for an index.
    "CREATE UNIQUE INDEX runs_name ON {schema}.runs (sha256(name))",
    "CREATE INDEX runs_finished ON {schema}.runs (finished) WHERE finished IS NOT NULL",
    # `batch` identifies one append, also when its answer was lost. `json` keeps the text as it was written.
    """CREATE TABLE {schema}.entries (
        run bigint NOT NULL REFERENCES {schema}.runs (id) ON DELETE CASCADE,
        number bigint NOT NULL,
        batch uuid NOT NULL,
        entry json NOT NULL,
        PRIMARY KEY (run, number))""",
)


async def _make(connection: Connection, schema: sql.Identifier) -> None:
    for table in _TABLES:
        await connection.execute(sql.SQL(table).format(schema=schema))


RUNS = Part("runs", (_make,))

_STATEMENTS = {
    # `seen` is the token of a lease that may be taken over before it expires: the owner's own, or that of a process
    # that has ended; -1 for none. A late take that was repeated finds another token.
    "take": """INSERT INTO {runs} AS run (name, token, owner, presence, expires)
    VALUES (%(name)s, nextval({tokens}), %(owner)s, %(presence)s,
        clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (sha256(name)) DO UPDATE
        SET token = nextval({tokens}), owner = %(owner)s, presence = %(presence)s,
            expires = clock_timestamp() + make_interval(secs => %(seconds)s)
        WHERE run.owner IS NULL OR run.expires <= clock_timestamp() OR run.token = %(seen)s
    RETURNING token, length""",
    "look": """SELECT token, owner, presence, extract(epoch FROM expires - clock_timestamp())::float8
    FROM {runs} WHERE sha256(name) = sha256(%(name)s)""",
    "renew": """UPDATE {runs}
    SET presence = %(presence)s, expires = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE sha256(name) = sha256(%(name)s) AND token = %(token)s AND owner IS NOT NULL
    RETURNING 1""",
    "release": """UPDATE {runs} SET owner = NULL, presence = NULL, expires = clock_timestamp()
    WHERE sha256(name) = sha256(%(name)s) AND token = %(token)s AND owner IS NOT NULL
    RETURNING finished IS NOT NULL""",
    # `length` is the number of entries that the writer knows of, so that a repeated append writes once. Entries are
    # sent in binary (`b`): as text, psycopg takes seconds to escape the quotes of 1 MB.
    "append": """WITH held AS (
        UPDATE {runs} SET
            length = length + %(count)s,
            finished = CASE WHEN %(end)s::boolean IS NULL THEN finished
                WHEN %(end)s::boolean THEN clock_timestamp() END
        WHERE sha256(name) = sha256(%(name)s) AND token = %(token)s AND owner IS NOT NULL
            AND expires > clock_timestamp() AND length = %(length)s
        RETURNING id),
    written AS (
        INSERT INTO {entries} (run, number, batch, entry)
        SELECT held.id, %(length)s::bigint + given.number, %(batch)s, given.entry::json
        FROM held, unnest(%(entries)b::text[]) WITH ORDINALITY AS given (entry, number))
    SELECT 1 FROM held""",
    "state": """SELECT token = %(token)s AND owner IS NOT NULL, expires > clock_timestamp(), length,
        EXISTS (SELECT FROM {entries} AS entry WHERE entry.run = run.id AND entry.batch = %(batch)s)
    FROM {runs} AS run WHERE sha256(name) = sha256(%(name)s)""",
    "read": """SELECT number, entry::text, length FROM {runs} AS run LEFT JOIN {entries} ON run = run.id
    WHERE sha256(name) = sha256(%(name)s) ORDER BY number""",
    "names": "SELECT name FROM {runs} ORDER BY id",
    # `now()` is constant in a statement, so the index is used and newer runs are not read.
    "clean": """DELETE FROM {runs} WHERE id IN (
        SELECT id FROM {runs}
        WHERE finished < now() - make_interval(secs => %(seconds)s)
            AND (owner IS NULL OR expires <= clock_timestamp())
        ORDER BY finished LIMIT %(most)s FOR UPDATE SKIP LOCKED)""",
}


def run_statements(schema: str) -> dict[str, bytes]:
    """Return the statements for one schema by name. The schema is quoted, and all values are bound."""
    names = {
        "runs": sql.Identifier(schema, "runs"),
        "entries": sql.Identifier(schema, "entries"),
        "tokens": sql.SQL("{}::regclass").format(sql.Literal(sql.Identifier(schema, "tokens").as_string(None))),
    }
    return {name: sql.SQL(statement).format(**names).as_bytes(None) for name, statement in _STATEMENTS.items()}


_PROC = Path("/proc")
_START = 19
"""Where `/proc/PID/stat` has the start of a process, counted from its state: proc_pid_stat(5)."""


@lru_cache(1)
def sign_of(pid: int) -> str | None:
    """Return a text that identifies this process; None if the system does not provide it.

    It has the boot of the system, the namespace of process numbers, the number ``pid``, and when the process began.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        space = (_PROC / "self/ns/pid").stat().st_ino
    except (OSError, ValueError):
        return None
    began = _read_start(pid)
    return began and f"{boot} {space} {pid} {began}"


def is_gone(sign: str | None) -> bool:
    """Tell whether the process of that sign has surely ended; only a process of the same system knows."""
    own, other = (sign_of(os.getpid()) or "").split(" "), (sign or "").split(" ")
    if len(other) != 4 or other[:2] != own[:2] or not other[2].isdigit():
        return False
    try:
        os.kill(int(other[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _read_start(int(other[2])) not in (other[3], None)


def _read_start(pid: int) -> str | None:
    """Return when a process began, "ended" for a zombie, and None if the system does not provide it."""
    try:
        # The name before it is in parentheses, and may have parentheses and spaces in it.
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "ended" if fields[0] in ("Z", "X") else fields[_START]
    except (OSError, IndexError):
        return None


_TRIES = 20
"""How often a statement may find that another one came first, before `StoreBusy`."""

_REMOVED_AT_ONCE = 100
_BETWEEN_CLEANINGS = 60.0
_SECONDS_PER_DAY = 86_400


@dataclass(slots=True)
class _Written:
    """What this process knows of a run that it holds: its length, and an append whose answer was lost."""

    length: int = -1
    batch: uuid.UUID | None = None
    texts: list[str] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Keeps appends in the order of their calls."""


class PostgresRunStore(RunStore):
    """The RunStore port in PostgreSQL, for processes on any number of machines.

    `append` returns after the server has committed, and writes an entry exactly once: if the answer was lost, it sends
    the append again, and the server recognizes it. The server keeps the leases: its clock decides when one expires, and
    the row of the run has the newest token. If a process was killed, its lease is free at once for processes on the
    same system, and after ``lease_seconds`` for others.

    Nothing is opened before the first call; the first write makes the tables. Calls may run concurrently, and each
    ends in time: see the settings. ``StoreUnavailable`` means that the server was not reached or its answer was lost;
    append the same entries again, and they are written if they were not.
    """

    name = "postgres"

    def __init__(self, settings: PostgresRunSettings, services: Services | None = None) -> None:
        self.lease_seconds = settings.lease_seconds
        self._keep_seconds = settings.keep_days * _SECONDS_PER_DAY
        self._connections = Connections(settings, RUNS, table="[runs.postgres]")
        self._statements = run_statements(settings.schema)
        self._schema = settings.schema
        self._held: dict[tuple[str, int], _Written] = {}
        self._next_cleaning = 0.0

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run for ``seconds``. Raises ``StoreBusy`` while another process holds it and may be alive."""
        values = {
            "name": Rows.encode_name(run),
            "owner": Rows.encode_name(owner),
            "seconds": seconds,
            "presence": sign_of(os.getpid()),
        }

        async def take(connection: Connection) -> tuple[int, int]:
            seen = -1
            for _ in range(_TRIES):
                taken = await _row(connection, self._statements["take"], {**values, "seen": seen})
                if taken is not None:
                    return taken[0], taken[1]
                found = await _row(connection, self._statements["look"], values)
                if found is None:
                    continue
                seen, by, presence, left = found
                if by is not None and by != values["owner"] and left > 0 and not is_gone(presence):
                    raise StoreBusy(
                        f"Another process is at work on the run {Rows.shown_name(run)}. Wait for its end, or for its "
                        f"lease to run out, in {left:.0f} s."
                    )
            raise StoreBusy(f"Many processes want the run {Rows.shown_name(run)} at once. Try again.")

        token, length = await self._connections.write(take)
        self._held[run, token] = _Written(length)
        return Lease(run, owner, token)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Extend a lease. Raises ``StoreBusy`` if it was released or there is a newer one."""
        values = {**_key(lease), "seconds": seconds, "presence": sign_of(os.getpid())}

        renewed = await self._connections.write(lambda connection: _row(connection, self._statements["renew"], values))
        if renewed is None:
            self._held.pop((lease.run, lease.token), None)
            raise Rows.stale(lease)

    async def release(self, lease: Lease) -> None:
        """Release the run, unless the lease is stale. After a run that has ended, remove some old runs."""
        self._held.pop((lease.run, lease.token), None)
        values = _key(lease)
        given = await self._connections.write(lambda connection: _row(connection, self._statements["release"], values))
        if given is not None and given[0] and time.monotonic() >= self._next_cleaning:
            # Old runs that cannot be removed are no failure of this one.
            with suppress(StoreError):
                await self._clean()

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries. Raises ``StoreBusy`` for a stale lease, ``StoreError`` for a value that is not JSON.

        After ``StoreUnavailable``, append the same entries again: they are written once.
        """
        texts = [Rows.encode(lease.run, entry) for entry in entries]
        end = Rows.ended(entries)
        known = self._held.setdefault((lease.run, lease.token), _Written())
        async with known.turn:
            batch = known.batch if known.batch is not None and known.texts == texts else uuid.uuid4()
            values = {**_key(lease), "count": len(texts), "end": end, "batch": batch, "entries": texts}

            async def append(connection: Connection) -> int:
                for _ in range(_TRIES):
                    values["length"] = known.length
                    if await _row(connection, self._statements["append"], values) is not None:
                        return known.length + len(texts)
                    state = await _row(connection, self._statements["state"], values)
                    newest, in_force, known.length, there = state or (False, False, -1, False)
                    if there:
                        return known.length
                    if not newest:
                        self._held.pop((lease.run, lease.token), None)
                    if not newest or not in_force:
                        raise Rows.stale(lease)
                raise StoreBusy(f"Several write to the run {Rows.shown_name(lease.run)} under one lease. Try again.")

            try:
                known.length = await self._connections.write(append)
            except StoreUnavailable:
                known.batch, known.texts = batch, texts
                raise
            known.batch, known.texts = None, []

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order; none for an unknown run. Raises ``StoreDamaged`` if one is missing."""
        values = {"name": Rows.encode_name(run)}
        none: list[Any] = []
        rows = await self._connections.read(
            lambda connection: _rows(connection, self._statements["read"], values), none
        )
        return await asyncio.to_thread(self._parse, run, rows)

    async def held(self, run: str) -> bool:
        """Tell whether a process that may be alive holds the run."""
        values = {"name": Rows.encode_name(run)}
        found = await self._connections.read(
            lambda connection: _row(connection, self._statements["look"], values), None
        )
        if found is None:
            return False
        _, by, presence, left = found
        return by is not None and left > 0 and not is_gone(presence)

    async def runs(self) -> list[str]:
        """Return the names of all runs, oldest first."""
        none: list[Any] = []
        rows = await self._connections.read(lambda connection: _rows(connection, self._statements["names"], {}), none)
        try:
            return [Rows.decode_name(name) for (name,) in rows]
        except UnicodeDecodeError as error:
            raise self._damage_error("the name of a run is not what was written") from error

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next call opens others. Leases stay as they are."""
        await self._connections.aclose()

    async def _clean(self) -> None:
        async def clean(connection: Connection) -> int:
            values = {"seconds": self._keep_seconds, "most": _REMOVED_AT_ONCE}
            return (await connection.execute(self._statements["clean"], values)).rowcount

        removed = await self._connections.write(clean)
        # If there are more, the next run that ends removes some too.
        if removed < _REMOVED_AT_ONCE:
            self._next_cleaning = time.monotonic() + _BETWEEN_CLEANINGS

    def _parse(self, run: str, rows: list[tuple[int | None, str | None, int]]) -> list[Mapping[str, Any]]:
        entries: list[Mapping[str, Any]] = []
        for expected, (number, text, length) in enumerate(rows, 1):
            if number is None and not length:
                return []
            if number != expected:
                raise self._damage_error(f"the run {Rows.shown_name(run)} has no entry {expected}")
            try:
                entries.append(Rows.decode(text))
            except ValueError as error:
                raise self._damage_error(f"entry {number} of the run {Rows.shown_name(run)} {error}") from error
        if rows and len(rows) < rows[0][2]:
            raise self._damage_error(f"the run {Rows.shown_name(run)} has no entry {len(rows) + 1}")
        return entries

    def _damage_error(self, why: str) -> StoreDamaged:
        return StoreDamaged(
            f"The journal in the schema {self._schema!r} of {self._connections.place} is damaged: {why}. "
            "Restore it from a backup; the other runs are not concerned."
        )


def _key(lease: Lease) -> dict[str, Any]:
    return {"name": Rows.encode_name(lease.run), "token": lease.token}


async def _row(connection: Connection, statement: bytes, values: Mapping[str, Any]) -> Any:
    """Run a statement and return its first row, or None."""
    return await (await connection.execute(statement, values)).fetchone()


async def _rows(connection: Connection, statement: bytes, values: Mapping[str, Any]) -> list[Any]:
    return await (await connection.execute(statement, values)).fetchall()
