"""Visits of a browser: what its pages ask for, what their console says, and whether foreign script ran in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page
from tests.browser.serving import Server

AXE = Path(__file__).parent / "axe" / "package.json"
LOOK = """() => {
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  const out = [...document.querySelectorAll('body *')].filter(each => {
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    if (box.width === 0 || style.position === 'absolute' || style.position === 'fixed') return false;
    for (let around = each.parentElement; around; around = around.parentElement)
      if (getComputedStyle(around).overflowX !== 'visible') return false;
    return box.right > innerWidth + 1;
  });
  return wide > 0 ? out.map(each => each.outerHTML.slice(0, 120)).concat(`${wide} pixels`) : [];
}"""
WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event =>
  violations.push(`${event.violatedDirective}: ${event.blockedURI} in ${event.sourceFile}`));
"""
EXAMINE = """() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.map(node => node.target.join(' ')).join(', ')}: ${each.help}`))"""


class Visit:
    """One person's browser: it has a session, and keeps what its pages do."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.asked: list[str] = []
        self.said: list[str] = []
        self.context: BrowserContext = browser.new_context(**options)
        self.context.set_default_timeout(20_000)
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.context.on("console", self._note)
        self.context.on("weberror", lambda each: self.said.append(str(each.error)))
        self.context.add_init_script(WATCH)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.said.append(f"{message.text} {message.location['url']}")

    def log_in(self) -> Page:
        """Open the address that the server has printed."""
        page = self.context.new_page()
        page.goto(self.server.address)
        return page

    def open(self, path: str) -> Page:
        """Open a page in another tab."""
        page = self.context.new_page()
        page.goto(f"{self.server.url}{path}")
        return page

    def close(self, allowed: tuple[str, ...] = ()) -> None:
        """Close all pages; fail where one did what none may. ``allowed`` are parts of what a console may say."""
        hurt = [found for page in self.context.pages for found in require_unhurt(page)]
        self.context.close()
        hurt += [f"asked {url}" for url in self.asked if not url.startswith((f"{self.server.url}/", "data:", "blob:"))]
        hurt += [f"console: {each}" for each in self.said if not any(part in each for part in allowed)]
        if hurt:
            pytest.fail("\n".join(dict.fromkeys(hurt)))


def require_unhurt(page: Page) -> list[str]:
    """Return what a page did against its rules: script that is not ours, and what its policy stopped."""
    if page.is_closed() or page.url == "about:blank":
        return []
    hacked = page.evaluate("window.hacked")
    violations: list[str] = page.evaluate("window.violations ?? []")
    return [*violations, *(["foreign script ran"] if hacked is not None else [])]


def too_wide(page: Page) -> list[str]:
    """Return what is wider than the window."""
    found: list[str] = page.evaluate(LOOK)
    return found


def barriers(page: Page, axe: str) -> list[str]:
    """Return what axe-core finds that is serious or critical."""
    page.evaluate(axe)
    found: list[str] = page.evaluate(EXAMINE)
    return found


def missing(what: str) -> None:
    """Skip a test for what is not there; on CI it fails."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(what)
    pytest.skip(what)


def axe_of_npm(environment: Mapping[str, str]) -> str:
    """Return the script of axe-core, which npm installs into a temporary folder."""
    npm = shutil.which("npm")
    if npm is None:
        missing("axe-core comes by npm, which is not installed.")
    with tempfile.TemporaryDirectory(prefix="portico-axe-") as folder:
        shutil.copy(AXE, folder)
        command = [str(npm), "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=folder, env=dict(environment), check=True, timeout=300)
        place = Path(folder, "node_modules", "axe-core")
        wanted = json.loads(AXE.read_text("utf-8"))["dependencies"]["axe-core"]
        assert json.loads((place / "package.json").read_text("utf-8"))["version"] == wanted
        return (place / "axe.min.js").read_text("utf-8")
