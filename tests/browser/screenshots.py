"""Takes the pictures of the docs: `nox -s browser -- --screenshots`.

Each shows the page of `portico serve` as it is, 1,200 pixels wide, in light colours, as a WebP file of at most 60 kB.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.serving import QUESTION, install, serving
from tests.browser.test_asking import ask
from tests.browser.test_chat import begin
from tests.browser.test_plans import propose, state_of
from tests.browser.visits import Visit

PICTURES = Path(__file__).parents[2] / "docs" / "how-to"
MOST = 60_000
QUALITIES = (0.92, 0.85, 0.75, 0.6)
SHOWN = "file:///home/ada/harbour"
"""The folder that is shown in place of that of this machine."""
CONVERT = """async ([picture, quality]) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + picture;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d').drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({type: 'image/webp', quality});
  return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), each => String.fromCharCode(each)).join(''));
}"""
ELSEWHERE = """([here, shown]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(here, shown);
}"""


def take(browser: Browser, page: Page, folder: Path, name: str) -> None:
    """Write a picture of what a page shows."""
    page.evaluate(ELSEWHERE, [folder.as_uri(), SHOWN])
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)  # what moves has come to rest
    picture = base64.b64encode(page.screenshot(animations="disabled", caret="hide")).decode()
    blank = browser.new_page()
    for quality in QUALITIES:
        made = base64.b64decode(blank.evaluate(CONVERT, [picture, quality]))
        if len(made) <= MOST:
            break
    blank.close()
    (PICTURES / f"{name}.webp").write_bytes(made)
    print(f"docs/how-to/{name}.webp: {len(made):,} bytes")
    if len(made) > MOST:
        sys.exit(f"{name}.webp is larger than {MOST:,} bytes.")


def main() -> None:
    """Ask, propose, run and chat, and take a picture of each."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name).resolve()
        install(folder, chat="clerk")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        with serving(folder) as server:
            visit = Visit(browser, server, viewport={"width": 1200, "height": 760}, color_scheme="light")
            server.visits.callback(visit.close)
            chat = visit.log_in()
            begin(chat, server)
            chat.locator("#text").fill("Book two seats on the morning ferry to Oslo")
            chat.keyboard.press("Enter")
            expect(chat.locator("#question")).to_be_visible()
            take(browser, chat, folder, "serve-chat")
            page = visit.open("/")
            page.set_viewport_size({"width": 1200, "height": 1080})
            propose(page, server)
            take(browser, page, folder, "serve-plan")
            server.gate("timetable", "forecast", "tide", "choose", "price")
            page.locator("#approve").click()
            state_of(page, "check", "running")
            page.locator('#view-graph [data-step="choose"]').click()
            expect(page.locator("#panel")).to_contain_text("Result")
            page.set_viewport_size({"width": 1200, "height": 960})
            take(browser, page, folder, "serve-run")
            server.gate("all")
            expect(page.locator("#state")).to_have_attribute("data-state", "done")
        (folder / "portico.toml").write_text((folder / "portico.toml").read_text().replace('"clerk"', '"extractive"'))
        with serving(folder) as server:
            visit = Visit(browser, server, viewport={"width": 1200, "height": 600}, color_scheme="light")
            server.visits.callback(visit.close)
            page = visit.log_in()
            ask(page, QUESTION)
            page.locator("#cited-1").click()
            expect(page.locator("#panel")).to_contain_text("Bicycles")
            take(browser, page, folder, "serve-ask")
        browser.close()


if __name__ == "__main__":
    main()
