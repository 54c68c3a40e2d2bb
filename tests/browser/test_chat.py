"""A person talks with the agent, which asks before it changes something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.serving import Server, install, serving

pytestmark = pytest.mark.browser


def begin(page: Page, server: Server) -> None:
    """Begin a conversation, and wait until its page is at work."""
    page.goto(f"{server.url}/chat")
    page.locator("#new-chat").click()
    page.wait_for_url("**/chat/*", wait_until="load")


@pytest.mark.parametrize(("answer", "booked"), [("yes", 1), ("no", 0)])
def test_what_a_call_changes_is_asked_about_in_place(
    tmp_path: Path, visiting: Callable[..., Any], answer: str, booked: int
) -> None:
    install(tmp_path, chat="clerk")
    with serving(tmp_path) as server:
        visit = visiting(server)
        page = visit.log_in()
        begin(page, server)
        page.locator("#text").fill("Hello")
        page.keyboard.press("Enter")
        expect(page.locator('#messages [data-role="assistant"]')).to_contain_text("You said: Hello")
        page.locator("#text").fill("Book two seats for tomorrow")
        page.locator("#send").click()
        question = page.locator("#question")
        expect(question).to_contain_text("harbour-Book")
        expect(question).to_contain_text("row 7, by the window")
        other = visit.open(page.url.removeprefix(server.url))
        expect(other.locator("#question")).to_contain_text("harbour-Book")
        assert not (tmp_path / "booked").exists()
        question.locator(f'[data-answer="{answer}"]').click()
        for each in (page, other):
            expect(each.locator("#question")).to_have_count(0)
            expect(each.locator("#messages")).to_contain_text("ticket 4711" if booked else "Nothing is booked.")
        assert server.calls()["ends "] == booked
        expect(page.locator("#text")).to_be_empty()
