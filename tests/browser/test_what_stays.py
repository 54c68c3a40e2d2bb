"""What a person typed, opened or chose stays, whatever else happens; and what is clicked twice happens once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.plans import TRIP, of, plan, step
from tests.browser.serving import Server, install, serving

pytestmark = pytest.mark.browser

LONG = 12345678901234567890


def propose(page: Page, server: Server, goal: str) -> None:
    page.goto(f"{server.url}/plan")
    page.get_by_label("Goal").fill(goal)
    page.locator("#options summary").click()
    page.get_by_label("Planner").select_option("pilot")
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("#graph")).to_be_visible()


def test_numbers_of_a_plan_that_is_edited_stay_as_they_are(server: Server, visiting: Callable[..., Any]) -> None:
    steps = step("say", "Say", text="a"), step("tick", "Tick", number=LONG)
    server.plans(numbers=[plan("numbers", *steps, result="tick")])
    page = visiting(server).log_in()
    propose(page, server, "numbers")
    page.locator("#edit").click()
    page.get_by_label("text of say").fill("b")
    expect(page.locator("#plan-json")).to_have_value(re.compile('"b"'))
    expect(page.get_by_label("number of tick")).to_have_value(str(LONG))
    page.locator("#approve").click()
    expect(page.locator("#answer-text")).to_have_text(str(LONG))


def test_who_edits_a_plan_hears_that_it_was_decided_elsewhere(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server)
    page = visit.log_in()
    propose(page, server, TRIP)
    page.locator("#edit").click()
    page.get_by_label("people of seats").fill("3")
    expect(page.locator("#approve")).to_be_enabled()
    other = visit.open(page.url.removeprefix(server.url))
    other.locator("#approve").click()
    expect(page.locator("#notice")).to_contain_text("decided elsewhere")
    expect(page.locator("#state")).to_have_attribute("data-state", "done")
    expect(other.locator("#notice")).to_be_empty()


def test_the_next_proposal_is_looked_at_as_the_one_before(server: Server, visiting: Callable[..., Any]) -> None:
    page = visiting(server).log_in()
    propose(page, server, TRIP)
    page.get_by_role("tab", name="Steps").click()
    page.locator("#another").click()
    expect(page.locator("[data-proposal]")).to_have_count(2)
    expect(page.locator("#steps")).to_be_visible()
    expect(page.locator('#steps [data-step="forecast"]')).to_have_count(0)


def test_what_is_clicked_twice_happens_once(server: Server, visiting: Callable[..., Any]) -> None:
    server.plans(once=[plan("once", step("a", "Say", text="a"), step("b", "Say", text=of("a")), result="b")])
    page = visiting(server).log_in()
    propose(page, server, "once")
    page.locator("#approve").dblclick()
    expect(page.locator("#replay")).to_be_visible()
    first = page.url
    page.locator("#replay").dblclick()
    page.wait_for_url(lambda url: url != first)
    assert server.calls()["ends b"] == 1
    page.goto(f"{server.url}/runs")
    expect(page.locator("tr[data-run]")).to_have_count(2)


def test_a_call_that_is_looked_at_stays_open(tmp_path: Path, visiting: Callable[..., Any]) -> None:
    install(tmp_path, chat="clerk")
    with serving(tmp_path) as server:
        page = visiting(server).log_in()
        page.goto(f"{server.url}/chat")
        page.locator("#new-chat").click()
        page.wait_for_url("**/chat/*", wait_until="load")
        page.locator("#text").fill("Book two seats")
        page.keyboard.press("Enter")
        page.locator('[data-answer="yes"]').click()
        call = page.locator("#messages .tool")
        call.locator("summary").click()
        page.locator("#text").fill("Hello")
        page.keyboard.press("Enter")
        expect(page.locator('#messages [data-role="assistant"]')).to_have_count(2)
        expect(call).to_have_attribute("open", "")


def test_all_sources_are_chosen_or_none(tmp_path: Path, visiting: Callable[..., Any]) -> None:
    install(tmp_path)
    names = [f"shelf-{number}" for number in range(4)]
    tables = "".join(f'[search.{name}]\nuse = "documents"\npath = "docs"\n' for name in names)
    with (tmp_path / "portico.toml").open("a") as file:
        file.write(tables)
    with serving(tmp_path) as server:
        page = visiting(server).log_in()
        page.locator("#all-sources").click()
        expect(page.locator("#sources :checked")).to_have_count(0)
        page.get_by_label("shelf-2").check()
        page.locator("#all-sources").click()
        expect(page.locator("#sources :checked")).to_have_count(page.locator("#sources [type=checkbox]").count())
