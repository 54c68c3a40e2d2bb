"""The site's navigation and the pages agree."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PUBLIC: dict[str, list[str]] = runpy.run_path(str(Path(__file__).with_name("figures.py")))["public_names"]()


def pages(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(value, list):
            yield from pages(value)
        else:
            yield value


def test_every_page_is_in_the_navigation_once(root: Path) -> None:
    navigation = list(pages(tomllib.loads((root / "zensical.toml").read_text("utf-8"))["project"]["nav"]))
    found = [file.relative_to(root / "docs").as_posix() for file in (root / "docs").rglob("*.md")]
    there = [page for page in found if not page.startswith("template/")]
    assert sorted(navigation) == sorted(there), "list new pages under `nav` in zensical.toml"


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_shows_every_public_name(root: Path, module: str) -> None:
    name = "portico" if module == "__init__" else f"portico.{module}"
    page = (root / "docs" / "reference" / "api" / f"{name}.md").read_text("utf-8")
    assert sorted(re.findall(r"^ {8}- (\w+)$", page, re.MULTILINE)) == PUBLIC[module]


def test_a_drawing_is_that_of_the_text_before_it(root: Path) -> None:
    for page in (root / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        for drawn in re.findall(r"```mermaid\n(.*?)```", text, re.DOTALL):
            assert f"```text\n{drawn}```" in text, page
