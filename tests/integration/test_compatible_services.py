"""The configurations of the page about services of OpenAI's protocol, each against that service's own form."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from tests.support.pages import blocks_of

import portico_host
from portico import ChatRequest, ChatService, Message, Tool, ToolChoice
from portico.errors import ResponseInvalid

ROOT = Path(__file__).parents[2]
EXCHANGES = ROOT / "adapters" / "openai" / "tests" / "exchanges"
PAGE = ROOT / "docs" / "how-to" / "use-openai-compatible-services.md"
CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})
QUESTION = Message.of("user", "What time is it in Oslo? Answer in JSON.")
CALL = ChatRequest([QUESTION], tools=(CLOCK,), tool_choice=ToolChoice("required"), seed=7, max_tokens=99)


def configurations() -> dict[str, str]:
    """Return the file of each section of the page."""
    text = PAGE.read_text("utf-8")
    blocks = [block for block in blocks_of(text) if block.language == "toml"]
    return {re.findall(r"^## (.+)$", text[: block.start], re.MULTILINE)[-1]: block.text for block in blocks}


@dataclass(frozen=True)
class Case:
    """What a service answers, what the reply says, and what was asked besides the model and the messages."""

    exchange: str
    text: str = ""
    calls: tuple[str, ...] = ()
    tokens: int = 0
    cost: float | None = None
    citations: int = 0
    asked: dict[str, Any] = field(default_factory=dict)


NAMED = {"type": "function", "function": {"name": "Clock-Now"}}
LIMIT = {"max_tokens": 99, "seed": 7}
USAGE = {"stream_options": {"include_usage": True}}
CASES = {
    "Ollama": Case(
        "ollama-tools.sse", calls=("Clock-Now",), tokens=239, asked={**LIMIT, **USAGE, "tool_choice": "required"}
    ),
    "vLLM": Case("vllm-tools.sse", calls=("Clock-Now",), tokens=189, asked={**LIMIT, **USAGE, "tool_choice": NAMED}),
    "LM Studio": Case("lmstudio-tools.sse", calls=("Dice-Roll",), asked={**LIMIT, **USAGE, "tool_choice": "required"}),
    "Groq": Case("groq-text.sse", text="Hello there.", tokens=104, asked={**LIMIT, **USAGE}),
    # It refuses what it does not know.
    "Mistral": Case(
        "mistral-thinking.sse", text="Good morning!", tokens=31, asked={"max_tokens": 99, "random_seed": 7}
    ),
    "OpenRouter": Case(
        "openrouter-search.sse",
        text="The clock tower opens at noon",
        tokens=1236,
        cost=0.0205,
        citations=1,
        asked={**LIMIT, **USAGE, "plugins": [{"id": "web"}]},
    ),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Answer every service with the bytes in ``asked.answer``, and remember the requests."""
    requests: Any = Requests()

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        kind = "text/event-stream" if requests.answer.startswith((b"data:", b":")) else "application/json"
        return httpx2.Response(requests.status, content=requests.answer, headers={"content-type": kind})

    def client(**_: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))

    monkeypatch.setattr(openai, "DefaultAioHttpClient", client)
    for service in ("GROQ", "MISTRAL", "OPENROUTER"):
        monkeypatch.setenv(f"{service}_API_KEY", f"key-of-{service.lower()}")
    return requests  # type: ignore[no-any-return]


class Requests(list[httpx2.Request]):
    """What was sent, and what is answered."""

    answer = b""
    status = 200


def test_each_service_of_the_page_has_a_case():
    assert configurations().keys() == CASES.keys()


@pytest.mark.parametrize("service", CASES)
async def test_a_service_is_asked_and_read_in_its_own_form(service: str, asked: Any, tmp_path: Path) -> None:
    case, file = CASES[service], tmp_path / "portico.toml"
    file.write_text(configurations()[service], "utf-8")
    asked.answer = (EXCHANGES / "replies" / case.exchange).read_bytes()
    request = CALL if case.calls else ChatRequest([QUESTION], seed=7, max_tokens=99)
    async with portico_host.open(file) as kernel:
        chat = kernel.service(ChatService)
        deltas = [delta async for delta in chat.stream(request)]
    reply = deltas[-1].reply
    assert case.text in reply.text
    assert tuple(call.name for call in reply.tool_calls) == case.calls
    assert reply.usage.input_tokens + reply.usage.output_tokens == case.tokens
    assert len(reply.citations) == case.citations
    if case.cost is not None:
        assert reply.usage.cost == case.cost
    (sent,) = asked
    assert sent.url.path.endswith("/chat/completions")
    key = sent.headers.get("authorization")
    assert key == (f"Bearer key-of-{service.lower()}" if sent.url.scheme == "https" else None)
    body = json.loads(sent.content)
    fixed = {name: body.pop(name) for name in ("model", "messages", "stream")}
    assert fixed["stream"] is True
    assert len(body.pop("tools", ())) == bool(case.calls)
    assert body == case.asked


async def test_a_service_that_ignores_what_must_be_called_is_told_by_the_kernel(asked: Any, tmp_path: Path) -> None:
    file = tmp_path / "portico.toml"
    file.write_text(configurations()["Ollama"], "utf-8")
    answer = {"model": "m", "choices": [{"message": {"content": "It is noon."}, "finish_reason": "stop"}]}
    asked.answer = json.dumps(answer).encode()
    async with portico_host.open(file) as kernel:
        kernel.add_function(roll)
        with pytest.raises(
            ResponseInvalid, match="ignored tool_choice 'required', called no tool and answered"
        ) as error:
            await kernel.complete("Roll a die.", functions=["roll"], tool_choice="required")
    assert error.value.text == "It is noon."


def roll() -> int:
    """Roll a die."""
    return 4
