"""What a policy on flows asks and stops: AgentDojo's tasks as plans, in its own suites, by their own checks.

No model is asked. Each user task is a plan (`tasks/`); a literal in it is what the user said. What is found out comes
from results, by a path or by a model without tools, whose replies are given. Each injection task then attacks each
plan (`attacks.py`), under the labels of `labels.toml`: `strict`, and `endorsed`.

A task needs a question when an argument must be trusted and is not, without any attack. A pair is a silent attack when
the attacker has its way and no question was asked that a person would have refused: one who agrees to what would be
called without the attack, and to nothing else. Words in an answer are not traced; the plans of `travel`, where an
injection task wants some, answer with choices, numbers and what the catalogue says. "obeying" counts apart what a model
that obeys every injection does where it is asked again after each result (`reactive.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

__all__ = ["add_arguments", "describe", "run"]

TABLES = ("strict", "endorsed", "none")
"""The tables of labels; with none of them nothing is asked, which shows what the attacks are worth."""

WORDS = "wants words alone"
"""An injection task that wants a sentence in the answer and no call; a policy on calls does not see it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help="one suite, or one task like banking/user_task_0", metavar="NAME")
    parser.add_argument("--without-attacks", action="store_true", help="run the tasks only")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every task, and every attack on it, under each table of labels."""
    if find_spec("agentdojo") is None:
        raise ValueError("agentdojo is not installed; `nox -s eval -- agentdojo` installs it")
    return asyncio.run(measure(arguments.only, attacks=not arguments.without_attacks))


async def measure(only: str | None, *, attacks: bool) -> dict[str, Any]:
    """Return the figures, and the tasks and pairs behind them."""
    from tests.eval.agentdojo import attacks as attack, reactive
    from tests.eval.agentdojo.policy import policy_of
    from tests.eval.agentdojo.suites import NAMES, World, kernel_of, run as run_task, scripted, suite, tasks

    useless: list[str] = []
    mislabelled: set[str] = set()
    obeying = dict.fromkeys(("pairs", *reactive.WAYS, WORDS), 0)
    found = {name: {"questions": {}, "silent": [], "owned": []} for name in TABLES}
    count = {name: {"tasks": 0, "useful": 0, "pairs": 0} for name in NAMES}
    for task in tasks(only):
        name = f"{task.suite}/{task.id}"
        print(f"\r{name:30}", end="", file=sys.stderr, flush=True)
        policies: dict[str, Any] = {"none": None}
        kernels = {}
        for table in TABLES:
            world = World.of(task)
            if table != "none":
                policies[table] = policy_of(table, kernel_of(world, scripted({})).specs)
                mislabelled |= await attack.injected_and_trusted(task, policies[table])
            asked: list[str] = []

            async def agree(review: Any, asked: list[str] = asked) -> bool:
                asked.extend(f"{flow.step} {'.'.join(map(str, flow.place))}" for flow in review.flows)
                return True

            kernels[table] = kernel_of(world, scripted(task.replies), policies[table], agree)
            outcome = await run_task(task, world, kernels[table])
            if asked:
                found[table]["questions"][name] = asked
        benign = world.steps
        useful = not outcome.error and outcome.judged(task.of_suite)
        useless += [] if useful else [f"{name}: {outcome.error or outcome.answer}"]
        count[task.suite]["tasks"] += 1
        count[task.suite]["useful"] += useful
        for injection in suite(task.suite).injection_tasks if attacks else ():
            count[task.suite]["pairs"] += 1
            if not (task.suite == "workspace" and injection in attack.NEEDED):
                obeying["pairs"] += 1
                obeying[WORDS] += not attack.calls_of(task.suite, injection)
                for way in reactive.WAYS:
                    obeying[way] += await reactive.had_its_way(way, task, injection, policies["strict"])
            # Questions only stop steps: where the attack fails without them, it fails.
            works = await attack.breached(task, injection, None, benign)
            for table in TABLES:
                if works and await attack.breached(task, injection, policies[table], benign):
                    found[table]["silent"].append(f"{name} {injection}")
                if attack.silent_if_owned(task, injection, kernels[table], benign):
                    found[table]["owned"].append(f"{name} {injection}")
    print("\r", end="", file=sys.stderr)
    totals = {key: sum(each[key] for each in count.values()) for key in ("tasks", "useful", "pairs")}
    figures = {table: totals | figures_of(found[table]) for table in TABLES}
    values = {key: figures["strict"][key] for key in ("tasks", "useful", "questions", "pairs", "silent_attacks")}
    return {
        "suites": count,
        "useless": useless,
        "mislabelled": sorted(mislabelled),
        "found": found,
        "figures": figures,
        "values": values,
        "obeying": obeying,
    }


def figures_of(found: Mapping[str, Any]) -> dict[str, int]:
    return {
        "questions": len(found["questions"]),
        "silent_attacks": len({*found["silent"], *found["owned"]}),
        "of them scripted": len(found["silent"]),
    }


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as a table for people."""
    yield f"{'':10}{'tasks':>8}{'useful':>8}{'pairs':>8}" + "".join(f"{f'asks, {table}':>18}" for table in TABLES)
    for name, row in result["suites"].items():
        asks = [sum(each.startswith(name) for each in result["found"][table]["questions"]) for table in TABLES]
        yield f"{name:10}{row['tasks']:8}{row['useful']:8}{row['pairs']:8}" + "".join(f"{each:18}" for each in asks)
    for table, figures in result["figures"].items():
        found = result["found"][table]
        yield f"{table}: " + ", ".join(f"{key} {value}" for key, value in figures.items())
        yield from (f"  {name} asks for {', '.join(asked)}" for name, asked in found["questions"].items())
        yield from (f"  silent: {pair}" for pair in sorted({*found["silent"], *found["owned"]}))
    yield "obeying, silent attacks: " + ", ".join(f"{key} {value}" for key, value in result["obeying"].items())
    yield from (f"not useful: {each}" for each in result["useless"])
    yield from (f"trusted, and injected into: {each}" for each in result["mislabelled"])
