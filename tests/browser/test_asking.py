"""A person asks, opens what is cited, and writes hostile things everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.serving import QUESTION, Server, install, serving
from tests.browser.test_chat import begin

pytestmark = pytest.mark.browser


def ask(page: Page, question: str = QUESTION) -> None:
    """Ask on the page of that name, and wait for the answer."""
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#state")).to_have_attribute("data-state", "done")


def test_an_answer_cites_passages_that_open_beside_it(server: Server, visiting: Callable[..., Any]) -> None:
    page = visiting(server).log_in()
    ask(page)
    expect(page.locator("#answer-text")).to_contain_text("The ferry to Oslo leaves pier 4 at nine in the morning")
    expect(page.locator("#answer-foot")).to_contain_text("1 document")
    page.locator("#cited-1").click()
    panel = page.locator("#panel")
    expect(panel).to_be_visible()
    expect(panel).to_contain_text("Bicycles travel free")
    expect(panel.locator("mark")).to_contain_text("leaves pier 4 at nine in the morning")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#cited-1")).to_be_focused()


def test_the_address_opens_the_page_once(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server, allowed=("403",))
    first = server.address
    page = visit.log_in()
    assert page.url == f"{server.url}/"
    stranger = visiting(server, allowed=("403", "401")).context.new_page()
    assert stranger.goto(first).status == 403
    assert stranger.goto(f"{server.url}/runs").status == 401
    assert server.address != first


def test_two_tabs_stay_in_step(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server)
    ask(visit.log_in())
    listed = visit.open("/runs")
    expect(listed.locator("#runs tbody tr")).to_have_count(1)
    listed.get_by_role("link", name=QUESTION).click()
    expect(listed.locator("#answer-text")).to_contain_text("nine in the morning")


HOSTILE = "<img src=x onerror=\"window.hacked='{}'\"><script>window.hacked='{}'</script>"


def hostile(place: str) -> str:
    """Return a text that would run, if a page took it for a part of itself."""
    return HOSTILE.format(place, place)


def test_what_is_hostile_is_shown_as_text_wherever_it_comes_from(tmp_path: Path, visiting: Callable[..., Any]) -> None:
    from tests.browser.plans import of, plan, step

    name = "<img src=x onerror=window.hacked=1> ferries.md"
    document = f"The {hostile('document')} ferry to Bergen leaves at ten. [x](javascript:window.hacked=1)\n"
    install(tmp_path, chat="clerk", documents={name: document})
    (tmp_path / "answer.md").write_text(
        f"{hostile('answer')} [press](javascript:window.hacked=1) ![p](http://127.0.0.1:9/p.png) "
        f'<a href="javascript:window.hacked=1">x</a> `{hostile("code")}`\n\n```html\n{hostile("block")}\n```\n'
    )
    goal = f"Say {hostile('goal')}"
    said = plan(
        f"Plan {hostile('goal of the plan')}",
        step("one", "Say", hostile("reason"), text=hostile("argument")),
        step("two", "Say", text=of("one")),
        result="two",
    )
    with serving(tmp_path) as server:
        server.plans(**{goal: [said]})
        visit = visiting(server)
        page = visit.log_in()
        page.goto(f"{server.url}/plan")
        page.get_by_label("Goal").fill(goal)
        page.locator("#options summary").click()
        page.get_by_label("Planner").select_option("pilot")
        page.get_by_role("button", name="Propose").click()
        expect(page.locator("h1")).to_have_text(goal)
        for tab in ("Steps", "Text", "JSON", "Graph"):
            page.get_by_role("tab", name=tab, exact=True).click()
        page.locator("#approve").click()
        expect(page.locator("#state")).to_have_attribute("data-state", "done")
        expect(page.locator("#answer")).to_contain_text(hostile("argument"))
        step_of(page, "two").click()
        expect(page.locator("#panel")).to_contain_text(hostile("argument"))
        for path in ("/", "/runs", "/plugins"):
            visit.open(path)
        trace = visit.open(f"/runs/{page.url.rpartition('/')[2]}/trace")
        trace.locator("summary").first.click()

        talk = visit.open("/")
        begin(talk, server)
        for number, text in enumerate((hostile("message"), "When does the ferry to Bergen leave?"), 1):
            talk.locator("#text").fill(text)
            talk.keyboard.press("Enter")
            expect(talk.locator('#messages [data-role="assistant"]')).to_have_count(number)
        expect(talk.locator("#messages")).to_contain_text(hostile("message"))
        expect(talk.locator("#messages")).to_contain_text(hostile("block"))
        assert talk.locator("a[href^=javascript], img[src^=http]").count() == 0


def step_of(page: Page, step: str) -> Any:
    """Return where the graph shows a step."""
    return page.locator(f'#view-graph [data-step="{step}"]')


def test_a_hostile_document_is_cited_as_text(tmp_path: Path, visiting: Callable[..., Any]) -> None:
    name = "<img src=x onerror=window.hacked=1> ferries.md"
    install(tmp_path, documents={name: f"The {hostile('document')} ferry to Bergen leaves at ten.\n"})
    with serving(tmp_path) as server:
        page = visiting(server).log_in()
        ask(page, "When does the ferry to Bergen leave?")
        expect(page.locator("#answer-text")).to_contain_text(re.compile(r"ferry to Bergen leaves at ten"))
        page.locator("#cited-1").click()
        expect(page.locator("#panel")).to_contain_text(hostile("document"))
        expect(page.locator("#panel")).to_contain_text(name)
