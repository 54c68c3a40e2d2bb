"""Each name on the page for users of Semantic Kernel exists."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

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


def test_each_setting_stands_in_the_reference_of_settings() -> None:
    settings = sorted(set(re.findall(r"`(\[[\w.]+\]) (\w+)`", HERE)))
    assert settings
    assert [setting for setting in settings if not in_the_reference(*setting)] == []


def in_the_reference(table: str, key: str) -> bool:
    sections = [each for each in SETTINGS if f"`{table}`" in each.partition("\n")[0]]
    return any(f"| `{key}` |" in each or f"\n`{key}` names the " in each for each in sections)


def test_each_name_is_public_and_has_these_parameters() -> None:
    assert NAMES
    assert [named for named in sorted(set(NAMES)) if not is_public(*named)] == []


def is_public(name: str, member: str, given: str) -> bool:
    found = next((getattr(front, name) for front in FRONTS if hasattr(front, name)), None)
    found = getattr(found, member[1:], None) if member else found
    parameters = re.findall(r"\w+(?==)", given)
    return found is not None and all(each in OPTIONS or each in signature(found).parameters for each in parameters)
