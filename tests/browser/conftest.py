"""Chromium, and a server for each test. Without the dependency group `browser` nothing here is collected."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.browser.serving import Server
    from tests.browser.visits import Visit

collect_ignore = ["__main__.py"]
collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["*.py"]

Visiting = Callable[..., "Visit"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright
    from tests.browser.visits import missing

    program = shutil.which("chromium")
    if program is None:
        missing("Chromium is not installed: `apt-get install chromium`.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(outer_environment: dict[str, str]) -> str:
    from tests.browser.visits import axe_of_npm

    return axe_of_npm(outer_environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that has all that is served; a test may change it before it uses ``server``."""
    from tests.browser.serving import install

    install(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    from tests.browser.serving import serving

    with serving(folder) as made:
        yield made


@pytest.fixture
def visiting(chromium: Browser) -> Visiting:
    """Return what opens a browser at a server: ``visiting(server)``; at the end, nothing forbidden has happened."""
    from tests.browser.visits import Visit

    def visit(server: Server, *, allowed: tuple[str, ...] = (), **options: Any) -> Visit:
        made = Visit(chromium, server, **options)
        server.visits.callback(made.close, allowed)
        return made

    return visit
