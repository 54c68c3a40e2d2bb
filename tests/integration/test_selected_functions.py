"""Three hundred functions, eight of them offered: in turns and by planners, by two words of the configuration.

Everything is real but the model: the file, an OpenAPI document and its server, wordllama, FAISS, the OpenAI adapter,
HTTP. A server on loopback says what the model says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from tests.support.replayed_model import ReplayedModel, Saying

import portico_host
from portico import FunctionsOffered, ToolCall, ToolChoice, ToolFinished
from portico.plans import Answer, Infeasible, RunEvent

VERBS = (
    "refund", "cancel", "ship", "track", "archive", "print", "rename", "share", "approve", "reject", "merge", "export",
    "import", "schedule", "delete",
)  # fmt: skip
NOUNS = (
    "order", "invoice", "parcel", "customer", "contract", "ticket", "photo", "recipe", "lecture", "playlist", "flight",
    "hotel", "garden", "patient", "ballot", "vehicle", "library", "painting", "telescope", "vineyard",
)  # fmt: skip
GOAL = "Refund the order with number 7."
WANTED = "shop-refund_order"
OFFERED = 8


def document(server: str) -> dict[str, Any]:
    """Return an OpenAPI document of 300 operations."""
    number = {"name": "number", "in": "query", "required": True, "schema": {"type": "integer"}}
    done = {"200": {"description": "Done", "content": {"application/json": {"schema": {"type": "string"}}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": server}],
        "paths": {
            f"/{noun}/{verb}": {
                "get": {
                    "operationId": f"{verb}_{noun}",
                    "summary": f"{verb.capitalize()} the {noun} of this number.",
                    "parameters": [number],
                    "responses": done,
                }
            }
            for noun in NOUNS
            for verb in VERBS
        },
    }


@pytest.fixture
def shop(httpserver: HTTPServer) -> Iterator[str]:
    """Serve the one operation that the goal needs, and return the address."""
    httpserver.expect_request("/shop/order/refund", query_string={"number": "7"}).respond_with_json("refunded")
    yield httpserver.url_for("/shop")
    httpserver.check_assertions()


@pytest.fixture
def application(tmp_path: Path, shop: str, model: ReplayedModel) -> Callable[..., Path]:
    """Return what writes the configuration."""
    (tmp_path / "shop.json").write_text(json.dumps(document(shop)))

    def write(selection: str = f'select = "contextual"\nmax = {OFFERED}', planner: str = "retrieval") -> Path:
        file = tmp_path / "portico.toml"
        file.write_text(f"""{model.configuration}
[vectors]
use = "faiss"
[vectors.faiss]
path = "vectors"

[functions]
{selection}
[functions.shop]
use = "openapi"
document = "shop.json"

[planner]
use = "{planner}"
""")
        return file

    return write


REFUND = ToolCall("call-1", WANTED, '{"number": 7}')


def told_in(request: dict[str, Any]) -> set[str]:
    """Return the operations that a request names anywhere, in its prompt, its tools or its schema."""
    text = json.dumps({**request, "messages": [each for each in request["messages"] if each["role"] != "assistant"]})
    return {f"{verb}_{noun}" for verb in VERBS for noun in NOUNS if f"{verb}_{noun}" in text}


async def test_a_turn_offers_eight_of_three_hundred_and_the_right_one_is_called(
    application: Callable[..., Path], model: ReplayedModel
) -> None:
    model.sayings = [REFUND, "It is refunded."]
    async with portico_host.open(application()) as kernel:
        assert len(kernel.functions) == len(VERBS) * len(NOUNS) == 300
        events: list[Any] = [event async for event in kernel.stream(GOAL, tool_choice="auto")]
    turn = events[-1]
    assert turn.value == "It is refunded."
    offered = next(event for event in events if isinstance(event, FunctionsOffered))
    assert offered.selection is turn.selection
    assert turn.selection.considered == 300
    assert turn.selection.names[0] == WANTED
    assert len(turn.selection.names) == OFFERED
    assert sorted(model.offered(0)) == sorted(turn.selection.names)
    assert len(model.asked[0]["tools"]) == OFFERED
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.result.content == "refunded"


async def test_what_is_always_offered_comes_besides_and_what_is_included_comes_alone(
    application: Callable[..., Path], model: ReplayedModel
) -> None:
    model.sayings = ["Fine.", "Fine."]
    file = application('select = "contextual"\nmax = 3\nalways = ["shop-track_telescope"]')
    async with portico_host.open(file) as kernel:
        turn = await kernel.complete(GOAL, tool_choice="auto")
        assert turn.selection is not None
        assert turn.selection.names[0] == "shop-track_telescope"
        assert WANTED in turn.selection.names
        assert len(turn.selection.names) == 4
        only = await kernel.complete(GOAL, tool_choice=ToolChoice(include=("shop-ship_parcel",)))
        assert only.selection is None
    assert model.offered(1) == ["shop-ship_parcel"]


SAYINGS: dict[str, list[Saying]] = {
    "stepwise": [
        json.dumps({"thought": "It is asked for.", "action": action})
        for action in ({"function": WANTED, "arguments": {"number": 7}}, {"final": "refunded"})
    ],
    "handlebars": ['```handlebars\n{{set "done" (shop-refund_order number=7)}}\n{{json done}}\n```'],
    "function_calling": [REFUND, "refunded"],
    "sequential": ['<plan><function.shop.refund_order number="7" appendToResult="RESULT__R"/></plan>'],
    "structured": [
        json.dumps({"next": each})
        for each in (
            {"function": WANTED, "reason": "It is asked for.", "arguments": {"number": {"value": 7}}},
            {"function": "finish", "result": {"from": "s1", "path": "$"}},
        )
    ],
}


@pytest.mark.parametrize("planner", SAYINGS)
async def test_a_planner_that_asks_a_model_tells_it_of_eight(
    application: Callable[..., Path], model: ReplayedModel, planner: str
) -> None:
    model.sayings = SAYINGS[planner]
    events: list[RunEvent] = []
    async with portico_host.open(application(planner=planner)) as kernel:
        run = await kernel.run_goal(GOAL, emit=events.append)
    assert isinstance(run.outcome, Answer), run.outcome
    assert run.outcome.text.strip() == "refunded"
    called = [record.step.function for record in run.steps if isinstance(record.step.function, str)]
    assert called == [WANTED]
    (offered,) = [event for event in events if isinstance(event, FunctionsOffered)]
    assert offered.selection is run.selection
    told = {name.removeprefix("shop-") for name in offered.selection.names}
    assert len(told) == OFFERED
    for request in model.asked:
        assert told_in(request) == told


async def test_without_the_word_a_planner_tells_its_model_of_all(
    application: Callable[..., Path], model: ReplayedModel
) -> None:
    model.sayings = SAYINGS["sequential"]
    async with portico_host.open(application("", planner="sequential")) as kernel:
        assert kernel.function_selector is None
        run = await kernel.run_goal(GOAL)
    assert run.selection is None
    assert len(told_in(model.asked[0])) > 100


async def test_a_goal_that_cannot_be_reached_says_how_little_the_model_knew(
    application: Callable[..., Path], model: ReplayedModel
) -> None:
    model.sayings = ["<plan/>"]
    async with portico_host.open(application(planner="sequential")) as kernel:
        run = await kernel.run_goal(GOAL)
    assert isinstance(run.outcome, Infeasible)
    assert "Of 300 functions the function selector 'contextual' chose 8 for the goal" in run.outcome.reason


async def test_the_next_process_finds_the_vectors_and_chooses_the_same(
    application: Callable[..., Path], model: ReplayedModel
) -> None:
    model.sayings = ["Fine."] * 2
    chosen = []
    for _ in range(2):
        async with portico_host.open(application()) as kernel:
            turn = await kernel.complete("Where is the parcel just now?", tool_choice="auto")
            assert turn.selection is not None
            chosen.append(turn.selection)
    assert chosen[0].offered == chosen[1].offered
    assert (chosen[0].embedded, chosen[1].embedded) == (300, 0)
