"""How long a change of a step takes to be seen, in a page of five hundred steps."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.plans import MANY
from tests.browser.serving import Server
from tests.browser.test_plans import ended, propose

pytestmark = pytest.mark.browser

BAR = 100
"""Milliseconds that 95 of 100 changes may take in the page; shown, and held with a wide margin."""
MARGIN = 20
WATCH = """
window.handled = []; window.blocked = [];
const seen = new WeakSet();
const on = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (type, listener, ...more) {
  on.call(this, type, event => {
    const begun = performance.now();
    (listener.handleEvent ?? listener).call(this, event);
    if (type !== 'steps' || seen.has(event)) return;
    seen.add(event);
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.handled.push(performance.now() - begun);
      channel.port2.postMessage(0);
    });
  }, ...more);
};
new PerformanceObserver(list => window.blocked.push(...list.getEntries().map(each => each.duration)))
  .observe({type: 'longtask', buffered: true});
"""


def p95(values: list[float]) -> float:
    """Return what 95 of 100 values do not exceed."""
    return statistics.quantiles(values, n=20)[-1]


def test_a_change_of_one_of_five_hundred_steps_is_seen_at_once(server: Server, visiting: Callable[..., Any]) -> None:
    visit = visiting(server, viewport={"width": 1280, "height": 900})
    visit.context.add_init_script(WATCH)
    page = visit.log_in()
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    try:
        propose(page, server, MANY)
        expect(page.locator(".node[data-end=false]")).to_have_count(500)
        page.locator("#approve").click()
        ended(page)
        expect(page.locator(".node[data-end=false][data-state=done]")).to_have_count(500)
    finally:
        expect.set_options(timeout=5_000)
    handled = page.evaluate("window.handled")
    blocked = page.evaluate("window.blocked")
    assert len(handled) > 20, "the page had its steps in another way"
    print(
        f"\n500 steps: {len(handled)} changes, each seen after {statistics.median(handled):.0f} ms, p95 "
        f"{p95(handled):.0f} ms (bar {BAR}); {len(blocked)} long tasks, at most {max(blocked, default=0):.0f} ms"
    )
    assert p95(handled) < MARGIN * BAR
