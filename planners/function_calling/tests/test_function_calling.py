"""What the function calling planner does with the replies of a service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.reading import tool_results, words_shown

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Kernel, Message, Run, ToolCall, Usage, function
from portico.errors import LimitExceeded, PlanError, ResponseInvalid, UnsupportedOption
from portico.plans import Answer, Budget, Event, Infeasible, RunEvent
from portico.ports import ChatService
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.weather import Weather, run_weather

TOOLS = ChatCapabilities(tools=True)
LOOK = ToolCall("c1", "Weather-forecast", '{"city": "Oslo"}')


def planner_with(chat: ScriptedChat, **settings: Any) -> FunctionCallingPlanner:
    return FunctionCallingPlanner(FunctionCallingSettings(**settings), FixedServices({ChatService: chat}))


async def run_goal(chat: ScriptedChat, **options: Any) -> Run:
    given = {name: options.pop(name) for name in ("weather", "events", "budget") if name in options}
    return await run_weather(planner_with(chat, **options), **given)


def play(*lines: Any, **options: Any) -> ScriptedChat:
    return ScriptedChat(*lines, capabilities=options.pop("capabilities", TOOLS), **options)


async def test_the_calls_of_one_reply_run_side_by_side_and_the_words_of_the_last_are_the_answer() -> None:
    weather, events = Weather(), list[RunEvent]()
    weather.together = asyncio.Barrier(2)
    calls = [LOOK, ToolCall("c2", "Weather-forecast", '{"city": "Rome", "days": 3}')]
    chat = play(["I look.", *calls], "Clear in both.", usage=Usage(10, 2))
    run = await run_goal(chat, weather=weather, events=events)
    assert run.outcome == Answer("Clear in both.")
    assert sorted(weather.asked) == [("Oslo", 1), ("Rome", 3)]
    assert sorted((step.id, step.reason) for step in run.plan.steps) == [("s1", "I look."), ("s2", "I look.")]
    assert words_shown(events) == "Clear in both.", "what is said before a call is no answer"
    assert run.usage == Usage(20, 4)
    assert [event.service for event in events if isinstance(event, Event.ChatUsed)] == ["scripted", "scripted"]
    told = [(result.id, json.loads(result.content)["city"]) for result in tool_results(chat.requests[1])]
    assert told == [("c1", "Oslo"), ("c2", "Rome")]


async def test_arguments_in_another_kind_are_understood_as_in_a_tool_call() -> None:
    weather = Weather()
    call = ToolCall("c", "functions.weather_forecast", '{"city": "Oslo", "days": "2"}')
    await run_goal(play(call, "Clear."), weather=weather)
    assert weather.asked == [("Oslo", 2)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ToolCall("c", "Weather-forcast", '{"city": "Oslo"}'), "Nearest: Weather-forecast"),
        (ToolCall("c", "", "{}"), "There is no function ''"),
        (ToolCall("c", "Weather-forecast", '{"city": "Oslo"'), "not one JSON object"),
        (ToolCall("c", "Weather-forecast", '["Oslo"]'), "not one JSON object"),
        (ToolCall("c", "Weather-forecast", '{"city": "Oslo", "city": "Rome"}'), "'city' stands there twice"),
        (ToolCall("c", "Weather-forecast", "{}"), "'city'"),
        (ToolCall("c", "Weather-forecast", ""), "'city'"),
        (ToolCall("c", "Weather-forecast", '{"city": "Oslo", "when": "now"}'), "'when'"),
        (ToolCall("c", "Weather-forecast", '{"city": "Oslo", "days": "many"}'), "days"),
        (ToolCall("c", "Weather-forecast", '{"city": "Oslo", "days": NaN}'), "NaN"),
    ],
)
async def test_a_wrong_call_is_answered_with_the_error_and_the_others_of_its_reply_run(
    call: ToolCall, said: str
) -> None:
    weather = Weather()
    other = ToolCall("d", "Weather-forecast", '{"city": "Rome"}')
    chat = play([call, other], "Clear.")
    assert (await run_goal(chat, weather=weather)).outcome == Answer("Clear.")
    wrong, right = tool_results(chat.requests[1])
    assert wrong.error
    assert said in wrong.content
    assert not right.error
    assert weather.asked == [("Rome", 1)]


async def test_a_wrong_call_alone_is_mended_within_one_proposal() -> None:
    chat, events = play(ToolCall("c", "Weather-forcast"), LOOK, "Clear."), list[RunEvent]()
    await run_goal(chat, events=events)
    assert len([event for event in events if isinstance(event, Event.Proposed)]) == 1
    assert "Nearest: Weather-forecast" in tool_results(chat.requests[1])[0].content


@pytest.mark.parametrize(
    "line", [ToolCall("c", "Nothing-like"), "", " \n ", ToolCall("c", "Weather-forecast", "[")], ids=repr
)
async def test_replies_that_come_to_nothing_again_and_again_end_it(line: Any) -> None:
    chat = play(line, repeat=True)
    with pytest.raises(PlanError, match=r"The last 3 replies of the chat service 'scripted' came to nothing.*error"):
        await run_goal(chat)
    assert len(chat.requests) == 3


async def test_calls_that_fail_again_and_again_end_it_and_one_that_succeeds_starts_anew() -> None:
    lost = ToolCall("c", "Weather-forecast", '{"city": "Atlantis"}')
    with pytest.raises(PlanError, match=r"The last 3 replies .*there is no Atlantis"):
        await run_goal(play(lost, repeat=True))
    chat = play(lost, lost, LOOK, lost, lost, "No Atlantis.")
    assert (await run_goal(chat)).outcome == Answer("No Atlantis.")


async def test_a_failed_call_is_told_to_the_model_as_an_error() -> None:
    chat = play(ToolCall("c", "Weather-forecast", '{"city": "Atlantis"}'), "No.")
    await run_goal(chat)
    [result] = tool_results(chat.requests[1])
    assert result.error
    assert "there is no Atlantis" in result.content


async def test_a_goal_that_cannot_be_reached_is_infeasible() -> None:
    given = {"reason": "Nothing here sends mail.", "missing": ["sending mail"]}
    chat = play(ToolCall("c", "infeasible", json.dumps(given)))
    assert (await run_goal(chat)).outcome == Infeasible("Nothing here sends mail.", ("sending mail",))
    assert chat.requests[0].tools[-1].name == "infeasible"
    for arguments in ("", "[]", '{"reason": 1, "missing": 2}', "{"):
        outcome = (await run_goal(play(["I cannot.", ToolCall("c", "infeasible", arguments)]))).outcome
        assert outcome == Infeasible("I cannot.")


async def test_infeasible_beside_other_calls_waits_for_their_results() -> None:
    chat = play([ToolCall("n", "infeasible", '{"reason": "No.", "missing": []}'), LOOK], "Clear.")
    assert (await run_goal(chat)).outcome == Answer("Clear.")
    refused, _ = tool_results(chat.requests[1])
    assert refused.error
    assert "call it alone" in refused.content


async def test_a_function_that_is_called_infeasible_keeps_its_name() -> None:
    kernel = Kernel()

    @function
    def infeasible(text: str) -> str:
        return f"{text}!"

    kernel.add_function(infeasible)
    chat = play(ToolCall("c", "infeasible", '{"text": "a"}'), "Done.")
    run = await kernel.run_goal("Call it", planner=planner_with(chat))
    assert [record.result for record in run.steps] == ["a!"]
    assert [tool.name for tool in chat.requests[0].tools] == ["infeasible", "infeasible2"]


async def test_a_service_without_tools_is_refused_and_another_planner_named() -> None:
    chat = ScriptedChat()
    with pytest.raises(UnsupportedOption, match=r"'scripted' cannot call functions.*'stepwise'"):
        await run_goal(chat)
    assert chat.requests == []


async def test_an_answer_that_is_cut_short_says_so() -> None:
    cut = ChatReply(Message.of("assistant", "It will be"), "length", service="scripted")
    with pytest.raises(PlanError, match="cut short"):
        await run_goal(play(cut))


async def test_of_a_reply_that_is_cut_short_only_whole_calls_are_carried_out() -> None:
    weather = Weather()
    half = ToolCall("d", "Weather-warn", '{"text": "Run')
    cut = ChatReply(Message.of("assistant", LOOK, half), "length")
    chat = play(cut, "Clear.")
    await run_goal(chat, weather=weather)
    assert weather.asked == [("Oslo", 1)]
    assert "cut short" in tool_results(chat.requests[1])[1].content


async def test_a_reply_without_end_is_stopped() -> None:
    class Endless(ScriptedChat):
        closed = False

        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            try:
                while True:
                    yield ChatDelta("and so on " * 1_000)
            finally:
                self.closed = True

    chat = Endless(capabilities=TOOLS)
    with pytest.raises(PlanError, match="did not end within"):
        await run_goal(chat)
    assert chat.closed, "the stream is left open"

    class Silent(ScriptedChat):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            yield ChatDelta("So")

    with pytest.raises(ResponseInvalid, match="ended its stream without a reply"):
        await run_goal(Silent(capabilities=TOOLS))


async def test_on_the_last_proposal_the_model_must_answer() -> None:
    chat = play(LOOK, "Clear.")
    assert (await run_goal(chat, budget=Budget(proposals=2))).outcome == Answer("Clear.")
    assert chat.requests[0].offered
    assert not chat.requests[1].offered
    assert "Answer the goal now" in chat.requests[1].messages[-1].text
    with pytest.raises(LimitExceeded):
        await run_goal(play(LOOK, repeat=True), budget=Budget(proposals=2))


async def test_more_calls_than_are_allowed_are_not_carried_out() -> None:
    weather = Weather()
    calls = [ToolCall(str(n), "Weather-forecast", json.dumps({"city": str(n)})) for n in range(20)]
    chat = play(calls, "Clear.")
    await run_goal(chat, weather=weather, budget=Budget(steps=30))
    assert len(weather.asked) == 16
    assert [result.error for result in tool_results(chat.requests[1])] == [False] * 16 + [True] * 4
    chat = play(calls, "Clear.")
    weather = Weather()
    await run_goal(chat, weather=weather, budget=Budget(steps=3))
    assert len(weather.asked) == 3


async def test_with_many_functions_those_that_the_goal_speaks_of_are_offered_and_others_cannot_be_called() -> None:
    kernel = Kernel()

    def make_function(name: str) -> Any:
        def call(text: str) -> str:
            return text

        call.__doc__ = f"Handle the {name}."
        return function(name=name)(call)

    for name in ("poem", *(f"other{n}" for n in range(60))):
        kernel.add_function(make_function(name))
    gone = ToolCall("g", "infeasible", '{"reason": "No way.", "missing": []}')
    chat = play(ToolCall("c", "other59", '{"text": "a"}'), gone)
    outcome = (await kernel.run_goal("Write a poem", planner=planner_with(chat, manual_tokens=300))).outcome
    offered = [tool.name for tool in chat.requests[0].tools]
    assert "poem" in offered
    assert "other59" not in offered
    assert "There is no function 'other59'" in tool_results(chat.requests[1])[0].content
    assert isinstance(outcome, Infeasible)
    assert f"{len(offered) - 1} of 61 functions" in outcome.reason


async def test_each_tool_says_what_it_returns_where_that_is_known() -> None:
    @function
    def weigh(parcel: int) -> dict[str, float]:
        """Weigh a parcel."""
        return {"kilos": 2.5}

    @function
    def look(parcel: int) -> Any:
        """Look into a parcel."""

    kernel, chat = Kernel(), play("2.5 kilos.")
    kernel.add_function(weigh)
    kernel.add_function(look)
    await kernel.run_goal("What does parcel 7 weigh?", planner=planner_with(chat))
    told = {tool.name: tool.description for tool in chat.requests[0].tools}
    assert told["weigh"] == "Weigh a parcel.\nReturns {[name]: number}."
    assert told["look"] == "Look into a parcel."


async def test_the_tools_are_the_same_tuple_for_every_request_of_a_run() -> None:
    chat = play(LOOK, LOOK, "Clear.")
    await run_goal(chat)
    assert len({id(request.tools) for request in chat.requests}) == 1


async def test_the_chat_service_of_the_settings_is_asked() -> None:
    services = FixedServices({(ChatService, "one"): play("1"), (ChatService, "two"): play("2")})
    planner = FunctionCallingPlanner(FunctionCallingSettings(chat="two"), services)
    assert (await Kernel(plugins=[Weather()]).run_goal("?", planner=planner)).outcome == Answer("2")


LONG = "word " * 100


@given(st.lists(st.sampled_from(["", " ", "Short.", LONG, f"\n{LONG}\n"]), max_size=3), st.integers(1, 400))
def test_the_words_shown_are_the_answer_also_where_a_call_follows_long_ones(before: list[str], piece: int) -> None:
    events: list[RunEvent] = []
    chat = play(*([words, LOOK] for words in before), " The end. ", piece=piece)
    run = asyncio.run(run_goal(chat, events=events))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == words_shown(events)
    assert run.outcome.text.endswith("The end.")


@given(
    st.lists(
        st.builds(
            ToolCall, st.text(max_size=3), st.text(max_size=20) | st.just("Weather-forecast"), st.text(max_size=30)
        ),
        max_size=3,
    )
)
def test_whatever_a_model_calls_it_ends_with_an_answer_or_a_clear_error(calls: list[ToolCall]) -> None:
    try:
        run = asyncio.run(run_goal(play(calls or "So.", "Clear.", repeat=True)))
    except PlanError as error:
        assert str(error)
    else:
        assert isinstance(run.outcome, Answer | Infeasible)


async def test_calls_packed_into_one_and_arguments_as_python_writes_them_are_steps_without_asking_again() -> None:
    uses = [{"recipient_name": "functions.Weather-forecast", "parameters": {"city": city}} for city in ("Oslo", "Rome")]
    packed = ToolCall("c", "multi_tool_use.parallel", json.dumps({"tool_uses": uses}))
    weather = Weather()
    chat = play([packed, ToolCall("d", "Weather-forecast", "{'city': 'Voss',\n'days': 2,}")], "Clear.")
    await run_goal(chat, weather=weather)
    assert sorted(weather.asked) == [("Oslo", 1), ("Rome", 1), ("Voss", 2)]
    assert [result.id for result in tool_results(chat.requests[1])] == ["c_1", "c_2", "d"]
    assert len(chat.requests) == 2
