"""Between the core's messages and llama.cpp's JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from portico import (
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from portico.errors import (
    ConfigurationError,
    ContextOverflow,
    ResponseInvalid,
    SchemaUnsupported,
    ServiceError,
    ServiceUnavailable,
)
from portico_llamacpp import _errors
from portico_llamacpp._exchange import ReplyReader, body_of
from portico_llamacpp._wire import About, Chunk, Failure, guard_of, messages_of, sampling_of, write_json
from portico_llamacpp.config import LlamaCppSettings

CONTROL = ("<|im_start|>", "<|im_end|>", "</s>", "[INST]", "aa")
GUARD = guard_of(CONTROL)
CLOCK = Tool("Clock-Now", "Tell the time.", {"type": "object"})
QUESTION = Message.of("user", "What time is it?")


def about(*, tools: bool) -> About:
    return About("http://127.0.0.1:1", "small", 1024, tools, CONTROL)


def body(request: ChatRequest, *, tools: bool = False, **settings: Any) -> dict[str, Any]:
    return body_of(request, LlamaCppSettings(**settings), about(tools=tools), GUARD)[0]


@given(st.lists(st.sampled_from([*CONTROL, "<", "|", " ", "s>", "im_end", "[INST", "a", "é", "\ud800"])).map("".join))
def test_no_control_token_is_left_and_no_letter_lost(text: str) -> None:
    guarded = GUARD(text)
    assert not [token for token in CONTROL if token in guarded]
    expected = text.encode("utf-8", "replace").decode()
    assert guarded.replace(" ", "") == expected.replace(" ", "")
    if not any(token in text for token in CONTROL):
        assert guarded == expected


def test_a_model_without_control_tokens_needs_no_guard() -> None:
    assert guard_of(())("<|im_end|>") == "<|im_end|>"


@given(
    st.dictionaries(
        st.sampled_from(["content", "finish_reason", "usage", "choices", "error", "delta"]),
        st.none() | st.text() | st.integers() | st.lists(st.none()),
    )
)
def test_json_of_any_kind_is_a_chunk_or_a_decoding_error(value: dict[str, Any]) -> None:
    try:
        assert isinstance(msgspec.json.decode(msgspec.json.encode(value), type=Chunk), Chunk)
    except msgspec.DecodeError as error:
        assert str(error)


def test_messages_for_a_template_that_knows_tools() -> None:
    history = [
        Message.of("system", "Be brief."),
        QUESTION,
        Message.of(
            "assistant",
            Reasoning("Hm.</s>"),
            "Let me look.",
            ToolCall("1", "Clock-Now", '{"a":1}'),
            ToolCall("2", "x", "{oops"),
        ),
        Message.of("tool", ToolResult("1", "Clock-Now", "noon </s>"), ToolResult("2", "x", "lost", error=True)),
        Message.of("tool", "words"),
        Message.of("assistant", Reasoning({"of": object()}), Reasoning("Hm.", None, "other"), "It is noon."),
    ]
    assert messages_of(ChatRequest(history), GUARD) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What time is it?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "reasoning_content": "Hm.< /s>",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "Clock-Now", "arguments": '{"a":1}'}},
                {"id": "2", "type": "function", "function": {"name": "x", "arguments": '{"text":"{oops"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "name": "Clock-Now", "content": "noon < /s>"},
        {"role": "tool", "tool_call_id": "2", "name": "x", "content": "Error: lost"},
        {"role": "tool", "content": "words"},
        {"role": "assistant", "content": "It is noon."},
    ]


def test_a_system_message_is_always_sent_unless_none_is_wanted() -> None:
    assert body(ChatRequest([QUESTION]))["messages"][0] == {"role": "system", "content": "You are a helpful assistant."}
    own = Message.of("system", "Be brief.")
    assert body(ChatRequest([own, QUESTION]))["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body(ChatRequest([QUESTION]), system_message="")["messages"][0]["role"] == "user"


def test_what_a_request_sets_goes_before_the_settings() -> None:
    settings = {"temperature": 0.5, "max_tokens": 100, "seed": 7, "repeat_penalty": 1.5}
    plain = body(ChatRequest([QUESTION]), **settings)
    assert {name: plain[name] for name in settings} == settings
    extras = {"repeat_penalty": 1.0, "top_k": 5}
    request = ChatRequest([QUESTION], temperature=0, max_tokens=1, seed=0, top_p=0.5, stop=("x",), extras=extras)
    expected = {"temperature": 0, "max_tokens": 1, "seed": 0, "top_p": 0.5, "stop": ["x"], **extras}
    assert {name: body(request, **settings)[name] for name in expected} == expected
    assert "stop" not in plain


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 1.5},
        {"max_tokens": 0},
        {"seed": -1},
        {"seed": 2**32},
        {"stop": ("",)},
    ],
)
def test_sampling_that_makes_no_sense_is_a_value_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is at least|is from|is empty"):
        sampling_of(ChatRequest([QUESTION], **options))


def test_what_json_cannot_hold_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        write_json({"enum": ["\ud800"]})
    with pytest.raises(ValueError, match="cannot hold"):
        write_json({"a": object()})


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("mode", ["auto", "required", "none"])
@pytest.mark.parametrize("schema", [None, {"type": "integer"}])
def test_tools_go_to_a_template_that_knows_them_or_are_held_to_by_a_grammar(
    tools: bool, mode: Any, schema: dict[str, Any] | None
) -> None:
    request = ChatRequest([QUESTION], tools=(CLOCK,), tool_choice=ToolChoice(mode), response_schema=schema)
    made, formed = body_of(request, LlamaCppSettings(), about(tools=tools), GUARD)
    assert formed == (mode != "none" and (not tools or mode == "required" or schema is not None))
    assert ("tools" in made) == (tools and mode == "auto" and schema is None)
    assert ("Clock-Now" in made["messages"][0]["content"]) == formed
    assert ("response_format" in made) == (formed or schema is not None)


def chunks(*deltas: dict[str, Any], finish: str = "stop") -> list[Chunk]:
    made: list[dict[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
    made.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    counted = {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    made.append({"choices": [], "usage": counted, "timings": {"unknown": 1}})
    return [msgspec.convert(chunk, Chunk) for chunk in made]


def replied(pieces: list[Chunk], *, formed: bool = False) -> tuple[ChatReply, list[ChatDelta]]:
    reader = ReplyReader("llamacpp", "small", formed=formed)
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.end()
    reply = deltas[-1].reply
    assert reply is not None
    return reply, deltas


def test_the_pieces_of_a_reply_are_put_together() -> None:
    reply, deltas = replied(chunks({"role": "assistant", "content": None}, {"content": "Good "}, {"content": "day."}))
    assert reply == ChatReply(
        Message.of("assistant", "Good day."), "stop", Usage(5, 3, 2, cost=0.0), model="small", service="llamacpp"
    )
    assert [delta.text for delta in deltas] == ["Good ", "day.", ""]


def test_thoughts_are_shown_and_kept_apart() -> None:
    reply, deltas = replied(chunks({"reasoning_content": "Hm"}, {"reasoning_content": "."}, {"content": "Yes."}))
    assert reply.message.content == (Reasoning("Hm.", "Hm.", "llamacpp"), Text("Yes."))
    assert [delta.reasoning for delta in deltas] == ["Hm", ".", "", ""]


def test_calls_that_a_template_knows_come_piece_by_piece() -> None:
    pieces = chunks(
        {
            "tool_calls": [
                {"index": 0, "id": "a", "type": "function", "function": {"name": "Clock-Now", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "Dice-Roll", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        finish="tool_calls",
    )
    reply, _ = replied(pieces)
    assert reply.finish == "tool_calls"
    assert reply.tool_calls == (ToolCall("a", "Clock-Now", '{"a":1}'), ToolCall("b", "Dice-Roll", "{}"))


def test_a_reply_that_is_cut_short_says_so() -> None:
    assert replied(chunks({"content": "Goo"}, finish="length"))[0].finish == "length"
    reply, _ = replied(chunks({"content": '{"tool": "Clock-Now", "arguments": {"a'}, finish="length"), formed=True)
    assert (reply.finish, reply.tool_calls[0].arguments) == ("length", '{"a')


def test_a_reply_that_left_its_form_or_never_ended_is_invalid() -> None:
    with pytest.raises(ResponseInvalid, match="form"):
        replied(chunks({"content": "Hello."}), formed=True)
    with pytest.raises(ResponseInvalid, match="without a reason"):
        replied([])


def test_refusals_are_told_apart() -> None:
    long = Failure("request (9 tokens) exceeds", "exceed_context_size_error", 9, 5)
    overflow = _errors.refusal(long, constrained=False)
    assert isinstance(overflow, ContextOverflow)
    assert "9 tokens" in str(overflow)
    schema = Failure("Unable: JSON schema error at #/a: unrecognized type banana", "ValueError")
    assert isinstance(_errors.refusal(schema, constrained=True), SchemaUnsupported)
    assert "unrecognized type banana" in str(_errors.refusal(schema, constrained=True))
    grammar = Failure("Failed to initialize samplers: failed to parse grammar")
    assert isinstance(_errors.refusal(grammar, constrained=True), SchemaUnsupported)
    other = _errors.refusal(grammar, constrained=False)
    assert type(other) is ServiceError
    assert "failed to parse grammar" in str(other)


def test_a_failed_load_says_why() -> None:
    log = [
        "0.01.158.723 E llama_model_load: error loading model: tensor 'x' data is not within the file bounds\n",
        "0.01.159.267 E srv          init: exiting due to model loading error\n",
    ]
    failed = _errors.unfit("small.gguf", Failure("Failed to init server", "RuntimeError"), log)
    assert isinstance(failed, ServiceUnavailable)
    assert "small.gguf: error loading model: tensor 'x' data is not within" in str(failed)
    assert isinstance(_errors.unfit("a", Failure("no module", "ModuleNotFoundError"), []), ServiceUnavailable)
    assert isinstance(_errors.unfit("a", Failure("it does not begin with GGUF", "NotGguf"), []), ConfigurationError)
    template = ["0.01 E common_chat_templates_init: error: parser: Parser Error: Unexpected EOF\n"]
    assert isinstance(_errors.unfit("a", Failure("Failed", "RuntimeError"), template), ConfigurationError)


def test_a_process_that_ended_says_how() -> None:
    assert "(SIGKILL). Too little memory" in str(_errors.end_error("small.gguf", -9, []))
    assert "(exit code 3). It last said: GGML_ASSERT failed" in str(_errors.end_error("a", 3, ["GGML_ASSERT failed\n"]))
    assert "(signal 250)" in str(_errors.end_error("a", -250, []))


@pytest.mark.parametrize(
    "wrong",
    [
        {"context_size": 10},
        {"parallel": 0},
        {"threads": 0},
        {"max_tokens": 0},
        {"seed": -1},
        {"timeout": 0},
        {"log": "some"},
    ],
)
def test_settings_refuse_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LlamaCppSettings(**wrong)
