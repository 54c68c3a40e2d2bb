"""Looks at every page of the built site in Chromium, at 360 and 1,400 pixels.

    nox -s site

Says where a page is wider than the window, where text runs out of its box, and where the text of a picture does.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parents[2] / "site"
WIDTHS = (360, 1400)
CUT_OFF = """() => {
  const found = [];
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels wider than the window`);
  for (const box of document.querySelectorAll('article *')) {
    const style = getComputedStyle(box);
    if (box.scrollWidth > box.clientWidth + 1 && box.clientWidth && style.display !== 'inline'
        && ['hidden', 'clip'].includes(style.overflowX))
      found.push(`cut off: ${box.tagName} ${box.textContent.trim().slice(0, 60)}`);
  }
  for (const drawing of document.querySelectorAll('pre.mermaid'))
    found.push('a Mermaid drawing is shown as text');
  return found;
}"""
OUT_OF_BOX = """() => {
  const found = [], boxes = [...document.querySelectorAll('rect')].map(box => box.getBoundingClientRect());
  for (const text of document.querySelectorAll('text')) {
    const is = text.getBoundingClientRect(), middle = [(is.left + is.right) / 2, (is.top + is.bottom) / 2];
    const around = boxes.filter(box => box.left <= middle[0] && middle[0] <= box.right
      && box.top <= middle[1] && middle[1] <= box.bottom).sort((a, b) => a.width * a.height - b.width * b.height)[0];
    if (!around || is.left < around.left || is.right > around.right)
      found.push(`text out of its box: ${text.textContent}`);
  }
  return found;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def look(page: Page, address: str, script: str) -> list[str]:
    """Open a page and return what is wrong with it."""
    page.goto(address, wait_until="load")
    if page.locator(".mermaid").count():
        page.wait_for_timeout(3_000)
    found: list[str] = page.evaluate(script)
    return found


def main() -> int:
    """Look at the pages and print what is wrong; 1 if anything is."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}"
    files = sorted(SITE.rglob("index.html"))
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            for file in files:
                path = file.relative_to(SITE).parent.as_posix()
                for what in look(page, f"{root}/{path}/", CUT_OFF):
                    wrong += 1
                    print(f"{width} {path}: {what}")
            page.close()
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        pictures = sorted(file for file in SITE.rglob("*.svg") if "assets" not in file.parts)
        for picture in pictures:
            for what in look(page, f"{root}/{picture.relative_to(SITE).as_posix()}", OUT_OF_BOX):
                wrong += 1
                print(f"{picture.name}: {what}")
        browser.close()
    server.shutdown()
    widths = " and ".join(map(str, WIDTHS))
    print(f"{len(files)} pages at {widths} pixels and {len(pictures)} pictures: {wrong} cut off")
    return 1 if wrong else 0


sys.exit(main())
