"""`portico doctor` notes what one machine has for itself, where workers may be on several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SERVER = '[runner]\nuse = "server"\n'
FILE = '[runner]\nuse = "file"\n'
JOURNAL = '[runs]\nuse = "sqlite"\n[runs.sqlite]\npath = "runs.sqlite3"\n'
SOURCE = '[search.notes]\nuse = "documents"\npath = "."\n'
NO_JOURNAL = '[runs]\nuse = "none"\n'
VECTORS = '[vectors]\nuse = "faiss"\n[vectors.faiss]\npath = "vectors"\n'
SHARED = '[runs]\nuse = "shared"\n[vectors]\nuse = "shared"\n'
FAR = """
from portico.plugins import Registration
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.vector_store import DictVectorStore

class File:
    name = "file"

    def __init__(self, settings, services):
        self.jobs = MemoryJobQueue()

    async def execute(self, run, name, action):
        return await action()

class Server(File):
    name = "server"

    def __init__(self, settings, services):
        super().__init__(settings, services)
        self.jobs.one_machine = False

def runs(settings, services):
    return MemoryRunStore()

def memory(settings, services):
    made = DictVectorStore()
    made.one_machine = True
    return made

def vectors(settings, services):
    made = DictVectorStore()
    made.persistent = True
    return made

def portico_runners():
    return [
        Registration(name="file", factory="portico_acme:File", summary="Has workers here."),
        Registration(name="server", factory="portico_acme:Server", summary="Has workers anywhere."),
    ]

def portico_run_stores():
    return [Registration(name="shared", factory="portico_acme:runs", summary="Is on a server.")]

def portico_vector_stores():
    return [
        Registration(name="shared", factory="portico_acme:vectors", summary="Is on a server."),
        Registration(name="memory", factory="portico_acme:memory", summary="Is in memory."),
    ]
"""


@pytest.fixture(autouse=True)
def far(site: Path, package: Any) -> None:
    package(FAR)


def test_a_journal_in_a_file_is_noted_where_the_queue_is_on_a_server(doctor: Any) -> None:
    for journal in (JOURNAL, ""):  # without any configured it is a file too
        found = doctor(SERVER + journal, healthy=True)
        assert list(found) == ["run store sqlite"], found
    told = found["run store sqlite"]
    assert told["state"] == "warn"
    assert "workers on any machine reach the queue of 'memory'" in told["message"]
    assert "It is on this machine only" in told["message"]
    assert 'use = "postgres"` under [runs]' in told["mend"]


def test_vectors_in_a_file_are_noted_where_there_is_an_index_and_those_in_memory_are_not(doctor: Any) -> None:
    found = doctor(SERVER + NO_JOURNAL + VECTORS + SOURCE, healthy=True)
    assert list(found) == ["vector store faiss"]
    assert "does not find the vectors" in found["vector store faiss"]["message"]
    assert "under [vectors]" in found["vector store faiss"]["mend"]
    assert doctor(SERVER + NO_JOURNAL + '[vectors]\nuse = "memory"\n' + SOURCE, healthy=True) == {}


def test_nothing_is_noted_where_all_is_on_one_machine_or_on_servers(doctor: Any) -> None:
    for well in (FILE + JOURNAL + VECTORS + SOURCE, JOURNAL + VECTORS + SOURCE, SERVER + NO_JOURNAL + VECTORS):
        assert doctor(well, healthy=True) == {}
    assert doctor(SERVER + SHARED + SOURCE, healthy=True) == {}
