"""Run a case by the application, and measure what came of it."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import unquote

from portico import Citations, Paused, Source, TextSearchResult, Usage
from portico.plans import Answer, Event, Infeasible, Plan, RunEvent, Step, plan_difference
from portico_cli.failures import describe_error
from portico_eval.cases import Case, fold
from portico_eval.measures import ndcg, recall

if TYPE_CHECKING:
    from portico import Kernel, Run

DEPTH = 10
"""Sources of a ranking that recall and nDCG look at."""
_SHOWN = 80

Judge = Callable[[str, str, str], Awaitable[tuple[bool, str]]]
"""Tells of a question, an answer and a fact whether the answer states the fact, and why."""


class FactFound(TypedDict):
    """Whether an answer states a fact; ``reason`` is the judge's."""

    fact: str
    found: bool
    reason: str


class PlanMade(TypedDict):
    """The first plan: whether its check found no error, what it found, and the difference to the reference plan."""

    valid: bool
    findings: list[str]
    difference: list[str] | None


class Result(TypedDict):
    """What came of one run of a case; ``failures`` say in sentences why it did not pass.

    ``state`` is "done", "infeasible", "held" or "failed", and ``answered`` says whether there is an answer that rests
    on something. What the case does not ask for is None.
    """

    case: str
    repeat: int
    key: str
    run: str | None
    state: str
    answer: str | None
    reason: str
    answered: bool
    recall: float | None
    ndcg: float | None
    missing: list[str]
    citations: int
    unheld: list[str]
    facts: list[FactFound]
    plan: PlanMade | None
    questions: int
    steps: int
    tokens: int
    cost: float | None
    seconds: float
    failures: list[str]


async def measure(kernel: Kernel, case: Case, judge: Judge | None = None, *, repeat: int = 0, key: str = "") -> Result:
    """Run a case once and return what came of it; a failure is a result too.

    ``judge`` is asked about each fact that is a text. ``repeat`` and ``key`` say which run it is.
    """
    events: list[RunEvent] = []
    run, reason = None, ""
    began = time.perf_counter()
    try:
        run = await kernel.run_goal(case.question, emit=events.append, input=case.input)
    except Exception as error:  # noqa: BLE001 - a case that fails is a result, not the end
        reason = _words_of(error)
    seconds = time.perf_counter() - began
    outcome = run.outcome if run is not None else None
    text = outcome.text if isinstance(outcome, Answer) else ""
    facts = [FactFound(fact=str(fact), found=fact.stands_in(text), reason="") for fact in case.facts]
    try:
        for found, fact in zip(facts, case.facts, strict=True):
            if judge is not None and text and fact.pattern is None:
                found["found"], found["reason"] = await judge(case.question, text, str(fact))
    except Exception as error:  # noqa: BLE001 - as a case that fails
        reason = f"The facts could not be judged. {_words_of(error)}"
        facts = [{**found, "found": False} for found in facts]
    passages = run.passages if run is not None else ()
    ranking, relevance = rank_sources(case.sources, passages), dict.fromkeys(case.sources, 1)
    total, unheld = check_citations(case.question, outcome, passages) if isinstance(outcome, Answer) else (0, [])
    usage = sum((each.usage for each in events if isinstance(each, Event.ChatUsed)), Usage(cost=0.0))
    known = usage.cost is not None and 0 <= usage.cost < math.inf
    states = {Answer: "done", Infeasible: "infeasible", Paused: "held"}
    made: Result = {
        "case": case.id,
        "repeat": repeat,
        "key": key,
        "run": next((each.run for each in events if isinstance(each, Event.RunStarted)), None),
        "state": "failed" if reason else states[type(outcome)],
        "answer": text or None,
        "reason": reason or getattr(outcome, "reason", ""),
        "answered": run is not None and _is_answered(kernel, run, facts),
        "recall": recall(ranking, relevance, DEPTH) if relevance else None,
        "ndcg": ndcg(ranking, relevance, DEPTH) if relevance else None,
        "missing": [source for source in case.sources if source not in ranking[:DEPTH]],
        "citations": total,
        "unheld": unheld,
        "facts": facts,
        "plan": _plan_made(case, events, run),
        "questions": sum(isinstance(each, Event.StepPaused) for each in events),
        "steps": sum(record.step.own for record in run.steps) if run is not None else 0,
        "tokens": usage.input_tokens + usage.output_tokens,
        "cost": usage.cost if known else None,
        "seconds": round(seconds, 4),
        "failures": [],
    }
    made["failures"] = list(_failures(case, made))
    return made


def _words_of(error: Exception) -> str:
    return describe_error(error)[1].strip().partition("\n")[0] or type(error).__name__


def rank_sources(expected: Sequence[str], passages: Sequence[TextSearchResult]) -> list[str]:
    """Return the documents of passages in their order, each once; those expected by the words that expect them.

    >>> rank_sources(["ports"], [TextSearchResult("…", "Plans"), TextSearchResult("…", "Ports › Names")])
    ['plans', 'ports']

    A source is expected by its name, its path or link, or whole words of these. The working directory is left out of
    them, for a word of it would expect every source.
    """
    ranking: dict[str, None] = {}
    known: set[str] = set()
    for passage in passages:
        place = fold(_place(passage.link, passage.name) or passage.value)
        words = fold(f"{passage.name or ''} \n {_without_home(passage.link or '')}")
        found = [each for each in expected if each not in ranking and _has_words(words, each)]
        if place not in known and not found:
            found = [place]
        known.add(place)
        ranking |= dict.fromkeys(found)
    return list(ranking)


def _has_words(text: str, expected: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(fold(_without_home(expected)))}(?!\w)", text) is not None


def _without_home(place: str) -> str:
    home = Path.cwd()
    return unquote(place).removeprefix(unquote(f"{home.as_uri()}/")).removeprefix(f"{home}{os.sep}")


def check_citations(question: str, answer: Answer, passages: Sequence[TextSearchResult]) -> tuple[int, list[str]]:
    """Return how many citations and quotations an answer has, and those that do not hold.

    A citation holds if a passage of its place has the words that it quotes; a mark quotes its whole passage. Marks and
    links that no passage backs do not hold, and neither do quotations that no passage has; see `portico.Citations`.
    Whether a passage supports the statement before a mark is not looked at.
    """
    unheld = []
    for cited in answer.citations:
        of_place = [each for each in passages if _place(each.link, each.name) == _place(cited.link, cited.name)]
        if not any(fold(cited.quote) in fold(each.value) for each in of_place):
            unheld.append(f"[{cited.number}] {cited.name or cited.link or ''}: “{_cut(cited.quote)}”")
    read = [Source(-1, each.value, each.name, each.link) for each in passages]  # no mark has a number below 0
    cites = [Source(each.number, "", each.name, each.link) for each in answer.citations]
    unbacked = Citations.check(answer.text, [*cites, *read]).unbacked
    quoted = Citations.unfound_quotations(answer.text, []) if passages else ()
    unfound = Citations.unfound_quotations(answer.text, [*read, Source(-1, question)]) if passages else ()
    unheld += [f"[{each}]" if isinstance(each, int) else each for each in unbacked]
    unheld += [f"“{_cut(each)}”" for each in unfound]
    return len(answer.citations) + len(unbacked) + len(quoted), unheld


def _place(link: str | None, name: str | None) -> str:
    return unquote((link or "").partition("#")[0]) or name or ""


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"


def _is_answered(kernel: Kernel, run: Run, facts: Sequence[FactFound]) -> bool:
    """Tell whether there is an answer, and not one that searched, cites nothing, and says nothing expected."""
    outcome = run.outcome
    if not isinstance(outcome, Answer):
        return False
    called = [kernel.specs.get(each.step.function) for each in run.steps if isinstance(each.step.function, str)]
    searched = any(spec is not None and spec.is_search for spec in called)
    in_words = isinstance(outcome.value, str | None)
    return bool(outcome.citations) or not (searched and in_words) or (bool(facts) and all(f["found"] for f in facts))


def _plan_made(case: Case, events: Sequence[RunEvent], run: Run | None) -> PlanMade | None:
    first = next((each for each in events if isinstance(each, Event.Proposed | Event.Refused)), None)
    if first is None:
        return {"valid": False, "findings": [], "difference": ["There is no plan."]} if case.plan else None
    difference = None
    if case.plan is not None:
        executed = run.plan if run is not None and run.plan.steps else first.plan
        executed = executed if case.plan.result is not None else replace(executed, result=None)
        found = replace(plan_difference(_bare(case.plan), _bare(executed)), renamed=())  # ids do not matter
        difference = [] if found.same else str(found).split("\n")
    valid = not any(each.severity == "error" for each in first.findings)
    return {"valid": valid, "findings": [str(each) for each in first.findings], "difference": difference}


def _bare(plan: Plan) -> Plan:
    """Return a plan without what is no part of what it does: its goal, notes and fingerprints, and reasons."""
    return Plan("", tuple(map(_bare_step, plan.steps)), plan.result)


def _bare_step(step: Step) -> Step:
    function = _bare(step.function) if isinstance(step.function, Plan) else step.function
    return replace(step, function=function, reason="")


def _failures(case: Case, made: Result) -> Iterator[str]:
    if made["state"] == "failed":
        yield f"It failed: {made['reason']}"
        return  # nothing else can be right
    if made["state"] == "held":
        yield f"It waits for a person: {made['reason']}"
    elif case.refused and made["answered"]:
        yield f"It is answered, and should not be: {_cut(made['answer'] or '')}"
    elif not case.refused and not made["answered"]:
        why = f"It searched, and cites nothing: {_cut(made['answer'])}" if made["answer"] else made["reason"]
        yield f"It is not answered. {why}"
    yield from (f"Not among the first {DEPTH} sources found: {source}" for source in made["missing"])
    for fact in made["facts"]:
        if not fact["found"]:
            yield f"Not said: {fact['fact']}" + (f" ({fact['reason']})" if fact["reason"] else "")
    yield from (f"This citation does not hold: {cited}" for cited in made["unheld"])
    if made["plan"] is not None and made["plan"]["difference"]:
        yield f"The plan is another than the reference: {'; '.join(map(str.strip, made['plan']['difference']))}"
    used: dict[str, float | None] = {name: made[name] for name in ("seconds", "tokens", "cost", "steps")}
    for name, most in case.limits.items():
        value = used[name]
        if value is None:
            yield f"Its cost is not known, and the limit is {most}."
        elif value > most:
            yield f"It took {value:g} {name}, and the limit is {most:g}."
