"""What is wrong with the metadata of a package, and what the host says of its settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from portico_testkit._package_installed import Offered
from portico_testkit._package_sources import folded, requirements_of

__all__ = ["lacking_metadata", "misspelt_settings", "unfit_requirements"]

_SHORTEST = 20
"""Words that a README needs to say what a package is."""


def lacking_metadata(installed: Distribution) -> list[str]:
    """Return what a distribution does not say of itself, as advice for its `pyproject.toml`."""
    return [*_lacking(installed.metadata)]


def _lacking(metadata: Any) -> Iterator[str]:
    # By `get`: from Python 3.12 on, a field that is not there may not be asked for by subscript.
    if not metadata.get("Summary", "").strip():
        yield "a description of one line (description = …)"
    classifiers = metadata.get_all("Classifier") or []
    licensed = metadata.get("License-Expression") or metadata.get("License")
    if not licensed and not any(line.startswith("License ::") for line in classifiers):
        yield 'a licence (license = "Apache-2.0")'
    if not metadata.get("Requires-Python"):
        yield 'which Python it runs on (requires-python = ">=3.11")'
    text = metadata.get("Description") or metadata.get_payload() or ""
    if len(str(text).split()) < _SHORTEST:
        yield f'a README of at least {_SHORTEST} words (readme = "README.md")'


def unfit_requirements(installed: Distribution) -> list[str]:
    """Return sentences on how a distribution requires core and the application."""
    return [*_unfit(installed)]


def _unfit(installed: Distribution) -> Iterator[str]:
    required = {folded(one.name): one for one in requirements_of(installed) if "extra" not in str(one.marker or "")}
    core = required.get("portico-core")
    if core is None:
        yield "it does not require portico-core: add it to its dependencies"
    else:
        bounds = [str(one) for one in core.specifier if one.operator not in {">=", ">", "!="}]
        if bounds:
            yield f"it requires portico-core{','.join(bounds)}: give a lower bound or none, for others' sake"
    for name in ("portico-host", "portico"):
        if name in required:
            yield f"it requires {name}, which is the application: plugins require portico-core alone"


def misspelt_settings(distribution: str, offered: Offered, keys: Iterable[str], folder: Path) -> dict[str, str]:
    """Return, for each setting that the host takes a misspelt one for, what it says.

    ``folder`` is for a configuration. The host is imported here, and only where it is installed: a package can be
    tested without it. Where it says nothing of the sort, ``"?"`` has what it does say.
    """
    name, port = offered.registration.name, offered.port
    # One letter more is in no other setting's name, and no nearer to it. Those that are right are there for the host to
    # look at their types.
    wrong = {written: 1 for key in keys for written in (f"{key}x", key)}
    table: dict[str, Any] = {port.key: name, name: wrong}
    if port.many:
        table = {"mine": {port.key: name, **wrong}}
    elif port.key != "use":
        table = {port.key: name, **wrong}
    host = import_module("portico_host")
    file = folder / "portico.toml"
    file.touch()
    application = host.load(file, {"plugins": {"only": [distribution]}, port.table: table})
    problems = [problem.cause for problem in application.check(imports=False)]
    told = {
        key: cause for key in keys for cause in problems if re.search(rf"\b{key}x\b.*Nearest: [^.]*\b{key}\b", cause)
    }
    return told or {"?": "; ".join(problems)}
