"""The list of mutants that no test kills, each with the reason why: how it is read, written and held to the results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.mutation.results import Mutant

REASONS = {
    "equivalent": "does the same in every case",
    "wording": "changes words of a message, of which tests look at what it names",
    "performance": "gives the same, sooner or later",
    "bound": "moves a bound on the effort a little; within it the answers are the same",
    "types": "differs only for what the types exclude",
}


class Unreadable(ValueError):
    """The list is not as it should be."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that is listed, and why: one of `REASONS`, and what there is to say about it."""

    mutant: Mutant
    kind: str
    words: str


def parse(text: str) -> list[Survivor]:
    """Read the list: entries with an empty line between them, and comments.

    >>> (entry,) = parse(\"\"\"
    ... # A comment.
    ... fusion:fuse_by_rank
    ...   - score = 0.0
    ...   + score = None
    ...   = equivalent: it is set before it is read
    ... \"\"\")
    >>> entry.mutant.module, entry.mutant.added, entry.kind
    ('fusion', ('score = None',), 'equivalent')

    Raises `Unreadable` for an entry without a reason of `REASONS`, or one that says "equivalent" and not why.
    """
    entries = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            continue
        place, *rest = lines
        removed, added, reasons = (tuple(line[1:].strip() for line in rest if line[0] == mark) for mark in "-+=")
        kind, _, words = (reasons[0] if len(reasons) == 1 else "").partition(":")
        if kind not in REASONS or ":" not in place or len(removed) + len(added) + 1 != len(rest):
            raise Unreadable(f"{place}: give `module:function`, lines with - and +, and = with one of {[*REASONS]}")
        if kind in {"equivalent", "types", "bound"} and not words.strip():
            raise Unreadable(f"{place}: `{kind}` needs a colon and why")
        entries.append(Survivor(Mutant(place, removed, added), kind, words.strip()))
    return entries


def entry(mutant: Mutant, reason: str) -> str:
    """Write one entry."""
    lines = [
        mutant.place,
        *(f"  - {line}".rstrip() for line in mutant.removed),
        *(f"  + {line}".rstrip() for line in mutant.added),
        f"  = {reason}",
    ]
    return "\n".join(lines) + "\n"


def unlisted(survived: Iterable[Mutant], listed: Iterable[Survivor]) -> list[Mutant]:
    """Return the mutants that survived and have no entry."""
    known = {survivor.mutant for survivor in listed}
    return [mutant for mutant in dict.fromkeys(survived) if mutant not in known]


def outdated(checked: set[str], survived: Iterable[Mutant], listed: Iterable[Survivor]) -> list[Mutant]:
    """Return the entries of modules that were ``checked`` to the end whose mutant is killed by now, or gone."""
    alive = set(survived)
    return [one.mutant for one in listed if one.mutant.module in checked and one.mutant not in alive]
