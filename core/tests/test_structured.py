"""Replies with a form: asked for as a service can, read whole, mended, and shown while they come."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import ChatCapabilities, ChatReply, ChatRequest, Message, ToolCall, Usage
from portico._functions.functions import function
from portico._kernel import Kernel
from portico._tool_loop.partial_json import NOTHING
from portico._tool_loop.structured import DraftReader, Manner, ReplyProblem, ResponseFormat
from portico._tool_loop.values import PartialValue, ToolLoopLimits, Turn
from portico.errors import ResponseInvalid, SchemaUnsupported, UnsupportedOption
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.strategies import json_values

HELD = ChatCapabilities(response_schema=True)
STRICT = ChatCapabilities(response_schema=True, strict=True, tools=True)
WORDS = ChatCapabilities(tools=True)


@dataclass
class Move:
    explanation: str
    output: str


@dataclass
class MathReasoning:
    """How an equation is solved."""

    steps: list[Move]
    final_answer: str


@dataclass
class Event:
    name: str
    day: date
    guests: dict[str, int] = field(default_factory=dict)
    note: str | None = None


SOLVED = MathReasoning([Move("Take 7 from both sides.", "8x = -30"), Move("Divide by 8.", "x = -3.75")], "x = -3.75")
SOLVED_JSON = json.dumps(
    {
        "steps": [
            {"explanation": "Take 7 from both sides.", "output": "8x = -30"},
            {"explanation": "Divide by 8.", "output": "x = -3.75"},
        ],
        "final_answer": "x = -3.75",
    }
)
PARTY = Event("Party", date(2026, 11, 21), {"Ada": 1})


async def ask(chat: ScriptedChat, returns: Any, **options: Any) -> Turn[Any]:
    return await Kernel().complete("How can I solve 8x + 7 = -23?", chat=chat, returns=returns, **options)


@pytest.mark.parametrize("capabilities", [HELD, STRICT, WORDS])
async def test_a_type_comes_back_as_itself(capabilities):
    turn = await ask(ScriptedChat(SOLVED_JSON, capabilities=capabilities), MathReasoning)
    assert turn.value == SOLVED


async def test_invoke_prompt_returns_the_value():
    chat = ScriptedChat(SOLVED_JSON, "Plain words.", capabilities=HELD)
    solved = await Kernel().invoke_prompt("How can I solve 8x + 7 = -23?", returns=MathReasoning, chat=chat)
    assert solved == SOLVED
    assert await Kernel().invoke_prompt("Hello", chat=chat) == "Plain words."


async def test_a_schema_gives_json():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "title": "An A"}
    chat = ScriptedChat('{"a": 1}', capabilities=HELD)
    assert (await ask(chat, schema)).value == {"a": 1}
    assert chat.requests[0].response_schema == schema
    assert chat.requests[0].response_name == "An_A"


async def test_a_service_that_holds_to_schemas_is_sent_the_schema():
    chat = ScriptedChat(SOLVED_JSON, capabilities=HELD)
    await ask(chat, MathReasoning)
    (request,) = chat.requests
    assert request.response_schema == ResponseFormat.of(MathReasoning).schema
    assert (request.response_name, request.response_strict) == ("MathReasoning", False)
    assert '"final_answer"' in request.messages[0].text, "a grammar keeps to the schema, but does not show it"


async def test_a_strict_service_is_sent_the_strict_form_and_its_reply_is_read_back():
    encoded = {"name": "Party", "day": "2026-11-21", "guests": [{"key": "Ada", "value": 1}], "note": None}
    chat = ScriptedChat(json.dumps(encoded), capabilities=STRICT)
    assert (await ask(chat, Event)).value == PARTY
    schema: Any = chat.requests[0].response_schema
    assert chat.requests[0].response_strict
    assert schema["required"] == ["name", "day", "guests", "note"]


async def test_other_services_are_told_in_words_after_the_words_of_the_system():
    chat = ScriptedChat(f"Gladly:\n```json\n{SOLVED_JSON}\n```", SOLVED_JSON)
    assert (await ask(chat, MathReasoning)).value == SOLVED
    await Kernel().complete(
        [Message.of("system", "Be kind."), Message.of("user", "Solve it.")], chat=chat, returns=MathReasoning
    )
    for request in chat.requests:
        assert request.response_schema is None
        assert [message.role for message in request.messages] == ["system", "user"]
        assert '"final_answer"' in request.messages[0].text
    assert chat.requests[1].messages[0].text.startswith("Be kind.\n\nAnswer with one JSON value")


A_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "title": "An A"}
OBJECT = {"type": "object"}


@pytest.mark.parametrize("returns", [A_SCHEMA, MathReasoning])
async def test_a_caller_names_a_form_and_keeps_it_as_it_is(returns):
    chat = ScriptedChat('{"a": 1}' if returns is A_SCHEMA else SOLVED_JSON, repeat=True, capabilities=STRICT)
    await ask(chat, returns, response_strict=False, response_name="math reasoning")
    await ask(chat, returns)
    told, usual = chat.requests
    assert (told.response_schema, told.response_strict) == (ResponseFormat.of(returns).schema, False)
    assert told.response_name == "math_reasoning"
    assert (usual.response_strict, usual.response_name) == (True, "An_A" if returns is A_SCHEMA else "MathReasoning")


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("capabilities", [HELD, STRICT, WORDS])
async def test_a_request_may_have_its_schema_with_it(capabilities, strict):
    chat = ScriptedChat('{"a": "1"}', '{"a": 1}', capabilities=capabilities)
    said = [Message.of("user", "?")]
    request = ChatRequest(said, response_schema=A_SCHEMA, response_name="A", response_strict=strict)
    turn = await Kernel().complete(request, chat=chat)
    assert turn.value == {"a": 1}
    asked = chat.requests[0]
    assert asked.response_strict is (strict and capabilities.strict)
    if capabilities is WORDS:
        assert asked.response_schema is None
        assert '"An A"' in asked.messages[0].text
    else:
        assert (asked.response_name, asked.response_schema == A_SCHEMA) == ("A", not asked.response_strict)
    with pytest.raises(ValueError, match="response schema already"):
        await Kernel().complete(request, chat=chat, returns=MathReasoning)


@pytest.mark.parametrize("returns", [dict, dict[str, Any], OBJECT, {**OBJECT, "title": "Anything"}])
async def test_a_json_object_needs_no_schema_where_a_service_takes_one(returns):
    able = ChatCapabilities(response_schema=True, strict=True, json_object=True)
    for capabilities in (able, ChatCapabilities(json_object=True)):
        chat = ScriptedChat('{"x": [1]}', capabilities=capabilities)
        assert (await ask(chat, returns)).value == {"x": [1]}
        assert (chat.requests[0].response_schema, chat.requests[0].response_strict) == (OBJECT, False)
        assert "JSON" in chat.requests[0].messages[0].text
    chat = ScriptedChat('Here: {"x": [1]}')
    assert (await ask(chat, returns)).value == {"x": [1]}


async def test_a_service_of_json_objects_only_is_told_a_schema_in_words_and_mends_its_reply():
    chat = ScriptedChat('{"steps": []}', SOLVED_JSON, capabilities=ChatCapabilities(json_object=True))
    assert (await ask(chat, MathReasoning)).value == SOLVED
    assert all(request.response_schema == OBJECT for request in chat.requests)
    assert '"final_answer"' in chat.requests[0].messages[0].text
    listed = ScriptedChat("[1]", capabilities=ChatCapabilities(json_object=True))
    assert (await ask(listed, list[int])).value == [1]
    assert listed.requests[0].response_schema is None
    with pytest.raises(UnsupportedOption, match="response_schema"):
        await listed.complete(ChatRequest([Message.of("user", "?")], response_schema=A_SCHEMA))


async def test_a_reply_that_does_not_fit_is_sent_back_with_every_fault():
    wrong = {"steps": [{"explanation": 1, "output": "a"}], "final": "x"}
    chat = ScriptedChat(json.dumps(wrong), SOLVED_JSON)
    turn = await ask(chat, MathReasoning)
    assert (turn.value, turn.rounds) == (SOLVED, 2)
    told = chat.requests[1].messages[-1]
    assert told.role == "user"
    for fault in ("$.steps[0].explanation: expected a string, got 1", "$.final_answer", "$.final:"):
        assert fault in told.text
    assert chat.requests[1].messages[-2].text == json.dumps(wrong)


async def test_repairs_have_an_end_and_the_last_reply_is_kept():
    chat = ScriptedChat("no", repeat=True)
    with pytest.raises(ResponseInvalid, match="after 2 attempts to mend it: it is not JSON") as caught:
        await ask(chat, MathReasoning)
    assert caught.value.text == "no"
    assert len(chat.requests) == 3
    with pytest.raises(ResponseInvalid):
        await ask(ScriptedChat("no"), MathReasoning, limits=ToolLoopLimits(repairs=0))


async def test_a_reply_that_was_cut_short_is_not_sent_back():
    cut = ChatReply(Message.of("assistant", '{"steps": ['), finish="length", usage=Usage(10, 5))
    with pytest.raises(ResponseInvalid, match=r"cut short after 5 tokens.*max_tokens"):
        await ask(ScriptedChat(cut, capabilities=HELD), MathReasoning)


async def test_a_service_held_by_a_grammar_calls_tools_first_and_is_held_only_to_mend():
    @function
    def look() -> str:
        return "x = -3.75"

    chat = ScriptedChat(
        ChatReply(Message("assistant", (ToolCall("1", "look"),)), finish="tool_calls"),
        "It is x = -3.75.",
        SOLVED_JSON,
        capabilities=ChatCapabilities(tools=True, response_schema=True),
    )
    kernel = Kernel()
    kernel.add_function(look)
    turn = await kernel.complete("Solve it.", chat=chat, returns=MathReasoning, functions=["look"])
    assert turn.value == SOLVED
    assert [request.response_schema is None for request in chat.requests] == [True, True, False]
    assert [len(request.offered) for request in chat.requests] == [1, 1, 0]


async def test_a_schema_beyond_the_validator_is_refused_before_anything_is_sent():
    chat = ScriptedChat("{}", capabilities=HELD)
    with pytest.raises(SchemaUnsupported, match="portico-basics"):
        await ask(chat, {"type": "object", "minProperties": 2})
    assert chat.requests == []


async def test_a_form_is_made_once_for_a_kernel():
    kernel = Kernel()
    chat = ScriptedChat(SOLVED_JSON, capabilities=HELD, repeat=True)
    schema = {"type": "object", "properties": {}}
    for returns in (MathReasoning, MathReasoning, schema, dict(schema)):
        await kernel.complete("Solve it.", chat=chat, returns=returns)
    first, second, third, fourth = (request.response_schema for request in chat.requests)
    assert first is second
    assert third is fourth


async def test_partial_values_come_as_the_reply_does_and_grow():
    chat = ScriptedChat(SOLVED_JSON, capabilities=HELD, piece=5)
    events = [event async for event in Kernel().stream("Solve it.", chat=chat, returns=MathReasoning)]
    drafts: list[Any] = [event.value for event in events if isinstance(event, PartialValue)]
    assert all(type(draft) is MathReasoning for draft in drafts)
    assert drafts[-1] == SOLVED
    assert any(draft.steps == SOLVED.steps[:1] and draft.final_answer is None for draft in drafts)
    assert len(drafts) > 10
    lengths = [len(draft.steps or ()) for draft in drafts]
    assert lengths == sorted(lengths)
    assert isinstance(events[-1], Turn)
    assert events[-1].value == SOLVED


@pytest.mark.parametrize(
    ("manner", "text"),
    [
        ("schema", '{"name": "Party", "day": "2026-11-21", "guests": {"Ada": 1}}'),
        ("instruct", 'Here: {"name": "Party", "day": "2026-11-21", "guests": {"Ada": 1}} Enjoy!'),
        ("strict", '{"name": "Party", "day": "2026-11-21", "guests": [{"key": "Ada", "value": 1}], "note": null}'),
    ],
)
def test_drafts_of_every_manner_end_in_the_value(manner: Manner, text: str):
    form: ResponseFormat[Event] = ResponseFormat.of(Event)
    reader = DraftReader(form, manner)
    drafts = [draft for letter in text if (draft := reader.feed(letter)) is not NOTHING]
    assert drafts[-1] == form.read(text, manner) == PARTY
    assert drafts[0] != PARTY
    assert any(draft.name == "Part" for draft in drafts), "text shows as it comes"
    assert all(draft.day in (None, date(2026, 11, 21)) for draft in drafts), "what does not fit yet is left out"


@given(json_values(), st.lists(st.integers(0, 100), max_size=8))
def test_drafts_never_raise_whatever_comes(value, cuts):
    text = json.dumps(value)
    for manner in ("schema", "strict", "instruct"):
        reader = DraftReader(ResponseFormat.of(Event), manner)  # type: ignore[arg-type]
        for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True):
            reader.feed(text[start:stop])


@given(st.text(max_size=40) | json_values().map(json.dumps))
def test_reading_gives_a_value_or_faults(text):
    form: ResponseFormat[Any] = ResponseFormat.of(Event)
    for manner in ("schema", "strict", "instruct"):
        try:
            assert isinstance(form.read(text, manner), Event)  # type: ignore[arg-type]
        except ReplyProblem as fault:
            assert fault.faults


async def test_a_class_that_cannot_compare_what_is_half_there_is_shown_all_the_same():
    @dataclass(eq=False)
    class Group:
        name: str
        members: list[int]

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Group) and len(self.members) == len(other.members)

        __hash__ = None  # type: ignore[assignment]

    chat = ScriptedChat('{"name": "The first of many", "members": [1]}', capabilities=HELD)
    kernel = Kernel()
    shown = [event.value async for event in kernel.stream("Who?", chat=chat, returns=Group) if _is_partial(event)]
    assert [shown[0].members, shown[-1].members] == [None, [1]]


def _is_partial(event: object) -> bool:
    return isinstance(event, PartialValue)


@pytest.mark.parametrize("manner", ["schema", "instruct"])
def test_drafts_of_a_long_reply_cost_no_more_than_in_proportion(manner: Manner):
    made = 0

    def draft(value: Any) -> Any:
        nonlocal made
        made += len(value)
        return list(value)

    parts = 5000
    reader = DraftReader(ResponseFormat({}, list, draft), manner)
    text = json.dumps(list(range(parts)))
    drafts = [reader.feed(text[start : start + 4]) for start in range(0, len(text), 4)]
    drafts = [value for value in drafts if value is not NOTHING]
    assert drafts[-1] == list(range(parts)), "the whole value is always shown"
    assert [len(value) for value in drafts] == sorted({len(value) for value in drafts})
    assert made < 100 * parts * 5, "each draft is of the whole value: one for every piece takes the square of it"


def test_a_long_text_is_shown_hundreds_of_times():
    reader = DraftReader(ResponseFormat.of(dict[str, str]), "schema")
    text = json.dumps({"essay": "word " * 5000})
    drafts = [reader.feed(text[start : start + 5]) for start in range(0, len(text), 5)]
    assert sum(value is not NOTHING for value in drafts) > 300


@pytest.mark.parametrize(
    "text",
    [
        'By [1] and {"a": 2} it is {"name": "Fair", "day": "2026-01-02"}.',
        '<think>Is it [2026]? {"name": 3} is not.</think>\n```json\n{"name": "Fair", "day": "2026-01-02"}\n```',
        '{"name": "Fair", "day": "2026-01-02"} as in [1].',
    ],
)
def test_of_several_values_in_a_reply_the_one_of_the_form_is_taken(text: str):
    assert ResponseFormat.of(Event).read(text, "instruct") == Event("Fair", date(2026, 1, 2))


def test_a_value_inside_of_another_is_not_taken_for_the_reply():
    inner = json.dumps({"name": "Fair", "day": "2026-01-02"})
    with pytest.raises(ReplyProblem, match="event: expected one of name"):
        ResponseFormat.of(Event).read(f'Here: {{"event": {inner}}}', "instruct")
