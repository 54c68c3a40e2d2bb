"""Find entry points in the metadata of installed distributions, and the names by which they are switched off."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, PackageMetadata, distributions

__all__ = ["COMMANDS", "GROUP", "disabled_by_environment", "entry_points_of", "first_of", "folded", "names_of"]

GROUP = "portico"
COMMANDS = "portico.commands"


def entry_points_of(group: str) -> Iterator[tuple[EntryPoint, str, str]]:
    """Yield the entry points of a group with name and version of the distribution, each once and by itself.

    ``importlib.metadata.entry_points`` reads all distributions in one go, so that one unreadable file would
    hide every package.
    """
    seen: set[str] = set()
    for distribution in distributions():
        try:
            if group not in (distribution.read_text("entry_points.txt") or ""):
                continue
            points = distribution.entry_points.select(group=group)
            metadata = distribution.metadata
            name, version = first_of(metadata, "Name"), first_of(metadata, "Version") or "unknown"
        except Exception:  # noqa: BLE001, S112 - damaged metadata of others; pip reports it
            continue
        if folded(name) not in seen:
            seen.add(folded(name))
            for point in points:
                yield point, name, version


def first_of(metadata: PackageMetadata, field: str) -> str:
    """Return a field of a distribution's metadata, empty where there is none."""
    return next(iter(metadata.get_all(field) or ()), "")


def disabled_by_environment() -> tuple[str, ...]:
    """Return the packages that PORTICO_DISABLE names."""
    words = (word.strip() for word in os.environ.get("PORTICO_DISABLE", "").split(","))
    return tuple(word for word in words if word)


def names_of(distribution: str) -> set[str]:
    """Return by what a distribution may be called where it is switched off."""
    return {folded(distribution), folded(distribution.removeprefix("portico-"))}


def folded(name: str) -> str:
    """Normalise a distribution's name as the packaging specification has it."""
    return re.sub(r"[-_.]+", "-", name).casefold()
