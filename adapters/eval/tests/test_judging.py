"""Facts judged by a model, with the real pydantic-evals and a chat service of these tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

GRADER = '[chat]\nuse = "grader"\n'


def asking(answer: str) -> str:
    return json.dumps({"answer": answer})


@pytest.fixture
def judged(evaluate: Any, told: Path) -> Any:
    """Return what evaluates cases with a judge."""
    told.write_text(told.read_text() + GRADER)
    return lambda cases, *options: evaluate(cases, "--judge", "--json", *options)


def test_a_model_judges_facts_in_other_words(judged: Any, evaluate: Any) -> None:
    case = {"question": asking("Packed orders stay; others can be cancelled."), "facts": ["orders can be cancelled"]}
    assert evaluate([case]).code == 1, "the words do not stand there so"
    done = judged([case])
    assert done.code == 0, done.out
    [fact] = done.json["cases"][0]["runs"][0]["facts"]
    assert fact == {"fact": "orders can be cancelled", "found": True, "reason": "It lacks []."}


def test_what_a_judge_does_not_find_fails_with_its_reason(judged: Any) -> None:
    done = judged([{"question": asking("Orders can wait."), "facts": ["orders can be cancelled"]}])
    assert done.code == 1
    assert "cancelled" in done.json["cases"][0]["runs"][0]["facts"][0]["reason"]


def test_patterns_are_not_judged(judged: Any) -> None:
    done = judged([{"question": asking("It is 30 kg."), "facts": [{"pattern": r"\d+ kg"}]}])
    assert done.code == 0


def test_a_judge_that_fails_is_a_result(judged: Any) -> None:
    done = judged(
        [{"question": asking("Yes."), "facts": ["it is asleep"]}, {"question": asking("No."), "facts": ["no"]}]
    )
    assert done.code == 1
    assert [each["passed"] for each in done.json["cases"]] == [False, True]
    assert "asleep" in done.json["cases"][0]["runs"][0]["failures"][0]


def test_what_could_not_be_judged_runs_again_when_it_is_resumed(judged: Any) -> None:
    cases = [{"question": asking("It is asleep."), "facts": ["it is asleep"]}]
    first, again = (
        judged(cases, "--save", "report.json", *more).json["cases"][0]["runs"] for more in ((), ["--resume"])
    )
    assert first[0]["run"] != again[0]["run"]


def test_a_service_that_only_quotes_cannot_judge(evaluate: Any, told: Path) -> None:
    done = evaluate([{"question": asking("Yes."), "facts": ["yes"]}], "--judge")
    assert done.code == 2
    assert "extractive" in done.err


def test_without_the_package_the_error_says_what_to_install(
    evaluate: Any, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_evals", None)
    done = evaluate([{"question": asking("Yes."), "facts": ["yes"]}], "--judge")
    assert done.code == 2
    assert "portico-eval[judge]" in done.err
