"""Our Handlebars gives what handlebars.js gave; `nox -s differential` asks handlebars.js itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.differential.handlebars.engine import CASES, answer, cases, recorded

# Where we differ on purpose; README.md gives the reasons.
DIFFERENT = {
    "each-05": "the order of keys",
    "errors-45": "the name of an inline partial is a text",
    "inline-partial-scopes-13": "an inline partial sees the block parameters around it",
    "inline-partial-scopes-15": "the name of an inline partial is a text",
    "inline-partial-scopes-19": "the name of an inline partial is a text",
    "inline-partial-scopes-22": "an inline partial without a block is a mistake, and does nothing there",
    "literals-13": "whole numbers are exact",
    "literals-19": "whole numbers are exact",
    "subexpression-corners-28": "arguments that nothing takes are a mistake; there they are ignored",
}


def compared(name: str, case: dict[str, Any]) -> str | None:
    """Return what is wrong with our answer to a case."""
    ours, theirs = answer(case), recorded(case)
    if name in DIFFERENT:
        return f"{name} no longer differs: take it out of DIFFERENT" if ours == theirs else None
    return None if ours == theirs else f"{name}: {json.dumps(case, ensure_ascii=False)}\nours: {ours}"


@pytest.mark.parametrize("feature", [path.stem for path in sorted(CASES.glob("*.json"))])
def test_our_answers_are_those_of_handlebars_js(feature: str) -> None:
    wrong = [compared(name, case) for name, case in cases() if name.rpartition("-")[0] == feature]
    assert wrong, "no case of the feature was compared"
    assert list(filter(None, wrong)) == []


def test_every_feature_has_twelve_cases_and_all_come_from_one_version() -> None:
    files = [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))]
    package = json.loads((CASES.parent / "package.json").read_text("utf-8"))
    assert {file["handlebars"] for file in files} == {package["dependencies"]["handlebars"]}
    for file in files:
        distinct = {json.dumps(case, sort_keys=True) for case in file["cases"]}
        assert len(distinct) == len(file["cases"]), f"{file['feature']} has a case twice"
        assert len(distinct) >= 12, f"{file['feature']} has {len(distinct)} cases"
        assert all(recorded(case) for case in file["cases"]), f"{file['feature']} has a case without an answer"
