"""The verdict on a plan: which arguments take what they must not. A stand-in until core has the check itself."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias

from portico import From, FunctionSpec, ListOf, ObjectOf, Plan, Step, TextOf, Value
from portico.plans import evaluate

FILE = Path(__file__).parent / "labels.toml"
Word: TypeAlias = Literal["allow", "ask", "refuse"]
EACH = From.parse_path("$[*]")


@dataclass(frozen=True)
class Labels:
    """The labels of functions by name or pattern; later tables add to earlier ones."""

    tables: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, name: str) -> Labels:
        """Read the table ``strict``, or ``endorsed``, which adds to it."""
        document = tomllib.loads(FILE.read_text("utf-8"))
        names = ("strict",) if name == "strict" else ("strict", name)
        return cls(tuple(document[each]["functions"] for each in names))

    def of(self, function: str, key: str) -> dict[str, str]:
        """Return what is said of a function's results (``gives``) or parameters (``takes``)."""
        said = [
            value.get(key, {})
            for table in self.tables
            for pattern, value in table.items()
            if fnmatchcase(function, pattern)
        ]
        return {name: word for each in said for name, word in each.items()}

    def trusted(self, function: str, result: Any) -> Iterator[Any]:
        """Yield the parts of a function's result that are trusted."""
        for place, word in self.of(function, "gives").items():
            with suppress(LookupError):
                if word == "trusted":
                    yield evaluate(From("it", place_of(place)), {"it": result})


Known: TypeAlias = Mapping[str, Any]
"""For each step, a function of a path that tells whether the value there is trusted."""


def verdict(plan: Plan, labels: Labels, specs: Mapping[str, FunctionSpec]) -> dict[tuple[str, str], Word]:
    """Return the verdict on each argument that takes trusted values only, by step and argument.

    Steps of a nested plan are `s3/a`.
    """
    found: dict[tuple[str, str], Word] = {}
    _Flow(labels, specs, found).run(plan, {}, "")
    return found


@dataclass
class _Flow:
    labels: Labels
    specs: Mapping[str, FunctionSpec]
    found: dict[tuple[str, str], Word]

    def run(self, plan: Plan, known: Known, within: str) -> Known:
        known = dict(known)
        for step in plan.steps:
            known[step.id] = self.step(step, known, within)
        return known

    def step(self, step: Step, known: Known, within: str) -> Any:
        if step.each is not None:
            known = {**known, "item": self.item(step.each.items, known)}
        arguments = {name: self.trusted(each, known) for name, each in step.arguments.items()}
        looked_at = [self.trusted(each, known) for each in step.when.values] if step.when else []
        looked_at += [self.trusted(step.each.items, known)] if step.each else []
        result = self.result(step, known, arguments, within)
        skip = 0 if step.each is None else 1
        return lambda path: all(looked_at) and result(path[skip:])

    def result(self, step: Step, known: Known, arguments: Mapping[str, bool], within: str) -> Any:
        if isinstance(step.function, Plan):
            given = {name: self.places(each, known) for name, each in step.arguments.items()}
            inner = {
                "input": lambda path: given[path[0]](path[1:]) if path else all(each(()) for each in given.values())
            }
            after = self.run(step.function, inner, f"{within}{step.id}/")
            ends = step.function.result
            return lambda path: ends is None or self.trusted(ends, after)
        name = str(step.function)
        takes, gives = self.labels.of(name, "takes"), self.labels.of(name, "gives")
        for argument, trusted in arguments.items():
            word = takes.get(argument, "trusted" if self.specs[name].effects else "anything")
            if word == "trusted":
                self.found[f"{within}{step.id}", argument] = "allow" if trusted else "ask"
        if name.startswith("Model-"):
            return lambda path: all(arguments.values())
        # What a function takes anything for by its labels, a text to send or keep, does not select what it gives.
        selecting = [trusted for argument, trusted in arguments.items() if takes.get(argument) != "anything"]
        places = [place_of(place) for place, word in gives.items() if word == "trusted"]
        return lambda path: (
            all(selecting) and all(any(_covers(place, one) for place in places) for one in _singles(path))
        )

    def trusted(self, expression: Any, known: Known) -> bool:
        return bool(self.places(expression, known)(()))

    def places(self, expression: Any, known: Known) -> Any:
        """Return what tells whether the value at a path inside an expression is trusted."""
        match expression:
            case Value() | str():
                return lambda path: True
            case From(step, path):
                return lambda more: known[step]((*path, *more))
            case TextOf(parts) | ListOf(parts):
                return lambda path: all(self.trusted(each, known) for each in parts)
            case ObjectOf(members):
                return lambda path: all(self.trusted(each, known) for each in members.values())

    def item(self, items: Any, known: Known) -> Any:
        if isinstance(items, From) and not any(not isinstance(part, str | int) for part in items.path):
            return lambda path: known[items.step]((*items.path, *EACH, *path))
        return self.places(items, known)


def place_of(place: str) -> tuple[Any, ...]:
    """Read a place in a result: `[*].id_` is `$[*].id_`."""
    return From.parse_path(place if place.startswith("$") else f"${place}" if place.startswith("[") else f"$.{place}")


def _singles(path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the paths that a path stands for: one for each name of a union."""
    if not path:
        yield ()
        return
    part, rest = path[0], path[1:]
    for selector in getattr(part, "selectors", (part,)):
        for more in _singles(rest):
            yield (selector, *more)


def _covers(place: tuple[Any, ...], path: tuple[Any, ...]) -> bool:
    """Tell whether a label at a place is on the value at a path, which lies there or inside."""
    return len(place) <= len(path) and all(
        not isinstance(wanted, str) and not isinstance(part, str) if not isinstance(wanted, str) else wanted == part
        for wanted, part in zip(place, path, strict=False)
    )
