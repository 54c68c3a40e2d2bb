"""What the pages for authors show passes the kit of its port, as pytest runs it in a package.

The blocks of a page are one module of tests here, and all pages with a kit are tested in one process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?P<skipped><!-- skip: next -->\s*)?"
    r"(?:```python\n(?P<shown>.*?)```|<!---? invisible-code-block: python\n(?P<hidden>.*?)-->)",
    re.DOTALL,
)
_KIT = re.compile(r"^class Test\w+\(\w*Kit\)", re.MULTILINE)
SETTINGS = """
[pytest]
addopts = -q --import-mode=importlib -p no:cacheprovider
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
xfail_strict = true
timeout = 60
markers =
    fuzz: a property, tried with more examples
"""


MODULE = """
import ast, asyncio, inspect

BLOCKS = {blocks!r}
with asyncio.Runner() as runner:
    for block in BLOCKS:
        code = compile(block, {page!r}, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(code, globals())
        if inspect.iscoroutine(result):
            runner.run(result)
"""


def module_of(page: Path) -> str:
    """Return a module that runs the blocks of a page, which may await at top level."""
    blocks = [
        match["shown"] or match["hidden"] or ""
        for match in _BLOCK.finditer(page.read_text("utf-8"))
        if not match["skipped"]
    ]
    return MODULE.format(blocks=[block for block in blocks if not block.startswith(">>>")], page=page.name)


# The guides make packages, whose tests `tests/acceptance/pages.py` runs, and so does the page on tests. The last shows
# the kit of portico-web, which takes long.
TESTED_ELSEWHERE = (
    "test-a-package.md",
    "write-a-chat-service.md",
    "write-a-planner.md",
    "write-a-search-connector.md",
    "http-client.md",
)
PAGES = {
    page.relative_to(DOCS).as_posix(): module_of(page)
    for page in sorted(DOCS.rglob("*.md"))
    if "template" not in page.parts and page.name not in TESTED_ELSEWHERE and _KIT.search(page.read_text("utf-8"))
}


FEW_EXAMPLES = """
from hypothesis import settings

settings.register_profile("pages", deadline=None, derandomize=True, max_examples=10, database=None)
settings.load_profile("pages")
"""


@cache
def outcomes(folder: Path) -> tuple[dict[str, int], dict[str, list[str]], str]:
    """Run all pages in one process: how many tests passed of each page, and what failed."""
    (folder / "pytest.ini").write_text(SETTINGS, "utf-8")
    (folder / "conftest.py").write_text(FEW_EXAMPLES, "utf-8")
    names = {}
    for page, module in PAGES.items():
        name = re.sub(r"\W", "_", f"test_{page}")
        names[name] = page
        (folder / f"{name}.py").write_text(module, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--junit-xml=report.xml", "--continue-on-collection-errors", "."],
        cwd=folder,
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=500,
        check=False,
    )
    passed, failed = dict.fromkeys(PAGES, 0), {page: [] for page in PAGES}
    assert (folder / "report.xml").exists(), done.stdout + done.stderr
    for case in ET.parse(folder / "report.xml").iter("testcase"):
        where = (case.get("classname") or case.get("name") or "").partition(".")[0]
        fault = next((each for each in case if each.tag in ("failure", "error")), None)
        if fault is not None:
            failed[names[where]].append(f"{case.get('name')}: {fault.get('message')}")
        elif not list(case):
            passed[names[where]] += 1
    return passed, failed, done.stdout[-3_000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_passes_its_kit(page: str, folder: Path) -> None:
    passed, failed, told = outcomes(folder)
    assert failed[page] == []
    assert passed[page] > 0, f"no test of the page ran:\n{told}"
