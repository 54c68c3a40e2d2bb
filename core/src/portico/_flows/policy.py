"""What a kernel demands of the flows in plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

from portico._flows.labels import FunctionLabels, Takes

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._schema.paths import JsonPath

Mode: TypeAlias = Literal["off", "warn", "enforce"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What values may flow where in plans.

    >>> from portico import FunctionSpec
    >>> policy = Policy("enforce", {"Mail-*": FunctionLabels.read(takes={"body": "anything"})})
    >>> send = FunctionSpec("Mail-send", "", {}, {}, effects=True)
    >>> policy.is_sink(send), policy.said_of(send, "body")[()].trusted
    (True, False)

    ``mode`` is "off", "warn" (flows that nothing allows are warnings), or "enforce" (a person agrees to them first, and
    what a function refuses does not run). ``functions`` are labels by name or pattern, the longest pattern first. What
    they say of results counts instead of what the function itself says, and so with parameters; one that reaches out
    still does.

    A ``quiet`` policy is for an application that has said nothing: it warns in the check of a plan only, and only where
    what a search or a server gave reaches a function with effects. Functions without labels count as made by the
    application, and give what is as trusted as their arguments. Raises ``ValueError`` for a quiet one that enforces.
    """

    mode: Mode = "warn"
    functions: Mapping[str, FunctionLabels] = field(default_factory=dict)
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.mode == "enforce":
            raise ValueError("a quiet policy only warns: leave out quiet=True, or the mode 'enforce'")

    def labels(self, spec: FunctionSpec) -> FunctionLabels:
        """Return the labels of a function."""
        found = self.functions.get(spec.name)
        if found is None and self.functions:
            fitting = (each for each in self.functions if self.fits(spec.name, each))
            found = self.functions.get(max(fitting, key=len, default=""))
        own = spec.labels or (_AS_GIVEN if spec.is_answer or self.quiet else _UNLABELLED)
        if found is None:
            return own
        outside = found.reaches_out or own.reaches_out
        return FunctionLabels(found.gives or own.gives, found.takes or own.takes, outside)

    def said_of(self, spec: FunctionSpec, parameter: str) -> dict[JsonPath, Takes]:
        """Return what labels say that a parameter takes, by paths into it."""
        return {path[1:]: takes for path, takes in self.labels(spec).takes.items() if path[:1] == (parameter,)}

    def is_sink(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters who decides that a function is called."""
        return spec.effects or (self.labels(spec).reaches_out and not self.quiet)

    def restricts(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters what a function is called with."""
        takes = self.labels(spec).takes.values()
        return self.is_sink(spec) or any(each.trusted or each.readers is not None for each in takes)

    @staticmethod
    def fits(name: str, pattern: str) -> bool:
        """Tell whether a pattern is one of a function's name, with a dot or a dash after its plugin."""
        return name == pattern or fnmatchcase(name, pattern) or fnmatchcase(name.replace("-", ".", 1), pattern)


_UNLABELLED, _AS_GIVEN = FunctionLabels(), FunctionLabels.read("as given")
