"""The tables of the journal, and the statements on them.

Each statement is one transaction. The row of a run is the lock of the run: whoever writes to it waits for who did
before, and then looks at the newest token, so a lease that another one followed writes nothing, at whatever moment
its process comes back. Times are the server's own (``clock_timestamp()``): clocks of processes do not count.
"""

from __future__ import annotations

from psycopg import sql

from portico_postgres._door import Connection
from portico_postgres._migrations import Part

_TABLES = (
    # The next token. It is in no row, so that none comes again when a run was removed.
    "CREATE SEQUENCE {schema}.tokens",
    # `owner` is none when the run is free; `presence` tells its process from others on the same system; `length` is
    # how many entries there are. `finished` is when the run ended. Room in each page: the rows are updated often.
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
    # A name may be longer than what an index takes.
    "CREATE UNIQUE INDEX runs_name ON {schema}.runs (sha256(name))",
    "CREATE INDEX runs_finished ON {schema}.runs (finished) WHERE finished IS NOT NULL",
    # `batch` is one append, to know it by when its answer was lost. `json` keeps the text as it was written.
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

# `seen` is the token of a lease that may be taken over whether it ran out or not, -1 for none: the owner's own, or
# that of a process that is gone. A take that is late, and was repeated meanwhile, finds another token.
_TAKE = """INSERT INTO {runs} AS run (name, token, owner, presence, expires)
    VALUES (%(name)s, nextval({tokens}), %(owner)s, %(presence)s,
        clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (sha256(name)) DO UPDATE
        SET token = nextval({tokens}), owner = %(owner)s, presence = %(presence)s,
            expires = clock_timestamp() + make_interval(secs => %(seconds)s)
        WHERE run.owner IS NULL OR run.expires <= clock_timestamp() OR run.token = %(seen)s
    RETURNING token, length"""
_LOOK = """SELECT token, owner, presence, extract(epoch FROM expires - clock_timestamp())::float8
    FROM {runs} WHERE sha256(name) = sha256(%(name)s)"""
_RENEW = """UPDATE {runs}
    SET presence = %(presence)s, expires = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE sha256(name) = sha256(%(name)s) AND token = %(token)s AND owner IS NOT NULL
    RETURNING 1"""
_RELEASE = """UPDATE {runs} SET owner = NULL, presence = NULL, expires = clock_timestamp()
    WHERE sha256(name) = sha256(%(name)s) AND token = %(token)s AND owner IS NOT NULL
    RETURNING finished IS NOT NULL"""
# `length` is how many entries the run has as its writer knows it: of two tries to write the same, one writes. Entries
# are sent in binary (`b`): as text, psycopg escapes each quote in an array one by one, which takes seconds for a MB.
_APPEND = """WITH held AS (
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
    SELECT 1 FROM held"""
_STATE = """SELECT token = %(token)s AND owner IS NOT NULL, expires > clock_timestamp(), length,
        EXISTS (SELECT FROM {entries} AS entry WHERE entry.run = run.id AND entry.batch = %(batch)s)
    FROM {runs} AS run WHERE sha256(name) = sha256(%(name)s)"""
_READ = """SELECT number, entry::text FROM {entries}
    WHERE run = (SELECT id FROM {runs} WHERE sha256(name) = sha256(%(name)s)) ORDER BY number"""
_NAMES = "SELECT name FROM {runs} ORDER BY id"
# By `now()`, the same throughout: only so the index finds where the old ones end, and none of the others is read.
_CLEAN = """DELETE FROM {runs} WHERE id IN (
        SELECT id FROM {runs}
        WHERE finished < now() - make_interval(secs => %(seconds)s)
            AND (owner IS NULL OR expires <= clock_timestamp())
        ORDER BY finished LIMIT %(most)s FOR UPDATE SKIP LOCKED)"""


class RunStatements:
    """The statements for one schema, ready to be sent: its name is quoted once, everything else is bound."""

    def __init__(self, schema: str) -> None:
        names = {
            "runs": sql.Identifier(schema, "runs"),
            "entries": sql.Identifier(schema, "entries"),
            "tokens": sql.SQL("{}::regclass").format(sql.Literal(sql.Identifier(schema, "tokens").as_string(None))),
        }

        def made(statement: str) -> bytes:
            return sql.SQL(statement).format(**names).as_bytes(None)

        self.take = made(_TAKE)
        self.look = made(_LOOK)
        self.renew = made(_RENEW)
        self.release = made(_RELEASE)
        self.append = made(_APPEND)
        self.state = made(_STATE)
        self.read = made(_READ)
        self.names = made(_NAMES)
        self.clean = made(_CLEAN)
