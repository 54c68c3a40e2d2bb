"""What the browser gets besides pages: small, ours or licensed, and with no word of another address."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from portico_serve._app import STATIC
from portico_serve._pages.showing import PAGES

MOST_BYTES = 60 * 1024
NAMES_OF_FORMS = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink", "http://www.w3.org/1999/xhtml")
OURS = sorted([*PAGES.glob("*.html"), *STATIC.glob("*.*"), *STATIC.glob("js/*.js")])
VENDORED = sorted(STATIC.glob("vendor/*.js"))


def test_everything_together_is_small() -> None:
    files = [each for each in STATIC.rglob("*") if each.suffix in (".js", ".css", ".svg")]

    assert len(files) > 10
    assert sum(len(gzip.compress(each.read_bytes(), 9)) for each in files) < MOST_BYTES


@pytest.mark.parametrize("file", [*OURS, *VENDORED], ids=lambda each: each.name)
def test_no_file_leads_to_another_address(file: Path) -> None:
    found = re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)]*", file.read_text("utf-8"))

    assert [each for each in found if each not in NAMES_OF_FORMS] == []


@pytest.mark.parametrize("file", VENDORED, ids=lambda each: each.name)
def test_what_others_wrote_has_its_licence_beside_it(file: Path) -> None:
    name = re.sub(r"\.(min|esm)\.js$", "", file.name)

    assert "permission" in (file.parent / f"{name}.LICENSE.txt").read_text("utf-8").lower()


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.html")), ids=lambda each: each.name)
def test_no_page_has_what_its_policy_forbids(page: Path) -> None:
    text = page.read_text("utf-8")

    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|js:|javascript:", text)
    assert all("src=" in each for each in re.findall(r"<script[^>]*>", text))
    assert not re.search(r"\|\s*safe|autoescape|Markup", text)


@pytest.mark.parametrize("script", sorted(STATIC.glob("js/*.js")), ids=lambda each: each.name)
def test_no_script_makes_markup_of_text(script: Path) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTML"

    assert not re.search(forbidden, script.read_text("utf-8"))
