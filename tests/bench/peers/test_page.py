from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.bench.peers import page
from tests.bench.peers.work import ROWS

SAVED: dict[str, Any] = json.loads(page.RESULTS.read_text("utf-8"))


def some(**ratios: float) -> dict[str, Any]:
    """Return results with one row, that of one reply."""
    machine = {"system": "Linux", "processor": "x86_64", "cores": 2, "python": "3.11"}
    rows = {name: {"reply": {"ratio": ratio, "processor": ratio}} for name, ratio in ratios.items()}
    peers = {
        name: {"name": name, "note": "", "versions": {"openai": "3"}, "rows": found} for name, found in rows.items()
    }
    return {"machine": machine, "peers": peers}


def line(saved: dict[str, Any], title: str) -> str:
    return next(line for line in page.table(saved).splitlines() if line.startswith(f"| {title} |"))


def test_the_page_shows_the_saved_results() -> None:
    text = page.PAGE.read_text("utf-8")
    assert page.rendered(text, SAVED) == text


def test_the_plots_show_the_saved_results() -> None:
    for name, picture in page.pictures(SAVED).items():
        assert (page.FOLDER / name).read_text("utf-8") == picture


def test_plots_are_drawings_for_light_and_dark() -> None:
    for picture in page.pictures(SAVED).values():
        assert ET.fromstring(picture).get("viewBox")
        assert "prefers-color-scheme:dark" in picture


def test_each_row_of_the_table_says_who_is_ahead() -> None:
    for row in ROWS:
        assert line(SAVED, row.title).rstrip(" |").rpartition("| ")[2]


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ({"Portico": 0.5, "Other": 1.0}, "Portico"),
        ({"Portico": 1.5, "Other": 1.0}, "**Other**"),
        ({"Portico": 1.01, "Other": 1.0}, "alike: Portico, Other"),
        ({"Portico": 1.0}, "Portico alone"),
        ({"Other": 1.0}, "Portico has no figure"),
    ],
)
def test_a_peer_that_is_ahead_is_named(ratios: dict[str, float], said: str) -> None:
    assert line(some(**ratios), "One reply").endswith(f"| {said} |")


def test_what_cannot_be_measured_says_why_and_the_others_have_their_figures() -> None:
    saved = some(Portico=0.5, Other=1.0)
    saved["peers"]["Gone"] = {"name": "Gone", "note": "", "failed": "no such package"}
    saved["peers"]["Other"]["rows"]["stream"] = "ValueError: too short"
    assert "- Gone could not be measured: no such package" in page.table(saved)
    assert "- Other, stream: ValueError: too short" in page.table(saved)
    assert "| 0.50 | 1.00 | — |" in line(saved, "One reply")
