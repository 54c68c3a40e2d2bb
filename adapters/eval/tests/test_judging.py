"""Facts judged by a model, with the real pydantic-evals and a chat service of these tests; cases as its dataset."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import portico_eval
from portico.errors import ConfigurationError

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
    with pytest.raises(ConfigurationError, match="judge"):
        portico_eval.dataset("cases.jsonl")


async def test_cases_are_a_dataset_of_pydantic_evals(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id": "a", "question": "Where?", "facts": ["Oslo", "1905"]}\n{"id": "b", "question": "Who?"}')

    async def answer(question: str) -> str:
        return f"{question} In  OSLO."

    report = await portico_eval.dataset(file).evaluate(answer, progress=False)
    said = {case.name: {name: each.value for name, each in case.assertions.items()} for case in report.cases}
    assert said == {"a": {"Oslo": True, "1905": False}, "b": {}}
