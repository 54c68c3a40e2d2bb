"""The retrieval evaluation runs, and fusing loses nothing to the better half on the collection that lies here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.eval.__main__ import main
from tests.eval.retrieval import pair

from portico_eval.measures import ndcg, recall


def test_fused_is_as_good_as_the_better_half(capsys: pytest.CaptureFixture[str]) -> None:
    # Without a task it is this one, on the collection of the tests.
    assert main(["--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    figures = json.loads(out)
    assert list(figures) == ["lexical", "vector", "fused"]
    for measure in ("recall@5", "ndcg@10"):
        better = max(figures["lexical"][measure], figures["vector"][measure])
        assert figures["fused"][measure] >= better - 0.01, figures
    assert figures["fused"]["recall@5"] > 0.85, figures


@pytest.mark.skipif(sys.platform == "win32", reason="the server's package has none for Windows")
def test_a_store_that_finds_by_words_finds_as_much(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrieval", "--store", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert list(figures) == ["lexical", "vector", "fused", "store_lexical", "store_vector", "store"]
    assert figures["store_vector"] == figures["vector"]
    assert figures["store"]["recall@5"] >= figures["fused"]["recall@5"] - 0.02, figures


def test_files_given_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").write_text(
        "<DOC><DOCNO>1</DOCNO><TEXT>A red door.</TEXT></DOC><DOC><DOCNO>2</DOCNO><TEXT>Slate roofs.</TEXT></DOC>"
    )
    (tmp_path / "topics").write_text("<top><num> Number: 01 <title> red door </top><top><num>2<title>roof</top>")
    (tmp_path / "qrels").write_text("1 0 1 1\n2 0 2 3\n2 0 9 1\n5 0 1 1\n")
    assert main(["retrieval", *(str(tmp_path / name) for name in ("docs", "topics", "qrels"))]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    # Document 9 is judged relevant and is not there: query 2 cannot be answered in full.
    assert figures["fused"]["recall@5"] == 0.75


def test_missing_and_unfit_files_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrieval", str(tmp_path / "no"), str(tmp_path / "no"), str(tmp_path / "no")]) == 1
    assert main(["retrieval", str(tmp_path / "no")]) == 1
    assert "retrieval:" in capsys.readouterr().err


def test_queries_with_gaps_in_their_numbers_are_judged_by_place() -> None:
    topics = {"1": "a", "4": "b", "9": "c"}
    assert pair(topics, {"1": {"x": 1}, "2": {"y": 1}, "3": {"z": 0}}) == [("a", {"x": 1}), ("b", {"y": 1})]
    assert pair(topics, {"4": {"x": 1}, "77": {"x": 1}}) == [("b", {"x": 1})]


def test_measures_are_those_of_trec_eval() -> None:
    relevance = {"a": 3, "b": 0, "c": 1, "d": 2}
    assert recall(["b", "a", "x", "c"], relevance, 5) == pytest.approx(2 / 3)
    # By hand: (3/log2(3) + 1/log2(5)) / (3 + 2/log2(3) + 1/2)
    assert ndcg(["b", "a", "x", "c"], relevance, 10) == pytest.approx(2.323466 / 4.761860, abs=1e-6)
    assert ndcg([], relevance, 10) == 0
