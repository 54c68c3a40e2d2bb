"""Every page, on a phone and on a desk, light and dark: nothing is cut off, and there are no barriers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.plans import STEPS
from tests.browser.serving import Server, install, serving
from tests.browser.test_asking import ask
from tests.browser.test_chat import begin
from tests.browser.test_plans import ended, propose, state_of
from tests.browser.visits import barriers, too_wide

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """Serve with a conversation's service, as it has more to show."""
    install(tmp_path, chat="clerk")
    with serving(tmp_path) as made:
        yield made


def test_a_barrier_and_a_wide_thing_would_be_found(server: Server, visiting: Callable[..., Any], axe: str) -> None:
    page = visiting(server, allowed=("",), viewport={"width": 360, "height": 800}, bypass_csp=True).log_in()
    page.evaluate("""() => document.querySelector('main').insertAdjacentHTML('beforeend',
      '<button></button><p style="width: 500px; color: #eee; background: #fff">too wide</p>')""")
    found = barriers(page, axe)
    assert any(each.startswith("button-name") for each in found)
    assert any(each.startswith("color-contrast") for each in found)
    assert too_wide(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_too_wide_or_has_barriers(
    server: Server, visiting: Callable[..., Any], axe: str, scheme: str, width: int
) -> None:
    visit = visiting(
        server, allowed=("404",), viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = visit.log_in()
    wrong: dict[str, list[str]] = {}

    def look(name: str) -> None:
        page.wait_for_load_state()
        found = [*too_wide(page), *barriers(page, axe)]
        if found:
            wrong[name] = found

    look("ask")
    propose(page, server)
    look("a proposal")
    page.locator("#refuse-details summary").click()
    for tab in ("Steps", "Text", "JSON", "Graph"):
        page.get_by_role("tab", name=tab, exact=True).click()
        look(f"a proposal, {tab}")
    server.gate(*STEPS[:4])
    page.locator("#approve").click()
    state_of(page, "choose", "done")
    look("a run in the middle")
    step = page.locator('#view-graph [data-step="choose"]')
    step.click()
    expect(page.locator("#panel")).to_be_visible()
    look("a step's details")
    page.keyboard.press("Escape")
    server.gate("all")
    ended(page)
    look("a run that is done")
    page.locator("#trace-link").click()
    expect(page.locator("#waterfall")).to_be_visible()
    look("a trace")
    page.goto(server.url)
    page.locator("#options summary").click()
    page.get_by_label("Planner").select_option("retrieval")
    ask(page)
    look("an answer")
    for path, name in {
        "/plan": "plan",
        "/runs": "runs",
        "/runs?query=nothing": "no runs",
        "/plugins": "plugins",
        "/nowhere": "nothing there",
    }.items():
        page.goto(f"{server.url}{path}")
        if path == "/plugins":
            expect(page.locator("#healthy")).to_be_visible(timeout=60_000)
        look(name)
    page.goto(f"{server.url}/chat")
    look("no conversation")
    begin(page, server)
    page.locator("#text").fill("Book two seats")
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_visible()
    look("a question in a conversation")
    page.locator("[data-answer=yes]").click()
    expect(page.locator("#messages")).to_contain_text("ticket 4711")
    look("a conversation")
    assert wrong == {}
