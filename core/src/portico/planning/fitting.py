"""The manual that a planner gives to a model, within a budget of tokens: whole functions, the relevant ones first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from portico.errors import LimitExceeded, PlanError
from portico.functions import FunctionManual
from portico.manuals import text_manual
from portico.plans.task import Infeasible, Task
from portico.selection.words import words
from portico.tokens import estimated_tokens

__all__ = ["FittedManual", "fitted_manual", "require_functions", "told_of"]

_BETWEEN_FUNCTIONS = 1
_IN_THE_NAME = 3.0


@dataclass(frozen=True, slots=True)
class FittedManual:
    """The functions that a model is told of, the manual's text, and the names of those that had no room."""

    functions: tuple[FunctionManual, ...]
    text: str
    left_out: tuple[str, ...] = ()


def require_functions(task: Task) -> None:
    """Raise ``PlanError`` when there is no function to plan with."""
    if not task.functions:
        raise PlanError(
            "There are no functions to plan with. Add some to the kernel, or name them under [functions] or [search] "
            "in portico.toml."
        )


def fitted_manual(
    functions: Sequence[FunctionManual],
    goal: str,
    *,
    tokens: int | None,
    write: Callable[[Iterable[FunctionManual]], str] = text_manual,
) -> FittedManual:
    """Choose the functions whose manuals fit into ``tokens``, those that the goal speaks of first.

    >>> from portico import Function
    >>> def rain(city: str) -> str:
    ...     '''Tell whether it rains.'''
    >>> def poem(subject: str) -> str:
    ...     '''Write a poem.'''
    >>> manuals = [Function.of(each).manual for each in (rain, poem)]
    >>> fitted = fitted_manual(manuals, "A poem about Ada, please", tokens=30)
    >>> [manual.name for manual in fitted.functions], fitted.left_out
    (['poem'], ('rain',))

    No manual is ever cut in the middle. With everything at hand the order is the catalogue's own, so that equal
    catalogues give equal prompts, which services cache. ``tokens`` None is no bound. Raises ``LimitExceeded`` when
    not one function has room.
    """
    if tokens is None:
        return FittedManual(tuple(functions), write(functions))
    sizes = [estimated_tokens(write([manual])) + _BETWEEN_FUNCTIONS for manual in functions]
    if sum(sizes) <= tokens:
        return FittedManual(tuple(functions), write(functions))
    chosen: list[int] = []
    left = tokens
    for place in _by_relevance(functions, goal):
        if sizes[place] <= left:
            chosen.append(place)
            left -= sizes[place]
    if not chosen:
        raise LimitExceeded(
            f"No function's manual fits into {tokens} tokens; the smallest takes about {min(sizes)}. "
            "Raise the planner's budget for the manual."
        )
    kept = set(chosen)
    fitting = tuple(functions[place] for place in chosen)
    left_out = tuple(manual.name for place, manual in enumerate(functions) if place not in kept)
    return FittedManual(fitting, write(fitting), left_out)


def told_of(infeasible: Infeasible, fitted: FittedManual) -> Infeasible:
    """Say that there are functions of which the model knew nothing, where that is so."""
    if not fitted.left_out:
        return infeasible
    told, known = len(fitted.functions), len(fitted.functions) + len(fitted.left_out)
    return replace(
        infeasible,
        reason=f"{infeasible.reason} (The model was told of {told:,} of {known:,} functions; "
        "manual_tokens allows more.)",
    )


def _by_relevance(functions: Sequence[FunctionManual], goal: str) -> list[int]:
    """Return the places of the functions, most relevant first; equally relevant ones stay in their order.

    A word counts as much as it is rare among the functions (inverse document frequency), and more in a name.
    """
    spoken = [_words_of(manual.name, manual.description, tuple(_inputs(manual))) for manual in functions]
    spread = Counter(word for named, described in spoken for word in named | described)
    wanted = frozenset(words(goal))
    scores = [
        sum(
            math.log(1 + len(functions) / spread[word]) * (_IN_THE_NAME if word in named else 1.0)
            for word in wanted & (named | described)
        )
        for named, described in spoken
    ]
    return sorted(range(len(functions)), key=lambda place: -scores[place])


def _inputs(manual: FunctionManual) -> Iterable[str]:
    for name, schema in manual.parameters.get("properties", {}).items():
        yield name
        if isinstance(schema, dict):
            yield str(schema.get("description", ""))


@lru_cache(maxsize=8_192)
def _words_of(name: str, description: str, inputs: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(words(name)), frozenset(words("\n".join((description, *inputs))))
