"""Whether what a package says in its metadata that it needs is there: Python, distributions, the right build."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from portico_host.entry_points import folded
from portico_host.packages import Defect

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

__all__ = ["Need", "needs_of", "unmet_needs", "what_brings", "wrong_builds"]


@dataclass(frozen=True, slots=True)
class Need:
    """One line of a distribution's requirements that holds here; ``extra`` is the extra that it belongs to, if any.

    ``installed`` is the version that is there, None where there is none.
    """

    requirement: Requirement
    extra: str
    installed: str | None

    @property
    def ours(self) -> bool:
        """Whether it is one of Portico's, so that the one was made for the other."""
        return folded(self.requirement.name).partition("-")[0] == "portico"

    @property
    def met(self) -> bool:
        """Whether what is installed is what is wanted; pre-releases count, for somebody has installed them.

        A version that cannot be compared is nothing to complain of.
        """
        return self.installed is not None and _contains(self.requirement.specifier, self.installed)


def needs_of(name: str) -> tuple[Need, ...]:
    """Return what a distribution requires on this machine, those of its extras last; none where nothing can be read."""
    found = _installed(name)
    if found is None:
        return ()
    extras = ["", *(found.metadata.get_all("Provides-Extra") or [])]
    needs: dict[str, Need] = {}
    for extra in extras:
        for requirement in _requirements(found):
            text = str(requirement)
            if text not in needs and _holds(requirement, extra):
                needs[text] = Need(requirement, extra, _version(requirement.name))
    return tuple(needs.values())


def unmet_needs(name: str) -> Iterator[tuple[Need, Defect]]:
    """Yield each requirement that is not met, with the command that mends it; extras are nobody's duty."""
    for need in needs_of(name):
        if need.extra or need.met:
            continue
        wanted = _written(need.requirement)
        have = "which is not installed" if need.installed is None else f"and {need.installed} is installed"
        command = "pip install" if need.installed is None else "pip install --upgrade"
        yield need, Defect(f"{name} needs {wanted}, {have}.", f'Run `{command} "{wanted}"`.')


def wrong_builds(name: str) -> Iterator[Defect]:
    """Yield where the distribution, or one that it requires, was built for another Python or another machine."""
    names = [name, *(need.requirement.name for need in needs_of(name) if need.installed is not None)]
    for each in names:
        found = _installed(each)
        wanted = next(iter((found.metadata.get_all("Requires-Python") if found is not None else None) or ()), "")
        tags = _tags(found)
        mend = f"Run `pip install --force-reinstall --no-cache-dir {each}` with this Python."
        if not _python_fits(wanted):
            yield Defect(f"{each} needs Python {wanted}; this is Python {platform.python_version()}.", mend)
        elif tags and not tags & _supported():
            sentence = f"{each} was built for {', '.join(sorted(tags)[:3])}, which this Python"
            yield Defect(f"{sentence} ({platform.python_version()} on {platform.machine()}) cannot load.", mend)


def what_brings(name: str, module: str) -> str | None:
    """Return what to install so that a distribution finds a module that is missing; None where nothing tells.

    A requirement, or the distribution with an extra. It is the one that is called as the module is; otherwise what else
    is required and not there.
    """
    top = folded(module.partition(".")[0])
    absent = [need for need in needs_of(name) if need.installed is None]
    alike = [need for need in absent if folded(need.requirement.name) == top]
    alike = alike or [need for need in absent if top in folded(need.requirement.name).split("-")]
    for need in (*alike, *(need for need in absent if not need.extra)):
        return f"{name}[{need.extra}]" if need.extra else _written(need.requirement)
    return None


def _requirements(found: Distribution) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for line in found.requires or ():
        try:
            yield Requirement(line)
        except InvalidRequirement:
            continue


def _holds(requirement: Requirement, extra: str) -> bool:
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName

    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName, ValueError):
        return False


def _contains(specifier: SpecifierSet, version: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        # A Python built from its repository is "3.14.0+".
        known = Version(version.removesuffix("+"))
    except InvalidVersion:
        return True
    return specifier.contains(known, prereleases=True)


def _written(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except (PackageNotFoundError, ValueError):
        return None


def _version(name: str) -> str | None:
    found = _installed(name)
    try:
        # None too where an installer has left a folder and no metadata.
        return None if found is None else found.version or None
    except Exception:  # noqa: BLE001 - damaged metadata of others
        return None


def _python_fits(wanted: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return _contains(SpecifierSet(wanted), platform.python_version())
    except InvalidSpecifier:
        return True


def _tags(found: Distribution | None) -> frozenset[str]:
    from packaging.tags import parse_tag

    lines = ((found.read_text("WHEEL") if found is not None else None) or "").splitlines()
    written = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("tag:")]
    return frozenset(str(tag) for text in written if text.count("-") == 2 for tag in parse_tag(text))


@cache
def _supported() -> frozenset[str]:
    from packaging.tags import sys_tags

    return frozenset(str(tag) for tag in sys_tags())
