"""Whatever comes from outside is data: it is bound, it comes back as it was, and nothing of it becomes SQL."""

from __future__ import annotations

import itertools
from typing import Any

import psycopg
import pytest
from hypothesis import settings, strategies as st
from psycopg import sql
from tests.support.postgres_server import PostgresServer

from portico.plugins import Secret
from portico.search import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range, VectorRecord, Vectors
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore
from portico_testkit.vector_checks import tried

# A word that no statement of ours has, so that it stands in one only if it came from outside.
_MARK = "zqx7"

_HOSTILE = (
    "'",
    '"',
    "''",
    "\\",
    "\\'",
    "\x00",
    "\ud800",
    "%s",
    "%(query)b",
    "%%",
    "{vectors}",
    "{0}",
    "$1",
    "$$",
    "; DROP TABLE canary; --",
    "'); DROP TABLE canary; --",
    '"; DROP TABLE canary; --',
    "') OR true --",
    "/*",
    "::regclass",
    "& | ! <-> :*",
    "e\u0301",
    "\u202e",
    "\n",
)

texts = st.lists(st.sampled_from(_HOSTILE) | st.text(max_size=3), max_size=4).map(lambda parts: _MARK + "".join(parts))
scalars = texts | st.integers() | st.floats(allow_nan=False) | st.booleans()
metadata = st.dictionaries(texts, scalars | st.lists(scalars, max_size=2), max_size=3)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, dict[str, dict[str, Any]], Filter, str]:
    """A namespace, metadata by id, a filter of a field, the text of a query."""
    records = draw(st.dictionaries(texts, metadata, min_size=1, max_size=3))
    known = sorted({field for fields in records.values() for field in fields})
    field = draw(st.sampled_from(known) if known else texts)
    one = Equal(field, draw(scalars))
    other = draw(
        st.builds(AnyOf, st.just(field), st.lists(scalars, max_size=3).map(tuple))
        | texts.map(lambda bound: Range(field, at_least=bound))
        | texts.map(lambda name: Equal(name, True))
    )
    filter = draw(st.sampled_from([one, other, And((one, other)), Or((one, other)), Not(other)]))
    return draw(texts), records, filter, draw(texts)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is sent, as it is sent: without the values of its parameters."""
    sent: list[str] = []
    execute, copy = psycopg.AsyncCursor.execute, psycopg.AsyncCursor.copy

    def text_of(query: Any) -> str:
        return query.decode() if isinstance(query, bytes) else query if isinstance(query, str) else query.as_string()

    async def noted(cursor: Any, query: Any, *values: Any, **options: Any) -> Any:
        sent.append(text_of(query))
        return await execute(cursor, query, *values, **options)

    def noted_copy(cursor: Any, statement: Any, *values: Any, **options: Any) -> Any:
        sent.append(text_of(statement))
        return copy(cursor, statement, *values, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noted)
    monkeypatch.setattr(psycopg.AsyncCursor, "copy", noted_copy)
    return sent


@pytest.mark.fuzz
async def test_nothing_from_outside_becomes_sql(server: PostgresServer, schema: str, statements: list[str]) -> None:
    store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(server.uri), schema=schema))
    await store.upsert("first", [VectorRecord("a")], Vectors.from_rows([[1.0, 0.0]]))
    server.run(sql.SQL("CREATE TABLE {} AS SELECT 1 AS alive").format(sql.Identifier(schema, "canary")))
    numbers = itertools.count()

    async def check(history: tuple[str, dict[str, dict[str, Any]], Filter, str]) -> None:
        namespace, records, filter, query = history
        namespace += str(next(numbers))
        given = [VectorRecord(id, fields, f"{query} {id}") for id, fields in records.items()]
        rows = Vectors.from_rows([[1.0, float(row)] for row in range(len(given))])
        one = Vectors.from_rows([[1.0, 0.0]])
        await store.upsert(namespace, given, rows)
        found, _ = await store.get(namespace, list(records))
        assert [(record.id, record.text) for record in found] == [(record.id, record.text) for record in given]
        for record in found:
            expected = {key: tuple(v) if isinstance(v, list) else v for key, v in records[record.id].items()}
            assert record.metadata == expected
        kept = {id for id, fields in records.items() if FilterSupport.matches(filter, fields)}
        [near] = await store.search(namespace, one, filter=filter)
        assert {match.id for match in near} == kept
        both = await store.hybrid.search(namespace, query, one, filter=filter)
        assert {match.id for match in both} == kept, "each has the words of the query"
        assert {match.id for match in await store.hybrid.search(namespace, query)} == set(records)
        assert sorted([id async for id in store.ids(namespace)]) == sorted(records)
        assert await store.delete(namespace, list(records)) == len(records)
        await store.drop(namespace)
        assert await store.count(namespace) == 0

    await tried(settings(max_examples=min(settings.default.max_examples, 1_000)), check, histories())
    await store.aclose()
    assert [one for one in statements if _MARK in one] == []
    tables = server.run(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'", [schema]
    )
    assert {name for (name,) in tables} == {"canary", "portico_versions", "vector_namespaces", "texts_1", "vectors_1"}
