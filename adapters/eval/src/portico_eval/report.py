"""One report of all cases: its figures, and how it compares with an earlier one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TypedDict, cast

from portico.errors import ConfigurationError
from portico_cli.arguments import read_text
from portico_eval.cases import Case
from portico_eval.measuring import DEPTH, Result

VERSION = 1
_MOST_BYTES = 200_000_000
_PLACES = 6


@dataclass(frozen=True, slots=True)
class Figure:
    """How a figure is shown. ``unit`` is "" for a share from 0 to 1; ``lower`` says that less is better."""

    words: str
    unit: str = ""
    lower: bool = False


FIGURES = {
    "passed": Figure("cases passed"),
    f"recall@{DEPTH}": Figure(f"recall@{DEPTH} of sources"),
    f"ndcg@{DEPTH}": Figure(f"nDCG@{DEPTH} of sources"),
    "citations_held": Figure("citations that hold"),
    "answered": Figure("answered"),
    "rightly_refused": Figure("rightly refused"),
    "facts_found": Figure("facts said"),
    "plans_valid": Figure("first plans valid"),
    "plans_as_reference": Figure("plans as the reference"),
    "questions": Figure("questions to a person", "count", lower=True),
    "tokens": Figure("tokens", "count", lower=True),
    "cost": Figure("cost", "$", lower=True),
    "seconds_p50": Figure("seconds, p50", "s", lower=True),
    "seconds_p95": Figure("seconds, p95", "s", lower=True),
}

Figures = Mapping[str, float | None]


class CaseReport(TypedDict):
    """A case and its runs; it passed if each of them did."""

    id: str
    question: str
    passed: bool
    runs: list[Result]


class Change(TypedDict):
    """A figure of an earlier report and of this one."""

    before: float | None
    now: float | None
    change: float | None


class Comparison(TypedDict):
    """What changed since an earlier report; the lists are ids of cases."""

    figures: dict[str, Change]
    worse: list[str]
    better: list[str]
    new: list[str]
    gone: list[str]


class Report(TypedDict):
    """What `portico eval` found; ``spread`` has the standard deviations of the figures over repeats."""

    version: int
    repeats: int
    figures: Figures
    spread: Figures
    cases: list[CaseReport]
    against: Comparison | None


def make_report(cases: Sequence[Case], results: Iterable[Result], repeats: int = 1) -> Report:
    """Return the report of these results; cases without one are left out."""
    by_case: dict[str, list[Result]] = {case.id: [] for case in cases}
    for result in sorted(results, key=lambda each: each["repeat"]):
        by_case[result["case"]].append(result)
    refused = {case.id for case in cases if case.refused}
    made = [
        CaseReport(id=case.id, question=case.question, passed=not any(run["failures"] for run in runs), runs=runs)
        for case in cases
        if (runs := by_case[case.id])
    ]
    rounds = [[run for each in made for run in each["runs"] if run["repeat"] == number] for number in range(repeats)]
    measured = [figures_of(runs, refused) for runs in rounds if runs]
    values = {name: [each[name] for each in measured] for name in FIGURES}
    means = {name: _mean(found) for name, found in values.items()}
    spread = {name: _spread(found) for name, found in values.items()} if repeats > 1 else {}
    return Report(version=VERSION, repeats=repeats, figures=means, spread=spread, cases=made, against=None)


def figures_of(runs: Sequence[Result], refused: frozenset[str] | set[str]) -> dict[str, float | None]:
    """Return the figures of one run of each case; None where no case asks for it.

    Shares are of cases, those of citations and facts of all citations and facts. ``refused`` are the ids of cases whose
    right answer is none. Percentiles are nearest ranks.
    """
    plans = [run["plan"] for run in runs if run["plan"] is not None]
    seconds = sorted(run["seconds"] for run in runs)
    citations, facts = sum(run["citations"] for run in runs), [fact["found"] for run in runs for fact in run["facts"]]
    held = citations - sum(len(run["unheld"]) for run in runs)
    costs = [run["cost"] for run in runs]
    refusals = [
        not run["answered"] and run["state"] in ("done", "infeasible") for run in runs if run["case"] in refused
    ]
    return {
        "passed": _mean([not run["failures"] for run in runs]),
        f"recall@{DEPTH}": _mean([run["recall"] for run in runs]),
        f"ndcg@{DEPTH}": _mean([run["ndcg"] for run in runs]),
        "citations_held": held / citations if citations else None,
        "answered": _mean([run["answered"] for run in runs if run["case"] not in refused]),
        "rightly_refused": _mean(refusals),
        "facts_found": _mean(facts),
        "plans_valid": _mean([plan["valid"] for plan in plans]),
        "plans_as_reference": _mean([not plan["difference"] for plan in plans if plan["difference"] is not None]),
        "questions": sum(run["questions"] for run in runs),
        "tokens": sum(run["tokens"] for run in runs),
        "cost": None if None in costs else sum(cost for cost in costs if cost is not None),
        "seconds_p50": _rank(seconds, 0.5),
        "seconds_p95": _rank(seconds, 0.95),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return round(fmean(known), _PLACES) if known else None


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(stdev(known), _PLACES) if len(known) > 1 else None


def _rank(ordered: Sequence[float], share: float) -> float | None:
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


def read_report(file: Path) -> Report:
    """Read a report that `portico eval --save` has written. Raises ``ConfigurationError`` for any other file."""
    try:
        report = json.loads(read_text(str(file), _MOST_BYTES, str(file)))
        if report["version"] > VERSION:
            raise ConfigurationError(
                f"{file} is a report of a newer Portico, version {report['version']}. Use that one."
            )
        [(each["id"], each["passed"]) for each in report["cases"]]
        dict(report["figures"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"{file} is no report of `portico eval --save`.") from error
    return cast("Report", report)


def compare(report: Report, earlier: Report) -> Comparison:
    """Return what changed since an earlier report."""
    changes: dict[str, Change] = {}
    for name in FIGURES:
        now, before = report["figures"][name], earlier["figures"].get(name)
        change = None if now is None or before is None else round(now - before, _PLACES)
        changes[name] = Change(before=before, now=now, change=change)
    passed = {each["id"]: each["passed"] for each in report["cases"]}
    known = {each["id"]: each["passed"] for each in earlier["cases"]}
    return Comparison(
        figures=changes,
        worse=[id for id in passed if known.get(id, False) and not passed[id]],
        better=[id for id in passed if not known.get(id, True) and passed[id]],
        new=[id for id in passed if id not in known],
        gone=[id for id in known if id not in passed],
    )


def is_worse(report: Report, tolerance: float | None = None) -> bool:
    """Tell whether a report is a failure: a case failed that did not fail in the earlier report, if there is one.

    With a ``tolerance`` a share that fell by more than that is a failure too.
    """
    failed = {each["id"] for each in report["cases"] if not each["passed"]}
    against = report["against"]
    if against is None:
        return bool(failed)
    shares = [name for name, figure in FIGURES.items() if not figure.unit]
    falls = [-(against["figures"][name]["change"] or 0.0) for name in shares]
    return bool(failed & {*against["worse"], *against["new"]}) or (tolerance is not None and max(falls) > tolerance)
