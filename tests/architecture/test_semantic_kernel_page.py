"""Each name on the page for users of Semantic Kernel exists."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

import pytest

import portico
from portico import plans, ports
from portico._prompts.rendering import PromptOptions
from portico._runs.outcome import RunOptions
from portico_basics import contextual
from portico_basics.vectors import search as vectors

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference/semantic-kernel.md").read_text("utf-8")
HERE = " ".join(row.split(" | ")[1] for row in PAGE.splitlines() if row.startswith("| "))
SETTINGS = re.split(r"\n##+ ", (DOCS / "reference/settings.md").read_text("utf-8"))
OPTIONS = {*PromptOptions.__annotations__, *RunOptions.__annotations__}
FRONTS = (portico, plans, ports, contextual, vectors)
NAMES = re.findall(r"`((?:[A-Z]|search_p|plan_to_)\w+)(\.\w+)?(\(.*?\))?`", HERE)


@pytest.mark.parametrize(("table", "key"), sorted(set(re.findall(r"`(\[[\w.]+\]) (\w+)`", HERE))))
def test_each_setting_stands_in_the_reference_of_settings(table: str, key: str) -> None:
    sections = [each for each in SETTINGS if f"`{table}`" in each.partition("\n")[0]]
    assert any(f"| `{key}` |" in each or f"\n`{key}` names the " in each for each in sections)


@pytest.mark.parametrize(("name", "member", "given"), sorted(set(NAMES)))
def test_each_name_is_public_and_has_these_parameters(name: str, member: str, given: str) -> None:
    found = next(getattr(front, name) for front in FRONTS if hasattr(front, name))
    found = getattr(found, member[1:]) if member else found
    for parameter in re.findall(r"\w+(?==)", given):
        assert parameter in signature(found).parameters or parameter in OPTIONS
