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


@pytest.mark.parametrize(("name", "case"), [pytest.param(*each, id=each[0]) for each in cases()])
def test_our_answer_is_that_of_handlebars_js(name: str, case: dict[str, Any]) -> None:
    ours = answer(case)
    if name in DIFFERENT:
        assert ours != recorded(case), f"{name} no longer differs: take it out of DIFFERENT"
        return
    assert ours == recorded(case), f"{json.dumps(case, ensure_ascii=False)}\nours: {ours}"


def test_every_feature_has_twelve_cases_and_all_come_from_one_version() -> None:
    files = [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))]
    package = json.loads((CASES.parent / "package.json").read_text("utf-8"))
    assert {file["handlebars"] for file in files} == {package["dependencies"]["handlebars"]}
    for file in files:
        distinct = {json.dumps(case, sort_keys=True) for case in file["cases"]}
        assert len(distinct) == len(file["cases"]), f"{file['feature']} has a case twice"
        assert len(distinct) >= 12, f"{file['feature']} has {len(distinct)} cases"
        assert all(recorded(case) for case in file["cases"]), f"{file['feature']} has a case without an answer"
