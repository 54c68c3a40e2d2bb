"""What a check finds in a plan, and how it is mended where that is certain."""

from __future__ import annotations

from dataclasses import dataclass

from portico.plans.plan import Expression

__all__ = ["Finding", "Fix"]


@dataclass(frozen=True, slots=True)
class Fix:
    """One place of a plan, and what belongs there.

    ``within`` are the ids of the steps from the outermost to the one that is mended; a place in the result of a plan
    has those of the plans around it only. ``place`` leads on as the JSON form does: ``("function",)``,
    ``("arguments", "day", "object", "date")``, ``("result", "list", 0)``, ``("after", 0)``, ``("attempts",)``.
    ``new`` is an expression that replaces the one there; a string is another name, of the function, of the argument or
    member that stands there, or of the step that is waited for; None takes away what stands there.
    """

    within: tuple[str, ...]
    place: tuple[str | int, ...]
    new: Expression | str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found: in which step, where inside it, and how bad it is.

    ``severity`` is "error" or "warning". ``nearest`` are the names or paths that may be meant, the likeliest first.
    ``fix`` is there where only one thing can be meant; `portico.plans.fixes.apply_fixes` does it. ``hint`` is advice
    that not every form of plans can follow, such as a path that would do; `words` is the message with it.

    >>> str(Finding("there is no function 'wether'; nearest: weather", "s1", "function", nearest=("weather",)))
    "s1 function: there is no function 'wether'; nearest: weather"
    """

    message: str
    step: str | None = None
    place: str = ""
    severity: str = "error"
    nearest: tuple[str, ...] = ()
    fix: Fix | None = None
    hint: str = ""

    @property
    def words(self) -> str:
        """The message with the hint, without step and place."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __str__(self) -> str:
        where = " ".join(part for part in (self.step, self.place) if part)
        return f"{where}: {self.words}" if where else self.words
