"""Reports: kept, compared with an earlier one, continued, and for other programs."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from tests.support.processes import PATIENCE, started
from tests.support.terminal import at_terminal

from portico import Kernel
from portico.errors import StoreError
from portico_eval.cases import Case
from portico_eval.command import command
from portico_eval.measuring import Result
from portico_eval.report import FIGURES, Comparison, Report, figures_of
from portico_eval.running import Evaluation

pytestmark = pytest.mark.usefixtures("told")


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "evaluate-your-application.md"


def case(id: str, *, says: str = "yes", **told: Any) -> dict[str, Any]:
    """Return a case that passes where its answer says yes."""
    return {"id": id, "question": json.dumps({"id": id, "answer": says, **told}), "facts": ["yes"]}


def test_a_report_is_compared_with_an_earlier_one(evaluate: Any) -> None:
    before = [case("falls"), case("rises", says="no"), case("stays"), case("stays bad", says="no"), case("goes")]
    assert evaluate(before, "--save", "before.json").code == 1
    now = [case("falls", says="no"), case("rises"), case("stays"), case("stays bad", says="no"), case("comes")]
    done = evaluate(now, "--against", "before.json", "--json")
    assert done.code == 1
    against = done.json["against"]
    lists = {name: against[name] for name in ("worse", "better", "new", "gone")}
    assert lists == {"worse": ["falls"], "better": ["rises"], "new": ["comes"], "gone": ["goes"]}
    assert against["figures"]["passed"] == {"before": 0.6, "now": 0.6, "change": 0.0}
    shown = evaluate(now, "--against", "before.json").out
    assert "falls" in shown.partition("figure")[2]
    assert "earlier" in shown


def test_figures_are_shares_of_all_sums_and_nearest_ranks() -> None:
    runs = [ended(number, seconds=float(number), tokens=10, citations=2, facts=[True]) for number in range(1, 19)]
    runs.append(ended(19, seconds=19.0, unheld=["[7]"], citations=4, facts=[True, False, False, False], failures=["x"]))
    runs.append(ended(20, seconds=20.0, answered=False, recall=0.5, cost=0.25))
    figures = figures_of(runs, {"20"})
    assert (figures["seconds_p50"], figures["seconds_p95"]) == (10.0, 19.0)
    assert (figures["tokens"], figures["cost"], figures["recall@10"]) == (180, 0.25, 0.5)
    assert figures["citations_held"] == 39 / 40
    assert figures["facts_found"] == pytest.approx(19 / 22, abs=1e-6)
    assert (figures["answered"], figures["rightly_refused"], figures["passed"]) == (1.0, 1.0, 0.95)
    assert figures["plans_valid"] is None


def ended(number: int, *, facts: Sequence[bool] = (), **changed: Any) -> Result:
    """Return what came of a run of a case with this number."""
    found = [{"fact": "f", "found": each, "reason": ""} for each in facts]
    empty: dict[str, Any] = dict.fromkeys(Result.__annotations__) | {"state": "done", "answered": True}
    numbers = {"citations": 0, "unheld": [], "tokens": 0, "questions": 0, "cost": 0.0, "failures": []}
    return cast("Result", {**empty, **numbers, "case": str(number), "facts": found, **changed})


@pytest.mark.parametrize(
    ("now", "code"),
    [
        ([case("good"), case("bad", says="no")], 0),
        ([case("good", says="no"), case("bad", says="no")], 1),
        ([case("good"), case("bad", says="no"), case("new", says="no")], 1),
        ([case("good")], 0),
    ],
)
def test_only_what_failed_before_may_fail_beside_an_earlier_report(evaluate: Any, now: Any, code: int) -> None:
    evaluate([case("good"), case("bad", says="no")], "--save", "before.json")
    done = evaluate(now, "--against", "before.json")
    assert done.code == code
    assert ("None fails that passed before." in done.out) is (code == 0 and len(now) > 1)


def test_a_share_may_fall_by_the_tolerance(evaluate: Any) -> None:
    half = {**case("half"), "facts": ["yes", "no"]}
    evaluate([half, case("bad", says="no", more=1)], "--save", "before.json")
    now = [{**half, "facts": ["never", "no"]}, case("bad", says="no", more=1)]
    assert evaluate(now, "--against", "before.json").code == 0
    assert evaluate(now, "--against", "before.json", "--tolerance", "0.5").code == 0
    assert evaluate(now, "--against", "before.json", "--tolerance", "0.1").code == 1
    assert evaluate(now, "--against", "before.json", "--tolerance", "nan").code == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 1, "figures": 3, "cases": [1]}',
        '{"version": 1, "figures": [], "cases": []}',
        '{"version": 1, "figures": {"passed": "1"}, "cases": []}',
        '{"version": 1, "figures": {"passed": NaN}, "cases": []}',
        '{"version": 1, "figures": {"passed": 1e999}, "cases": []}',
        '{"version": 1, "figures": {"passed": 1}, "cases": [{"id": ["a"], "passed": true}]}',
        '{"version": 1, "figures": {"passed": 1}, "cases": [{"id": "a", "passed": "no"}]}',
    ],
)
def test_what_is_no_report_is_refused_before_anything_runs(evaluate: Any, text: str) -> None:
    Path("before.json").write_text(text)
    done = evaluate([case("one")], "--against", "before.json", "--save", "now.json")
    assert done.code == 2
    assert "before.json is no report" in done.err
    assert not Path("now.json").exists()


def test_the_saved_report_is_what_json_prints(evaluate: Any) -> None:
    done = evaluate([case("one"), case("two", says="no")], "--save", "report.json", "--json")
    assert json.loads(Path("report.json").read_text()) == done.json
    assert list(done.json) == ["version", "repeats", "figures", "spread", "cases", "against"]


def test_only_what_changed_runs_again(evaluate: Any, told: Path) -> None:
    def runs(*cases: Any) -> list[str]:
        done = evaluate(cases, "--save", "report.json", "--resume", "--json")
        assert done.code == 0, done.err
        return [each["runs"][0]["run"] for each in done.json["cases"]]

    first = runs(case("a"), case("b"))
    assert runs(case("a"), case("b")) == first
    changed = runs(case("b"), {**case("a"), "limits": {"steps": 5}})
    assert changed[0] == first[1]
    assert changed[1] not in first
    kept = Path("report.runs.jsonl").read_text().splitlines()[0]
    with Path("report.runs.jsonl").open("a") as file:
        file.write('[]\n{"key": "' + json.loads(kept)["key"] + '"}\n{"case": "a", "ke')  # of others, and of a kill
    assert runs(case("b")) == [first[1]]
    told.write_text(f"{told.read_text()}\n[runs]\nuse = 'sqlite'\n[runs.sqlite]\npath = 'other.sqlite3'\n")
    assert runs(case("b")) != [first[1]], "another configuration"


def test_results_are_json_lines_from_the_first_line_on(evaluate: Any) -> None:
    evaluate([case("a"), case("b")], "--save", "report.json")
    kept = [json.loads(line)["case"] for line in Path("report.runs.jsonl").read_text().splitlines()]
    assert sorted(kept) == ["a", "b"]


def test_a_run_that_failed_runs_again_when_it_is_resumed(evaluate: Any) -> None:
    cases = [case("good"), case("down", crash=True)]
    first = evaluate(cases, "--save", "report.json", "--json").json["cases"]
    again = evaluate(cases, "--save", "report.json", "--resume", "--json").json["cases"]
    assert again[0] == first[0]
    assert again[1]["runs"][0]["run"] != first[1]["runs"][0]["run"]


def test_a_report_compared_with_itself_has_no_change(evaluate: Any) -> None:
    cases = [case("good"), case("bad", says="no")]
    evaluate(cases, "--save", "report.json")
    done = evaluate(cases, "--save", "report.json", "--resume", "--against", "report.json", "--json")
    assert done.code == 0
    against = done.json["against"]
    assert not any(against[name] for name in ("worse", "better", "new", "gone"))
    assert {each["change"] for each in against["figures"].values()} <= {0.0, None}


async def test_results_that_cannot_be_kept_end_the_evaluation_with_the_cause(folder: Path) -> None:
    evaluation = Evaluation([Case("one", "Why?")], repeats=1, jobs=1, settings=None, file=folder)
    with pytest.raises(StoreError) as caught:
        await evaluation.run(Kernel(), None)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal as a terminal does")
def test_what_is_done_when_ctrl_c_comes_is_kept_and_continued(folder: Path, site: Path) -> None:
    cases = [case("quick"), case("slow", wait="go")]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    words = [sys.executable, "-m", "portico_cli", "eval", "cases.jsonl", "--jobs", "2", "--save", "report.json"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    kept = folder / "report.runs.jsonl"
    with started(
        words, cwd=folder, env=environment, until=lambda: kept.exists() and "done" in kept.read_text()
    ) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume" in err
    assert "1 of 1 case passed." in out
    assert not (folder / "report.json").exists()
    (folder / "go").touch()
    quick = json.loads(kept.read_text())
    with started([*words, "--resume", "--json"], cwd=folder, env=environment) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    ended = [each["runs"][0] for each in json.loads(out)["cases"]]
    assert ended[0] == quick
    assert ended[1]["state"] == "done"


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="terminals are POSIX's")
def test_a_terminal_of_80_columns_shows_what_failed_and_the_figures(evaluate: Any, folder: Path, site: Path) -> None:
    cases = [case("good"), case("a name that is " + "long " * 12, says="a long answer that is wrong " * 9)]
    evaluate(cases, "--save", "before.json")
    words = [sys.executable, "-m", "portico_cli", "eval", "cases.jsonl", "--against", "before.json", "--repeat", "2"]
    shown = at_terminal(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(site), "TERM": "xterm-256color"})
    assert shown.code == 0
    assert max(map(len, shown.screen)) <= 80
    assert shown.screen[0].startswith("✗ a name that is long")
    assert ["figure", "now", "±", "earlier", "change"] in [line.split() for line in shown.screen]


def test_junit_has_a_test_for_each_case(evaluate: Any) -> None:
    odd = "no <b> & \ufffe \x07 „Käse“"
    evaluate([case("good"), case("<bad>", says=odd)], "--junit", "report.xml")
    [suite] = ET.parse("report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    good, bad = suite
    assert (good.get("name"), bad.get("name")) == ("good", "<bad>")
    assert good.find("failure") is None
    failure = bad.find("failure")
    assert failure is not None
    assert "yes" in str(failure.get("message"))
    assert "<b> & " in str(bad.findtext("system-out"))


def test_a_plot_is_an_svg_with_a_bar_for_now_and_one_for_the_earlier_report(evaluate: Any) -> None:
    evaluate([case("a"), case("b", says="no")], "--save", "before.json", "--plot", "one.svg")
    evaluate([case("a"), case("b")], "--against", "before.json", "--plot", "two.svg")
    one, two = (ET.parse(name).getroot() for name in ("one.svg", "two.svg"))
    assert one.tag == "{http://www.w3.org/2000/svg}svg"
    assert "1 of 2 cases passed" in "".join(one.itertext())
    assert "0.500" in "".join(two.itertext())
    bars = "{http://www.w3.org/2000/svg}rect"
    assert len(two.findall(bars)) > len(one.findall(bars))


@pytest.mark.parametrize("options", [("--resume",), ("--tolerance", "0.1"), ("--jobs", "0"), ("--against", "no.json")])
def test_options_that_make_no_sense_are_refused(evaluate: Any, options: tuple[str, ...]) -> None:
    assert evaluate([case("one")], *options).code == 2


@pytest.mark.parametrize("option", ["--save", "--junit", "--plot"])
@pytest.mark.parametrize("file", ["no/such", "cases.jsonl"])
def test_a_file_that_cannot_take_the_report_is_refused_before_anything_runs(
    evaluate: Any, option: str, file: str
) -> None:
    done = evaluate([case("one")], option, file)
    assert (done.code, done.out) == (2, "")
    assert file in done.err
    assert json.loads(Path("cases.jsonl").read_text()) == case("one")


def test_long_lists_of_what_changed_are_cut(evaluate: Any) -> None:
    evaluate([case("one")], "--save", "before.json")
    shown = evaluate([case(f"n{number}") for number in range(60)], "--against", "before.json").out
    assert "n49 … and 10 more" in shown
    assert "n50" not in shown


def test_a_mistake_in_the_cases_is_one_message(evaluate: Any) -> None:
    done = evaluate('{"question": "x"}\n{"qestion": "y"}')
    assert (done.code, done.out) == (2, "")
    assert "cases.jsonl:2: " in done.err


@pytest.mark.skipif(not PAGE.is_file(), reason="the page is in the repository only")
def test_the_page_describes_every_option_and_every_key() -> None:
    page = PAGE.read_text("utf-8")
    described = set(re.findall(r"`(--[a-z-]+)", page.partition("## Options")[2].partition("\n## ")[0]))
    assert described == {word for option in command.params for word in option.opts if word.startswith("--")}
    keys = page.partition("## The report as JSON")[2]
    assert all(f"`{name}`" in keys for name in [*FIGURES, *Report.__annotations__, *Comparison.__annotations__])
    assert all(f"`{name}`" in keys for name in Result.__annotations__)
