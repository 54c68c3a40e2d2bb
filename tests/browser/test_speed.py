"""How long a change of a step takes to be seen, in a page of five hundred steps."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.plans import MANY
from tests.browser.serving import Server
from tests.browser.test_plans import ended, propose

pytestmark = pytest.mark.browser

BAR = 100
"""Milliseconds after which 95 of 100 changes are to be seen in the page; shown, and held with a wide margin."""
MARGIN = 20
WATCH = """
window.handled = []; window.blocked = []; window.shown = {};
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
new MutationObserver(list => list.forEach(({target}) => {
  const {step, state} = target.dataset;
  if (state === 'done' && step && target.matches('.node')) window.shown[step] ??= Date.now();
})).observe(document, {subtree: true, attributeFilter: ['data-state']});
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
        expect(page.locator(".node[role=button]")).to_have_count(500)
        page.locator("#approve").click()
        ended(page)
        expect(page.locator(".node[role=button][data-state=done]")).to_have_count(500)
    finally:
        expect.set_options(timeout=5_000)
    handled = page.evaluate("window.handled")
    blocked = page.evaluate("window.blocked")
    assert len(handled) > 10, "the page had its steps in another way"
    spans = visit.context.request.get(f"{server.url}/api{page.url.removeprefix(server.url)}/trace").json()["spans"]
    ended_at = {each["id"]: datetime.fromisoformat(each["end"]).timestamp() * 1000 for each in spans if each["end"]}
    late = [at - ended_at[step] for step, at in page.evaluate("window.shown").items() if step in ended_at]
    print(
        f"\n500 steps: {len(handled)} changes, each painted {statistics.median(handled):.0f} ms after it came, p95 "
        f"{p95(handled):.0f} ms (bar {BAR}); {len(blocked)} long tasks, at most {max(blocked, default=0):.0f} ms. "
        f"{len(late)} steps were seen {statistics.median(late):.0f} ms after their end, p95 {p95(late):.0f} ms"
    )
    assert p95(handled) < MARGIN * BAR
