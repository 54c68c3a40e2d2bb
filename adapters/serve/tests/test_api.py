"""The API of runs: what it shows, and what it says of requests that cannot be meant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.desks import Client, plan, step, workshop

from portico_serve._inputs import Fields, InputInvalid
from portico_serve._runs.traces import spans_of_file, spans_of_journal

SEARCH = {"id": "s1", "function": "shelf-GetTextSearchResults", "arguments": {"query": {"value": "ports"}}}


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def test_the_server_says_what_it_has(client: Client) -> None:
    about = await client.get("/about")

    assert [each["name"] for each in about["sources"]] == ["shelf"]
    assert (about["planner"], about["workers"]) == ("obedient", False)
    assert about["chat"] == {"name": "parrot", "language_model": True}
    assert {"obedient", "retrieval"} <= set(about["planners"])
    plugins = await client.get("/plugins")
    assert "portico-workshop" in [each["distribution"] for each in plugins["packages"]]
    assert {each["state"] for each in plugins["checks"]} <= {"ok", "warn", "fail"}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "goal is missing"),
        ({"goal": "  "}, 422, "goal is missing"),
        ({"goal": 7}, 422, "goal is a text, not a whole number"),
        ({"goal": "x" * 70_000}, 422, "too long"),
        ({"goal": "x", "mode": 1}, 422, "'mode' is no member"),
        ({"goal": "x", "sources": "shelf"}, 422, "sources is a list"),
        ({"goal": "x", "sources": [1]}, 422, "list of texts"),
        ({"goal": "x", "sources": ["attic"]}, 422, "no source 'attic'"),
        ({"goal": "x", "planner": "missing"}, 422, "missing"),
        ({"goal": "x", "approve": "never"}, 422, "effects, always"),
        ([], 422, "JSON object, not a list"),
    ],
)
async def test_a_goal_that_cannot_be_meant_is_refused_with_a_sentence(
    client: Client, body: Any, status: int, words: str
) -> None:
    answer = await client.http.post("/api/runs", json=body)

    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    assert (await client.get("/runs"))["runs"] == []


async def test_a_body_that_is_no_json_is_refused(client: Client) -> None:
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        answer = await client.http.post("/api/runs", content=content)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "NotJson")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(body=_JSON | st.dictionaries(st.sampled_from(["goal", "sources", "number", "on"]), _JSON))
def test_fields_are_of_their_type_or_refused_with_a_sentence(body: Any) -> None:
    try:
        fields = Fields(body, "goal", "sources", "number", "on")
        assert fields.text("goal").strip()
        assert all(isinstance(each, str) for each in fields.names("sources") or ())
        assert isinstance(fields.take("number", int, 0), int)
    except InputInvalid as error:
        assert str(error).endswith(".")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(bodies=st.lists(_JSON, min_size=5, max_size=5))
async def test_no_body_makes_the_server_fall_over(client: Client, bodies: list[Any]) -> None:
    paths = ("/plans/check", "/runs/x/approve", "/runs/x/resume", "/chats/x/messages", "/chats/x/answers")
    for path, body in zip(paths, bodies, strict=True):
        content = json.dumps(body).encode()
        for sent in (content, json.dumps({"plan": body, "run": None}).encode()):
            answer = await client.http.post(f"/api{path}", content=sent)
            assert answer.status_code in (200, 404, 409, 422), answer.text


async def test_runs_are_listed_from_the_newest_on_and_found_again(client: Client) -> None:
    names = [await client.start(plan(step("s1", "tools-shout", text=f"word{n}")), answer=f"{n}") for n in range(5)]
    for name in names:
        await client.until(name, "done")

    first = await client.get("/runs", limit=2)
    second = await client.get("/runs", limit=2, before=first["runs"][-1]["run"])
    last = await client.get("/runs", limit=2, before=second["next"])

    listed = [each["run"] for page in (first, second, last) for each in page["runs"]]
    assert (listed, last["more"]) == (names[::-1], False)
    assert first["runs"][0]["cost"] == 0.5
    assert [each["run"] for each in (await client.get("/runs", query="WORD3"))["runs"]] == [names[3]]
    assert (await client.get("/runs", state="held"))["runs"] == []
    await client.get("/runs", 422, state="lost")
    await client.get("/runs", 422, limit="many")
    await client.get("/runs", 422, limit=0)


async def test_a_run_is_found_by_its_exact_name_alone(client: Client) -> None:
    run = await client.start()
    await client.until(run, "done")

    await client.get(f"/runs/{run[:-1]}", 404)
    await client.get("/runs/last", 404)
    await client.get(f"/runs/{run}/steps/s7", 404)
    await client.get(f"/runs/{run}/passages/1", 404)


async def test_a_name_that_an_application_gave_may_have_any_sign(client: Client) -> None:
    run = "order/17 & é?"
    goal = json.dumps({"plans": [plan(step("s1", "tools-shout", text="hey"), result="s1")]})
    await client.desk.kernel.run_goal(goal, run=run)
    path = f"/runs/{quote(run, safe='')}"

    assert (await client.get(path))["answer"] == "HEY"
    assert (await client.get(f"{path}/steps/s1"))["result"] == "HEY"
    assert (await client.get(f"{path}/trace"))["spans"]
    async with client.events(path) as events:
        assert (await anext(events))[1]["run"] == run
    await client.post(f"{path}/cancel", 409)


async def test_a_step_has_its_values_cut_where_they_are_large(client: Client) -> None:
    large = step("s1", "tools-repeat", text="ab", times=200_000)
    run = await client.start(plan(large, step("s2", "tools-shout", text="hey")))
    await client.until(run, "done")

    found, small = await client.get(f"/runs/{run}/steps/s1"), await client.get(f"/runs/{run}/steps/s2")

    assert (len(found["result"]), found["cut"], found["state"], found["attempts"]) == (200_000, True, "done", 1)
    assert found["arguments"] == {"text": "ab", "times": 200_000}
    assert (small["result"], small["cut"]) == ("HEY", False)


async def test_the_graph_has_the_steps_the_input_and_the_result_by_level(client: Client) -> None:
    given = {"goal": "", "input": {"type": "object"}, "version": 2}
    steps = [
        step("a", "tools-shout", text={"from": "input", "path": "$.word"}),
        {**step("b", "tools-send", text={"from": "item"}), "each": {"items": {"list": [{"from": "a"}]}}},
        {**step("c", "tools-number", after=["b"]), "when": {"present": {"from": "a"}}},
    ]

    checked = await client.post("/plans/check", 200, {"plan": {**given, **plan(*steps, result="c")}})

    nodes = {each["id"]: each for each in checked["graph"]["nodes"]}
    assert {id: each["level"] for id, each in nodes.items()} == {"input": 0, "a": 1, "b": 2, "c": 3, "result": 4}
    assert [id for id, each in nodes.items() if each["effects"]] == ["b"]
    assert ([nodes["b"]["each"], nodes["c"]["when"]]) == [True, True]
    assert ["a", "c"] in checked["graph"]["edges"]
    assert checked["findings"] == []


async def test_a_plan_that_goes_in_a_circle_is_drawn_with_what_is_wrong(client: Client) -> None:
    steps = [step("a", "tools-shout", text={"from": "b"}), step("b", "tools-shout", text={"from": "a"})]

    checked = await client.post("/plans/check", 200, {"plan": {"version": 1, "goal": "", **plan(*steps)}})

    assert checked["findings"]
    assert sorted(checked["graph"]["edges"]) == [["a", "b"], ["b", "a"]]


async def test_a_citation_leads_to_its_passage_with_the_words_that_it_rests_on(client: Client) -> None:
    written = [
        (1, "ports.md", "file:///docs/ports.md#L3", "Ports are protocols. Adapters fill them."),
        (2, "plans.pdf", "file:///docs/plans.pdf#page=2", "They are checked first."),
        (3, "bad", "javascript:alert(1)", "x"),
    ]
    cited = [dict(zip(("number", "name", "link", "quote"), each, strict=True)) for each in written]
    answer = "It is so: Ports are protocols. [1]\n\n> Ports are protocols. [1]\n\nThey are looked at [2]."
    run = await client.start(plan(SEARCH), answer=answer, citations=cited)
    found = await client.until(run, "done")

    first, second = [await client.get(f"/runs/{run}/passages/{number}") for number in (1, 2)]

    assert first["text"] == "Ports are protocols. Adapters fill them."
    assert (first["quote"], first["line"], first["page"]) == ("Ports are protocols.", 3, None)
    assert second["text"] == "Plans are data. They are checked first."
    assert (second["quote"], second["line"], second["page"]) == ("They are checked first.", None, 2)
    assert [each["link"] for each in found["citations"]][2] is None


async def test_only_the_chosen_sources_are_searched(client: Client) -> None:
    asked = json.dumps({"plans": [plan(SEARCH)]})
    started = await client.post("/runs", 201, {"goal": asked, "sources": []})

    found = await client.until(started["run"], "failed", "infeasible", "done")

    assert found["proposals"][0]["state"] == "refused"
    assert "shelf" in found["proposals"][0]["findings"][0]["message"]


async def test_the_trace_of_a_run_has_its_proposal_and_its_steps(client: Client) -> None:
    run = await client.start(plan(step("s1", "tools-shout", text="a"), step("s2", "tools-shout", text={"from": "s1"})))
    await client.until(run, "done")

    spans = {each["id"]: each for each in (await client.get(f"/runs/{run}/trace"))["spans"]}

    assert list(spans) == ["run", "proposal:1", "s1", "s2"]
    assert {each["status"] for each in spans.values()} == {"ok"}
    assert spans["s1"]["parent"] == "run"
    assert spans["s1"]["start"] <= spans["s1"]["end"] <= spans["s2"]["start"] <= spans["run"]["end"]


def test_each_attempt_of_a_step_has_a_span() -> None:
    entries = [
        {"type": "pursuit", "at": "1", "goal": "Do", "planner": "plan"},
        {"type": "plan", "at": "2", "plan": {"steps": [{"id": "s1"}]}},
        {"type": "step-started", "at": "3", "step": "s1"},
        {"type": "step-retried", "at": "4", "step": "s1", "attempt": 2, "error": "cut"},
        {"type": "step-finished", "at": "6", "step": "s1", "result": 1},
        {"type": "outcome", "at": "7", "kind": "answer", "text": ""},
    ]

    spans = {each["id"]: (each["start"], each["end"], each["status"]) for each in spans_of_journal(entries)}

    assert spans["s1"] == ("3", "6", "ok")
    assert (spans["s1#1"], spans["s1#2"]) == (("3", "4", "error"), ("4", "6", "ok"))


def test_the_spans_of_a_run_are_those_of_its_traces_in_the_file(tmp_path: Path) -> None:
    def line(trace: str, span: str, parent: str = "", **attributes: str) -> str:
        made: dict[str, Any] = {"traceId": trace, "spanId": span, "name": span, "startTimeUnixNano": "1", "status": {}}
        made |= {"endTimeUnixNano": "2000000000", "parentSpanId": parent or None}
        made["attributes"] = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [made]}]}]})

    file = tmp_path / "trace.jsonl"
    named = {"portico.run": "r1"}
    lines = [line("t1", "chat", "run"), line("t1", "run", **named), line("t2", "x", **{"portico.run": "r2"}), "{", "[]"]
    file.write_text("\n".join(lines))

    spans = spans_of_file(file, "r1")

    assert sorted(each["id"] for each in spans) == ["chat", "run"]
    assert {each["end"] for each in spans} == {"1970-01-01T00:00:02.000000+00:00"}


async def test_half_of_a_character_is_shown_and_comes_back(client: Client) -> None:
    run = await client.start(plan(step("s1", "tools-shout", text="\ud800"), result="s1"))
    found = await client.until(run, "done")
    assert found["answer"] == "\ud800"
    assert found["plan"]["steps"][0]["arguments"] == {"text": {"value": "\ud800"}}
    assert (await client.get(f"/runs/{run}/steps/s1"))["result"] == "\ud800"
    async with client.events(f"/runs/{run}") as events:
        assert (await anext(events))[1]["answer"] == "\ud800"


async def test_numbers_of_many_digits_are_refused(client: Client) -> None:
    await client.get("/runs", 422, limit="0000010000000")
    await client.get(f"/runs/x/passages/{'9' * 3_000}", 404)
