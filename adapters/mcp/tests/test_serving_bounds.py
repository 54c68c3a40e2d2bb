"""A kernel as a server: what its clients cannot reach, and what no client or function can break."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import (
    ElicitationCapability,
    ErrorData,
    InputRequiredResult,
    InputResponses,
    ResourceLink,
    UrlElicitationCapability,
)
from tests.support.serving import MODES, SENDING, YES, World, text_of

from portico import From, Function, Kernel, Plan, PlanReview, Step, Value, plan_function
from portico.errors import ConfigurationError, StoreError
from portico.plans import Answer, PlanTemplate, plan_to_json
from portico.plugins import Compiled
from portico.ports import CallFunction, Planner
from portico_cli.runs import read_run
from portico_cli.show.runs import run_to_json
from portico_mcp._serving.server import make_server
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_testkit.fakes.planner import ScriptedPlanner

LETTER = Plan("Greet", (Step("a", "Post-send", {"letter": Value("hi")}),), result=From("a"))
ANY = Compiled({}, lambda value: value, lambda value: value)
CALLING = Plan("Call", (Step("s1", "greet"),), result=From("s1"))


@dataclass
class Secretive:
    """A template that is the name of a function, and tells nothing of the call."""

    source: str = ""
    name: str = "secretive"
    calls: tuple[object, ...] = ()

    def compile(self, source: str, *, name: str = "prompt") -> Secretive:
        return Secretive(source)

    async def render(self, arguments: Mapping[str, object], *, call: CallFunction) -> str:
        return str(await call(self.source, {}))


@pytest.fixture
def world() -> World:
    """Give a kernel with a saved plan that has effects."""
    made = World()
    made.kernel.add_function(plan_function("greet", LETTER))
    return made


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_that_equals_a_saved_one_waits_for_approval_too(world: World, mode: str) -> None:
    async with world.client(mode, asks=False) as client:
        held = (await client.call_tool("plan_run", {"plan": plan_to_json(LETTER)})).structured_content
    assert (held["outcome"], held["step"]) == ("held", None)
    assert world.store is not None
    assert "approved" not in [each["type"] for each in await world.store.read(held["run"])]


@pytest.mark.parametrize("mode", MODES)
async def test_a_saved_plan_that_a_planner_proposes_after_an_approval_has_its_own(world: World, mode: str) -> None:
    world.planner._script = (Plan("Two", CALLING.steps), LETTER, Answer("done"))
    world.kernel.approve_plans()
    run = (await world.kernel.run_goal("Send")).name
    world.kernel.middleware.plan.clear()
    world.answers = [YES]
    async with world.client(mode) as client:
        held = await client.call_tool("run_resume", {"run": run})
    assert (held.structured_content["outcome"], world.post.sent) == ("held", ["hi"])


@pytest.mark.parametrize("mode", MODES)
async def test_a_saved_plan_that_was_held_inside_of_a_step_runs_when_the_user_approves(world: World, mode: str) -> None:
    async def outer(review: PlanReview) -> bool:
        return review.plan.goal == "Call"

    world.kernel.approve_plans(outer)
    run = (await world.kernel.run_plan(CALLING)).name
    world.kernel.middleware.plan.clear()
    world.answers = [YES]
    async with world.client(mode) as client:
        resumed = await client.call_tool("run_resume", {"run": run})
    assert (resumed.structured_content["outcome"], world.post.sent) == ("answer", ["hi"])


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_left_out_is_hidden_from_planners_and_from_what_is_said(world: World, mode: str) -> None:
    world.options = {"exclude": ["Post-send", "Post-shout"]}
    world.kernel.approve_plans()
    world.planner._script = (Plan("Count", (Step("c", "Post-measure", {"text": Value("x")}),)), Answer("done"))
    run = (await world.kernel.run_goal("Count")).name
    world.kernel.middleware.plan.clear()
    near = {**SENDING, "steps": [{"id": "s1", "function": "Post-shuot", "arguments": {}}], "result": {"from": "s1"}}
    world.planner.tasks.clear()
    async with world.client(mode) as client:
        await client.call_tool("plan_propose", {"goal": "Count"})
        resumed = await client.call_tool("run_resume", {"run": run})
        shown = await client.call_tool("plan_show", {"plan": SENDING})
        checked = await client.call_tool("plan_check", {"plan": near})
    assert resumed.structured_content["answer"] == "done"
    assert len(world.planner.tasks) == 2
    assert not {"Post-send", "Post-shout"} & {spec.name for task in world.planner.tasks for spec in task.functions}
    assert "Send a letter" not in text_of(shown)
    assert "Post-shout" not in text_of(checked)


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_with_a_step_that_is_left_out_is_not_resumed(world: World, mode: str) -> None:
    world.kernel.approve_plans()
    run = (await world.kernel.run_plan(LETTER)).name
    world.kernel.middleware.plan.clear()
    world.options, world.answers = {"exclude": ["Post-send"]}, [YES]
    async with world.client(mode) as client:
        refused = await client.call_tool("run_resume", {"run": run})
    assert refused.is_error
    assert f"`portico resume {run}` at a terminal" in text_of(refused)
    assert (world.questions, world.post.sent) == ([], [])


@pytest.mark.parametrize("mode", MODES)
async def test_a_saved_plan_may_call_what_is_left_out_and_a_template_may_not(world: World, mode: str) -> None:
    world.kernel.template_languages["handlebars"] = HandlebarsTemplates()
    world.options, world.answers = {"exclude": ["Post-send", "Post-find"]}, [YES, YES]
    step = Step("t", "Post-shout", {"text": Value("x")})
    template = {"template": "{{#find}}{{/find}}", "language": "handlebars"}
    hidden = {**plan_to_json(Plan("Find", (step,))), "steps": [{"id": "t", "function": template}]}
    async with world.client(mode) as client:
        ran = await client.call_tool("plan_run", {"plan": plan_to_json(CALLING)})
        held = await client.call_tool("plan_run", {"plan": hidden})
    assert (ran.structured_content["value"], world.post.sent) == ("sent hi", ["hi"])
    assert held.structured_content["outcome"] != "answer"


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_template_calls_untold_waits_and_what_is_left_out_is_not_called(world: World, mode: str) -> None:
    world.kernel.template_languages["secretive"] = Secretive()
    world.options = {"exclude": ["Post-shout"]}
    held = []
    async with world.client(mode, asks=False) as client:
        for name in ("Post-send", "Post-shout"):
            step = {"id": "t", "function": {"template": name, "language": "secretive"}}
            arguments = {"letter": {"value": "x"}, "text": {"value": "x"}}
            plan = {"version": 1, "goal": "g", "steps": [{**step, "arguments": arguments}]}
            held.append((await client.call_tool("plan_run", {"plan": plan})).structured_content)
    assert [(each["outcome"], each["step"]) for each in held] == [("held", "t/1"), ("held", "t/1")]
    assert "not served" in held[1]["reason"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_saved_plan_that_hides_its_effects_waits_where_no_user_approved_it(world: World, mode: str) -> None:
    world.kernel.add_function(plan_function("sly", LETTER, effects=False))
    async with world.client(mode, asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": plan_to_json(Plan("Sly", (Step("s1", "sly"),)))})
    assert (held.structured_content["outcome"], held.structured_content["step"]) == ("held", "s1")


async def test_an_answer_counts_for_one_run(world: World) -> None:
    world.kernel.approve_plans()
    runs = [(await world.kernel.run_plan(LETTER)).name for _ in range(2)]
    world.kernel.middleware.plan.clear()
    async with world.client("auto") as client:
        asked = await client.session.call_tool("run_resume", {"run": runs[0]}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        answers: InputResponses = dict.fromkeys(asked.input_requests or {}, YES)
        other = await client.session.call_tool(
            "run_resume",
            {"run": runs[1]},
            input_responses=answers,
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert isinstance(other, InputRequiredResult)
    assert world.post.sent == []


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ({"exclude": ["Post"]}, {"Post-shout", "Post-measure", "Post-find", "Post-send"}),
        ({"include": ["zoo", "greet"], "exclude": ["*Results"]}, {"zoo-GetSearchResults", "Post-send", "plan_run"}),
    ],
)
async def test_the_name_of_a_plugin_chooses_all_its_functions(
    world: World, options: dict[str, list[str]], gone: set[str]
) -> None:
    async with world.client("auto") as client:
        everything = {tool.name for tool in (await client.list_tools()).tools}
    world.options = options
    async with world.client("auto") as client:
        left = {tool.name for tool in (await client.list_tools()).tools}
    assert gone <= everything - left
    assert {"zoo-Search", "greet"} <= left


async def test_a_name_as_a_client_reads_it_chooses_its_function(world: World) -> None:
    world.kernel.add_function(Function("long" * 20, lambda: "hi", returns=ANY))
    async with world.client("auto") as client:
        [wire] = [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("long")]
    world.options = {"exclude": [wire]}
    async with world.client("auto") as client:
        assert wire not in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("key", ["include", "exclude"])
def test_a_word_that_chooses_nothing_is_an_error_with_the_close_names(world: World, key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"--{key}.*'Post-snd'.*Post-send"):
        make_server(world.kernel, **{key: ["Post-snd"]})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["plan_run", "run_resume"])
def test_a_function_with_the_name_of_a_tool_for_plans_is_an_error_at_the_start(name: str) -> None:
    kernel = Kernel({Planner: ScriptedPlanner()})
    kernel.add_function(Function(name, lambda: "mine", returns=ANY))
    with pytest.raises(ConfigurationError, match=name):
        make_server(kernel)


@pytest.mark.parametrize("mode", MODES)
async def test_a_result_that_no_message_can_hold_is_mended_or_an_error(world: World, mode: str) -> None:
    link = {"name": "\ud83d", "link": "a://b", "text": "w"}
    results: dict[str, Any] = {
        "half": "a\ud83db",
        "member": {"\ud83d": ["\ud83d"]},
        "pair": "\ud83d\ude00",
        "links": [link, {**link, "link": "http://[x"}],
        "nan": {"x": float("nan")},
        "infinite": [float("inf")],
    }
    for name, value in results.items():
        tags = frozenset({"results"} if name == "links" else ())
        world.kernel.add_function(Function(name, lambda value=value: value, returns=ANY, tags=tags))
    async with world.client(mode) as client:
        got = {name: await client.call_tool(name, {}) for name in results}
        still = await client.call_tool("Post-shout", {"text": "up"})
    assert (text_of(got["half"]), text_of(got["pair"])) == ("a\ufffdb", "\U0001f600")
    assert got["member"].structured_content == {"\ufffd": ["\ufffd"]}
    assert all(got[name].is_error and "JSON" in text_of(got[name]) for name in ("nan", "infinite"))
    assert [each.uri for each in got["links"].content if isinstance(each, ResourceLink)] == ["a://b"]
    assert text_of(still) == "UP"


@pytest.mark.parametrize("mode", MODES)
async def test_a_journal_that_is_down_is_said(world: World, mode: str) -> None:
    async def fail(*_: object) -> Any:
        raise StoreError("The disk is gone.")

    assert world.store is not None
    run = (await world.kernel.run_plan(Plan("g", result=Value(1)))).name
    world.store.runs = fail  # type: ignore[method-assign]
    async with world.client(mode) as client:
        with pytest.raises(MCPError, match="The disk is gone"):
            await client.list_resources()
        with pytest.raises(MCPError, match="The disk is gone"):
            await client.read_resource(f"portico://runs/{run}")


async def test_a_run_that_cannot_be_read_is_listed_with_the_others(world: World) -> None:
    for name in ("good", "torn"):
        await world.kernel.run_plan(Plan("g", result=Value(1)), run=name)
    describe = world.describe

    async def tear(run: str, *, details: bool) -> Mapping[str, Any]:
        if run == "torn":
            raise StoreError("Entry 2 is torn.")
        return await describe(run, details=details)

    world.describe = tear  # type: ignore[method-assign]
    async with world.client("auto") as client:
        listed = {each.name: each.description for each in (await client.list_resources()).resources}
    assert listed == {"good": "A run that is done.", "torn": "Entry 2 is torn."}


async def test_a_client_that_fails_to_ask_is_no_mistake_of_the_server(world: World) -> None:
    async def fail(*_: object) -> Any:
        return ErrorData(code=-1, message="no window")

    async with Client(make_server(world.kernel), mode="legacy", elicitation_callback=fail) as client:
        failed = await client.call_tool("plan_run", {"plan": SENDING})
    assert failed.is_error
    assert "no window" in text_of(failed)
    assert "should not" not in text_of(failed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "plan",
    [
        {"version": 1, "goal": "g", "steps": [{"id": "t", "function": {"template": "{{#x", "language": "handlebars"}}]},
        {"version": 1, "goal": "g", "steps": [{"id": "t", "function": {"template": "x", "language": "klingon"}}]},
        {"version": 1, "steps": []},
    ],
)
async def test_what_is_wrong_with_a_plan_is_a_finding(world: World, mode: str, plan: dict[str, Any]) -> None:
    world.kernel.template_languages["handlebars"] = HandlebarsTemplates()
    async with world.client(mode) as client:
        checked = await client.call_tool("plan_check", {"plan": plan})
    assert not checked.is_error
    assert not checked.structured_content["ok"]
    assert len(checked.structured_content["findings"]) == 1


async def test_an_answer_counts_for_what_was_shown_beside_the_plan_too(world: World) -> None:
    """What another call gives to the run meanwhile, the user has not seen."""
    async with world.client("legacy", asks=False) as client:
        run = (await client.call_tool("plan_run", {"plan": SENDING})).structured_content["run"]
    world.kernel.middleware.plan.clear()
    world.kernel.middleware.step.clear()
    assert world.store is not None
    async with world.client("auto") as client:
        asked = await client.session.call_tool("run_resume", {"run": run}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        entry = {**(await world.store.read(run))[-1], "type": "step-finished", "step": "s1", "result": "EVIL"}
        lease = await world.store.acquire(run, owner="other", seconds=9)
        await world.store.append(lease, [{**entry, "given": True}])
        await world.store.release(lease)
        answers: InputResponses = dict.fromkeys(asked.input_requests or {}, YES)
        again = await client.session.call_tool(
            "run_resume",
            {"run": run},
            input_responses=answers,
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert isinstance(again, InputRequiredResult)
    assert "EVIL" in str(again.input_requests)
    assert world.post.sent == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_asks_with_pages_only_gets_the_run_that_is_held(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ElicitationCapability(url=UrlElicitationCapability())
    monkeypatch.setattr("mcp.client.session.types.ElicitationCapability", lambda **_: pages)
    async with world.client(mode) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
    assert held.structured_content["outcome"] == "held"
    assert world.questions == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_long_goal_leaves_the_steps_to_be_seen(world: World, mode: str) -> None:
    words = "blah " * 2_000
    inner = {**SENDING, "goal": words}
    steps = [
        {"id": "n", "function": inner, "reason": words},
        {**SENDING["steps"][1], "arguments": {"letter": {"value": words}}},
    ]
    world.answers = [YES]
    async with world.client(mode) as client:
        await client.call_tool("plan_run", {"plan": {**SENDING, "goal": words, "steps": steps}})
    [question] = world.questions
    assert question.count("Post-send") == 2
    assert question.count("blah") < 2_200  # the argument is whole


async def test_a_held_run_says_the_command_that_continues_it_with_this_configuration(world: World) -> None:
    world.options = {"resume": "portico --config x.toml resume"}
    async with world.client("auto", asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        run = held.structured_content["run"]
        again = await client.call_tool("run_resume", {"run": run, "retry": ["s1"]})
    assert all(f"`portico --config x.toml resume {run}`" in text_of(each) for each in (held, again))


async def test_a_client_reads_what_a_plan_looks_like(world: World) -> None:
    async with world.client("auto") as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    for name in ("plan_check", "plan_show", "plan_run"):
        plan = tools[name]["properties"]["plan"]
        assert plan["properties"]["steps"]["items"]["required"] == ["id", "function"]


async def test_a_step_of_a_saved_plan_that_failed_is_told(world: World) -> None:
    world.post.fails = True
    told: list[str | None] = []

    async def take(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with world.client("auto") as client:
        await client.call_tool("greet", {}, progress_callback=take)
    assert told == ["a began: Post-send", "a failed"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_server_hides_is_hidden_from_its_clients_alone(world: World, mode: str) -> None:
    world.options = {"exclude": ["Post-send"]}
    world.planner._script = (Answer("none"), Answer("none"))
    async with world.client(mode) as client:
        await client.call_tool("plan_propose", {"goal": "Send"})
        await world.kernel.run_goal("Send")
    seen = [{spec.name for spec in task.functions} for task in world.planner.tasks]
    assert ["Post-send" in names for names in seen] == [False, True]


@pytest.mark.parametrize("mode", MODES)
async def test_findings_on_a_proposal_are_those_of_a_check_and_name_nothing_that_is_left_out(
    world: World, mode: str
) -> None:
    world.kernel.template_languages["handlebars"] = HandlebarsTemplates()
    world.options = {"exclude": ["Post-send", "Post-find"]}
    near = Plan("Near", (Step("s1", "Post-sent", {}),))
    template = Plan("T", (Step("t", PlanTemplate("{{#find}}{{/find}}", "handlebars"), {"text": Value("x")}),))
    for plan in (near, template):
        world.planner._script = (plan,)
        async with world.client(mode) as client:
            proposed = (await client.call_tool("plan_propose", {"goal": "Go"})).structured_content
            checked = (await client.call_tool("plan_check", {"plan": proposed["plan"]})).structured_content
            ran = await client.call_tool("plan_run", {"plan": proposed["plan"]})
        assert proposed["findings"] == checked["findings"] == ran.structured_content["findings"] != []
        assert not checked["ok"]
        assert not {"Post-send", "Post-find"} & {*re.findall(r"[\w-]+", json.dumps(checked))}


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_function_in_a_template_is_said_without_what_is_left_out(world: World, mode: str) -> None:
    world.kernel.template_languages["secretive"] = Secretive()
    world.options = {"exclude": ["Post-send", "Post-shout"]}
    step = {"id": "t", "function": {"template": "Post-sent", "language": "secretive"}}
    async with world.client(mode) as client:
        failed = await client.call_tool("plan_run", {"plan": {"version": 1, "goal": "g", "steps": [step]}})
    assert failed.is_error
    assert "no function 'Post-sent'" in text_of(failed)
    assert "Post-send" not in text_of(failed)


@pytest.mark.parametrize("mode", MODES)
async def test_the_steps_inside_of_a_saved_plan_are_counted_and_told_without_what_is_left_out(
    world: World, mode: str
) -> None:
    async def twice() -> str:
        return "".join([str(await world.kernel.invoke("greet")) for _ in range(2)])

    world.kernel.add_function(Function("twice", twice, returns=ANY))
    steps = (Step("s1", "Post-send", {"letter": Value("x")}), Step("s2", "twice", after=("s1",)))
    world.kernel.add_function(plan_function("outer", Plan("Outer", steps, result=From("s2"))))
    world.options, world.answers = {"exclude": ["Post-send"]}, [YES]
    told: list[tuple[float, float | None, str | None]] = []

    async def take(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with world.client(mode) as client:
        await client.call_tool("outer", {}, progress_callback=take)
        ran = await client.call_tool("plan_run", {"plan": plan_to_json(CALLING)})
    assert told == [(1, 4, "s1 began"), (2, 4, "s1 ended"), (3, 4, "s2 began: twice"), (4, 4, "s2 ended")]
    assert "Post-send" not in str(ran)


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_that_called_what_is_left_out_is_no_resource(world: World, mode: str) -> None:
    async def describe(run: str, *, details: bool) -> Mapping[str, Any]:
        assert world.store is not None
        return run_to_json(await read_run(world.store, run), details=details)

    world.describe = describe  # type: ignore[method-assign]
    await world.kernel.run_plan(Plan("Loud", (Step("s1", "Post-shout", {"text": Value("x")}),)), run="loud")
    await world.kernel.run_plan(CALLING, run="called")
    world.options = {"exclude": ["Post-send"]}
    async with world.client(mode) as client:
        assert [each.name for each in (await client.list_resources()).resources] == ["loud"]
        await client.read_resource("portico://runs/loud")
        with pytest.raises(MCPError, match="There is no resource"):
            await client.read_resource("portico://runs/called")


@pytest.mark.parametrize("mode", MODES)
async def test_a_held_run_names_run_resume_only_where_that_can_continue_it(world: World, mode: str) -> None:
    world.kernel.template_languages["secretive"] = Secretive()
    step = {"id": "t", "function": {"template": "Post-find", "language": "secretive"}}
    plan = {"version": 1, "goal": "g", "steps": [{**step, "arguments": {"text": {"value": "x"}}}]}
    for exclude, sent, said in (
        (["Post-find"], SENDING, True),
        (["Post-find"], plan, False),
        (["run_resume"], SENDING, False),
    ):
        world.options = {"exclude": exclude}
        async with world.client(mode, asks=False) as client:
            held = await client.call_tool("plan_run", {"plan": sent})
        assert held.structured_content["outcome"] == "held"
        assert "portico resume" in text_of(held)
        assert ("run_resume" in text_of(held)) is said
        world.kernel.middleware.plan.clear()
        world.kernel.middleware.step.clear()


async def test_an_approval_counts_for_the_same_arguments_in_another_order(world: World) -> None:
    async with world.client("auto") as client:
        asked = await client.session.call_tool(
            "plan_run", {"plan": SENDING, "input": {"a": 1, "b": 2}}, allow_input_required=True
        )
        assert isinstance(asked, InputRequiredResult)
        ran = await client.session.call_tool(
            "plan_run",
            {"input": {"b": 2, "a": 1}, "plan": dict(reversed(SENDING.items()))},
            input_responses=dict.fromkeys(asked.input_requests or {}, YES),
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert not isinstance(ran, InputRequiredResult)
    assert world.post.sent == ["HELLO"]


async def test_the_user_reads_the_input_in_its_own_letters_and_sees_what_is_hidden_in_it(world: World) -> None:
    world.answers = [YES]
    async with world.client("auto") as client:
        await client.call_tool("plan_run", {"plan": SENDING, "input": "Zürich\u202e\x1b[31m"})
    assert 'Input: "Zürich\\u202e\\u001b[31m"' in world.questions[0]
