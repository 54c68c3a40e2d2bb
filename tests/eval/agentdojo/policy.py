"""The labels of the suites' tools as a policy, and what it says of a plan."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from portico import From, FunctionLabels, Kernel, Plan, Policy
from portico.plans import evaluate

FILE = Path(__file__).parent / "labels.toml"


def policy_of(table: str, names: Iterable[str]) -> Policy:
    """Return the policy of the table ``strict``, or of ``endorsed``, which adds to it, for functions of these names."""
    document = tomllib.loads(FILE.read_text("utf-8"))
    tables = [document[each]["functions"] for each in dict.fromkeys(("strict", table))]
    labels: dict[str, FunctionLabels] = {}
    for name in names:
        said = [words for each in tables for pattern, words in each.items() if fnmatchcase(name, pattern)]
        gives, takes = (
            {path: word for each in said for path, word in each.get(key, {}).items()} for key in ("gives", "takes")
        )
        labels[name] = FunctionLabels.read(gives, takes, reaches_out=any("reaches_out" in each for each in said))
    return Policy("enforce", labels)


def questions(kernel: Kernel, plan: Plan) -> dict[str, list[str]]:
    """Return where the check of a plan wants a person, by step: `s3/a` is a step of a nested plan."""
    asked: dict[str, list[str]] = {}
    for finding in kernel.check_plan(plan):
        if finding.verdict:
            *inside, place = finding.place.split()
            asked.setdefault("/".join([finding.step or "", *inside]), []).append(place.removeprefix("arguments."))
    return asked


def trusted_in(policy: Policy, function: str, result: Any) -> Iterator[Any]:
    """Yield the parts of a function's result that are trusted, or may be."""
    gives = policy.functions[function].gives
    untrusted = [path for path, words in gives.items() if not words.trusted and not words.as_given]
    for path in gives.keys() - untrusted:
        left = result
        for inside in untrusted:
            left = _without(left, inside) if inside[: len(path)] == path else left
        with suppress(LookupError):
            yield evaluate(From("it", path), {"it": left})


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a value without what is at a path, of names and all elements."""
    if not path:
        return None
    if isinstance(value, list):
        return [_without(each, path[1:]) for each in value]
    return {name: _without(each, path[1:]) if name == path[0] else each for name, each in dict(value or {}).items()}
