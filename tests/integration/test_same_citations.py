"""The same question has the same answer and citations, whichever vector store the index stands on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.postgres_server import PostgresServer, postgres_server

import portico_host
from portico import Citation
from portico.plans import Answer
from portico.ports import TextSearch
from portico_cli.main import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server's package has none for Windows")

DOCS = Path(__file__).parents[2] / "docs"
QUESTIONS = (
    "How do I write a search connector?",
    "Which filters can a source apply?",
    "What does exit code 4 mean?",
    "How is a run resumed that was killed?",
    "Which planner needs no language model?",
    "What happens when two packages register the same name?",
    "embedding generator unit vectors",
    "portico_vector_stores",
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture(scope="module")
def configurations(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return a configuration for each store: the vectors exact, words found by the index itself."""
    base = tmp_path_factory.mktemp("stores")
    stores = {
        "faiss": f'[vectors.faiss]\npath = "{base / "vectors"}"\n',
        "postgres": f"[vectors.postgres]\nuri = {json.dumps(server.uri)}\n",
    }
    made = {}
    for name, table in stores.items():
        made[name] = base / f"{name}.toml"
        made[name].write_text(
            f'[vectors]\nuse = "{name}"\n{table}'
            f'[search.docs]\nuse = "documents"\npath = {json.dumps(str(DOCS))}\nindex = "{base / name}"\n'
            '[runs]\nuse = "none"\n'
        )
    return made


async def cited(config: Path) -> list[tuple[str, tuple[Citation, ...]]]:
    """Ask every question as `portico ask` does; return each answer with its citations."""
    told = []
    async with portico_host.load(config).kernel() as kernel:
        index = kernel.service(TextSearch, "docs").index
        assert index is not None
        report = await index.update()
        assert report.passages > 500
        for question in QUESTIONS:
            outcome = (await kernel.run_goal(question)).outcome
            assert isinstance(outcome, Answer)
            assert outcome.citations
            told.append((outcome.text, outcome.citations))
    return told


async def test_faiss_and_pgvector_give_the_same_citations(configurations: Mapping[str, Path]) -> None:
    one, other = await cited(configurations["faiss"]), await cited(configurations["postgres"])
    for question, here, there in zip(QUESTIONS, one, other, strict=True):
        assert here == there, question


def test_the_command_says_the_same_too(configurations: Mapping[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for config in configurations.values():
        assert main(["ask", QUESTIONS[0], "--json", "--config", str(config)]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["citations"]
        told.append((answer["answer"], answer["citations"]))
    assert told[0] == told[1]
