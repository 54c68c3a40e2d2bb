"""A person agrees to plans, edits and refuses them, and watches them run, whatever becomes of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.plans import LETTER, STEPS, TRIP
from tests.browser.serving import QUESTION, Server, eventually

pytestmark = pytest.mark.browser

GONE = (
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_CONNECTION_CLOSED",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "401",
)
"""What the console says where a server was killed, and where the next one does not know the session."""


def propose(page: Page, server: Server, goal: str = TRIP) -> None:
    """Have a plan proposed, and wait until it is shown."""
    page.goto(f"{server.url}/plan")
    page.get_by_label("Goal").fill(goal)
    page.locator("#options summary").click()
    page.get_by_label("Planner").select_option("pilot")
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("#approve")).to_be_visible()
    expect(page.locator("#graph")).to_be_visible()


def step_of(page: Page, step: str) -> Any:
    """Return where the graph shows a step."""
    return page.locator(f'#view-graph [data-step="{step}"]')


def state_of(page: Page, step: str, state: str) -> None:
    """Wait until the graph shows a step in a state."""
    expect(step_of(page, step)).to_have_attribute("data-state", state)


def ended(page: Page, state: str = "done") -> None:
    """Wait until the run is in a state, and the page has its scripts."""
    page.wait_for_load_state()
    expect(page.locator("#state")).to_have_attribute("data-state", state)


def test_a_plan_that_is_edited_is_checked_and_runs_through_a_kill_of_the_server(
    server: Server, visiting: Callable[..., Any]
) -> None:
    visit = visiting(server, allowed=GONE)
    page = visit.log_in()
    propose(page, server)
    assert server.calls() == {}, "nothing runs before a person agrees"
    page.locator("#edit").click()
    page.get_by_role("tab", name="JSON").click()
    editor = page.locator("#plan-json")
    whole = editor.input_value()
    editor.fill(whole.replace('"from": "choose"', '"from": "chose"', 1))
    expect(page.locator("#plan-findings")).to_contain_text("chose")
    expect(page.locator("#approve")).to_be_disabled()
    editor.fill(json.dumps({**json.loads(whole), "goal": "Book the ferry"}, indent=2).replace("300", "400"))
    expect(page.locator("#plan-findings")).not_to_contain_text("chose")

    server.gate("timetable", "forecast", "tide", "choose", "price")
    page.locator("#approve").click()
    for step in ("timetable", "forecast", "tide", "choose", "price"):
        state_of(page, step, "done")
    state_of(page, "seats", "running")
    before = server.calls()
    server.kill()
    server.gate("all")
    server.start()
    page.goto(server.address)
    page.goto(f"{server.url}/runs")
    page.get_by_role("link", name=re.compile("Book the")).first.click()
    ended(page, "interrupted")
    page.locator("#resume").click()
    ended(page)
    for step in STEPS:
        state_of(page, step, "done")
    expect(page.locator("#answer-text")).to_contain_text(LETTER)
    calls = server.calls()
    for step in STEPS:
        assert calls[f"ends {step}"] == 1
        assert calls[f"begins {step}"] == 1 + (before[f"begins {step}"] and not before[f"ends {step}"])
    assert (server.folder / "booked").read_text().splitlines() == ["09:00 to Oslo, row 7, by the window"]


def test_a_plan_cannot_be_changed_before_the_page_would_notice(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server)
    page = visit.log_in()
    propose(page, server)
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator("#plan-json")).to_be_editable()
    slow = visit.context.new_page()
    slow.route("**/events", lambda route: None)
    slow.goto(page.url)
    slow.get_by_role("tab", name="JSON").click()
    expect(slow.locator("#plan-json")).not_to_be_editable()
    slow.close()


def test_tabs_show_the_same_steps_at_the_same_time(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server)
    one = visit.log_in()
    propose(one, server)
    two = visit.open(one.url.removeprefix(server.url))
    expect(two.locator("#approve")).to_be_visible()
    server.gate("timetable")
    two.locator("#approve").click()
    for page in (one, two):
        state_of(page, "timetable", "done")
        state_of(page, "forecast", "running")
        expect(page.locator("#approve")).to_be_hidden()
    server.gate("all")
    for page in (one, two):
        ended(page)
        expect(page.locator("#answer-text")).to_contain_text(LETTER)


def test_a_plan_that_two_tabs_agree_to_runs_once(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server, allowed=("409",))
    one = visit.log_in()
    propose(one, server)
    two = visit.open(one.url.removeprefix(server.url))
    two.route("**/events", lambda route: None)
    two.reload()
    one.locator("#approve").click()
    ended(one)
    two.locator("#approve").click()
    expect(two.locator("#notice")).not_to_be_empty()
    assert set(server.calls().values()) == {1}
    assert len((server.folder / "booked").read_text().splitlines()) == 1


def test_a_page_says_that_its_server_has_gone_and_that_it_needs_a_new_address(
    server: Server, visiting: Callable[..., Any]
) -> None:
    visit = visiting(server, allowed=GONE)
    page = visit.log_in()
    propose(page, server)
    server.kill()
    expect(page.locator("#banner")).to_be_visible(timeout=30_000)
    expect(page.locator("#banner")).to_contain_text("server")
    server.start()
    expect(page.locator("#banner")).to_contain_text("address", timeout=30_000)
    address = page.url
    page.goto(server.address)
    page.goto(address)
    expect(page.locator("#approve")).to_be_visible()
    expect(page.locator("#banner")).to_be_hidden()


def test_a_refusal_with_a_reason_gives_another_proposal_and_what_differs(
    server: Server, visiting: Callable[..., Any]
) -> None:
    page = visiting(server).log_in()
    propose(page, server)
    page.locator("#refuse-details summary").click()
    page.get_by_label("What should be different?").fill("The weather does not matter.")
    page.locator("#refuse").click()
    proposals = page.locator("#proposals")
    expect(proposals.locator("[data-proposal]")).to_have_count(2)
    expect(proposals).to_contain_text("refused by you")
    expect(proposals).to_contain_text("The weather does not matter.")
    expect(proposals.locator(".diff .removed").first).to_contain_text("forecast")
    page.locator("#approve").click()
    ended(page)
    assert server.calls()["begins forecast"] == 0
    assert server.calls()["ends letter"] == 1


def test_a_step_that_may_have_happened_waits_for_a_persons_word(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server, allowed=GONE)
    page = visit.log_in()
    propose(page, server)
    server.gate(*(step for step in STEPS if step != "book"))
    page.locator("#approve").click()
    eventually(lambda: server.calls()["begins book"])
    path = page.url.removeprefix(server.url)
    server.kill()
    server.gate("all")
    server.start()
    page.goto(server.address)
    page.goto(f"{server.url}{path}")
    if page.locator("#resume").is_visible():
        page.locator("#resume").click()
    uncertain = page.locator('[data-uncertain="book"]')
    expect(uncertain).to_contain_text("09:00 to Oslo")
    uncertain.get_by_label("This is its result").fill("ticket 4711")
    uncertain.locator("[data-choice=result]").click()
    ended(page)
    expect(page.locator("#answer-text")).to_contain_text(LETTER)
    assert server.calls()["begins book"] == 1


def test_everything_is_done_by_the_keyboard(server: Server, visiting: Callable[..., Any]) -> None:
    page = visiting(server).log_in()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Control+Enter")
    ended(page)
    reach(page, "#cited-1")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text("Bicycles")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "cited-1"
    page.goto(f"{server.url}/plan")
    page.keyboard.type(TRIP)
    reach(page, "#options summary")
    page.keyboard.press("Enter")
    reach(page, "#planner")
    page.keyboard.type("pil")
    reach(page, "#send", backwards=False)
    page.keyboard.press("Enter")
    expect(page.locator("#approve")).to_be_visible()
    reach(page, "#view-graph [data-step]")
    seen = {focused(page)}
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        seen.add(focused(page))
    assert len(seen) >= 3, f"arrows move in the graph: {seen}"
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert focused(page), "the focus is back in the graph"
    reach(page, "#approve")
    page.keyboard.press("Enter")
    ended(page)
    expect(page.locator("#answer-text")).to_contain_text(LETTER)


def focused(page: Page) -> str:
    """Return the step that has the focus."""
    found: str = page.evaluate("document.activeElement.closest('[data-step]')?.dataset.step ?? ''")
    return found


def reach(page: Page, selector: str, *, backwards: bool = False) -> None:
    """Press Tab until an element has the focus; from the end of the page, Tab begins again."""
    for _ in range(120):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
    pytest.fail(f"{selector} is not reached by Tab")
