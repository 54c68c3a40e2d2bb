"""The pages as a browser gets them: what they show, and what their forms do."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.support.desks import PATIENCE, plan, step
from tests.support.guarded import Served

from portico_serve._pages import routes

SEND = plan(step("s1", "tools-shout", text="hey"), step("s2", "tools-send", text={"from": "s1"}), result="s2")
SHOUT = plan(step("s1", "tools-shout", text="hey"), result="s1")
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def page(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served.browser() as client:
        yield client


def goal_of(*plans: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"plans": plans, **more})


async def begin(page: httpx.AsyncClient, goal: str, place: str = "/", **form: Any) -> str:
    """Send a question by its form, and return the path of its run."""
    response = await page.post(place, data={"goal": goal, **form})
    assert response.status_code == 303, response.text
    return response.headers["location"]


async def until(page: httpx.AsyncClient, path: str, state: str) -> str:
    """Return the page of a run that has come to rest in a state."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await page.get(f"/api{path}")).json()
            if found["state"] == state and not found["here"]:
                return (await page.get(path)).text
            await asyncio.sleep(0.02)


async def show(page: httpx.AsyncClient, path: str) -> str:
    response = await page.get(path)
    assert response.status_code == 200, response.text
    return response.text


async def test_a_question_is_a_run_with_an_address(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(answer="It is **so**."), approve="effects")

    shown = await until(page, path, "done")

    assert path.startswith("/runs/")
    assert "It is <strong>so</strong>." in shown


async def test_a_form_sent_by_htmx_is_led_on_without_a_redirect(page: httpx.AsyncClient) -> None:
    response = await page.post("/", data={"goal": goal_of()}, headers={"HX-Request": "true"})

    assert response.status_code == 200
    assert response.headers["hx-redirect"].startswith("/runs/")


@pytest.mark.parametrize(
    "form",
    [{"goal": " "}, {"goal": "x", "input": "{"}, {"goal": "x", "planner": "none"}, {"goal": "x", "approve": "?"}],
)
async def test_a_question_that_cannot_be_asked_is_refused_with_the_reason(
    page: httpx.AsyncClient, served: Served, form: dict[str, str]
) -> None:
    whole = await page.post("/", data=form)
    part = await page.post("/", data=form, headers={"HX-Request": "true"})

    assert whole.status_code == part.status_code == 422
    assert "<html" in whole.text
    assert "<html" not in part.text
    assert 'role="alert"' in part.text
    assert await served.runs() == 0


async def test_only_the_sources_are_asked_that_were_chosen(page: httpx.AsyncClient, served: Served) -> None:
    search = plan(step("s1", "shelf-Search", query="ports"), result="s1")

    with_it = await begin(page, goal_of(search), chosen="1", source="shelf")
    without = await begin(page, goal_of(search), chosen="1")

    assert "refused by the check" not in await until(page, with_it, "done")
    assert "refused by the check" in await until(page, without, "done")


async def test_a_plan_page_holds_also_a_plan_without_effects(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SHOUT), "/plan", approve="always")

    shown = await until(page, path, "held")

    assert 'id="approve"' in shown
    assert "s1: tools-shout" in shown


async def test_a_plan_is_agreed_to_with_the_form_of_its_page(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SEND))
    await until(page, path, "held")

    response = await page.post(f"{path}/approve", data={"proposal": "1", "plan": ""})

    assert (response.status_code, response.headers["location"]) == (303, path)
    assert "sent HEY" in await until(page, path, "done")
    assert Path("sent.txt").read_text() == "HEY\n"


async def test_an_edited_plan_runs_in_its_place_and_a_wrong_one_is_refused_with_its_findings(
    page: httpx.AsyncClient,
) -> None:
    path = await begin(page, goal_of(SEND))
    await until(page, path, "held")
    edited = {"version": 1, "goal": "", **plan(step("s1", "tools-send", text="softly"), result="s1")}
    wrong = json.dumps(edited).replace("tools-send", "tools-sing")

    refused = await page.post(f"{path}/approve", data={"plan": wrong}, headers={"HX-Request": "true"})
    nonsense = await page.post(f"{path}/approve", data={"plan": "{"}, headers={"HX-Request": "true"})
    agreed = await page.post(f"{path}/approve", data={"plan": json.dumps(edited)}, headers={"HX-Request": "true"})

    assert (refused.status_code, nonsense.status_code, agreed.status_code) == (422, 422, 200)
    assert "tools-sing" in refused.text
    assert agreed.text == ""
    await until(page, path, "done")
    assert Path("sent.txt").read_text() == "softly\n"


@pytest.mark.parametrize("number", ["9" * 5_000, "-1", "²", "one"], ids=["long", "negative", "square", "words"])
async def test_a_proposal_that_is_no_number_is_refused(page: httpx.AsyncClient, number: str) -> None:
    path = await begin(page, goal_of(SEND))
    await until(page, path, "held")

    response = await page.post(f"{path}/approve", data={"proposal": number})

    assert response.status_code == 422
    assert "proposal" in response.text


async def test_a_refused_plan_is_proposed_anew_and_the_difference_is_shown(page: httpx.AsyncClient) -> None:
    other = plan(step("s1", "tools-shout", text="ho"), result="s1")
    path = await begin(page, goal_of(SEND, other), approve="always")
    await until(page, path, "held")

    await page.post(f"{path}/refuse", data={"reason": "Say <ho>.", "proposal": "1"})
    shown = unescape(await until(page, path, "held"))

    assert 'data-proposal="2"' in shown
    assert "Say <ho>." in shown
    assert re.search(r'class="removed">− .*text = "hey"', shown)
    assert re.search(r'class="added">\+ .*text = "ho"', shown)


async def test_a_refusal_needs_a_reason(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SEND))
    await until(page, path, "held")

    assert (await page.post(f"{path}/refuse", data={"reason": " "})).status_code == 422


async def test_a_failed_step_is_tried_again_from_its_page(page: httpx.AsyncClient) -> None:
    both = plan(step("s1", "tools-shout", text="a"), step("s2", "tools-fetch", text="news"), result="s2")
    first = await begin(page, goal_of(both))
    await until(page, first, "done")
    Path("broken").touch()
    path = (await page.post(f"{first}/replay")).headers["location"]
    shown = await until(page, path, "failed")
    assert 'name="retry" value="s2"' in shown
    Path("broken").unlink()

    await page.post(f"{path}/resume", data={"retry": "s2"})

    assert "news" in await until(page, path, "done")


async def test_a_run_is_cancelled_and_resumed_from_its_page(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(plan(step("s1", "tools-wait", text="late"), result="s1")))
    async with asyncio.timeout(PATIENCE):
        while not Path("begun.txt").exists():
            await asyncio.sleep(0.02)
    assert 'id="cancel"' in await show(page, path)

    await page.post(f"{path}/cancel")
    assert 'id="resume"' in await until(page, path, "interrupted")
    Path("on").touch()
    await page.post(f"{path}/resume")

    assert "late" in await until(page, path, "done")


async def test_a_run_with_its_answer_is_run_again_as_a_new_one(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SHOUT))
    assert 'id="replay"' in await until(page, path, "done")

    again = await page.post(f"{path}/replay")

    assert again.headers["location"] != path
    assert "HEY" in await until(page, again.headers["location"], "done")


async def test_a_decision_that_comes_too_late_is_refused_with_the_reason(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SHOUT))
    await until(page, path, "done")

    response = await page.post(f"{path}/approve", headers={"HX-Request": "true"})

    assert response.status_code == 409
    assert "done" in response.text


async def test_a_step_is_shown_with_its_arguments_and_its_result(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(plan(step("s1", "tools-shout", text=HOSTILE), result="s1")))
    await until(page, path, "done")

    shown = await show(page, f"{path}/steps/s1")

    assert HOSTILE not in shown
    assert HOSTILE in unescape(shown)
    assert HOSTILE.upper() in unescape(shown)
    assert (await page.get(f"{path}/steps/s9")).status_code == 404


async def test_a_citation_opens_its_passage_with_the_words_marked(page: httpx.AsyncClient) -> None:
    cited = {"number": 1, "name": "ports.md", "link": "file:///docs/ports.md#L3", "quote": "Adapters fill them."}
    search = plan(step("s1", "shelf-GetTextSearchResults", query="ports"))
    path = await begin(page, goal_of(search, answer="Adapters fill ports [1].", citations=[cited]))
    shown = await until(page, path, "done")
    address = f"{path}/passages/1"
    assert f'href="{address}"' in shown

    whole = await show(page, address)
    part = await page.get(address, headers={"HX-Request": "true"})

    assert "Ports are protocols. <mark>Adapters fill them.</mark>" in part.text
    assert "line 3" in part.text
    assert part.text.strip() in whole
    assert (await page.get(f"{path}/passages/2")).status_code == 404


async def test_nothing_that_a_model_or_a_document_says_becomes_markup(page: httpx.AsyncClient) -> None:
    cited = {"number": 1, "name": HOSTILE, "link": "javascript:alert(1)", "quote": HOSTILE}
    said = f"{HOSTILE} [1] [x](javascript:alert(2)) ![y](https://tracker.example/p.png)"
    hostile = plan({**step("s1", "tools-shout", text=HOSTILE), "reason": HOSTILE})
    path = await begin(page, goal_of(hostile, answer=said, citations=[cited], title=HOSTILE))
    await until(page, path, "done")

    pages = ["/", "/runs", path, f"{path}/steps/s1", f"{path}/passages/1", f"{path}/trace"]

    for each in pages:
        shown = await show(page, each)
        assert "<img" not in shown, each
        assert not re.search(r'(?:href|src|action)="\s*(?:javascript|data):', shown), each
        assert "tracker.example" not in re.findall(r'src="([^"]*)"', shown)


async def test_runs_are_found_by_words_and_state_and_page_by_page(
    page: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_A_PAGE", 2)
    for number in range(3):
        await until(page, await begin(page, goal_of(answer="x", title=f"goal-{number}")), "done")
    await until(page, await begin(page, "only words"), "infeasible")

    first = await page.get("/runs", headers={"HX-Request": "true"})
    more = unescape(re.findall(r'id="more" href="([^"]+)"', first.text)[0])
    second = await page.get(more, headers={"HX-Request": "true"})

    assert "<html" not in first.text
    assert [text.count("data-run=") for text in (first.text, second.text)] == [2, 2]
    assert "<table" not in second.text
    assert (await show(page, "/runs?query=goal-1")).count("data-run=") == 1
    assert (await show(page, "/runs?state=infeasible")).count("data-run=") == 1
    assert "No run matches" in await show(page, "/runs?query=nothing")


async def test_the_row_of_a_run_asks_again_only_while_it_is_at_work(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(plan(step("s1", "tools-wait", text="late"), result="s1")))
    at_work = await show(page, f"{path}/row")
    Path("on").touch()
    await until(page, path, "done")

    assert "hx-get" in at_work
    assert "hx-get" not in await show(page, f"{path}/row")


async def test_a_trace_has_a_bar_for_each_span_within_its_frame(page: httpx.AsyncClient) -> None:
    path = await begin(page, goal_of(SHOUT))
    await until(page, path, "done")

    shown = await show(page, f"{path}/trace")

    bars = re.findall(r'<rect x="([\d.]+)" y="0" width="([\d.]+)"', shown)
    assert len(bars) == shown.count("data-span=") >= 3
    assert all(float(x) >= 0 and float(x) + float(width) <= 1000.5 for x, width in bars)


async def test_a_conversation_begins_and_is_shown_with_what_was_said(page: httpx.AsyncClient) -> None:
    assert 'id="new-chat"' in await show(page, "/chat")
    path = (await page.post("/chat")).headers["location"]

    said = await page.post(path, data={"text": f"I say {HOSTILE}"})
    async with asyncio.timeout(PATIENCE):
        while (await page.get(f"/api{path.replace('chat', 'chats', 1)}")).json()["busy"]:
            await asyncio.sleep(0.02)

    shown = await show(page, path)
    assert said.headers["location"] == path
    assert shown.count('class="message"') == 2
    assert "You said: I say" in shown
    assert "<img" not in shown
    assert (await page.get(f"{path}/passages/1/1")).status_code == 404


async def test_a_question_of_the_agent_is_shown_where_it_arose(page: httpx.AsyncClient) -> None:
    path = (await page.post("/chat")).headers["location"]

    await page.post(path, data={"text": 'call tools-send {"text": "a letter"}'})
    async with asyncio.timeout(PATIENCE):
        while 'id="question"' not in (shown := await show(page, path)):
            await asyncio.sleep(0.02)

    assert "a letter" in shown
    assert [each in shown for each in ('data-answer="yes"', 'data-answer="no"', 'data-answer="always"')] == [True] * 3


async def test_plugins_are_listed_with_what_they_offer_and_how_they_fare(page: httpx.AsyncClient) -> None:
    listed, health = await show(page, "/plugins"), await show(page, "/plugins/health")

    assert "portico-workshop" in listed
    assert "obedient" in listed
    assert 'id="healthy"' in health


@pytest.mark.parametrize("path", ["/nothing", "/runs/none", "/chat/none", "/runs/none/trace", f"/runs/{quote('<b>')}"])
async def test_what_is_not_there_is_a_page_like_the_others(page: httpx.AsyncClient, path: str) -> None:
    response = await page.get(path)

    assert response.status_code == 404
    assert 'id="error"' in response.text
    assert 'aria-label="Pages"' in response.text
    assert "<b>" not in response.text


async def test_what_cannot_be_done_is_asked_again_in_full(page: httpx.AsyncClient) -> None:
    goal = "what is long " * 500 + "ends here"
    path = await begin(page, goal, "/plan", approve="always")
    shown = await until(page, path, "infeasible")

    again = re.search(r'id="ask-again" href="([^"]+)"', shown)

    assert again is not None
    assert again[1].startswith("/plan?")
    assert goal in unescape(await show(page, unescape(again[1])))


async def test_of_a_long_value_the_beginning_is_shown_as_a_value(page: httpx.AsyncClient) -> None:
    rows = [{"row": number} for number in range(20_000)]
    path = await begin(page, goal_of({**SHOUT, "result": {"value": rows}}))

    shown = unescape(await until(page, path, "done"))

    assert re.search(r'<pre class="value" id="answer-text"[^>]*>\[\s+{\s+"row": 0', shown)
    assert "only the beginning" in shown
