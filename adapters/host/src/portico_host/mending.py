"""What mends a package that raised, as one sentence with the command to type."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from importlib.metadata import distribution as installed_distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname

from portico_host.entry_points import folded
from portico_host.requirements import Installation
from portico_host.typed_words import quoted

__all__ = ["mend_by_authors", "mend_of_failure"]

_CORE = "portico-core"
_DEEPEST = 5


def mend_of_failure(distribution: str, package: str, error: BaseException) -> str:
    """Return what mends ``error``, raised when a package was imported, asked or made.

    A missing module names what brings it; a name that core has not, or a requirement that is not met, the upgrade; a
    compiled module for another Python the new installation. ``package`` is the entry point's name.
    """
    worked_on = _mend_where_it_is_worked_on(distribution)
    for cause in _causes(error):
        try:
            command = _command(distribution, cause)
        except Exception:  # noqa: BLE001 - errors and metadata of strangers may be damaged in any way
            command = None
        if command is not None and worked_on and command.startswith("pip install --force-reinstall --no-deps"):
            return worked_on  # a module of its own that is not there: not yet written, or misspelt
        if command is not None:
            return f"Run `{command}`."
    return worked_on or (
        f"Run `pip install --upgrade {distribution}`, `pip uninstall {distribution}`, or set PORTICO_DISABLE={package}."
    )


def mend_by_authors(distribution: str, package: str) -> str:
    """Say what helps against a mistake in the package itself, which only its authors can mend."""
    return _mend_where_it_is_worked_on(distribution) or (
        f"Run `pip install --upgrade {distribution}`, or tell its authors and set PORTICO_DISABLE={package}."
    )


def _mend_where_it_is_worked_on(distribution: str) -> str:
    """Return what its author does where it is installed in editable mode (PEP 610); empty where it is not."""
    try:
        told = json.loads(installed_distribution(distribution).read_text("direct_url.json") or "{}")
        if not told.get("dir_info", {}).get("editable"):
            return ""
        folder = url2pathname(urlsplit(told["url"]).path)
    except (PackageNotFoundError, OSError, ValueError, KeyError, AttributeError, TypeError):
        return ""
    return f"Run `pip install -e {quoted(folder)}` when it is mended there."


def _command(distribution: str, error: BaseException) -> str | None:
    module = (error.name or "") if isinstance(error, ImportError) else ""
    top = module.partition(".")[0]
    installation = Installation()
    if top == "portico" or (isinstance(error, TypeError) and "Registration.__init__()" in str(error)):
        unmet = [need for need, _ in installation.unmet_needs(distribution)]
        wanted = next((need.written for need in unmet if folded(need.requirement.name) == _CORE), _CORE)
        return f"pip install --upgrade {quoted(wanted)} {distribution}"
    if isinstance(error, ModuleNotFoundError):
        if folded(top) == folded(distribution):
            return f"pip install --force-reinstall --no-deps {distribution}"
        brings = installation.what_brings(distribution, module)
        return f"pip install {quoted(brings)}" if brings else None
    if isinstance(error, ImportError):
        for defect in installation.wrong_builds(distribution):
            return defect.mend.partition("`")[2].partition("`")[0]
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it was raised from, the first one first."""
    found = [error]
    while found[-1].__cause__ is not None and len(found) < _DEEPEST:
        found.append(found[-1].__cause__)
    return found
