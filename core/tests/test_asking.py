"""What a caller says to a turn: options that are mistaken, forms that are kept."""

from __future__ import annotations

import types
from typing import Annotated, Any

import pytest

from portico._chat.messages import ChatCapabilities, ToolChoice
from portico._functions.functions import FunctionPlugin, function
from portico._kernel import Kernel
from portico._tool_loop.values import ToolLoopLimits
from portico.errors import SchemaUnsupported
from portico_testkit.fakes.chat_service import ScriptedChat

HELD = ChatCapabilities(response_schema=True, tools=True)


class Clock:
    @function
    async def now(self) -> str:
        return "noon"


async def ask(*script: str, kernel: Kernel | None = None, **options: Any) -> ScriptedChat:
    chat = ScriptedChat(*(script or ("Fine.",)), capabilities=HELD)
    await (kernel or Kernel(plugins=[FunctionPlugin.of(Clock())])).complete("When?", chat=chat, **options)
    return chat


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"functions": "Clock"}, TypeError, r"write functions=\['Clock'\]"),
        ({"functions": [Clock.now]}, TypeError, "give what Kernel.add_function returns, or a name"),
        ({"functions": [None]}, TypeError, "None is no function"),
        ({"tool_choice": "requird"}, ValueError, "one of auto, required, none, not 'requird'"),
        ({"tool_choice": ToolChoice("requird")}, ValueError, "one of auto, required, none"),
        ({"stop": "END"}, TypeError, r"write stop=\('END',\)"),
    ],
)
async def test_a_mistaken_option_says_what_to_write(options: dict[str, Any], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        await ask(**options)


async def test_options_that_are_none_are_as_if_not_given():
    names = ("functions", "tool_choice", "limits", "strict", "temperature", "stop", "extras")
    given, without = await ask(**dict.fromkeys(names)), await ask()
    assert given.requests == without.requests


async def test_two_functions_of_one_name_are_refused_and_one_named_twice_is_offered_once():
    first, second = FunctionPlugin.of(Clock()), FunctionPlugin.of(Clock())
    with pytest.raises(ValueError, match="two functions are called 'Clock-now'"):
        await ask(functions=[first, second])
    chat = await ask(functions=[first, *first], kernel=Kernel())
    assert len(chat.requests[0].tools) == 1


@pytest.mark.parametrize("name", ["rounds", "calls", "tokens", "seconds", "repairs", "result_characters"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_limit_below_zero_is_a_mistake(name: str, value: float):
    with pytest.raises(ValueError, match=f"at least 0, and {name} is"):
        ToolLoopLimits(**{name: value})


async def test_functions_added_between_turns_are_offered_in_the_next():
    kernel = Kernel(plugins=[FunctionPlugin.of(Clock())])
    first = await ask(kernel=kernel, tool_choice="auto")
    kernel.add_function(ask_again)
    second = await ask(kernel=kernel, tool_choice="auto")
    assert [len(chat.requests[0].tools) for chat in (first, second)] == [1, 2]


@function
async def ask_again() -> str:
    return "again"


async def test_a_schema_that_its_owner_changes_is_another_and_spoils_none_that_is_kept():
    kernel = Kernel()
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    await ask('{"a": 1}', kernel=kernel, returns=schema)
    schema["properties"]["a"]["type"] = "string"
    chat = await ask('{"a": 1}', kernel=kernel, returns={"type": "object", "properties": {"a": {"type": "integer"}}})
    sent = chat.requests[0].response_schema
    assert sent is not None
    assert sent["properties"] == {"a": {"type": "integer"}}


async def test_a_schema_may_be_any_mapping_and_what_is_no_json_is_refused():
    inner = types.MappingProxyType({"type": "integer"})
    chat = await ask("[1]", returns=types.MappingProxyType({"type": "array", "items": inner}))
    assert chat.requests[0].response_schema == {"type": "array", "items": {"type": "integer"}}
    with pytest.raises(SchemaUnsupported, match="given as returns= is not JSON"):
        await ask("1", returns={"enum": {1, 2}})


async def test_a_type_that_cannot_be_kept_is_made_each_time():
    kernel = Kernel()
    for _ in range(2):
        await ask("1", kernel=kernel, returns=Annotated[int, ["no hash"]])
