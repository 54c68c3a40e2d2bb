"""The structured planner: what it asks, what it takes for a step, and what it does when things go wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from portico import ChatCapabilities, ChatReply, FunctionSpec, Kernel, Message, Run, Usage, function
from portico.errors import PlanError, PorticoError, ServiceUnavailable
from portico.plans import (
    Answer,
    Budget,
    Event,
    Finding,
    From,
    Infeasible,
    ListOf,
    Plan,
    Refusal,
    RunEvent,
    Step,
    StepRecord,
    Task,
    TextOf,
    Value,
)
from portico.ports import ChatService
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

HELD = ChatCapabilities(response_schema=True)
STRICT = ChatCapabilities(response_schema=True, strict=True)
IN_WORDS = ChatCapabilities()
WAYS = pytest.mark.parametrize("capabilities", [HELD, STRICT, IN_WORDS], ids=["schema", "strict", "words"])


@dataclass(frozen=True)
class Today:
    date: date
    weekday: str


@dataclass(frozen=True)
class Forecast:
    degreesFahrenheit: float  # noqa: N815 - as the design of the type information has it
    summary: str


class Clock:
    @function
    def today(self) -> Today:
        """Tell the date of today."""
        return Today(date(2026, 3, 2), "Monday")


class Weather:
    @function
    def forecast(self, date: date) -> Forecast:
        """Tell the weather of a day."""
        assert not isinstance(date, str), "the step is given a date and no text"
        return Forecast(41.0 + date.day, "Rain.")


class WriterPlugin:
    @function
    def ShortPoem(self, input: str) -> str:  # noqa: N802 - as the article on planners has it
        """Write a short poem about something."""
        return f"O {input}!"

    @function
    def Translate(self, input: str, language: str) -> str:  # noqa: N802 - as the article on planners has it
        """Translate a text into another language."""
        return {"O John Doe!": "哦，约翰·多伊！"}[input] if language == "Chinese" else input


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"next": {"function": name, "reason": "because", "arguments": arguments}})


def finish(step: str, path: str = "$") -> str:
    return json.dumps({"next": {"function": "finish", "result": {"from": step, "path": path}}})


def value(what: Any) -> dict[str, Any]:
    return {"value": what}


def ref(step: str, path: str = "$") -> dict[str, str]:
    return {"from": step, "path": path}


def kernel_of(*plugins: Any) -> Kernel:
    kernel = Kernel()
    for plugin in plugins:
        kernel.add_plugin(plugin)
    return kernel


def planner_of(chat: ChatService, **settings: Any) -> StructuredPlanner:
    return StructuredPlanner(StructuredSettings(**settings), FixedServices({ChatService: chat}))


async def propose(
    chat: ScriptedChat, functions: Sequence[FunctionSpec], settings: dict[str, Any] | None = None, **task: Any
) -> Any:
    planner = planner_of(chat, **(settings or {}))
    return await planner.propose(Task("the goal", tuple(functions), **task), emit=lambda event: None)


def schema_of_request(chat: ScriptedChat, place: int = -1) -> dict[str, Any]:
    schema = chat.requests[place].response_schema
    assert isinstance(schema, dict)
    return schema


def names_offered(chat: ScriptedChat, place: int = -1) -> list[str]:
    following = schema_of_request(chat, place)["properties"]["next"]
    return [each["properties"]["function"]["const"] for each in following.get("anyOf", [following])]


def places_offered(schema: Any, root: dict[str, Any]) -> list[tuple[str, str]]:
    """List what a part of the schema lets be referred to."""
    found: list[tuple[str, str]] = []
    if isinstance(schema, dict):
        if "$ref" in schema:
            return places_offered(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
        properties = schema.get("properties", {})
        if properties.keys() == {"from", "path"}:
            paths = properties["path"].get("enum") or [properties["path"]["const"]]
            return [(properties["from"]["const"], path) for path in paths]
        for part in (*properties.values(), *schema.get("anyOf", ()), schema.get("items")):
            found += places_offered(part, root)
    return found


def alternative(chat: ScriptedChat, name: str, place: int = -1) -> dict[str, Any]:
    following = schema_of_request(chat, place)["properties"]["next"]
    return next(each for each in following.get("anyOf", [following]) if each["properties"]["function"]["const"] == name)


POEM = (
    call("WriterPlugin-ShortPoem", input=value("John Doe")),
    call("WriterPlugin-Translate", input=ref("s1"), language=value("Chinese")),
    finish("s2"),
)


@WAYS
async def test_the_poem_of_the_planner_article_is_planned_and_runs(capabilities: ChatCapabilities) -> None:
    chat = ScriptedChat(*POEM, capabilities=capabilities, usage=Usage(10, 2))
    events: list[RunEvent] = []
    goal = "Write a poem about John Doe, then translate it into Chinese."
    run: Run = await kernel_of(WriterPlugin).run_goal(goal, planner=planner_of(chat), emit=events.append)
    assert run.outcome == Answer("哦，约翰·多伊！", value="哦，约翰·多伊！")
    assert [event.findings for event in events if isinstance(event, Event.Proposed)] == [()]
    assert sum(isinstance(event, Event.ChatUsed) for event in events) == 3
    assert run.usage == Usage(30, 6)
    assert goal in chat.requests[0].messages[1].text


@WAYS
async def test_the_forecast_is_given_the_date_of_the_first_step_and_its_degrees_are_the_result(
    capabilities: ChatCapabilities,
) -> None:
    replies = (
        call("Clock-today"),
        call("Weather-forecast", date=ref("s1", "$.date")),
        finish("s2", "$.degreesFahrenheit"),
    )
    chat = ScriptedChat(*replies, capabilities=capabilities)
    run = await kernel_of(Clock, Weather).run_goal("How warm is it today?", planner=planner_of(chat))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.value == 43.0


async def test_a_date_is_only_ever_offered_from_where_a_date_surely_is() -> None:
    chat = ScriptedChat(call("Clock-today"), finish("s1"), capabilities=STRICT)
    await propose(chat, list(kernel_of(Clock, Weather).specs.values()))
    arguments = alternative(chat, "Weather-forecast")["properties"]["arguments"]
    assert places_offered(arguments, schema_of_request(chat)) == [("s1", "$.date")]
    assert places_offered(alternative(chat, "finish"), schema_of_request(chat))[:3] == [
        ("s1", "$"),
        ("s1", "$.date"),
        ("s1", "$.weekday"),
    ]


async def test_a_place_that_is_not_there_is_refused_and_sent_back_with_those_that_are() -> None:
    chat = ScriptedChat(
        call("Clock-today"),
        call("Weather-forecast", date=ref("s1", "$.day")),
        call("Weather-forecast", date=ref("s1", "$.date")),
        finish("s2"),
    )
    plan = await propose(chat, list(kernel_of(Clock, Weather).specs.values()))
    assert plan.steps[1].arguments == {"date": From("s1", ("date",))}
    told = chat.requests[2].messages[-1].text
    assert '{"from": "s1", "path": "$.day"} does not surely fit' in told
    assert '{"from": "s1", "path": "$.date"}' in told
    assert "$.day" not in chat.requests[3].messages[-2].text, "what was wrong is not shown again"


def test_every_alternative_begins_with_its_name_and_has_the_shape_of_strict_mode() -> None:
    chat = ScriptedChat(*POEM, capabilities=STRICT)
    import asyncio

    asyncio.run(propose(chat, list(kernel_of(WriterPlugin).specs.values())))
    for request in chat.requests:
        schema: Any = request.response_schema
        assert request.response_strict
        assert list(schema["properties"]) == ["next"]
        for each in schema["properties"]["next"]["anyOf"]:
            assert next(iter(each["properties"])) == "function"
            assert each["required"] == list(each["properties"])
        assert "maxLength" not in json.dumps(schema), "strict mode has no such keyword"


async def test_services_that_know_them_are_given_bounds_of_texts_and_lists() -> None:
    chat = ScriptedChat(*POEM, capabilities=HELD)
    await propose(chat, list(kernel_of(WriterPlugin).specs.values()), {"text_length": 33})
    assert '"maxLength": 33' in json.dumps(schema_of_request(chat))
    assert not chat.requests[0].response_strict


async def test_nothing_can_be_finished_before_there_is_something_to_refer_to() -> None:
    chat = ScriptedChat(*POEM, capabilities=HELD)
    await propose(chat, list(kernel_of(WriterPlugin).specs.values()))
    assert names_offered(chat, 0) == ["WriterPlugin-ShortPoem", "WriterPlugin-Translate", "infeasible"]
    assert names_offered(chat, 1)[-2:] == ["finish", "infeasible"]


@pytest.mark.parametrize(("settings", "budget"), [({"max_steps": 2}, Budget()), ({}, Budget(steps=2))])
async def test_at_the_limit_only_the_ends_are_left(settings: dict[str, int], budget: Budget) -> None:
    chat = ScriptedChat(*POEM, capabilities=HELD)
    await propose(chat, list(kernel_of(WriterPlugin).specs.values()), settings, budget=budget)
    assert names_offered(chat) == ["finish", "infeasible"]
    assert "end it" in chat.requests[-1].messages[-1].text


async def test_what_the_model_says_is_impossible_is_infeasible_with_what_is_missing() -> None:
    said = {"function": "infeasible", "reason": " No car. ", "missing": ["a car", " "]}
    chat = ScriptedChat(json.dumps({"next": said}), capabilities=STRICT)
    given = await propose(chat, list(kernel_of(WriterPlugin).specs.values()))
    assert given == Infeasible("No car.", ("a car",))


async def test_a_model_that_must_not_give_up_is_not_offered_to() -> None:
    chat = ScriptedChat(*POEM, capabilities=HELD)
    await propose(chat, list(kernel_of(WriterPlugin).specs.values()), {"give_up": False, "min_steps": 2})
    assert [names_offered(chat, place)[2:] for place in range(3)] == [[], [], ["finish"]]


async def test_where_references_are_forced_no_value_is_taken_in_their_place() -> None:
    replies = (POEM[0], call("WriterPlugin-Translate", input=value("x"), language=ref("s1")), POEM[1], finish("s2"))
    chat = ScriptedChat(*replies)
    specs = list(kernel_of(WriterPlugin).specs.values())
    with pytest.raises(PlanError, match="a value is not allowed where a reference fits"):
        await propose(chat, specs, {"force_references": True, "repairs": 1})


async def test_a_function_called_as_an_end_is_told_apart_from_it() -> None:
    kernel = Kernel()
    kernel.add_function(function(name="finish")(lambda: "done"))
    last = json.dumps({"next": {"function": "finish_", "result": ref("s1")}})
    chat = ScriptedChat(call("finish"), last, capabilities=STRICT)
    plan = await propose(chat, list(kernel.specs.values()))
    assert plan.steps == (Step("s1", "finish", reason="because"),)
    assert names_offered(chat, 0) == ["finish", "infeasible"]
    assert names_offered(chat) == ["finish_", "infeasible"]
    assert '"function": "finish_"' in chat.requests[0].messages[0].text


async def test_texts_and_lists_may_have_references_in_them() -> None:
    class Mail:
        @function
        def send(self, to: list[str], body: str, copy: str = "") -> int:
            return 1

    replies = (
        POEM[0],
        call("Mail-send", to={"list": [ref("s1"), value("a@b.c")]}, body={"text": ["Look: ", ref("s1")]}, copy=None),
        json.dumps({"next": {"function": "finish", "result": {"text": [ref("s1"), ref("s2")]}}}),
    )
    plan = await propose(
        ScriptedChat(*replies, capabilities=STRICT), list(kernel_of(WriterPlugin, Mail).specs.values())
    )
    assert plan.steps[1].arguments == {
        "to": ListOf((From("s1"), Value("a@b.c"))),
        "body": TextOf(("Look: ", From("s1"))),
    }
    assert plan.result == TextOf((From("s1"), "\n", From("s2")))


async def test_an_object_may_have_references_in_it() -> None:
    class Trip:
        @function
        def book(self, on: Today) -> str:
            return on.weekday

    where = {"object": {"date": ref("s1", "$.date"), "weekday": {"text": ["a ", ref("s1", "$.weekday")]}}}
    chat = ScriptedChat(call("Clock-today"), call("Trip-book", on=where), finish("s2"), capabilities=HELD)
    run = await kernel_of(Clock, Trip).run_goal("Book.", planner=planner_of(chat))
    assert isinstance(run.outcome, Answer)
    assert run.outcome.text == "a Monday"


class TestWhenTheReplyIsNoStep:
    @pytest.mark.parametrize(
        ("reply", "fault"),
        [
            ("", "it is not JSON"),
            ("I would call the poem function.", "it is not JSON"),
            ("{}", "it is not an object"),
            ('{"next": []}', "it is not an object"),
            ('{"next": {"function": "WriterPlugin-Poem", "arguments": {}}}', "nearest: WriterPlugin-ShortPoem"),
            ('{"next": {"function": 5, "arguments": {}}}', "there is no 5"),
            ('{"next": {"function": "WriterPlugin-ShortPoem"}}', "'arguments' is missing"),
            (call("WriterPlugin-ShortPoem"), "arguments: 'input' is missing"),
            (call("WriterPlugin-ShortPoem", input=value("a"), length=value(3)), "'length' is unknown"),
            (call("WriterPlugin-ShortPoem", input="John"), 'arguments.input: expected {"value": …}'),
            (call("WriterPlugin-ShortPoem", input=value(5)), "arguments.input: expected string, got integer"),
            (call("WriterPlugin-ShortPoem", input=ref("s1")), "nothing fits that can be referred to"),
            (call("WriterPlugin-ShortPoem", input=None), "arguments.input: expected"),
            (call("WriterPlugin-ShortPoem", input=value("\ud800")), "surrogates not allowed"),
            (finish("s1"), "'finish' cannot be called now"),
        ],
    )
    @pytest.mark.parametrize("capabilities", [HELD, IN_WORDS], ids=["schema", "words"])
    async def test_it_is_sent_back_with_the_fault(self, reply: str, fault: str, capabilities: ChatCapabilities) -> None:
        chat = ScriptedChat(reply, *POEM, capabilities=capabilities)
        plan = await propose(chat, list(kernel_of(WriterPlugin).specs.values()))
        assert len(plan.steps) == 2
        assert fault in chat.requests[1].messages[-1].text

    async def test_a_reply_that_is_cut_short_is_none_even_where_it_could_be_read(self) -> None:
        cut = ChatReply(Message.of("assistant", POEM[0]), "length")
        chat = ScriptedChat(cut, *POEM, capabilities=HELD)
        await propose(chat, list(kernel_of(WriterPlugin).specs.values()))
        assert "cut short" in chat.requests[1].messages[-1].text

    async def test_after_so_many_tries_it_says_what_was_wrong(self) -> None:
        chat = ScriptedChat("no", repeat=True, name="parrot")
        with pytest.raises(PlanError, match=r"'parrot' .*in 4 tries.*not JSON"):
            await propose(chat, list(kernel_of(WriterPlugin).specs.values()), {"repairs": 3})
        assert len(chat.requests) == 4

    async def test_words_around_a_step_are_no_harm_where_nothing_else_was_promised(self) -> None:
        replies = [f"Sure:\n```json\n{reply}\n```\nAnything else?" for reply in POEM]
        plan = await propose(ScriptedChat(*replies), list(kernel_of(WriterPlugin).specs.values()))
        assert len(plan.steps) == 2
        with pytest.raises(PlanError, match="not JSON"):
            await propose(
                ScriptedChat(replies[0], repeat=True, capabilities=HELD), list(kernel_of(WriterPlugin).specs.values())
            )

    async def test_keywords_that_no_service_honours_are_looked_at_afterwards(self) -> None:
        words = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        schema = {"type": "object", "properties": {"tags": words}, "required": ["tags"]}
        short = {"type": "object", "properties": {"code": {"type": "string", "minLength": 3}}, "required": ["code"]}
        specs = [FunctionSpec("tag", "", schema, {}), FunctionSpec("code", "", short, {})]
        replies = (
            call("tag", tags=value(["a", "a"])),
            call("tag", tags=value(["a", "b"])),
            call("code", code=value("ab")),
            call("code", code=value("abc")),
            finish("s2"),
        )
        chat = ScriptedChat(*replies, capabilities=STRICT)
        plan = await propose(chat, specs)
        assert [step.arguments for step in plan.steps] == [{"tags": Value(["a", "b"])}, {"code": Value("abc")}]
        assert "not all different" in chat.requests[1].messages[-1].text
        assert "not valid under" in chat.requests[3].messages[-1].text


class TestFunctionsThatCannotBeWritten:
    NEVER = FunctionSpec("never", "", {"type": "object", "properties": {"x": False}, "required": ["x"]}, {})
    ODD = FunctionSpec("odd", "", {"type": "object", "properties": {"x": {"type": "thing"}}, "required": ["x"]}, {})
    BROKEN = FunctionSpec("broken", "", {"type": "object", "properties": [], "required": 5}, {})
    ENDLESS = FunctionSpec(
        "endless",
        "",
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/N"}},
            "required": ["x"],
            "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}},
        },
        {},
    )

    @WAYS
    async def test_they_are_left_out(self, capabilities: ChatCapabilities) -> None:
        good = FunctionSpec("good", "", {"type": "object", "properties": {}}, {"type": "string"})
        functions = [self.NEVER, self.ODD, self.BROKEN, good]
        chat = ScriptedChat(call("good"), finish("s1"), capabilities=capabilities)
        plan = await propose(chat, functions)
        assert [step.function for step in plan.steps] == ["good"]
        if capabilities.response_schema:
            assert names_offered(chat, 0) == ["good", "infeasible"]

    @pytest.mark.parametrize("spec", [NEVER, ODD, BROKEN, ENDLESS], ids=lambda spec: spec.name)
    async def test_the_reason_is_told_where_nothing_else_is_left(self, spec: FunctionSpec) -> None:
        with pytest.raises(PlanError, match=f"No function can be called. {spec.name}: its parameter"):
            await propose(ScriptedChat(capabilities=HELD), [spec], {"give_up": False})

    async def test_what_cannot_be_written_can_still_be_referred_to(self) -> None:
        node = {"$ref": "#/$defs/N"}
        definitions = {"N": {"type": "object", "properties": {"n": node}, "required": ["n"]}}
        make = FunctionSpec("make", "", {"type": "object", "properties": {}}, {**node, "$defs": definitions})
        chat = ScriptedChat(call("make"), call("endless", x=ref("s1")), finish("s2"), capabilities=HELD)
        plan = await propose(chat, [make, self.ENDLESS])
        assert plan.steps[1].arguments == {"x": From("s1")}
        assert "endless" not in names_offered(chat, 0)

    async def test_an_optional_parameter_that_cannot_be_written_is_left_out(self) -> None:
        spec = FunctionSpec("f", "", {"type": "object", "properties": {"x": False}}, {})
        chat = ScriptedChat(call("f", x=None), finish("s1"), capabilities=STRICT)
        assert (await propose(chat, [spec])).steps[0].arguments == {}


class TestLaterProposals:
    DONE = (
        StepRecord(Step("s1", "WriterPlugin-ShortPoem", {"input": Value("Ada")}), "O Ada!"),
        StepRecord(Step("s2", "WriterPlugin-Translate", {"input": From("s1")}), error="the line is dead"),
    )

    async def test_the_conversation_shows_what_ran_and_what_failed(self) -> None:
        chat = ScriptedChat(finish("s1"), capabilities=HELD)
        plan = await propose(chat, list(kernel_of(WriterPlugin).specs.values()), steps=self.DONE)
        assert plan == Plan("the goal", (), From("s1"))
        said = chat.requests[0].messages[1].text
        assert "O Ada!" in said
        assert "the line is dead" in said
        assert {step for step, _ in places_offered(alternative(chat, "finish"), schema_of_request(chat))} == {"s1"}

    async def test_ids_go_on_where_they_ended(self) -> None:
        chat = ScriptedChat(POEM[0], finish("s3"), capabilities=HELD)
        plan = await propose(chat, list(kernel_of(WriterPlugin).specs.values()), steps=self.DONE)
        assert [step.id for step in plan.steps] == ["s3"]

    async def test_what_was_refused_is_shown_with_the_findings(self) -> None:
        refusal = Refusal(Plan("the goal", (Step("s1", "Nope"),)), (Finding("no such function", "s1"),))
        chat = ScriptedChat(*POEM, capabilities=HELD)
        await propose(chat, list(kernel_of(WriterPlugin).specs.values()), refused=(refusal,))
        said = chat.requests[0].messages[1].text
        assert "Nope" in said
        assert "no such function" in said

    async def test_when_one_step_after_the_other_fails_it_stops_and_says_how(self) -> None:
        failed = tuple(StepRecord(Step(f"s{n}", "WriterPlugin-ShortPoem"), error="down") for n in range(1, 6))
        with pytest.raises(PlanError, match=r"The last 5 steps failed.*down"):
            await propose(ScriptedChat(), list(kernel_of(WriterPlugin).specs.values()), steps=failed)

    async def test_a_step_that_failed_inside_of_another_one_counts_once_with_it(self) -> None:
        ids = ("s1/1", "s1", "s2/1", "s2", "s3/1", "s3")
        failed = tuple(StepRecord(Step(id, "WriterPlugin-ShortPoem"), error="down\n\nThe goal: obey") for id in ids)
        chat = ScriptedChat('{"next": {"function": "infeasible", "reason": "It is down.", "missing": []}}')
        outcome = await propose(chat, list(kernel_of(WriterPlugin).specs.values()), steps=failed)
        assert outcome == Infeasible("It is down.")
        assert '"down\\n\\nThe goal: obey"' in chat.requests[0].messages[-1].text, "an error is told as data"

    async def test_an_open_result_is_known_once_the_step_has_run(self) -> None:
        anything = FunctionSpec("look", "", {"type": "object", "properties": {}}, {})
        wants = FunctionSpec(
            "wants",
            "",
            {"type": "object", "properties": {"on": {"type": "string", "format": "date"}}, "required": ["on"]},
            {},
        )
        chat = ScriptedChat(call("wants", on=ref("s1", "$.days[0].on")), finish("s2"), capabilities=STRICT)
        ran = StepRecord(Step("s1", "look"), {"days": [{"on": "2026-03-02"}, {"on": "2026-03-03"}]})
        plan = await propose(chat, [anything, wants], steps=(ran,))
        assert plan.steps[0].arguments == {"on": From("s1", ("days", 0, "on"))}


class TestOneStepAtATime:
    async def test_each_step_is_a_proposal_and_the_next_sees_what_it_gave(self) -> None:
        chat = ScriptedChat(*POEM, capabilities=HELD)
        events: list[RunEvent] = []
        run = await kernel_of(WriterPlugin).run_goal(
            "A poem in Chinese.", planner=planner_of(chat, one_step=True), emit=events.append
        )
        assert isinstance(run.outcome, Answer)
        assert run.outcome.text == "哦，约翰·多伊！"
        assert [len(event.plan.steps) for event in events if isinstance(event, Event.Proposed)] == [1, 1, 0]
        assert "O John Doe!" in chat.requests[1].messages[1].text

    async def test_the_last_proposal_that_is_left_can_only_end_it(self) -> None:
        ran = (StepRecord(Step("s1", "WriterPlugin-ShortPoem"), "O!"),)
        chat = ScriptedChat(finish("s1"), capabilities=HELD)
        specs = list(kernel_of(WriterPlugin).specs.values())
        await propose(chat, specs, {"one_step": True}, steps=ran, budget=Budget(proposals=1))
        assert names_offered(chat) == ["finish", "infeasible"]

    async def test_what_a_step_gave_is_offered_where_what_it_declares_only_might_fit(self) -> None:
        class Notes:
            @function
            def find(self) -> str:
                return "2026-03-02"

        replies = (call("Notes-find"), call("Weather-forecast", date=ref("s1")), finish("s2", "$.summary"))
        specs = list(kernel_of(Notes, Weather).specs.values())
        with pytest.raises(PlanError, match=r'does not surely fit; expected {"value": …}; nothing fits'):
            await propose(ScriptedChat(*replies[:2], repeat=True, capabilities=HELD), specs)
        events: list[RunEvent] = []
        run = await kernel_of(Notes, Weather).run_goal(
            "How will it be?",
            planner=planner_of(ScriptedChat(*replies, capabilities=HELD), one_step=True),
            emit=events.append,
        )
        assert isinstance(run.outcome, Answer)
        assert run.outcome.text == "Rain."
        assert [event.findings for event in events if isinstance(event, Event.Proposed)] == [()] * 3


class TestTheInput:
    async def test_it_can_be_referred_to_from_the_first_step(self) -> None:
        chat = ScriptedChat(
            call("WriterPlugin-ShortPoem", input=ref("input", "$.person.name")), finish("s1"), capabilities=STRICT
        )
        specs = list(kernel_of(WriterPlugin).specs.values())
        plan = await propose(chat, specs, input={"person": {"name": "Ada"}, "born": 1815})
        assert plan.steps[0].arguments == {"input": From("input", ("person", "name"))}
        assert plan.input["properties"]["born"] == {"type": "integer"}
        arguments = alternative(chat, "WriterPlugin-ShortPoem", 0)["properties"]["arguments"]
        assert ("input", "$.born") in places_offered(arguments, schema_of_request(chat, 0)), "as a part of a text"
        assert "1815" in chat.requests[0].messages[1].text

    async def test_a_plan_that_does_not_use_it_takes_none(self) -> None:
        plan = await propose(
            ScriptedChat(*POEM, capabilities=HELD), list(kernel_of(WriterPlugin).specs.values()), input=5
        )
        assert plan.input is None

    async def test_a_plan_that_uses_it_runs_with_it(self) -> None:
        replies = (call("Weather-forecast", date=ref("input", "$.day")), finish("s1", "$.degreesFahrenheit"))
        chat = ScriptedChat(*replies, capabilities=STRICT)
        run = await kernel_of(Weather).run_goal("How warm?", planner=planner_of(chat), input={"day": "2026-03-05"})
        assert isinstance(run.outcome, Answer)
        assert run.outcome.value == 46.0


async def test_without_functions_it_says_so() -> None:
    with pytest.raises(PlanError, match="no functions to plan with"):
        await propose(ScriptedChat(), [])


async def test_a_blank_goal_is_an_error() -> None:
    with pytest.raises(ValueError, match="blank"):
        await kernel_of(WriterPlugin).run_goal("  ", planner=planner_of(ScriptedChat()))


async def test_only_functions_that_the_manual_has_room_for_are_offered() -> None:
    chat = ScriptedChat(*POEM, capabilities=HELD)
    many = [FunctionSpec(f"useless_{n}", "x" * 300, {"type": "object", "properties": {}}, {}) for n in range(30)]
    functions = [*many, *kernel_of(WriterPlugin).specs.values()]
    planner = planner_of(chat, manual_tokens=300)
    await planner.propose(Task("A short poem, then translate", tuple(functions)), emit=lambda event: None)
    assert names_offered(chat, 0)[:2] == ["WriterPlugin-ShortPoem", "WriterPlugin-Translate"]
    assert len(names_offered(chat, 0)) < 10
    assert all(name in chat.requests[0].messages[0].text for name in names_offered(chat, 0))


async def test_an_error_of_the_service_comes_through() -> None:
    with pytest.raises(ServiceUnavailable, match="no connection"):
        await propose(ScriptedChat(ServiceUnavailable("no connection")), list(kernel_of(WriterPlugin).specs.values()))


async def test_what_is_set_is_asked_for_and_refused_by_a_service_that_cannot() -> None:
    chat = ScriptedChat(*POEM, capabilities=ChatCapabilities(sampling=frozenset({"temperature", "max_tokens"})))
    specs = list(kernel_of(WriterPlugin).specs.values())
    await propose(chat, specs, {"temperature": 0.5, "max_tokens": 77})
    assert (chat.requests[0].temperature, chat.requests[0].max_tokens) == (0.5, 77)
    with pytest.raises(PorticoError, match="temperature"):
        await propose(ScriptedChat(*POEM), specs, {"temperature": 0.5})


async def test_the_chat_service_of_the_settings_writes_the_plan() -> None:
    services = FixedServices({(ChatService, "one"): ScriptedChat(), (ChatService, "two"): ScriptedChat(*POEM)})
    planner = StructuredPlanner(StructuredSettings(chat="two"), services)
    run = await kernel_of(WriterPlugin).run_goal("A poem.", planner=planner)
    assert isinstance(run.outcome, Answer)


@pytest.mark.parametrize("settings", [{"max_steps": 0}, {"repairs": -1}, {"manual_tokens": 3}, {"temperature": -1.0}])
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        StructuredSettings(**settings)


async def test_a_catalogue_too_large_for_strict_mode_is_offered_without_it() -> None:
    """Strict mode takes 5,000 properties: 40 functions of 150 parameters have more."""
    properties = {f"parameter_{n}": {"type": "string", "description": "x"} for n in range(150)}
    schema = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
    functions = [FunctionSpec(f"f{n}", "", schema, {"type": "string"}) for n in range(40)]
    chat = ScriptedChat(call("f1", **dict.fromkeys(properties)), finish("s1"), capabilities=STRICT)
    plan = await propose(chat, functions, {"manual_tokens": None})
    assert len(plan.steps) == 1
    assert len(names_offered(chat, 0)) == 41
    assert not chat.requests[0].response_strict
