"""What a kernel demands of the flows in plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

from portico._flows.labels import FunctionLabels, Takes

if TYPE_CHECKING:
    from portico._functions.functions import FunctionSpec
    from portico._schema.paths import JsonPath

Mode: TypeAlias = Literal["off", "warn", "enforce"]
_ANYTHING, _TRUSTED = Takes(trusted=False), Takes()


@dataclass(frozen=True, slots=True)
class Policy:
    """What values may flow where in plans.

    >>> from portico import FunctionSpec
    >>> policy = Policy("enforce", {"Mail-*": FunctionLabels.read(takes={"body": "anything"})})
    >>> send = FunctionSpec("Mail-send", "", {}, {}, effects=True)
    >>> policy.takes(send, "to")[()].trusted, policy.takes(send, "body")[()].trusted
    (True, False)

    ``mode`` is "off", "warn" (flows that nothing allows are warnings), or "enforce" (a person agrees to them first, and
    what a function refuses does not run). ``functions`` are labels by name or pattern; they count instead of those that
    a function has itself, the longest pattern first; one that reaches out still does.

    A ``quiet`` policy is for an application that has said nothing: it warns in the check of a plan only, and only where
    what a search or a server gave reaches a function with effects. Functions without labels count as made by the
    application, and give what is as trusted as their arguments.
    """

    mode: Mode = "warn"
    functions: Mapping[str, FunctionLabels] = field(default_factory=dict)
    quiet: bool = False

    def labels(self, spec: FunctionSpec) -> FunctionLabels:
        """Return the labels of a function."""
        found = self.functions.get(spec.name)
        if found is None and self.functions:
            fitting = (each for each in self.functions if fnmatchcase(spec.name, each))
            found = self.functions.get(max(fitting, key=len, default=""))
        if found is None:
            return spec.labels or (_AS_GIVEN if spec.is_answer or self.quiet else _UNLABELLED)
        outside = found.reaches_out or (spec.labels is not None and spec.labels.reaches_out)
        return found if outside == found.reaches_out else replace(found, reaches_out=True)

    def takes(self, spec: FunctionSpec, parameter: str) -> dict[JsonPath, Takes]:
        """Return what a parameter takes, by paths into it."""
        labels = self.labels(spec)
        found = {path[1:]: takes for path, takes in labels.takes.items() if path[:1] == (parameter,)}
        return found or {(): _TRUSTED if self.is_sink(spec) else _ANYTHING}

    def is_sink(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters who decides that a function is called."""
        return spec.effects or (self.labels(spec).reaches_out and not self.quiet)

    def restricts(self, spec: FunctionSpec) -> bool:
        """Tell whether it matters what a function is called with."""
        takes = self.labels(spec).takes.values()
        return self.is_sink(spec) or any(each.trusted or each.readers is not None for each in takes)


_UNLABELLED, _AS_GIVEN = FunctionLabels(), FunctionLabels.read("as given")
