"""Run a case by the application, and measure what came of it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import unquote

from portico import Citations, Paused, Source, TextSearchResult, Usage
from portico.plans import Answer, Event, Infeasible, Plan, RunEvent, Step, plan_difference
from portico_cli.failures import describe_error
from portico_eval.cases import Case, Fact, fold
from portico_eval.measures import ndcg, recall

if TYPE_CHECKING:
    from portico import Kernel, Run
    from portico.plans import Finding

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


@dataclass(slots=True)
class _Seen:
    """What the events of a run tell: its first proposal, its cost, and how often it waited for a person."""

    run: str | None = None
    usage: Usage = field(default_factory=lambda: Usage(cost=0.0))
    questions: int = 0
    proposal: tuple[Plan, Sequence[Finding]] | None = None

    def __call__(self, event: RunEvent) -> None:
        match event:
            case Event.RunStarted(run=run):
                self.run = self.run or run
            case Event.ChatUsed(usage=usage):
                self.usage += usage
            case Event.StepPaused():
                self.questions += 1
            case Event.Proposed(plan=plan, findings=findings) | Event.Refused(plan=plan, findings=findings):
                self.proposal = self.proposal or (plan, findings)


async def measure(kernel: Kernel, case: Case, judge: Judge | None = None, *, repeat: int = 0, key: str = "") -> Result:
    """Run a case once and return what came of it; a failure is a result too.

    ``judge`` is asked about each fact that is a text. ``repeat`` and ``key`` say which run it is.
    """
    seen, run, reason = _Seen(), None, ""
    began = time.perf_counter()
    try:
        run = await kernel.run_goal(case.question, emit=seen, input=case.input)
    except Exception as error:  # noqa: BLE001 - a case that fails is a result, not the end
        reason = _words_of(error)
    seconds = time.perf_counter() - began
    outcome = run.outcome if run is not None else None
    text = outcome.text if isinstance(outcome, Answer) else ""
    facts = [await _look_for(fact, case.question, text, judge) for fact in case.facts]
    passages = run.passages if run is not None else ()
    ranking, relevance = rank_sources(case.sources, passages), dict.fromkeys(case.sources, 1)
    total, unheld = check_citations(case.question, outcome, passages) if isinstance(outcome, Answer) else (0, [])
    states = {Answer: "done", Infeasible: "infeasible", Paused: "held"}
    made: Result = {
        "case": case.id,
        "repeat": repeat,
        "key": key,
        "run": seen.run,
        "state": states.get(type(outcome), "failed"),
        "answer": text or None,
        "reason": reason or getattr(outcome, "reason", ""),
        "answered": run is not None and _is_answered(kernel, run, facts),
        "recall": recall(ranking, relevance, DEPTH) if relevance else None,
        "ndcg": ndcg(ranking, relevance, DEPTH) if relevance else None,
        "missing": [source for source in case.sources if source not in ranking[:DEPTH]],
        "citations": total,
        "unheld": unheld,
        "facts": facts,
        "plan": _plan_made(case, seen, run),
        "questions": seen.questions,
        "steps": sum(record.step.own for record in run.steps) if run is not None else 0,
        "tokens": seen.usage.input_tokens + seen.usage.output_tokens,
        "cost": seen.usage.cost,
        "seconds": round(seconds, 4),
        "failures": [],
    }
    made["failures"] = list(_failures(case, made))
    return made


async def _look_for(fact: Fact, question: str, answer: str, judge: Judge | None) -> FactFound:
    found, reason = fact.stands_in(answer), ""
    if answer and judge is not None and fact.pattern is None:
        try:
            found, reason = await judge(question, answer, str(fact))
        except Exception as error:  # noqa: BLE001 - as a case that fails
            found, reason = False, f"it could not be judged: {_words_of(error)}"
    return {"fact": str(fact), "found": found, "reason": reason}


def _words_of(error: Exception) -> str:
    return describe_error(error)[1].partition("\n")[0]


def rank_sources(expected: Sequence[str], passages: Sequence[TextSearchResult]) -> list[str]:
    """Return the documents of passages in their order, each once; those expected by the words that expect them.

    >>> rank_sources(["ports"], [TextSearchResult("…", "Plans"), TextSearchResult("…", "Ports › Names")])
    ['plans', 'ports']

    A source is expected by its name, its path or link, or whole words of these.
    """
    ranking: dict[str, None] = {}
    known: set[str] = set()
    for passage in passages:
        link = unquote(passage.link or "")
        place = fold(link.partition("#")[0] or passage.name or passage.value)
        words = fold(f"{passage.name or ''} \n {link}")
        found = [each for each in expected if each not in ranking and _has_words(words, each)]
        if place not in known and not found:
            found = [place]
        known.add(place)
        ranking |= dict.fromkeys(found)
    return list(ranking)


def _has_words(text: str, expected: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(fold(unquote(expected)))}(?!\w)", text) is not None


def check_citations(question: str, answer: Answer, passages: Sequence[TextSearchResult]) -> tuple[int, list[str]]:
    """Return how many citations an answer has, and those that do not hold.

    A citation holds if a passage of its place has the words that it quotes. Marks and links that no passage backs do
    not hold, and neither do quotations that no passage has; see `portico.Citations`.
    """
    sources, unheld = [], []
    for cited in answer.citations:
        of_place = [each for each in passages if _place(each.link, each.name) == _place(cited.link, cited.name)]
        backing = next((each for each in of_place if fold(cited.quote) in fold(each.value)), None)
        sources.append(Source(cited.number, backing.value if backing else "", cited.name, cited.link))
        if backing is None:
            unheld.append(f"[{cited.number}] {cited.name or cited.link or ''}: “{_cut(cited.quote)}”")
    unbacked = Citations.check(answer.text, sources).unbacked
    unheld += [f"[{each}]" if isinstance(each, int) else each for each in unbacked]
    read = [Source(0, question), *(Source(0, each.value, each.name, each.link) for each in passages)]
    quoted = [f"“{_cut(each)}”" for each in Citations.unfound_quotations(answer.text, read)] if passages else []
    return len(answer.citations) + len(unbacked) + len(quoted), unheld + quoted


def _place(link: str | None, name: str | None) -> str:
    return (link or "").partition("#")[0] or name or ""


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


def _plan_made(case: Case, seen: _Seen, run: Run | None) -> PlanMade | None:
    if seen.proposal is None:
        return {"valid": False, "findings": [], "difference": ["There is no plan."]} if case.plan else None
    plan, findings = seen.proposal
    difference = None
    if case.plan is not None:
        executed = run.plan if run is not None and run.plan.steps else plan
        executed = executed if case.plan.result is not None else replace(executed, result=None)
        found = plan_difference(_bare(case.plan), _bare(executed))
        difference = (
            [] if not (found.added or found.removed or found.changed or found.changes) else str(found).split("\n")
        )
    valid = not any(each.severity == "error" for each in findings)
    return {"valid": valid, "findings": [str(each) for each in findings], "difference": difference}


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
