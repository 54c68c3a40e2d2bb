"""The services that the samples of the documents ask, on loopback: Bing, Google, a web of three pages, a model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.replayed_model import ReplayedModel

from portico_bing.search import BingTextSearch
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings
from portico_testkit.recorded_server import RecordedAnswer, RecordedServer

CONNECTORS = Path(__file__).parents[3] / "connectors"
PAGE = """<html><head><title>Semantic Kernel</title></head><body><nav>Menu</nav><article><h1>Introduction</h1>
<p>The kernel is the centre: it holds the services and the functions that run when an agent needs them.</p>
</article></body></html>"""


def recorded(connector: str) -> str:
    """Return what the service once answered to *What is the Semantic Kernel?*"""
    return (CONNECTORS / connector / "tests/recorded/what_is_the_semantic_kernel.json").read_text("utf-8")


@pytest.fixture
def service() -> Iterator[RecordedServer]:
    """Serve Bing's answer, Google's, and the first page that they link to; the others are not there."""
    with RecordedServer({"/google": recorded("google").encode()}) as made:
        made.answers["/overview/"] = RecordedAnswer(PAGE.encode(), "text/html")
        here = json.loads(recorded("bing"))
        for page in here["webPages"]["value"]:
            page["url"] = page["url"].replace("https://learn.microsoft.com/en-us/semantic-kernel", made.url)
        made.answers["/v7.0/search"] = json.dumps(here).encode()
        yield made


@pytest.fixture
async def web(service: RecordedServer) -> AsyncIterator[BingTextSearch]:
    search = BingTextSearch(api_key="recorded", base_url=f"{service.url}/v7.0")
    yield search
    await search.aclose()


@pytest.fixture
async def chat(model: ReplayedModel) -> AsyncIterator[OpenAIChat]:
    """Give the OpenAI adapter, which holds replies to strict schemas as OpenAI's own service does."""
    made = OpenAIChat(OpenAIChatSettings(model="gpt-4o-2024-08-06", base_url=f"{model.url}/v1", strict=True))
    yield made
    await made.aclose()
