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
from pathlib import Path
from typing import Any

import pytest
from tests.support.replayed_model import ReplayedModel

from portico import ToolCall


@pytest.fixture(autouse=True)
def application(model: ReplayedModel, tmp_path: Path) -> Iterator[None]:
    """Write an application with one source, which asks the model for streams only."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "doors.md").write_text("# Red doors\n\nA red door opens inwards.\n")
    documents = '[search.docs]\nuse = "documents"\npath = "docs"\n'
    (tmp_path / "portico.toml").write_text(f"{model.configuration}\n{documents}")
    yield
    assert all(body["stream"] is True for body in model.asked)


def chat(folder: Path, *messages: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "portico_cli", "chat", "--json", *options],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        input="".join(f"{message}\n" for message in messages),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_model_searches_cites_and_goes_on_in_another_process(model: ReplayedModel, tmp_path: Path) -> None:
    model.sayings = [
        ToolCall("call_1", "docs-GetTextSearchResults", '{"query": "red door"}'),
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
    assert model.offered(0) == ["docs-GetTextSearchResults"]

    chat(tmp_path, "And now?", options=("--thread", "thread.json"))
    roles = [message["role"] for message in model.asked[3]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "user"]


def test_of_many_functions_the_fitting_ones_are_offered(model: ReplayedModel, tmp_path: Path) -> None:
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
    assert "town-weather" in model.offered(0)
    assert "town-museum" in model.offered(1)
    for number, turn in enumerate((first, second)):
        assert len(model.offered(number)) == 3
        assert "docs-GetTextSearchResults" in model.offered(number), "the sources can be searched in any turn"
        assert {each["name"] for each in turn["selection"]["offered"]} == set(model.offered(number))
        assert turn["selection"]["considered"] == 9
