"""Embeddings are kept on disk by configuration alone, whoever asks for them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import portico_host
from portico import ChatAgent, ChatCapabilities, ConfigurationError, EmbeddingGenerator, function
from portico.errors import PluginNotInstalled
from portico_host.problems import problems_of
from portico_testkit.fakes.chat_service import ScriptedChat

CACHED = """
[embeddings]
use = "cached"

[embeddings.cached]
of = "{of}"
path = "kept"

[embeddings.wordllama]
dimensions = 64
"""

SOURCE = """
[search.docs]
use = "documents"
path = "docs"

[vectors]
use = "faiss"

[vectors.faiss]
path = "vectors"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "portico.toml"
    made.write_text(CACHED.format(of="wordllama"), "utf-8")
    return made


async def test_what_one_program_embedded_the_next_one_finds(file: Path) -> None:
    texts = ["How do I install it?", "Installation"]
    for found in (0, 2):
        async with portico_host.open(file) as kernel:
            generator = kernel.service(EmbeddingGenerator)
            vectors = await generator.embed(texts)
            assert (generator.model, vectors.dimensions) == ("wordllama/l2_supercat-64", 64)
            assert generator.found == found  # type: ignore[attr-defined]
    assert list((file.parent / "kept").glob("*.sqlite3")), "a path is relative to the configuration"


async def test_an_index_made_without_the_cache_stays_valid_with_it(file: Path) -> None:
    (file.parent / "docs").mkdir()
    for number in range(150):
        (file.parent / "docs" / f"{number}.md").write_text(
            f"# Part {number}\n\nInstall part {number} first.\n", "utf-8"
        )
    file.write_text('[embeddings]\nuse = "wordllama"\n\n[embeddings.wordllama]\ndimensions = 64\n' + SOURCE, "utf-8")
    async with portico_host.open(file) as kernel:
        assert (await kernel.run_goal("How is it installed?")).outcome.text  # type: ignore[union-attr]
    file.write_text(CACHED.format(of="wordllama") + SOURCE, "utf-8")
    async with portico_host.open(file) as kernel:
        assert (await kernel.run_goal("How is it installed?")).outcome.text  # type: ignore[union-attr]
        generator = kernel.service(EmbeddingGenerator)
        # The question, and the passages that the answer is quoted from.
        assert 1 <= generator.embedded < 100, "the index was made anew"  # type: ignore[attr-defined]


async def test_functions_that_are_chosen_among_are_embedded_once_for_all_programs(file: Path) -> None:
    def act(text: str) -> str:
        return text

    # The vectors lie in memory, so that each program needs all of them.
    choosing = '\n[vectors]\nuse = "faiss"\n\n[functions]\nselect = "contextual"\nmax = 1\n'
    file.write_text(CACHED.format(of="wordllama") + choosing, "utf-8")
    for embedded, found in ((4, 0), (0, 4)):
        async with portico_host.open(file) as kernel:
            for name in ("forecast_weather", "book_flight", "send_email"):
                kernel.add_function(function(name=name)(partial(act)))
            chat = ScriptedChat("Rain.", capabilities=ChatCapabilities(tools=True))
            reply = await ChatAgent("desk", kernel=kernel, chat=chat).invoke("What does the weather do?")
            assert reply.selections[0].names == ("forecast_weather",)
            generator = kernel.service(EmbeddingGenerator)
            assert (generator.embedded, generator.found) == (embedded, found)  # type: ignore[attr-defined]


async def test_a_cache_of_itself_is_a_circle_and_says_so(file: Path) -> None:
    file.write_text(CACHED.format(of="cached"), "utf-8")
    with pytest.raises(ConfigurationError, match=r"in a circle: .*'cached' → .*'cached'"):
        async with portico_host.open(file) as kernel:
            kernel.service(EmbeddingGenerator)


async def test_a_cache_of_what_is_not_installed_names_what_is_near(file: Path) -> None:
    file.write_text(CACHED.format(of="wordlama"), "utf-8")
    with pytest.raises(PluginNotInstalled, match="Did you mean wordllama") as caught:
        async with portico_host.open(file) as kernel:
            kernel.service(EmbeddingGenerator)
    (problem,) = problems_of(caught.value, "embedding generator cached")
    assert problem.subject == "embedding generator cached"
    assert problem.mend == "Did you mean wordllama?", "the cache itself is installed"


async def test_a_cache_of_nothing_is_a_mistake_in_the_configuration(file: Path) -> None:
    file.write_text('[embeddings]\nuse = "cached"\n', "utf-8")
    with pytest.raises(ConfigurationError, match=r"embeddings\.cached\.of"):
        async with portico_host.open(file) as kernel:
            kernel.service(EmbeddingGenerator)
