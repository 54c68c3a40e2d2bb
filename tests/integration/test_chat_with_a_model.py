"""`portico chat` in a process of its own, with a server on loopback that says what a model would.

The model searches by itself, cites what it found by number, is told of the same numbers in the next turn, and is
offered the functions that fit, where there are many.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass
class Model:
    """What the server says, turn by turn, and what it was asked."""

    sayings: list[str | tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        body = request.get_json()
        assert body["stream"] is True
        self.asked.append(body)
        return streamed(self.sayings[len(self.asked) - 1])

    def tools(self, number: int) -> list[str]:
        return [tool["function"]["name"] for tool in self.asked[number].get("tools", ())]


def streamed(said: str | tuple[str, dict[str, Any]]) -> Response:
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    if isinstance(said, str):
        deltas += [{"content": said[start : start + 3]} for start in range(0, len(said), 3)]
    else:
        name, arguments = said
        call = {"name": name, "arguments": json.dumps(arguments)}
        deltas.append({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]})
    finish = "stop" if isinstance(said, str) else "tool_calls"
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": USAGE}]
    lines = [f"data: {json.dumps({'object': 'chat.completion.chunk', 'model': 'replayed-1', **c})}\n\n" for c in chunks]
    return Response([line.encode() for line in (*lines, "data: [DONE]\n\n")], content_type="text/event-stream")


@pytest.fixture
def model(httpserver: HTTPServer, tmp_path: Path) -> Iterator[Model]:
    made = Model()
    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_handler(made.answer)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "doors.md").write_text("# Red doors\n\nA red door opens inwards.\n")
    (tmp_path / "portico.toml").write_text(f"""
[chat]
use = "openai"
[chat.openai]
model = "replayed"
base_url = "{httpserver.url_for("/v1")}"
api_key = {{ env = "REPLAYED_KEY" }}

[search.docs]
use = "documents"
path = "docs"
""")
    yield made
    httpserver.check_assertions()


def chat(folder: Path, *messages: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "portico_cli", "chat", "--json", *options],
        cwd=folder,
        env=os.environ | {"REPLAYED_KEY": "sk-test-0123456789", "XDG_CACHE_HOME": str(folder / "cache")},
        input="".join(f"{message}\n" for message in messages),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_model_searches_cites_and_goes_on_in_another_process(model: Model, tmp_path: Path) -> None:
    model.sayings = [
        ("docs-GetTextSearchResults", {"query": "red door"}),
        "A red door opens inwards [1]. See also [8].",
        "As I said, inwards [1].",
        "Inwards.",
    ]
    first, second = chat(tmp_path, "How does a red door open?", "Really?", options=("--thread", "thread.json"))
    assert first["answer"] == "A red door opens inwards [1]. See also [8]."
    assert first["usage"] == {"input_tokens": 22, "output_tokens": 14}
    assert [(each["number"], each["name"]) for each in first["citations"]] == [(1, "doors.md › Red doors")]
    assert first["warnings"] == ["The answer cites [8], which no passage backs."]
    assert [each["number"] for each in second["citations"]] == [1], "a passage of the turn before"
    (passage,) = json.loads(model.asked[1]["messages"][-1]["content"])
    assert (passage["number"], "opens inwards" in passage["value"]) == (1, True)
    assert model.tools(0) == ["docs-GetTextSearchResults"]

    chat(tmp_path, "And now?", options=("--thread", "thread.json"))
    roles = [message["role"] for message in model.asked[3]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "user"]


def test_of_many_functions_the_fitting_ones_are_offered(model: Model, tmp_path: Path) -> None:
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Town", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:9/"}],
        "paths": {
            f"/{name}": {
                "get": {
                    "operationId": name,
                    "description": f"Tell about the {name} of the town.",
                    "responses": {"200": {"description": "It."}},
                }
            }
            for name in ("weather", "museum", "harbour", "library", "market", "station", "theatre", "stadium")
        },
    }
    (tmp_path / "town.json").write_text(json.dumps(document))
    with (tmp_path / "portico.toml").open("a") as file:
        file.write('[functions]\nselect = "contextual"\nmax = 2\n')
        file.write('[functions.town]\nuse = "openapi"\ndocument = "town.json"\n')
    model.sayings = ["Sunny.", "It is open."]
    first, second = chat(tmp_path, "What is the weather in town?", "Thanks. Is the museum of the town open now?")
    assert "town-weather" in model.tools(0)
    assert "town-museum" in model.tools(1)
    for number, turn in enumerate((first, second)):
        assert len(model.tools(number)) == 3
        assert "docs-GetTextSearchResults" in model.tools(number), "the sources can be searched in any turn"
        assert {each["name"] for each in turn["selection"]["offered"]} == set(model.tools(number))
        assert turn["selection"]["considered"] == 9
