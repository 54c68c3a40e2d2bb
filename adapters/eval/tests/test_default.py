"""`portico eval` with the embedded default over a handbook: sources, citations, facts, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portico_cli.main import main

CANCEL = {"id": "cancel", "question": "Until when can an order be cancelled?", "sources": ["orders.md"]}
WEIGHT = {"id": "weight", "question": "How much may a parcel weigh?", "sources": ["handbook/parcels.md"]}
CHESS = {"id": "chess", "question": "Who won the chess tournament in Oslo?", "refused": True}


def test_without_a_source_it_says_what_to_do_before_anything_runs(evaluate: Any) -> None:
    done = evaluate([CANCEL])
    assert (done.code, done.out) == (2, "")
    assert "portico eval CASES --docs FOLDER" in done.err


@pytest.fixture
def ask(evaluate: Any, handbook: str) -> Any:
    """Return what evaluates cases on the handbook."""
    return lambda cases, *options: evaluate(cases, "--docs", handbook, *options)


def test_an_application_that_does_as_it_should_passes(ask: Any) -> None:
    facts = ["until it is packed", {"pattern": "packed"}]
    done = ask([{**CANCEL, "facts": facts}, {**WEIGHT, "facts": [{"any": ["30 kg", "30 kilograms"]}]}, CHESS], "--json")
    assert done.code == 0, done.err
    figures = done.json["figures"]
    shares = ["passed", "recall@10", "citations_held", "answered", "rightly_refused", "facts_found", "plans_valid"]
    assert {name: figures[name] for name in shares} == dict.fromkeys(shares, 1.0)
    assert 0 < figures["ndcg@10"] <= 1
    assert figures["plans_as_reference"] is None
    assert [each["id"] for each in done.json["cases"]] == ["cancel", "weight", "chess"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({**CANCEL, "facts": ["until Sunday"]}, "until Sunday"),
        ({**CANCEL, "sources": ["orders.md", "lawbook"]}, "lawbook"),
        ({**CANCEL, "sources": ["ders.md"]}, "ders.md"),
        ({**CANCEL, "sources": ["work"]}, "work"),
        ({"question": CHESS["question"]}, "not answered"),
        ({"question": CANCEL["question"], "refused": True}, "answered"),
        ({**CANCEL, "limits": {"seconds": 0}}, "seconds"),
        ({**CANCEL, "limits": {"steps": 0}}, "steps"),
    ],
)
def test_a_case_fails_with_the_reason(ask: Any, case: dict[str, Any], said: str) -> None:
    done = ask([case, WEIGHT])
    assert done.code == 1
    assert said in done.out.partition("figure")[0]
    assert "1 of 2 cases passed." in done.out


def test_a_source_is_expected_by_its_place_too(ask: Any) -> None:
    file = Path("handbook/orders.md").resolve()
    assert ask([{**CANCEL, "sources": [str(file), file.as_uri()]}]).code == 0


def test_a_quotation_of_markdown_holds(ask: Any, handbook: str) -> None:
    text = "The command `scales --tare` of [the *old* tool](tool.md) sets the **scales** to zero."
    Path(handbook, "weigh.md").write_text(f"# Scales\n\n{text}\n")
    done = ask([{"question": "Which command sets the scales to zero?", "facts": ["`scales --tare`"]}])
    assert done.code == 0, done.out


def test_a_reference_plan_is_compared_with_what_ran(ask: Any) -> None:
    search = {"id": "find", "function": "docs-GetTextSearchResults", "reason": "It looks."}
    arguments = {"query": {"value": CANCEL["question"]}, "count": {"value": 50}}
    same = {"version": 1, "goal": "Find it", "steps": [{**search, "arguments": arguments}]}
    other = {**same, "steps": [{**search, "arguments": {**arguments, "count": {"value": 3}}}]}
    done = ask([{**CANCEL, "plan": same}, {**CANCEL, "id": "other", "plan": other}], "--json")
    assert done.json["figures"]["plans_as_reference"] == 0.5
    assert [each["passed"] for each in done.json["cases"]] == [True, False]
    assert "count" in done.json["cases"][1]["runs"][0]["failures"][0]


def test_a_result_holds_as_long_as_the_documents_are_the_same(ask: Any, handbook: str, capsys: Any) -> None:
    def run(*options: str) -> str:
        done = ask([CANCEL], "--save", "report.json", "--json", *options)
        assert ("report.runs.jsonl" in done.err) is bool(options), "it says what it kept"
        return str(done.json["cases"][0]["runs"][0]["run"])

    first = run()
    assert run("--resume") == first
    Path(handbook, "orders.md").write_text("# Orders\n\nAn order can be cancelled until noon.\n")
    assert main(["search", "orders", "--docs", handbook]) == 0, "the index is up to date again"
    capsys.readouterr()
    assert run("--resume") != first


def test_a_pipe_gets_the_table_in_lines(ask: Any) -> None:
    done = ask([CANCEL])
    assert ["cases", "passed", "1.000"] in [line.split() for line in done.out.splitlines()]
    assert done.out.endswith("1 of 1 case passed.\n")
