"""Which functions the next step offers: those that fit what the plan does not do yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from portico import Considered, FunctionsOffered, FunctionSpec, Selection
from portico.plans import Emit, FittedFunctions, PromptText
from portico.plugins import words
from portico.ports import FunctionSelector

_FITS = 0.3
"""A function fits what is missing if it has this share of the best score for the whole goal, at least."""
_FITS_WELL = 0.5
"""While a function with this share is missing, the plan does not end."""


@dataclass(slots=True)
class Choice:
    """Chooses the functions of each step of one plan, at most ``most`` of them; None chooses all.

    A score is the share of words plus the cosine, as the selector finds them; without a selector it is
    `FittedFunctions.score`. What is missing is the goal without the words of the functions called so far. With both
    shares 0.1 higher or lower, a random choice among three finds the same part of NESTFUL's functions within 0.05.
    """

    functions: Sequence[FunctionSpec]
    goal: str
    selector: FunctionSelector | None
    most: int | None
    emit: Emit
    ranked: list[Considered] = field(default_factory=list)
    offered: dict[str, Considered] = field(default_factory=dict)

    async def choose(self, called: Collection[str], *, ends: bool) -> tuple[Sequence[FunctionSpec], bool]:
        """Return functions that were not called, the best first, and whether the plan may end.

        Without ``ends`` it may not, and some are returned even if none fits. If no function fits the goal, all are.
        Emits the functions offered so far, and the others, when there are more.
        """
        if self.most is None:
            return self.functions, ends
        self.ranked = self.ranked or await self.rank(self.goal)
        best, known = self.ranked[0].score, len(self.offered)
        if best <= 0:
            return self.functions, ends
        done = set(words(PromptText.signatures(spec for spec in self.functions if spec.name in called)))
        missing = " ".join(text for text in self.goal.split() if not words(text) or not done.issuperset(words(text)))
        ranked = await self.rank(missing) if done else self.ranked
        least = _FITS * best if ends else 0.0
        fit = [each for each in ranked if each.name not in called and each.score >= least][: self.most]
        chosen = [*fit, *(each for each in ranked if each.reason == "always" and each not in fit)]
        self.offered |= {each.name: each for each in self.ranked if each.name in called}
        self.offered |= {each.name: replace(each, reason="chosen") for each in chosen if each.name not in self.offered}
        if len(self.offered) > known:
            left = tuple(replace(one, reason="beyond the limit") for one in self.ranked if one.name not in self.offered)
            self.emit(FunctionsOffered(Selection((*self.offered.values(),), left, len(self.functions), (self.goal,))))
        specs = {spec.name: spec for spec in self.functions}
        return [specs[each.name] for each in chosen], ends and not (fit and fit[0].score >= _FITS_WELL * best)

    async def rank(self, text: str) -> list[Considered]:
        """Score all functions for a text, the best first."""
        if self.selector is None or len(self.functions) < 2:
            scores = FittedFunctions.score(self.functions, text).items()
            return sorted((Considered(name, "chosen", score) for name, score in scores), key=lambda each: -each.score)
        # Fewer than all, for otherwise nothing is scored; those left out have scores too.
        found = await self.selector.select(tuple(self.functions), (text,), limit=len(self.functions) // 2)
        made = {spec.name: Considered(spec.name, "chosen") for spec in self.functions}
        for each in (*found.offered, *found.left_out):
            made[each.name] = replace(each, score=each.lexical + max(each.vector, 0.0))
        return sorted(made.values(), key=lambda each: -each.score)
