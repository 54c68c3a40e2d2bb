"""Find plugins and commands in the metadata of installed distributions; nothing is imported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, PackageMetadata, distributions
from typing import Any

from portico.errors import PluginBroken
from portico_host.calling_out import import_quietly
from portico_host.shipped import folded

__all__ = [
    "COMMANDS",
    "GROUP",
    "Command",
    "Damaged",
    "commands",
    "damaged_entry_points",
    "disabled_by_environment",
    "entry_points_of",
    "first_of",
    "names_of",
]

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
            points = [point for point in distribution.entry_points.select(group=group) if _is_well_formed(point)]
            metadata = distribution.metadata
            name, version = first_of(metadata, "Name"), first_of(metadata, "Version") or "unknown"
        except Exception:  # noqa: BLE001, S112 - damaged metadata of others; pip reports it
            continue
        if folded(name) not in seen:
            seen.add(folded(name))
            for point in points:
                yield point, name, version


@dataclass(frozen=True, slots=True)
class Damaged:
    """A distribution whose entry points cannot be read: its name, the file, and what is wrong with it."""

    distribution: str
    file: str
    error: str


def damaged_entry_points() -> Iterator[Damaged]:
    """Yield every distribution with a damaged `entry_points.txt`, Portico's or not.

    None of its entry points is found, and whoever reads those of all distributions in one go fails with it.
    """
    for distribution in distributions():
        try:
            wrong = [point for point in distribution.entry_points if not _is_well_formed(point)]
            error = f"{wrong[0].name} = {wrong[0].value} leads to nothing" if wrong else ""
        except Exception as raised:  # noqa: BLE001 - it may be damaged in any way
            # What its text is made of has bytes in it that are none.
            error = f"{type(raised).__name__}: {raised}"
        if error:
            folder = getattr(distribution, "_path", None)
            yield Damaged(_name_of(distribution), "" if folder is None else str(folder / "entry_points.txt"), error)


def _name_of(distribution: Distribution) -> str:
    try:
        name = first_of(distribution.metadata, "Name")
    except Exception:  # noqa: BLE001 - as above
        name = ""
    return name or str(getattr(getattr(distribution, "_path", None), "name", "")).partition("-")[0]


def _is_well_formed(point: EntryPoint) -> bool:
    try:
        return bool(point.module)
    except Exception:  # noqa: BLE001 - Python has an AttributeError for it, later ones a ValueError
        return False


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


@dataclass(frozen=True, slots=True)
class Command:
    """A command of some package, not imported yet.

    ``hidden`` are those of other packages that have its name, and are not reached.
    """

    name: str
    distribution: str
    entry_point: EntryPoint
    hidden: tuple[Command, ...] = ()

    def load(self) -> Any:
        """Import and return it. Raises ``PluginBroken`` when that fails."""
        try:
            import_quietly(self.entry_point.module)
            return self.entry_point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            from portico_host.mending import mend_of_failure, raised_at

            sentence = f"The command {self.name!r} of {self.distribution} is broken: {type(error).__name__}: {error}."
            where = raised_at(error, self.entry_point.module)
            mend = mend_of_failure(self.distribution, self.distribution.removeprefix("portico-"), error)
            raise PluginBroken(f"{sentence}{where} {mend}") from error


def commands(*, disable: Iterable[str] = ()) -> tuple[Command, ...]:
    """Return the installed commands by name; nothing is imported.

    Of several with one name the first by distribution counts, and has the others as ``hidden``. ``disable`` names
    packages to leave out, beside those of PORTICO_DISABLE, as in `portico_host.discover`.
    """
    off = {name for word in (*disable, *disabled_by_environment()) for name in names_of(word)}
    found: dict[str, list[Command]] = {}
    for point, owner, _ in entry_points_of(COMMANDS):
        if not names_of(owner) & off:
            found.setdefault(point.name, []).append(Command(point.name, owner, point))
    ordered = [sorted(found[name], key=lambda command: command.distribution) for name in sorted(found)]
    return tuple(replace(first, hidden=tuple(others)) for first, *others in ordered)
