"""A folder is indexed by workers that are killed, and by commands that are killed too; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.postgres_server import PostgresServer, postgres_server

from portico.plugins import Secret
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and socket files"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

FILES = 120
PASSAGES = 50
SERVICE = Path(__file__).parents[1] / "bench" / "bulk_indexing.py"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture
def service() -> Iterator[int]:
    """Serve embeddings, 20 ms for each request; give the port."""
    process = subprocess.Popen([sys.executable, str(SERVICE), "--serve"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()


@dataclass
class Place:
    """A folder with documents and a configuration, and the processes at work on it."""

    folder: Path
    environment: Mapping[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "portico_cli", *arguments, "--json"],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[str]:
        process = self.start("worker")
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    def index(self) -> subprocess.Popen[str]:
        return self.start("index", "docs", "--name", "docs")

    def indexed(self) -> int:
        """Return how many passages the catalogue has."""
        for database in self.folder.glob("index/*/catalogue.sqlite"):
            connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
            try:
                return connection.execute("SELECT count(*) FROM passages").fetchone()[0]
            except sqlite3.OperationalError:
                return 0
            finally:
                connection.close()
        return 0

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()
        self.processes.remove(process)


@pytest.fixture
def place(
    tmp_path: Path, server: PostgresServer, service: int, outer_environment: Mapping[str, str]
) -> Iterator[Place]:
    documents = tmp_path / "docs"
    documents.mkdir()
    for number in range(FILES):
        sections = [f"## Part {part}\n\nThis is part {part} of document {number}.\n" for part in range(PASSAGES)]
        (documents / f"{number:03}.md").write_text("\n".join(sections))
    uri = json.dumps(server.uri)
    (tmp_path / "portico.toml").write_text(
        f"""
        [embeddings]
        use = "openai"
        [embeddings.openai]
        model = "bench"
        base_url = "http://127.0.0.1:{service}/v1"
        dimensions = 256
        batch_size = 16
        [vectors]
        use = "postgres"
        [vectors.postgres]
        uri = {uri}
        [runner]
        use = "dbos"
        [runner.dbos]
        uri = {uri}
        worker_timeout = 3.0
        [search.docs]
        use = "documents"
        path = "docs"
        index = "index"
        """
    )
    made = Place(tmp_path, outer_environment)
    yield made
    for process in list(made.processes):
        made.kill(process)


async def ids_in_store(server: PostgresServer, namespace: str) -> set[str]:
    store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(server.uri)))
    try:
        return {id async for id in store.ids(namespace)}
    finally:
        await store.aclose()


def test_kills_of_workers_and_of_the_command_lose_nothing(place: Place, server: PostgresServer) -> None:
    chance = random.Random(8)
    whole = FILES * PASSAGES
    workers = [place.worker() for _ in range(2)]
    for _ in range(3):
        index = place.index()
        before = place.indexed()
        while index.poll() is None and place.indexed() < min(before + whole // 4, whole):
            time.sleep(0.05)
        place.kill(workers.pop(chance.randrange(2)))
        workers.append(place.worker())
        time.sleep(chance.uniform(0, 2))
        place.kill(index)
    done = place.index()
    out, errors = done.communicate(timeout=600)
    assert done.returncode == 0, errors
    report = json.loads(out)
    assert (report["documents"], report["passages"], report["problems"]) == (FILES, whole, [])
    assert report["embedded"] < whole
    again = place.index()
    out, errors = again.communicate(timeout=600)
    report = json.loads(out)
    assert (report["unchanged"], report["embedded"], report["passages"]) == (FILES, 0, whole), errors
    [database] = place.folder.glob("index/*/catalogue.sqlite")
    connection = sqlite3.connect(database)
    try:
        ids = {id for (id,) in connection.execute("SELECT id FROM passages")}
        left = connection.execute("SELECT (SELECT count(*) FROM pending) + (SELECT count(*) FROM garbage)").fetchone()
        [namespace] = connection.execute("SELECT name FROM namespaces").fetchone()
    finally:
        connection.close()
    assert (len(ids), left) == (whole, (0,))
    assert asyncio.run(ids_in_store(server, namespace)) == ids


def test_where_every_worker_is_killed_the_command_ends_it_alone(place: Place) -> None:
    workers = [place.worker() for _ in range(2)]
    index = place.index()
    while place.indexed() < 3_000:
        assert index.poll() is None
        time.sleep(0.05)
    for worker in workers:
        place.kill(worker)
    out, errors = index.communicate(timeout=600)
    assert index.returncode == 0, errors
    assert json.loads(out)["passages"] == FILES * PASSAGES
    assert "No worker is at work any more." in errors
