"""List the commands that packages add to the command line, from metadata alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any

from portico.errors import PluginBroken
from portico_host.entry_points import COMMANDS, disabled_by_environment, entry_points_of, names_of
from portico_host.printing import import_quietly

__all__ = ["Command", "commands"]


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
            from portico_host.mending import mend_of_failure
            from portico_host.raised_at import raised_at

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
