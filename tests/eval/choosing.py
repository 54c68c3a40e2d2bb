"""Whether a small model plans with the right functions: the planner `structured` and SmolLM2-135M, pools of ten.

A goal's pool has its gold functions, those that the collection's own plan calls, and others of the collection, drawn
with a seed. The planner writes a plan with the settings that the docs recommend for small models, and the plan runs on
stand-ins. "gold" is which share of a goal's gold functions the plan calls, in the mean over goals. A plan that calls
all ten would have 1.0, so "precision" is which share of the functions that a plan calls are gold, and "steps" is its
length beside that of the gold plan. "selector" is the share among the first functions of the selector's ranking, as
many as there are gold ones; "lots" is what as many draws from the pool as the plan has steps find in the mean. A plan
is valid if it passes the check at the first proposal; it ran if it gave an answer.

The files are those of `nestful` or those of `selection`; functions of the latter take and give texts.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.eval import selection_format
from tests.eval.nestful import Kernels
from tests.eval.nestful_format import Callable, Unreadable, plan_of, read_functions, read_tasks

from portico import Kernel
from portico.errors import PorticoError
from portico.plans import Answer, Event, RunEvent
from portico.ports import ChatService, FunctionSelector
from portico_basics.config import JsonschemaSettings
from portico_basics.contextual import ContextualSelector, SelectionOptions
from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_wordllama.embeddings import WordllamaEmbeddings

__all__ = ["Goal", "add_arguments", "describe", "measure", "read", "run"]

SMALL = StructuredSettings(
    choices=3,
    force_references=True,
    give_up=False,
    max_steps=8,
    text_length=100,
    max_tokens=400,
    temperature=0.0,
    seed=7,
)
"""The settings of docs/how-to/plan-with-constrained-steps.md for small models."""
MODEL = LlamaCppSettings(context_size=8192, threads=1, seed=7)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal, the functions of its gold plan, each once, the number of this plan's steps, and the pool."""

    text: str
    gold: frozenset[str]
    steps: int
    pool: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, help="the tasks, or queries", metavar="DATA")
    parser.add_argument("spec", type=Path, help="the functions", metavar="SPEC")
    parser.add_argument("--goals", type=int, default=40, help="how many goals, drawn with the seed", metavar="N")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first ones drawn, to tune on", metavar="N")
    parser.add_argument("--pool", type=int, default=10, help="how many functions a goal has", metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--words", action="store_true", help="without a function selector: by words alone")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the goals of one file with the functions of another."""
    functions, goals = read(arguments.data, arguments.spec, size=arguments.pool, seed=arguments.seed)
    chosen = goals[arguments.skip : arguments.skip + arguments.goals]

    async def with_model() -> dict[str, Any]:
        chat = LlamaCppChat(MODEL)
        try:
            return await measure(functions, chosen, chat, by_words=arguments.words)
        finally:
            await chat.aclose()

    return asyncio.run(with_model())


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['goals']} goals, {result['valid']} plans valid, {result['ran']} ran"
    yield "gold functions: planner {planner:.3f}, selector {selector:.3f}, lots {lots:.3f}".format(**result["gold"])
    yield "precision {precision:.3f}; {steps:.2f} steps, the gold plans have {gold_steps:.2f}".format(**result)
    for one in result["missed"]:
        yield f"  {one['goal'][:100]}: {one['plan']}, without {one['missing']}"
    for reason in result["reasons"]:
        yield f"  {reason}"


def read(data: Path, spec: Path, *, size: int, seed: int) -> tuple[dict[str, Callable], list[Goal]]:
    """Return the functions, and the goals in an order drawn with the seed; those that no plan serves are left out."""
    drawn = random.Random(seed)
    found: list[tuple[str, list[str]]] = []
    try:
        functions = read_functions(spec)
    except Unreadable:
        specs, _ = selection_format.read_functions(spec)
        functions = {each.name: _in_texts(each.name, each.description, each.parameters["properties"]) for each in specs}
        queries, _ = selection_format.read_queries(data, functions)
        found = [(query.text, list(query.functions)) for query in queries if len(query.functions) > 1]
    else:
        for task in read_tasks(data):
            try:
                found.append((str(task.goal), [str(step.function) for step in plan_of(task).steps]))
            except Unreadable as error:
                print(f"{task.name} is left out: {error}", file=sys.stderr)
    goals = []
    for text, called in found:
        gold = frozenset(called)
        if gold <= functions.keys() and len(gold) < size:
            others = sorted(functions.keys() - gold)
            goals.append(Goal(text, gold, len(called), (*sorted(gold), *drawn.sample(others, size - len(gold)))))
    drawn.shuffle(goals)
    return functions, goals


def _in_texts(name: str, description: str, properties: Mapping[str, Mapping[str, Any]]) -> Callable:
    text = {"type": "string"}
    parameters = {each: {**schema, **text} for each, schema in properties.items()}
    closed = {"type": "object", "additionalProperties": False}
    return Callable(
        name,
        description,
        {**closed, "properties": parameters, "required": list(parameters)},
        {**closed, "properties": {"result": text}, "required": ["result"]},
    )


async def measure(
    functions: Mapping[str, Callable], goals: Sequence[Goal], chat: ChatService, *, by_words: bool = False
) -> dict[str, Any]:
    """Let the planner plan each goal, and run the plan."""
    kernel, names = Kernels(functions, JsonschemaValidator(JsonschemaSettings(), None)).plain
    store = FaissVectorStore(FaissSettings())
    size = len(goals[0].pool)
    selector = ContextualSelector(store, WordllamaEmbeddings(), options=SelectionOptions(limit=size - 1))
    services = {ChatService: chat, **({} if by_words else {FunctionSelector: selector})}
    planner = StructuredPlanner(SMALL, Kernel(services).services)
    sums = dict.fromkeys(("planner", "selector", "lots", "precision", "steps"), 0.0)
    counts = {"valid": 0, "ran": 0}
    missed: list[dict[str, Any]] = []
    reasons: list[str] = []
    started = time.perf_counter()
    for number, goal in enumerate(goals, 1):
        gold = {names[each] for each in goal.gold}
        pool = [names[each] for each in goal.pool]
        events: list[RunEvent] = []
        try:
            run = await kernel.run_goal(goal.text, planner=planner, functions=pool, emit=events.append)
            counts["ran"] += isinstance(run.outcome, Answer)
        except PorticoError as error:
            reasons.append(f"{goal.text[:100]}: {error}")
        proposed = [event for event in events if isinstance(event, Event.Proposed)]
        counts["valid"] += bool(proposed) and not proposed[0].findings
        called = [str(step.function) for step in proposed[0].plan.steps] if proposed else []
        ranked = (await selector.select([kernel.specs[name] for name in pool], [goal.text])).names
        sums["planner"] += len(gold.intersection(called)) / len(gold)
        sums["selector"] += len(gold.intersection(ranked[: len(gold)])) / len(gold)
        sums["lots"] += 1 - (1 - 1 / len(pool)) ** len(called)
        sums["precision"] += len(gold.intersection(called)) / (len(set(called)) or 1)
        sums["steps"] += len(called)
        if gold - set(called):
            missed.append({"goal": goal.text, "plan": called, "missing": sorted(gold - set(called))})
        print(f"\r{number} goals, {sums['planner'] / number:.3f}", end="", file=sys.stderr, flush=True)
    await store.aclose()
    print(f", {time.perf_counter() - started:.0f} s", file=sys.stderr)
    means = {key: round(value / len(goals), 3) for key, value in sums.items()}
    return {
        "goals": len(goals),
        **counts,
        "gold": {key: means[key] for key in ("planner", "selector", "lots")},
        "precision": means["precision"],
        "steps": means["steps"],
        "gold_steps": round(sum(goal.steps for goal in goals) / len(goals), 3),
        "missed": missed,
        "reasons": reasons,
    }
