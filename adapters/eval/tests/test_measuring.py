"""What is measured of a run, with a planner that does what the goal says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.plans import Answer
from portico.search import TextSearchResult
from portico_eval.measures import ndcg, recall
from portico_eval.measuring import DEPTH, check_citations, rank_sources

pytestmark = pytest.mark.usefixtures("told")

SEARCH = {"steps": [{"id": "s1", "function": "shelf-GetTextSearchResults", "arguments": {"query": {"value": "x"}}}]}
PORTS = {"number": 1, "name": "ports.md", "link": "file:///docs/ports.md#L3", "quote": "Ports are protocols."}


def asking(**told: Any) -> str:
    return json.dumps(told)


def shout(text: str, function: str = "tools-shout") -> dict[str, Any]:
    return {"steps": [{"id": "s1", "function": function, "arguments": {"text": {"value": text}}}]}


def only(done: Any) -> Any:
    """Return the only run of the only case."""
    [case] = done.json["cases"]
    [run] = case["runs"]
    return run


def test_a_citation_holds_if_its_passage_has_the_words(evaluate: Any) -> None:
    told = asking(plans=[SEARCH], answer="They are protocols [1].", cites=[PORTS])
    done = evaluate([{"question": told}], "--json")
    assert (done.code, only(done)["citations"], only(done)["unheld"]) == (0, 1, [])


@pytest.mark.parametrize(
    ("answer", "cites"),
    [
        ("They are classes [1].", [{**PORTS, "quote": "Ports are classes."}]),
        ("They are protocols [1].", [{**PORTS, "link": "file:///docs/other.md", "name": "other.md"}]),
        ("They are protocols [1], and old [7].", [PORTS]),
        ("They are protocols [1], see https://elsewhere.example/ports.", [PORTS]),
        ("It says “ports_are_always_very_fast” [1].", [PORTS]),
    ],
)
def test_a_citation_that_nothing_backs_fails_its_case(evaluate: Any, answer: str, cites: list[Any]) -> None:
    done = evaluate([{"question": asking(plans=[SEARCH], answer=answer, cites=cites)}], "--json")
    assert done.code == 1
    assert len(only(done)["unheld"]) == 1
    assert done.json["figures"]["citations_held"] < 1


def test_the_share_is_of_all_citations_and_all_quotations(evaluate: Any) -> None:
    answer = "“Ports are protocols. Adapters fill them.” “Plans_are_always_very_fast.” [1], “a port” [7]."
    done = evaluate([{"question": asking(plans=[SEARCH], answer=answer, cites=[PORTS])}], "--json")
    assert (only(done)["citations"], len(only(done)["unheld"])) == (4, 2)
    assert done.json["figures"]["citations_held"] == 0.5


def test_a_link_that_a_passage_has_in_its_words_holds() -> None:
    passage = TextSearchResult("Plans are data, see https://plans.example/a.", "plans.md", "file:///docs/plans.md#L1")
    assert check_citations("Where?", Answer("It is https://plans.example/a."), [passage]) == (0, [])


def test_a_price_that_is_no_number_is_not_known_and_the_report_stays_json(evaluate: Any) -> None:
    done = evaluate([{"question": asking(cost=float("nan"))}], "--json", "--save", "report.json")
    for text in (done.out, Path("report.json").read_text()):
        assert json.loads(text, parse_constant=pytest.fail)["figures"]["cost"] is None


def test_a_report_does_not_depend_on_how_many_run_at_a_time(evaluate: Any) -> None:
    told = {"plans": [SEARCH], "answers": ["yes [1]", "no [3]"], "cites": [PORTS], "cost": 0.5}
    cases = [{"id": str(number), "question": asking(**told, number=number), "facts": ["yes"]} for number in range(9)]
    one, many = (evaluate(cases, "--json", "--repeat", "2", "--jobs", jobs).json for jobs in ("1", "7"))
    for report in (one, many):
        for figures in (
            report["figures"],
            report["spread"],
            *(run for each in report["cases"] for run in each["runs"]),
        ):
            for name in ("seconds", "seconds_p50", "seconds_p95", "run"):
                figures.pop(name, None)
    assert one == many


def test_an_answer_that_searched_and_cites_nothing_is_a_refusal_unless_it_says_the_facts(evaluate: Any) -> None:
    told = asking(plans=[SEARCH], answer="The sources do not say.")
    assert evaluate([{"question": told, "refused": True}]).code == 0
    assert evaluate([{"question": told}]).code == 1
    assert evaluate([{"question": told, "facts": ["do not say"]}]).code == 0
    assert evaluate([{"question": asking(answer="It needs no source.")}]).code == 0


def test_a_goal_that_is_infeasible_is_rightly_refused(evaluate: Any) -> None:
    told = asking(infeasible="There is no ferry.")
    assert evaluate([{"question": told, "refused": True}]).code == 0
    done = evaluate([{"question": told}], "--json")
    assert done.code == 1
    assert "There is no ferry." in only(done)["failures"][0]


def test_one_case_that_fails_is_a_result_and_not_the_end(evaluate: Any) -> None:
    done = evaluate([{"id": "bad", "question": asking(crash=True)}, {"id": "good", "question": asking()}], "--json")
    assert done.code == 1
    bad, good = done.json["cases"]
    assert (bad["passed"], good["passed"]) == (False, True)
    assert bad["runs"][0]["state"] == "failed"
    assert "The oracle is asleep." in bad["runs"][0]["failures"][0]
    assert bad["runs"][0]["tokens"] == 18


def test_a_planner_that_repairs_its_first_plan_passes_and_the_figure_says_so(evaluate: Any) -> None:
    told = asking(plans=[shout("hey", "tools-shuot"), shout("hey")])
    done = evaluate([{"question": told, "plan": {"version": 1, "goal": "", **shout("hey")}}], "--json")
    assert done.code == 0, done.out
    assert only(done)["plan"]["valid"] is False
    assert "shuot" in only(done)["plan"]["findings"][0]
    assert done.json["figures"]["plans_valid"] == 0.0


def test_a_plan_with_effects_waits_and_counts_as_a_question(evaluate: Any) -> None:
    case = {"question": asking(plans=[shout("hey", "tools-send")])}
    done = evaluate([case], "--json")
    assert done.code == 1
    assert (only(done)["state"], only(done)["questions"]) == ("held", 1)
    assert not Path("sent.txt").exists()
    done = evaluate([case], "--json", "--yes")
    assert (done.code, done.json["figures"]["questions"]) == (0, 0)
    assert Path("sent.txt").read_text() == "hey\n"


def test_tokens_and_cost_are_counted_and_bounded(evaluate: Any) -> None:
    cases = [{"id": "cheap", "question": asking(cost=0.25), "limits": {"cost": 0.3, "tokens": 18}}]
    done = evaluate(cases, "--json")
    assert done.code == 0
    assert (done.json["figures"]["tokens"], done.json["figures"]["cost"]) == (18, 0.25)
    cases = [{"question": asking(cost=0.25), "limits": {"cost": 0.2}}, {"question": asking(), "limits": {"cost": 9}}]
    done = evaluate([*cases, {"question": asking(cost=0), "limits": {"tokens": 17}}], "--json")
    assert [each["passed"] for each in done.json["cases"]] == [False, False, False]
    assert done.json["figures"]["cost"] is None, "the second has no known price"


def test_the_input_of_a_case_is_the_input_of_its_run(evaluate: Any) -> None:
    step = {"id": "s1", "function": "tools-shout", "arguments": {"text": {"from": "input", "path": "$.city"}}}
    told = asking(plans=[{"steps": [step], "result": {"from": "s1"}}])
    done = evaluate([{"question": told, "input": {"city": "Oslo"}, "facts": ["OSLO"]}], "--json")
    assert done.code == 0, done.out
    assert only(done)["answer"] == "OSLO"


def test_repeats_give_means_and_a_spread(evaluate: Any) -> None:
    case = {"question": asking(answers=["Oslo", "Bergen", "Oslo"]), "facts": ["Oslo"]}
    done = evaluate([case], "--json", "--repeat", "3")
    assert done.code == 1, "one of three runs did not say it"
    assert done.json["figures"]["passed"] == pytest.approx(2 / 3, abs=1e-6)
    assert done.json["spread"]["passed"] == pytest.approx(3**-0.5, abs=1e-6)
    assert [bool(run["failures"]) for run in done.json["cases"][0]["runs"]] == [False, True, False]
    assert "(1 of 3 runs)" in evaluate([case], "--repeat", "3", "--jobs", "1").out


def test_documents_are_told_apart_by_their_whole_name() -> None:
    passages = [TextSearchResult("…", name, f"file:///docs/c%23{name}#L1") for name in ("a.md", "b.md")]
    assert rank_sources(["b.md"], passages) == ["file:///docs/c#a.md", "b.md"]


words = st.sampled_from(["ports", "plans", "flows", "agents"])


@given(st.lists(words, unique=True), st.lists(st.tuples(words, st.integers(1, 3))))
def test_a_ranking_has_each_source_once_and_perfect_is_when_the_expected_come_first(
    expected: list[str], found: list[tuple[str, int]]
) -> None:
    passages = [TextSearchResult("…", f"{word}.md", f"file:///docs/{word}.md#L{line}") for word, line in found]
    ranking = rank_sources(expected, passages)
    assert len(ranking) == len({*ranking}) == len({word for word, _ in found})
    assert {*expected} & {*ranking} == {*expected} & {word for word, _ in found}
    if expected:
        relevance = dict.fromkeys(expected, 1)
        first = all(each in expected for each in ranking[: len(expected)]) and len(ranking) >= len(expected)
        assert (ndcg(ranking, relevance, DEPTH) == pytest.approx(1.0)) is first
        assert (recall(ranking, relevance, DEPTH) == 1.0) is ({*expected} <= {*ranking})
