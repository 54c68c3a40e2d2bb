"""Which sources a command uses: those of the configuration, those named, and the folders given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import portico_host
from portico.errors import PluginError
from portico.ports import PORTS
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation
from portico_host.packages import port_named

if TYPE_CHECKING:
    from portico_host import Application

_DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An application and the names of the sources to use in it."""

    application: Application
    sources: tuple[str, ...]

    @property
    def enforced(self) -> bool:
        """Whether a person must agree to flows that no label allows."""
        return self.application.configuration.policy.policy().mode == "enforce"


def choose_sources(
    invocation: Invocation,
    docs: Sequence[Path] = (),
    names: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Chosen:
    """Load the application with a documents source for each folder.

    Without ``names`` all configured sources are used that no other stands on, and the folders; with them those
    named, and the folders. A folder that is configured already is searched under its configured name.
    """
    configured = portico_host.load(invocation.config)
    added: dict[str, Path] = {}
    folders: list[str] = []
    for path in docs:
        known = _find_source(configured, path)
        name = known or _fresh_name("docs" if len(docs) == 1 else path.resolve().name, configured, added)
        if known is None:
            added[name] = path
        folders.append(name)
    merged: dict[str, Any] = dict(overrides or {})
    if added:
        merged["search"] = {name: {"use": _DOCUMENTS, "path": path} for name, path in added.items()}
    application = portico_host.load(invocation.config, merged) if merged else configured
    wanted = [*(names or configured.asked_sources), *folders]
    return Chosen(application, tuple(dict.fromkeys(wanted)))


def refuse_mistakes(application: Application) -> None:
    """Raise the mistakes in the settings of the defaults, before a long indexing and before anything else is said.

    What is chosen by name is looked at when the kernel opens. A package that cannot be used is no mistake as long
    as nothing asks for it.
    """
    services = application.services(())
    for info in PORTS:
        # One that is switched off is no mistake.
        if info.default is not None and not application.configuration.is_off(info):
            with suppress(PluginError):
                services.prepare(info.name, None)


def refuse_nothing(chosen: Chosen, command: str) -> None:
    """Raise ``Misused`` for a command that runs goals, if there is nothing to search and no function.

    Another planner than the default says itself what it needs.
    """
    values = chosen.application.configuration.values
    if not (chosen.sources or values.get("functions") or (values.get("planner") or {}).get("use")):
        raise nothing_to_search(command)


def nothing_to_search(command: str) -> Misused:
    """Return the error for a command, with what it is asked, that has no source; and the ways to give it one."""
    return Misused(
        f"There is nothing to search. Give a folder, as in `portico {command} --docs FOLDER`, "
        "or run `portico config init` and name your sources in portico.toml."
    )


def _find_source(application: Application, path: Path) -> str | None:
    for entry in application.configuration.entries(port_named("TextSearch")):
        own = entry.settings.get("path")
        if entry.use == _DOCUMENTS and isinstance(own, str):
            folder = application.configuration.folder / Path(own).expanduser()
            if folder.resolve() == path.resolve():
                return entry.name
    return None


def _fresh_name(wanted: str, application: Application, added: Mapping[str, Path]) -> str:
    # A source's name is a function plugin's too: ASCII letters, digits and '_'.
    stem = re.sub(r"[^0-9A-Za-z]+", "_", wanted).strip("_") or "docs"
    taken = {*application.sources, *added}
    names = (stem, *(f"{stem}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
