"""Whether what a package says in its metadata that it needs is there: Python, distributions, the right build."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from typing import TYPE_CHECKING

from portico_host.entry_points import first_of, folded
from portico_host.packages import Defect
from portico_host.typed_words import quoted

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

__all__ = ["Installation", "Need"]


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

    @property
    def written(self) -> str:
        """What to install, without the marker: ``acmesdk[http]>=2``."""
        extras = f"[{','.join(sorted(self.requirement.extras))}]" if self.requirement.extras else ""
        return f"{self.requirement.name}{extras}{self.requirement.specifier}"


@dataclass(frozen=True, slots=True)
class _Told:
    """What a distribution's metadata tells; nothing where it is damaged."""

    version: str | None = None
    python: str = ""
    extras: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    wheel: str = ""


class Installation:
    """What is installed, as its metadata tells: each distribution is read when first asked of, and only then.

    It is made for one examination, since `pip` may install something meanwhile.
    """

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._needs: dict[str, tuple[Need, ...]] = {}

    def needs_of(self, name: str) -> tuple[Need, ...]:
        """Return what a distribution requires here, those of its extras last; none where nothing can be read."""
        if folded(name) not in self._needs:
            self._needs[folded(name)] = tuple(self._read_needs(name))
        return self._needs[folded(name)]

    def unmet_needs(self, name: str) -> Iterator[tuple[Need, Defect]]:
        """Yield each requirement that is not met, with the command that mends it; extras are nobody's duty."""
        for need in self.needs_of(name):
            if need.extra or need.met:
                continue
            have = "which is not installed" if need.installed is None else f"and {need.installed} is installed"
            command = "pip install" if need.installed is None else "pip install --upgrade"
            yield (
                need,
                Defect(f"{name} needs {need.written}, {have}.", f"Run `{command} {quoted(need.written)}`."),
            )

    def wrong_builds(self, name: str) -> Iterator[Defect]:
        """Yield where the distribution, or one that it requires, was built for another Python or another machine."""
        names = [name, *(need.requirement.name for need in self.needs_of(name) if need.installed is not None)]
        for each in names:
            told = self._of(each)
            tags = _tags(told.wheel)
            mend = f"Run `pip install --force-reinstall --no-cache-dir {each}` with this Python."
            if not _python_fits(told.python):
                yield Defect(f"{each} needs Python {told.python}; this is Python {platform.python_version()}.", mend)
            elif tags and not tags & _supported():
                sentence = f"{each} was built for {', '.join(sorted(tags)[:3])}, which this Python"
                yield Defect(f"{sentence} ({platform.python_version()} on {platform.machine()}) cannot load.", mend)

    def what_brings(self, name: str, module: str) -> str | None:
        """Return what to install so that a distribution finds a module that is missing; None where nothing tells.

        A requirement, or the distribution with an extra. It is the one that is called as the module is; otherwise what
        else is required and not there.
        """
        top = folded(module.partition(".")[0])
        absent = [need for need in self.needs_of(name) if need.installed is None]
        alike = [need for need in absent if folded(need.requirement.name) == top]
        alike = alike or [need for need in absent if top in folded(need.requirement.name).split("-")]
        for need in (*alike, *(need for need in absent if not need.extra)):
            return f"{name}[{need.extra}]" if need.extra else need.written
        return None

    def _of(self, name: str) -> _Told:
        if folded(name) not in self._told:
            self._told[folded(name)] = _read(name)
        return self._told[folded(name)]

    def _read_needs(self, name: str) -> Iterator[Need]:
        told = self._of(name)
        waiting = {str(requirement): requirement for requirement in _requirements(told.requires)}
        for extra in ("", *told.extras):
            held = [text for text, requirement in waiting.items() if _holds(requirement, extra)]
            for requirement in map(waiting.pop, held):
                yield Need(requirement, extra, self._of(requirement.name).version)


def _read(name: str) -> _Told:
    try:
        found = distribution(name)
        metadata = found.metadata
        return _Told(
            # None too where an installer has left a folder and no metadata.
            first_of(metadata, "Version") or None,
            first_of(metadata, "Requires-Python"),
            tuple(metadata.get_all("Provides-Extra") or ()),
            # What is no wheel keeps its requirements in a file of its own.
            tuple(metadata.get_all("Requires-Dist") or found.requires or ()),
            found.read_text("WHEEL") or "",
        )
    except Exception:  # noqa: BLE001 - it is not installed, or the metadata of others is damaged
        return _Told()


def _requirements(lines: tuple[str, ...]) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for line in lines:
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


def _python_fits(wanted: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return not wanted or _contains(SpecifierSet(wanted), platform.python_version())
    except InvalidSpecifier:
        return True


def _tags(wheel: str) -> frozenset[str]:
    from packaging.tags import parse_tag

    written = [line.partition(":")[2].strip() for line in wheel.splitlines() if line.lower().startswith("tag:")]
    return frozenset(str(tag) for text in written if text.count("-") == 2 for tag in parse_tag(text))


@cache
def _supported() -> frozenset[str]:
    from packaging.tags import sys_tags

    return frozenset(str(tag) for tag in sys_tags())
