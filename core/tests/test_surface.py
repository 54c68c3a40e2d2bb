"""What `portico` exports, what importing it costs, and that the drawing of the errors is true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import portico
from portico import errors

FRONTS = ("portico", "portico.plans", "portico.plugins", "portico.ports", "portico.search")


@pytest.mark.parametrize("name", FRONTS)
def test_every_name_of_a_public_module_is_there(name: str) -> None:
    module = import_module(name)
    assert len(dir(module)) > 20
    assert module.__all__ == dir(module)
    for each in dir(module):
        assert getattr(module, each) is not None


def test_one_name_means_one_thing() -> None:
    meanings: dict[str, set[int]] = {}
    for front in FRONTS:
        module = import_module(front)
        for each in dir(module):
            meanings.setdefault(each, set()).add(id(getattr(module, each)))
    assert [name for name, found in meanings.items() if len(found) > 1] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'kernal'"):
        _ = portico.kernal  # type: ignore[attr-defined]
    assert not hasattr(portico, "And Answer")


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(portico.__file__).parents[1])},
    )
    found: list[str] = json.loads(done.stdout)
    return set(found)


def test_importing_portico_imports_next_to_nothing() -> None:
    heavy = {"asyncio", "dataclasses", "inspect", "typing_extensions", "re", "difflib", "logging", "pathlib"}
    loaded = modules_after("import portico")
    before = modules_after("import importlib, typing")
    assert {name for name in loaded if name.startswith("portico")} == {"portico", "portico._lazy"}
    assert (loaded - before) & heavy == set()


def test_a_kernel_needs_neither_search_nor_plans_nor_the_network() -> None:
    loaded = modules_after("from portico import Kernel, function")
    ours = {name for name in loaded if name.startswith("portico.")}
    assert not {"portico._runs.run", "portico._plans.check", "portico._search.results"} & ours
    assert not {"http.client", "urllib.request", "uuid", "decimal", "datetime"} & loaded


def test_listing_registrations_needs_no_event_loop() -> None:
    assert "asyncio" not in modules_after("from portico.plugins import Registration")


def drawn_tree() -> dict[str, str]:
    """Read child → parent from the drawing in the docstring of `portico.errors`."""
    parents: dict[str, str] = {}
    trail: list[str] = []
    for line in str(errors.__doc__).splitlines():
        match = re.match(r"    ((?:│   |    )*(?:├── |└── )?)(\w+)(?: {2,}|$)", line)
        if match and hasattr(errors, match[2]):
            depth = len(match[1]) // 4
            trail = [*trail[:depth], match[2]]
            if depth:
                parents[match[2]] = trail[-2]
    return parents


def test_the_drawing_of_the_errors_is_true() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == "portico.errors"]
    real = {kind.__name__: kind.__base__.__name__ for kind in classes if kind is not errors.PorticoError}  # type: ignore[union-attr]
    assert drawn_tree() == real


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("serch", ["search", "store"], ("search",)),
        ("SEARCH", ["Search"], ("Search",)),
        ("x", ["search"], ()),
        ("a", [], ()),
        ("fex", ["few"], ("few",)),
        ("nope", ["openai"], ()),
        ("day", ["date", "weekday"], ("weekday",)),
    ],
)
def test_the_nearest_words_are_found_whatever_their_case(word: str, known: list[str], found: Any) -> None:
    assert errors.nearest(word, known) == found


def test_a_function_that_is_not_there_is_answered_with_what_is() -> None:
    assert "Nearest: Sums-add." in str(errors.FunctionNotFound("Sums-ad", ["Sums-add", "Tone-shout"]))
    assert "There are 2 functions" in str(errors.FunctionNotFound("zzz", ["Sums-add", "Tone-shout"]))
    assert "no functions" in str(errors.FunctionNotFound("zzz"))
