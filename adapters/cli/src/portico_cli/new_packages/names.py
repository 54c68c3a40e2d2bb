"""The forms of a package's name, all made from one."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from portico_cli.failures import Misused
from portico_cli.new_packages.kinds import Kind
from portico_cli.output import plain

__all__ = ["LONGEST", "PackageName", "package_name"]

LONGEST = 30
"""Characters of a registered name; with longer ones lines of the templates grow too long."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class PackageName:
    """A registered name with what follows from it.

    >>> from portico_cli.new_packages.kinds import KINDS
    >>> name = PackageName("my-search", KINDS["connector"])
    >>> name.distribution, name.module, name.class_prefix
    ('portico-my-search', 'portico_my_search', 'My')
    >>> PackageName("acme", KINDS["planner"]).distribution
    'portico-acme-planner'
    >>> PackageName("testbed", KINDS["connector"]).class_prefix
    'TESTbed'
    """

    registered: str
    kind: Kind

    @property
    def distribution(self) -> str:
        """What is installed."""
        return f"portico-{self.registered}{self.kind.suffix}"

    @property
    def module(self) -> str:
        """What is imported."""
        return self.distribution.replace("-", "_")

    @property
    def class_prefix(self) -> str:
        """What its classes' names begin with; without the noun that one of them ends with, which said twice is odd.

        It is never "Test": pytest takes such a class for tests, also where a test file imports it.
        """
        words = self.registered.split("-")
        if len(words) > 1 and words[-1] == self.kind.noun.lower():
            words.pop()
        prefix = "".join(f"{word[0].upper()}{word[1:]}" for word in words)
        return f"TEST{prefix.removeprefix('Test')}" if prefix.startswith("Test") else prefix


def package_name(given: str, kind: Kind) -> PackageName:
    """Return the forms of a name as people write it: of the distribution, the module, or the bare one.

    >>> from portico_cli.new_packages.kinds import KINDS
    >>> package_name("Portico_My.Search", KINDS["connector"]).registered
    'my-search'
    >>> package_name("portico-acme-planner", KINDS["planner"]).registered
    'acme'

    Distributions whose names differ in case, or in hyphens, underscores and dots, are one (PyPA's normalisation), so
    these are written one way. Raises `Misused` for a name that no distribution or module can have.
    """
    folded = re.sub(r"[-_.]+", "-", given).lower()
    name = folded.removeprefix("portico-").removesuffix(kind.suffix)
    if not _NAME.fullmatch(name):
        # A letter with a mark on it is nearest to the letter without.
        marked = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        fitting = re.sub(r"[^a-z0-9]+", "-", marked).strip("-")[:LONGEST].rstrip("-")
        advice = f" Perhaps {fitting}?" if _NAME.fullmatch(fitting) else ""
        raise Misused(
            f"{plain(given)[:80]!r} cannot be the name of a package, which has letters of English, digits and single "
            f"hyphens, and begins with a letter, as my-search does.{advice}"
        )
    if len(name) > LONGEST:
        raise Misused(f"The name {name[:LONGEST]!r}… has {len(name)} characters; {LONGEST} are the most.")
    return PackageName(name, kind)
