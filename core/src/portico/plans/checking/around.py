"""What all plans of one check share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from portico.functions import FunctionManual
from portico.plans.checking.names import FunctionNames
from portico.plans.findings import Finding
from portico.plans.plan import Plan
from portico.ports.schema_validator import SchemaValidator
from portico.ports.template_language import Template

__all__ = ["Around", "Plans", "Templates"]

Templates: TypeAlias = Callable[[str, str], Template]
"""Compiles a template from its source, in the language of a name, as `Kernel.template` does."""

Plans: TypeAlias = Callable[[str], Plan | None]
"""Tells which plan a function runs, by its full name; None for one that runs none."""


@dataclass(slots=True)
class Around:
    """What all plans of one check share."""

    catalogue: Mapping[str, FunctionManual]
    validator: SchemaValidator
    templates: Templates | None
    found: list[Finding]
    plans: Plans | None = None
    names: FunctionNames = field(init=False)
    languages: set[str] = field(default_factory=set)
    """Those that are not there: one finding for each is enough."""
    walked: set[str] = field(default_factory=set)
    """The functions whose plans were looked through for circles."""
    circling: set[str] = field(default_factory=set)
    """Those in the circles that were noted."""

    def __post_init__(self) -> None:
        self.names = FunctionNames(self.catalogue)
