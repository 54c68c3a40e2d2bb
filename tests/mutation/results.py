"""What mutmut has found out so far: each mutant, its change as lines, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

# How a mutated class and function are joined in mutmut's names, and where its number begins.
_JOINT, _NUMBER = "ǁ", "__mutmut_"


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMEOUT = "timeout"  # it ran without end, which a test shows as well
    SURVIVED = "survived"
    UNTESTED = "untested"  # no test of core runs its function
    UNCHECKED = "unchecked"


# By the exit status of the tests that ran it: pytest's own, mutmut's own, and signals. Whatever else they end with,
# they did not pass; but 2 is a run that was interrupted, and so is a process that was killed from outside.
_VERDICTS = {
    None: Verdict.UNCHECKED,
    0: Verdict.SURVIVED,
    2: Verdict.UNCHECKED,
    5: Verdict.UNTESTED,
    33: Verdict.UNTESTED,
    **dict.fromkeys((24, -24, 36, 152, 255), Verdict.TIMEOUT),
    **dict.fromkeys((-2, -9, -15), Verdict.UNCHECKED),
}


def verdict_of(status: int | None) -> Verdict:
    """Say what an exit status means."""
    return _VERDICTS.get(status, Verdict.KILLED)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one function: ``place`` is the module without `portico.`, a colon, and the function.

    ``removed`` and ``added`` are the changed lines without their indentation. A mutant is known by these, not by
    mutmut's number, which shifts with every edit of the function.
    """

    place: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    key: str = field(default="", compare=False)
    """mutmut's name of it, where it is one of its results."""

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]


def modules(folder: Path) -> dict[str, Path]:
    """Give the mutated modules by name, each with the file that holds what became of its mutants."""
    sources = folder / "mutants" / "src" / "portico"
    return {
        ".".join(meta.relative_to(sources).with_name(meta.name.removesuffix(".py.meta")).parts): meta
        for meta in sorted(sources.rglob("*.py.meta"))
        # A source that is gone leaves its results behind.
        if (folder / "src" / "portico" / meta.relative_to(sources)).with_suffix("").is_file()
    }


def results(module: str, meta: Path) -> Iterator[tuple[Mutant, Verdict]]:
    """Read what became of the mutants of one module."""
    statuses = json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
    if not statuses:
        return
    mutated = meta.with_suffix("")
    lines = mutated.read_text("utf-8").split("\n")
    spans = json.loads(mutated.with_suffix(".py.spans").read_text("utf-8"))["spans"]

    def source(name: str, function: str) -> list[str]:
        start, end = spans[name]
        return [line.replace(name, function) for line in lines[start - 1 : end]]

    for key, status in statuses.items():
        name = key.rpartition(".")[2]
        mangled = name.partition(_NUMBER)[0]
        qualified = mangled.removeprefix(f"x{_JOINT}").replace(_JOINT, ".").removeprefix("x_")
        function = qualified.rpartition(".")[2]
        removed, added = changed(source(f"{mangled}{_NUMBER}orig", function), source(name, function))
        yield Mutant(f"{module}:{qualified}", removed, added, key), verdict_of(status)


def changed(before: list[str], after: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines from the first to the last in which they differ, of both."""
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    return tuple(line.strip() for line in before), tuple(line.strip() for line in after)
