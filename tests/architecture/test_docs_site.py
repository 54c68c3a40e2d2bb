"""The site's navigation and the pages agree."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


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
