"""A kernel as a server: what a client of either revision of the protocol can do with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import ElicitResult, InputRequiredResult, InputResponses, ResourceLink
from tests.support.serving import MODES, READING, SENDING, YES, World, text_of

from portico import From, Function, Plan, Step, TextOf, Value, plan_function
from portico.plans import Answer, Infeasible
from portico.plugins import Compiled
from portico_mcp._client.wire import PARTS, value_of
from portico_templates.handlebars.language import HandlebarsTemplates


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("mode", MODES)
async def test_each_function_is_a_tool_that_says_whether_it_only_reads(world: World, mode: str) -> None:
    async with world.client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {
        *("Post-shout", "Post-measure", "Post-find", "Post-send"),
        *("zoo-Search", "zoo-GetTextSearchResults", "zoo-GetSearchResults"),
        *("plan_propose", "plan_check", "plan_show", "plan_run", "run_resume"),
    }
    assert tools["Post-shout"].input_schema == world.kernel.specs["Post-shout"].parameters
    assert tools["Post-shout"].description == "Say it louder."
    hints = {
        name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
        for name, tool in tools.items()
        if tool.annotations
    }
    assert {name for name, hint in hints.items() if hint == (False, True)} == {"Post-send", "plan_run", "run_resume"}
    assert all(hint in {(False, True), (True, False)} for hint in hints.values())


@pytest.mark.parametrize("mode", MODES)
async def test_a_result_is_structured_as_the_revision_of_the_client_can_hold_it(world: World, mode: str) -> None:
    async with world.client(mode) as client:
        typed = {tool.name for tool in (await client.list_tools()).tools if tool.output_schema is not None}
        measured = await client.call_tool("Post-measure", {"text": "abc"})
        shouted = await client.call_tool("Post-shout", {"text": "hey"})
        nothing = await client.call_tool("Post-find", {"text": ""})
    assert measured.structured_content == {"letters": 3} == json.loads(text_of(measured))
    assert text_of(shouted) == "HEY"
    assert shouted.structured_content == ("HEY" if mode == "auto" else None)
    assert (text_of(nothing), nothing.structured_content) == ("null", None)
    assert "Post-measure" in typed
    assert ("Post-shout" in typed) == (mode == "auto")
    # A result that may be null has no schema: the protocol cannot tell null from no result.
    assert "Post-find" not in typed


@pytest.mark.parametrize("mode", MODES)
async def test_a_search_gives_links_to_what_it_found(world: World, mode: str) -> None:
    async with world.client(mode) as client:
        found = await client.call_tool("zoo-GetTextSearchResults", {"query": "otters swim owls"})
    links = [(each.name, each.uri) for each in found.content if isinstance(each, ResourceLink)]
    assert links == [("Otters", "https://zoo.example/otters")]
    assert "Otters swim." in text_of(found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("Post-send", {"letter": "x"}, "The post office is closed."),
        ("Post-shout", {"txt": "x"}, "text: missing"),
        ("plan_run", {"plan": {"version": 1}}, "goal"),
        ("plan_run", {}, "plan: missing"),
        ("run_resume", {"run": "none"}, "none"),
    ],
)
async def test_a_failure_is_a_result_with_one_sentence(
    world: World, mode: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    world.post.fails = True
    async with world.client(mode) as client:
        failed = await client.call_tool(tool, arguments)
    assert failed.is_error
    assert words in text_of(failed)
    assert "Traceback" not in text_of(failed)


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_is_an_error_that_names_the_nearest(world: World, mode: str) -> None:
    async with world.client(mode) as client:
        with pytest.raises(MCPError, match=r"There is no tool 'Post-shuot'\. Nearest: Post-shout"):
            await client.call_tool("Post-shuot", {})


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_is_proposed_checked_shown_and_run(world: World, mode: str) -> None:
    made = Plan("Be loud", (Step("s1", "Post-shout", {"text": Value("hi")}),), result=From("s1"))
    world.planner._script = (made,)
    async with world.client(mode) as client:
        proposed = (await client.call_tool("plan_propose", {"goal": "Be loud"})).structured_content
        plan = proposed["plan"]
        checked = (await client.call_tool("plan_check", {"plan": plan})).structured_content
        shown = await client.call_tool("plan_show", {"plan": plan})
        drawn = await client.call_tool("plan_show", {"plan": plan, "format": "mermaid"})
        ran = (await client.call_tool("plan_run", {"plan": plan})).structured_content
    assert (proposed["outcome"], proposed["findings"]) == ("plan", [])
    assert checked == {"ok": True, "findings": []}
    assert "s1: Post-shout" in text_of(shown)
    assert text_of(drawn).startswith("flowchart")
    assert (ran["outcome"], ran["value"], ran["steps"]) == (
        "answer",
        "HI",
        [{"id": "s1", "function": "Post-shout", "result": "HI"}],
    )


@pytest.mark.parametrize("mode", MODES)
async def test_a_goal_that_cannot_be_reached_is_said(world: World, mode: str) -> None:
    world.planner._script = (Infeasible("nothing can fly", ("wings",)),)
    async with world.client(mode) as client:
        proposed = await client.call_tool("plan_propose", {"goal": "Fly"})
    assert proposed.structured_content == {"outcome": "infeasible", "reason": "nothing can fly", "missing": ["wings"]}


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_that_is_wrong_does_not_run(world: World, mode: str) -> None:
    wrong = {**SENDING, "steps": [*SENDING["steps"], {"id": "s3", "function": "Post-shuot"}]}
    async with world.client(mode) as client:
        checked = (await client.call_tool("plan_check", {"plan": wrong})).structured_content
        ran = await client.call_tool("plan_run", {"plan": wrong})
    assert not checked["ok"]
    assert checked["findings"][0]["step"] == "s3"
    assert ran.is_error
    assert "there is no function 'Post-shuot'" in text_of(ran)
    assert (world.post.sent, world.questions) == ([], [])


@pytest.mark.parametrize("mode", MODES)
async def test_the_user_reads_a_plan_with_effects_before_it_runs(world: World, mode: str) -> None:
    world.answers = [YES]
    async with world.client(mode) as client:
        ran = await client.call_tool("plan_run", {"plan": SENDING})
        quiet = await client.call_tool("plan_run", {"plan": READING})
    [question] = world.questions
    assert "2. s2: Post-send" in question
    assert ran.structured_content["value"] == "sent HELLO"
    assert quiet.structured_content["value"] == "HELLO"
    assert world.post.sent == ["HELLO"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "answer",
    [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept", content={"run": False}),
        ElicitResult(action="accept"),
    ],
)
async def test_a_plan_that_the_user_does_not_approve_does_not_run(
    world: World, mode: str, answer: ElicitResult
) -> None:
    world.answers = [answer]
    async with world.client(mode) as client:
        ran = await client.call_tool("plan_run", {"plan": SENDING})
    assert ran.is_error
    assert "did not approve" in text_of(ran)
    assert world.post.sent == []
    assert world.store is not None
    assert await world.store.runs() == []


async def test_an_approval_counts_for_the_plan_that_was_shown_alone(world: World) -> None:
    """A client that asks about one plan and comes back with another is asked about that."""
    other = {**SENDING, "goal": "Write to Bob"}
    async with world.client("auto") as client:
        asked = await client.session.call_tool("plan_run", {"plan": SENDING}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        answers: InputResponses = dict.fromkeys(asked.input_requests or {}, YES)
        swapped = await client.session.call_tool(
            "plan_run",
            {"plan": other},
            input_responses=answers,
            request_state=asked.request_state,
            allow_input_required=True,
        )
        # An answer to a question that was never put counts for nothing: the question is put.
        unasked = await client.session.call_tool(
            "plan_run", {"plan": SENDING}, input_responses=answers, allow_input_required=True
        )
    assert isinstance(swapped, InputRequiredResult)
    assert isinstance(unasked, InputRequiredResult)
    assert world.post.sent == []


async def test_an_approval_counts_once(world: World) -> None:
    """A client that sends the same answer again, as after a lost reply, is asked again."""
    async with world.client("auto") as client:
        asked = await client.session.call_tool("plan_run", {"plan": SENDING}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        answers: InputResponses = dict.fromkeys(asked.input_requests or {}, YES)
        ended = [
            await client.session.call_tool(
                "plan_run",
                {"plan": SENDING},
                input_responses=answers,
                request_state=asked.request_state,
                allow_input_required=True,
            )
            for _ in range(2)
        ]
    assert [isinstance(each, InputRequiredResult) for each in ended] == [False, True]
    assert world.post.sent == ["HELLO"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_template_may_call_waits_for_approval(mode: str) -> None:
    world = World(languages=(HandlebarsTemplates(),))
    step = {"id": "t", "function": {"template": "{{#send}}{{/send}}", "language": "handlebars"}}
    plan = {"version": 1, "goal": "Greet", "steps": [{**step, "arguments": {"letter": {"value": "hello"}}}]}
    async with world.client(mode, asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": plan})
    assert held.structured_content["outcome"] == "held"
    assert world.post.sent == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_gets_the_run_that_is_held(world: World, mode: str) -> None:
    async with world.client(mode, asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        run = held.structured_content["run"]
        still = await client.call_tool("run_resume", {"run": run})
    assert not held.is_error
    assert held.structured_content["outcome"] == still.structured_content["outcome"] == "held"
    assert f"portico resume {run}" in text_of(held)
    assert world.post.sent == []
    world.answers = [YES]
    world.kernel.middleware.plan.clear()
    async with world.client(mode) as client:
        resumed = await client.call_tool("run_resume", {"run": run})
    assert "2. s2: Post-send" in world.questions[0]
    assert resumed.structured_content["value"] == "sent HELLO"
    assert world.post.sent == ["HELLO"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_that_failed_is_resumed(world: World, mode: str) -> None:
    world.answers = [YES, YES]
    world.post.fails = True
    async with world.client(mode) as client:
        failed = await client.call_tool("plan_run", {"plan": SENDING})
        assert failed.is_error
        assert "The post office is closed." in text_of(failed)
        world.post.fails = False
        value = failed.structured_content
        resumed = await client.call_tool("run_resume", {"run": value["run"], "retry": [value["step"]]})
    assert resumed.structured_content["value"] == "sent HELLO"
    assert len(world.questions) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_the_user_sees_the_results_that_a_client_gives_before_they_are_taken(world: World, mode: str) -> None:
    async with world.client(mode, asks=False) as client:
        held = await client.call_tool("plan_run", {"plan": SENDING})
        arguments = {"run": held.structured_content["run"], "results": {"s1": "EVIL"}}
        unasked = await client.call_tool("run_resume", arguments)
    assert unasked.is_error
    world.answers = [ElicitResult(action="decline")]
    world.kernel.middleware.plan.clear()
    world.kernel.middleware.step.clear()
    async with world.client(mode) as client:
        refused = await client.call_tool("run_resume", arguments)
    assert refused.is_error
    assert "EVIL" in world.questions[0]
    assert world.post.sent == []


@pytest.mark.parametrize("mode", MODES)
async def test_each_plan_of_a_run_has_its_own_approval(world: World, mode: str) -> None:
    """What a planner proposes after an approved plan is another plan."""
    first, second = (
        Plan(goal, (Step(id, "Post-send", {"letter": Value(goal)}),)) for goal, id in (("a", "s1"), ("b", "s2"))
    )
    world.planner._script = (first, second, Answer("both are sent"))
    world.kernel.approve_plans()
    run = (await world.kernel.run_goal("Send two letters")).name
    world.kernel.middleware.plan.clear()
    world.answers = [YES, YES]
    async with world.client(mode) as client:
        held = await client.call_tool("run_resume", {"run": run})
        assert (held.structured_content["outcome"], world.post.sent) == ("held", ["a"])
        done = await client.call_tool("run_resume", {"run": run})
    assert (done.structured_content["answer"], world.post.sent) == ("both are sent", ["a", "b"])
    assert len(world.questions) == 2


async def cancel_plan_run(world: World, mode: str) -> None:
    """Cancel a call while its second step runs, and wait until that has ended."""
    world.post.waits = asyncio.Event()
    async with world.client(mode) as client:
        calling = asyncio.create_task(client.call_tool("plan_run", {"plan": SENDING}))
        await world.post.waits.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        while not world.post.ended:
            await asyncio.sleep(0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("asks", [True, False])
async def test_a_step_that_may_have_happened_runs_again_only_if_the_user_says_so(
    world: World, mode: str, asks: bool
) -> None:
    world.answers = [YES, YES, YES]
    await cancel_plan_run(world, mode)
    world.post.waits = None
    world.kernel.middleware.plan.clear()
    assert world.store is not None
    [run] = await world.store.runs()
    async with world.client(mode, asks=asks) as client:
        unsure = await client.call_tool("run_resume", {"run": run})
        again = await client.call_tool("run_resume", {"run": run, "retry": ["s2"]})
    assert unsure.structured_content["uncertain"] if asks else unsure.is_error
    assert again.is_error is not asks
    assert len(world.post.sent) == asks


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_ends_its_run(world: World, mode: str) -> None:
    world.answers = [YES]
    await cancel_plan_run(world, mode)
    assert world.store is not None
    [run] = await world.store.runs()
    assert (await world.store.read(run))[-1]["type"] in {"step-started", "interrupted"}
    assert not await world.store.held(run)
    assert world.post.sent == []


@pytest.mark.parametrize("mode", MODES)
async def test_the_steps_of_a_run_are_its_progress(world: World, mode: str) -> None:
    world.answers = [YES]
    told: list[tuple[float, float | None, str | None]] = []

    async def take(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with world.client(mode) as client:
        await client.call_tool("plan_run", {"plan": SENDING}, progress_callback=take)
    assert told == [
        (1, 4, "s1 began: Post-shout"),
        (2, 4, "s1 ended"),
        (3, 4, "s2 began: Post-send"),
        (4, 4, "s2 ended"),
    ]


@pytest.mark.parametrize("mode", MODES)
async def test_the_steps_of_a_saved_plan_are_its_progress(world: World, mode: str) -> None:
    steps = (
        Step("a", "Post-shout", {"text": Value("x")}),
        Step("b", Plan("inner", (Step("c", "Post-shout", {"text": Value("y")}),), result=From("c")), after=("a",)),
    )
    world.kernel.add_function(plan_function("twice", Plan("Twice", steps, result=From("b"))))
    told: list[str | None] = []

    async def take(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(told) + 1, 4)
        told.append(message)

    async with world.client(mode) as client:
        await client.call_tool("twice", {}, progress_callback=take)
    assert told == ["a began: Post-shout", "a ended", "b began", "b ended"]


@pytest.mark.parametrize("mode", MODES)
async def test_content_of_another_server_stays_what_it_is(world: World, mode: str) -> None:
    """A picture that a function of a server gives is a picture for the client, and no text."""
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "data": "aGk=", "media_type": "image/png"},
        {"type": "audio", "data": "aGk=", "media_type": "audio/wav"},
        {"type": "resource", "text": "inside", "uri": "a://b"},
        {"type": "resource", "data": "aGk=", "uri": "a://c"},
        {"type": "resource_link", "uri": "a://d", "name": "d"},
    ]
    returns = Compiled(PARTS, lambda value: value, lambda value: value)
    world.kernel.add_function(Function("draw", lambda: parts, returns=returns))
    world.kernel.add_function(Function("say", lambda: "words", returns=returns))
    async with world.client(mode) as client:
        tools = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        drawn, said = await client.call_tool("draw", {}), await client.call_tool("say", {})
    assert tools["draw"] is None
    assert value_of(drawn, returns, "draw") == [
        *parts[:4],
        {**parts[4], "media_type": "application/octet-stream"},
        parts[5],
    ]
    assert (drawn.structured_content, text_of(said)) == (None, "words")


@pytest.mark.parametrize("mode", MODES)
async def test_a_saved_plan_is_a_tool_and_its_effects_are_said_by_the_tool(world: World, mode: str) -> None:
    """A client asks its user about a tool that is no mere reading, so the plan of the application needs no more."""
    plan = Plan(
        "Greet",
        (Step("s1", "Post-send", {"letter": TextOf(("hi ", From("input", ("name",))))}),),
        result=From("s1"),
        input={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
    world.kernel.add_function(plan_function("greet", plan))
    world.answers = [YES]
    calling = {
        "version": 1,
        "goal": "g",
        "steps": [{"id": "a", "function": "greet", "arguments": {"name": {"value": "Bo"}}}],
    }
    async with world.client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        called = await client.call_tool("greet", {"name": "Ada"})
        assert world.questions == []
        await client.call_tool("plan_run", {"plan": calling})
        await client.call_tool("greet", {"name": "Cy"})
    assert tools["greet"].annotations is not None
    assert tools["greet"].annotations.destructive_hint
    assert text_of(called) == "sent hi Ada"
    assert world.post.sent == ["hi Ada", "hi Bo", "hi Cy"]
    assert len(world.questions) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_left_out_is_no_tool_and_no_step(world: World, mode: str) -> None:
    world.options = {"include": ["Post-*", "plan_run"], "exclude": ["*-send"]}
    world.answers = [YES]
    nested = {**READING, "steps": [{"id": "n", "function": SENDING}], "result": None}
    async with world.client(mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        ran = [
            await client.call_tool("plan_run", {"plan": plan})
            for plan in (SENDING, {**nested, "result": {"from": "n"}})
        ]
    assert tools == {"Post-shout", "Post-measure", "Post-find", "plan_run"}
    assert all(each.is_error and "no function 'Post-send'" in text_of(each) for each in ran)
    assert world.questions == []


@pytest.mark.parametrize("mode", MODES)
async def test_runs_are_resources(world: World, mode: str) -> None:
    assert world.store is not None
    for number in range(150):
        await world.kernel.run_plan(Plan(f"g{number}", result=Value(1)), run=f"r/{number:03}")
    async with world.client(mode) as client:
        templates = await client.list_resource_templates()
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        listed = [*first.resources, *second.resources]
        read = await client.read_resource(listed[0].uri)
        with pytest.raises(MCPError, match="There is no resource"):
            await client.read_resource("portico://runs/other")
    assert templates.resource_templates[0].uri_template == "portico://runs/{run}"
    assert second.next_cursor is None
    assert [each.name for each in listed] == [f"r/{number:03}" for number in reversed(range(150))]
    assert listed[0].uri == "portico://runs/r%2F149"
    assert json.loads(read.contents[0].text) == {"goal": "g149", "state": "done", "steps": 0}  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
async def test_without_a_journal_there_is_nothing_to_resume(mode: str) -> None:
    world = World(store=None)
    async with world.client(mode, asks=False) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        held = await client.call_tool("plan_run", {"plan": SENDING})
        runs = await client.list_resources()
    assert "run_resume" not in tools
    assert "No journal is kept" in text_of(held)
    assert runs.resources == []


async def test_calls_run_at_the_same_time_and_each_has_its_own_approval(world: World) -> None:
    """An approval of one call is no approval of another that runs meanwhile."""
    world.answers = [YES, ElicitResult(action="decline")] * 5
    async with world.client("legacy") as client:
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda number=number: client.call_tool("plan_run", {"plan": {**SENDING, "goal": f"g{number}"}})  # type: ignore[misc]
            for number in range(10)
        ]
        ran = await asyncio.gather(*(call() for call in calls))
    assert sorted(each.is_error for each in ran) == [False] * 5 + [True] * 5
    assert len(world.post.sent) == 5
