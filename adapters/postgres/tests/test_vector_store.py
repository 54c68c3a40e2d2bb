"""What the vectors in PostgreSQL promise beyond the contract."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from tests.support.postgres_server import PostgresServer

from portico.errors import ConfigurationError, StoreDamaged, StoreError
from portico.plugins import Secret
from portico.search import Equal, Range, VectorRecord, Vectors
from portico_postgres import _plugin, vector_store
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore

Open = Callable[..., PostgresVectorStore]


@pytest.fixture
async def stores(uri: str, schema: str) -> AsyncIterator[Open]:
    """Make stores on the data of this test, and close them."""
    made: list[PostgresVectorStore] = []

    def opened(**more: Any) -> PostgresVectorStore:
        made.append(PostgresVectorStore(PostgresVectorSettings(**{"uri": Secret(uri), "schema": schema, **more})))
        return made[-1]

    yield opened
    for store in made:
        await store.aclose()


def random_rows(rows: int, dimensions: int = 16, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((rows, dimensions))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


async def put(store: PostgresVectorStore, rows: np.ndarray, **metadata: Any) -> None:
    records = [VectorRecord(str(number), {"number": number, **metadata}) for number in range(len(rows))]
    await store.upsert("n", records, Vectors(rows, *rows.shape))


def plan_of(server: PostgresServer, schema: str, order: str) -> str:
    """Return how PostgreSQL answers a search of the first namespace."""
    statement = f'EXPLAIN SELECT id FROM "{schema}".vectors_1 ORDER BY {order} LIMIT 5'
    return "\n".join(line for (line,) in server.run(statement))


def test_what_is_registered_can_be_made() -> None:
    [registration] = _plugin.portico_vector_stores()
    assert registration.name == PostgresVectorStore.name
    assert registration.factory == f"{PostgresVectorStore.__module__}:{PostgresVectorStore.__name__}"
    assert registration.settings == f"{PostgresVectorSettings.__module__}:{PostgresVectorSettings.__name__}"


async def test_unit_vectors_come_back_bit_for_bit(stores: Open) -> None:
    store, rows = stores(), random_rows(600)
    await put(store, rows)
    _, vectors = await store.get("n", [str(number) for number in range(600)])
    assert vectors == Vectors(rows, *rows.shape)


async def test_of_equal_scores_the_record_that_came_first_comes_first(stores: Open) -> None:
    store = stores()
    rows = np.repeat(random_rows(1), 300, axis=0)
    ids = [secrets.token_hex(4) for _ in range(600)]
    for start in (0, 300):
        records = [VectorRecord(id) for id in ids[start : start + 300]]
        await store.upsert("n", records, Vectors(rows, *rows.shape))
    [found] = await store.search("n", Vectors(rows[:1], 1, 16), top=600)
    assert [match.id for match in found] == ids


async def test_one_query_and_many_give_the_same(stores: Open) -> None:
    rows, queries = random_rows(500), random_rows(150, seed=1)
    for more in ({}, {"index": "hnsw", "hnsw_from": 1}):
        store = stores(**more)
        await put(store, rows)
        together = await store.search("n", Vectors(queries, *queries.shape), top=7)
        apart = [(await store.search("n", Vectors(query, 1, 16), top=7))[0] for query in queries]
        assert together == apart


@pytest.mark.parametrize("keeps", [1, 3, 300, 3_000])
@pytest.mark.parametrize("index", ["exact", "hnsw"])
async def test_a_filter_of_any_strength_finds_the_best(
    stores: Open, monkeypatch: pytest.MonkeyPatch, index: str, keeps: int
) -> None:
    monkeypatch.setattr(vector_store, "_MOST_SCANNED", 50)
    store, rows = stores(index=index, hnsw_from=1), random_rows(3_000, 8)
    await put(store, rows)
    for query in random_rows(3, 8, seed=2):
        [found] = await store.search("n", Vectors(query, 1, 8), top=10, filter=Range("number", below=keeps))
        order = np.argsort(-(rows[:keeps] @ query), kind="stable")[:10]
        hits = len({int(match.id) for match in found} & set(order.tolist()))
        assert len(found) == min(keeps, 10)
        assert hits == len(order) if index == "exact" or keeps < 10 else hits >= len(order) - 2


async def test_a_hybrid_search_along_a_graph_finds_what_a_filter_keeps(
    stores: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "_MOST_SCANNED", 50)
    store, rows = stores(index="hnsw", hnsw_from=1), random_rows(3_000, 8)
    records = [VectorRecord(str(row), {"number": row}, f"anvil {row}") for row in range(3_000)]
    await store.upsert("n", records, Vectors(rows, *rows.shape))
    kept = Range("number", below=5)
    for query in random_rows(3, 8, seed=2):
        found = await store.hybrid.search("n", "nothing of that", Vectors(query, 1, 8), filter=kept)
        assert {int(match.id) for match in found} == set(np.flatnonzero(rows[:5] @ query > 0).tolist())
        assert len(await store.hybrid.search("n", "anvil", Vectors(query, 1, 8), filter=kept)) == 5


async def test_an_empty_id_alone_is_yielded(stores: Open) -> None:
    store = stores()
    await store.upsert("", [VectorRecord("")], Vectors.from_rows([[1.0]]))
    assert [id async for id in store.ids("")] == [""]


async def test_a_graph_is_made_once_there_are_enough_and_walked(
    stores: Open, server: PostgresServer, schema: str
) -> None:
    store = stores(index="hnsw", hnsw_from=1_000)
    rows = random_rows(4_000)
    await put(store, rows[:999])
    assert "graph" not in plan_of(server, schema, f"embedding <#> '{rows[0].tolist()}'")
    await put(store, rows)
    assert "vectors_1_graph" in plan_of(server, schema, f"embedding <#> '{rows[0].tolist()}'")
    [found] = await store.search("n", Vectors(rows[7], 1, 16), top=200)
    assert len(found) == 200, "more than the graph's candidates are wanted"
    assert found[0].id == "7"


async def test_a_store_without_graphs_compares_with_every_vector(
    stores: Open, server: PostgresServer, schema: str
) -> None:
    """Also where another one made a graph of the namespace."""
    rows = random_rows(3_000)
    await put(stores(index="hnsw", hnsw_from=1), rows)
    exact = stores()
    for query in random_rows(20, seed=3):
        [found] = await exact.search("n", Vectors(query, 1, 16), top=5)
        assert [int(match.id) for match in found] == np.argsort(-(rows @ query), kind="stable")[:5].tolist()
    assert "graph" not in plan_of(server, schema, f"inner_product(embedding, '{rows[0].tolist()}') DESC")


@pytest.mark.parametrize(("dimensions", "graph"), [(1, True), (1_950, True), (3_072, True), (4_001, False)])
async def test_vectors_of_any_size(
    stores: Open, server: PostgresServer, schema: str, dimensions: int, graph: bool
) -> None:
    store = stores(index="hnsw", hnsw_from=1)
    rows = random_rows(60, dimensions)
    records = [VectorRecord(str(row), {"text": "a text of some length " * 100}) for row in range(60)]
    await store.upsert("n", records, Vectors(rows, *rows.shape))
    [found] = await store.search("n", Vectors(rows[7], 1, dimensions), top=60)
    assert len(found) == 60
    assert abs(found[0].score - 1) < 1e-5
    _, vectors = await store.get("n", ["7"])
    assert vectors == Vectors(rows[7], 1, dimensions)
    [(made,)] = server.run(sql.SQL("SELECT to_regclass({}) IS NOT NULL").format(f'"{schema}".vectors_1_graph'))
    assert made == graph


async def test_what_is_too_large_is_refused_before_anything_is_sent(stores: Open) -> None:
    store = stores(uri=Secret("postgresql:///nobody?host=/nowhere"))
    with pytest.raises(ValueError, match="16,001 dimensions; pgvector takes 16,000"):
        await store.upsert("n", [VectorRecord("a")], Vectors(bytes(16_001 * 4), 1, 16_001))
    with pytest.raises(ValueError, match=r"the id 'xxxx.* has 2001 bytes"):
        await store.upsert("n", [VectorRecord("x" * 2_001)], Vectors.from_rows([[1.0]]))
    with pytest.raises(ValueError, match=r"the namespace 'éééé.* has 2002 bytes"):
        await store.upsert("é" * 1_001, [VectorRecord("a")], Vectors.from_rows([[1.0]]))


async def test_the_longest_ids_and_namespaces_are_kept(stores: Open) -> None:
    store = stores()
    long = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(666))
    await store.upsert(long, [VectorRecord(long), VectorRecord(long[1:])], Vectors.from_rows([[1.0], [1.0]]))
    assert await store.count(long) == 2
    assert await store.count("x" * 5_000) == 0
    assert await store.delete(long, ["x" * 5_000, long]) == 1


async def test_a_namespace_that_another_store_dropped_and_made_anew_is_that_one(stores: Open) -> None:
    one, other = stores(), stores()
    await put(one, random_rows(3))
    assert await other.count("n") == 3
    await other.drop("n")
    assert await one.count("n") == 0
    await other.upsert("n", [VectorRecord("a")], Vectors.from_rows([[1.0, 0.0]]))
    [found] = await one.search("n", Vectors.from_rows([[1.0, 0.0]]))
    assert [match.id for match in found] == ["a"]
    await other.drop("n")
    await other.upsert("n", [VectorRecord("b")], Vectors.from_rows([[1.0, 0.0, 0.0]]))
    await one.upsert("n", [VectorRecord("c")], Vectors.from_rows([[1.0, 0.0, 0.0]]))
    [found] = await one.search("n", Vectors.from_rows([[1.0, 0.0, 0.0]]))
    assert [match.id for match in found] == ["b", "c"]
    with pytest.raises(ValueError, match="have 2 dimensions, those in the namespace 3"):
        await one.search("n", Vectors.from_rows([[1.0, 0.0]]))


async def test_one_namespace_is_made_by_many_at_once(stores: Open) -> None:
    made = [stores() for _ in range(4)]

    async def write(number: int) -> None:
        await made[number % 4].upsert("n", [VectorRecord(str(number))], Vectors.from_rows([[1.0, number]]))

    await asyncio.gather(*(write(number) for number in range(24)))
    assert await made[0].count("n") == 24


async def test_namespaces_that_come_and_go_under_writers_and_readers_fail_nobody(stores: Open) -> None:
    made = [stores() for _ in range(3)]
    done = asyncio.Event()

    async def drop() -> None:
        for _ in range(15):
            await made[0].drop("n")
            await asyncio.sleep(0.01)
        done.set()

    async def write(store: PostgresVectorStore) -> None:
        while not done.is_set():
            await put(store, random_rows(20))

    async def read(store: PostgresVectorStore) -> None:
        while not done.is_set():
            [found] = await store.search("n", Vectors(random_rows(1), 1, 16), top=100)
            assert len(found) in (0, 20)
            await store.hybrid.search("n", "anvil")

    await asyncio.gather(drop(), write(made[1]), write(made[2]), read(made[0]), read(made[1]))


async def test_writers_of_the_same_records_do_not_stop_each_other(
    stores: Open, server: PostgresServer, schema: str
) -> None:
    """Each writes in an order of its own, with texts and without, and another one deletes."""
    made = [stores() for _ in range(3)]
    ids = [f"id-{number}" for number in range(100)]

    async def write(store: PostgresVectorStore, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(100)
        for turn in range(6):
            records = [VectorRecord(ids[row], {}, None if (row + turn) % 3 else f"anvil {turn}") for row in order]
            await store.upsert("n", records, Vectors(random_rows(100), 100, 16))

    async def delete(store: PostgresVectorStore) -> None:
        for turn in range(12):
            await store.delete("n", [ids[row] for row in np.random.default_rng(turn).permutation(100)[:40]])
            await asyncio.sleep(0.005)

    await asyncio.gather(*(write(store, seed) for seed, store in enumerate(made)), delete(made[0]))
    orphans = sql.SQL("SELECT count(*) FROM {} WHERE number NOT IN (SELECT number FROM {})").format(
        sql.Identifier(schema, "texts_1"), sql.Identifier(schema, "vectors_1")
    )
    assert server.run(orphans) == [(0,)], "texts without a record"
    records, _ = await made[0].get("n", ids)
    found = await made[0].hybrid.search("n", "anvil", top=100)
    assert {match.id for match in found} == {record.id for record in records if record.text is not None}


async def test_a_namespace_whose_tables_are_gone_is_damaged_until_it_is_dropped(
    stores: Open, server: PostgresServer, schema: str
) -> None:
    store = stores()
    await put(store, random_rows(3))
    server.run(sql.SQL("DROP TABLE {}").format(sql.Identifier(schema, "vectors_1")))
    for call in (store.count("n"), store.search("n", Vectors(random_rows(1), 1, 16)), put(store, random_rows(3))):
        with pytest.raises(StoreDamaged, match="The tables of the namespace 'n' are gone from"):
            await call
    await store.drop("n")
    assert await store.count("n") == 0
    await put(store, random_rows(3))
    assert await store.count("n") == 3


async def test_a_temporary_table_that_somebody_cleared_is_made_again(stores: Open) -> None:
    store = stores(pool_size=1)
    await put(store, random_rows(3))

    async def clear(connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute("DISCARD TEMP")

    await store._access.connections.write(clear)
    await put(store, random_rows(5))
    assert await store.count("n") == 5


async def test_an_unknown_language_is_a_mistake_in_the_configuration(stores: Open) -> None:
    store = stores(language="englsh")
    with pytest.raises(ConfigurationError, match=r"'englsh', which `language` in \[vectors.postgres\] names. `SELECT"):
        await put(store, random_rows(1))
    assert await store.count("n") == 0


async def test_words_are_known_by_the_language_of_the_first_write(stores: Open) -> None:
    record = VectorRecord("a", {}, "Die Häuser am Hafen")
    for language, found in (("german", ["a"]), ("simple", [])):
        store = stores(language=language)
        await store.upsert(language, [record], Vectors.from_rows([[1.0]]))
        other = stores(language="english")
        assert [match.id for match in await other.hybrid.search(language, "Haus")] == found


async def test_it_works_where_the_extension_is_in_a_schema_of_its_own(server: PostgresServer, uri: str) -> None:
    name = f"portico_test_{secrets.token_hex(4)}"
    server.run(f"CREATE DATABASE {name}")
    other = f"{uri}{'&' if '?' in uri else '?'}dbname={name}"
    try:
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute('CREATE SCHEMA "my ""% extensions"')
            connection.execute('CREATE EXTENSION vector SCHEMA "my ""% extensions"')
        for index in ("exact", "hnsw"):
            settings = PostgresVectorSettings(uri=Secret(other), index=index, hnsw_from=1)
            store = PostgresVectorStore(settings)
            for dimensions in (3, 2_500):
                rows, namespace = random_rows(5, dimensions), f"{index} {dimensions}"
                records = [VectorRecord(str(row), {"n": row}, f"anvil {row}") for row in range(5)]
                await store.upsert(namespace, records, Vectors(rows, *rows.shape))
                [found] = await store.search(namespace, Vectors(rows[3], 1, dimensions), filter=Equal("n", 3))
                assert [match.id for match in found] == ["3"]
                both = await store.hybrid.search(namespace, "anvil", Vectors(rows[3], 1, dimensions), top=1)
                assert [match.id for match in both] == ["3"]
                assert (await store.get(namespace, ["3"]))[1] == Vectors(rows[3], 1, dimensions)
            await store.aclose()
    finally:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_user_who_may_not_add_the_extension_is_told_who_may(server: PostgresServer, uri: str) -> None:
    name, user = f"portico_test_{secrets.token_hex(4)}", f"portico_user_{secrets.token_hex(4)}"
    server.run(f"CREATE DATABASE {name}")
    server.run(f"CREATE ROLE {user} LOGIN PASSWORD 'none'")
    server.run(f"GRANT ALL ON DATABASE {name} TO {user}")
    server.run(f"REVOKE CREATE ON DATABASE {name} FROM {user}")
    other = f"{uri}{'&' if '?' in uri else '?'}dbname={name}"
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA portico AUTHORIZATION {user}")
    store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(f"{other}&user={user}&password=none")))
    try:
        with pytest.raises(StoreError, match=r"an administrator run"):
            await store.upsert("n", [VectorRecord("a")], Vectors.from_rows([[1.0]]))
        assert await store.count("n") == 0
    finally:
        await store.aclose()
        server.run(f"DROP DATABASE {name} WITH (FORCE)")
        server.run(f"DROP ROLE {user}")


async def test_a_long_text_is_kept_whole_and_known_by_its_beginning(stores: Open) -> None:
    store = stores()
    text = "anvil " + "".join(f"word{number} " for number in range(200_000)) + "hearth"
    await store.upsert("n", [VectorRecord("a", {}, text)], Vectors.from_rows([[1.0]]))
    [record], _ = await store.get("n", ["a"])
    assert record.text == text
    assert [match.id for match in await store.hybrid.search("n", "anvil")] == ["a"]
    assert await store.hybrid.search("n", "hearth") == []


async def test_a_closed_store_opens_again_and_serves_several_event_loops(stores: Open) -> None:
    store = stores()
    await put(store, random_rows(5))
    await store.aclose()
    await store.aclose()
    assert await store.count("n") == 5

    def in_a_loop(writer: int) -> None:
        async def work() -> None:
            for number in range(5):
                row = Vectors(random_rows(1, seed=number), 1, 16)
                await store.upsert("n", [VectorRecord(f"{writer}-{number}")], row)
                await store.search("n", row)

        asyncio.run(work())

    await asyncio.gather(*(asyncio.to_thread(in_a_loop, writer) for writer in range(3)))
    assert await store.count("n") == 20


def test_settings_have_words_and_bounds() -> None:
    for attribute in PostgresVectorSettings.__attrs_attrs__:
        assert attribute.metadata["doc"].endswith("."), attribute.name
    for wrong in (
        {"index": "flat"},
        {"hnsw_from": 0},
        {"hnsw_search": 1_001},
        {"hnsw_neighbours": 1},
        {"language": ""},
        {"language": "eng\x00lish"},
    ):
        with pytest.raises(ValueError):
            PostgresVectorSettings(uri=Secret("postgresql://db.example/portico"), **wrong)
