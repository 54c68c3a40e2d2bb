"""The published JSON Schema of threads says what Thread.from_json takes: neither more nor less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.described_form import DescribedForm

from portico._agents.reducing import Reduced
from portico._agents.thread import Thread, ThreadTurn
from portico._chat.messages import Audio, File, Image, Message, Reasoning, Source, Text, ToolCall, ToolResult, Usage
from portico.errors import ThreadFormatError
from portico_testkit.chat_strategies import conversations
from portico_testkit.strategies import json_values, near

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "thread.schema.json"
SCHEMA = json.loads(PUBLISHED.read_text("utf-8"))
# Those that the schema cannot say, by words of the error. To JSON Schema 1.0 is an integer, too.
BOUNDS = ("has no result", "there is no call", "turns are reduced", "nest deeper", "JSON has no", "whole number")
FORM = DescribedForm(
    Thread.from_json, SCHEMA, ThreadFormatError, beyond=lambda message: any(words in message for words in BOUNDS)
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    thread = Thread("t1", messages=draw(conversations()))
    thread.keep(ThreadTurn(tuple(draw(conversations())), "host", Usage(1, 2)), Reduced(1, tuple(draw(conversations()))))
    return thread.to_json()


EVERY_PART = Thread(
    "t1",
    messages=[
        Message(
            "user",
            (Text("a"), Image(b"b"), Image(url="c"), File(b"d", "e", "f"), Audio(b"x"), Source(1, "g", "h", "i")),
            "j",
        ),
        Message(
            "assistant", (Reasoning([1, {"k": None}], "l", "s"), Reasoning(b"m"), ToolCall("n", "o", "p")), untrusted=()
        ),
        Message("tool", (ToolResult("n", "o", "q", error=True),), untrusted=("o",)),
    ],
).to_json()


def test_it_is_a_schema_of_2020_12_that_names_no_host() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert "://" not in SCHEMA["$id"]


def test_the_example_of_the_page_is_a_thread() -> None:
    page = PUBLISHED.with_name("thread-json.md").read_text("utf-8")
    document = json.loads(page.split("```json\n")[1].split("```")[0])
    FORM.validator.validate(document)
    assert Thread.from_json(document).to_json() == document


def test_everything_in_it_has_a_title_and_a_description() -> None:
    named = [SCHEMA, *SCHEMA["$defs"].values(), *SCHEMA["$defs"]["part"]["anyOf"], SCHEMA["properties"]["reduced"]]
    members = [member for each in named for member in each.get("properties", {}).values()]
    for each in (*named, *members):
        assert "$ref" in each or {"title", "description"} <= each.keys(), each


@given(documents())
def test_what_is_written_is_valid(document: dict[str, Any]) -> None:
    FORM.validator.validate(document)
    assert FORM.accepted(document)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(documents().flatmap(near) | near(EVERY_PART))
def test_they_agree_on_documents_with_one_place_changed(document: Any) -> None:
    FORM.check(document)


@given(json_values())
def test_they_agree_on_any_json_value(document: Any) -> None:
    FORM.check(document)


@pytest.mark.parametrize(
    "text", ["", "A", "AA", "AA=", "AA==", "AB==", "AAA=", "AAB=", "AAAA", "AAAA=", "AA==\n", "AA==AA==", "å"]
)
def test_they_agree_on_base64(text: str) -> None:
    document = json.loads(json.dumps(EVERY_PART))
    document["turns"][0]["messages"][0]["content"][1]["data"] = text
    FORM.check(document)
    if FORM.accepted(document):
        assert Thread.from_json(document).to_json() == document
