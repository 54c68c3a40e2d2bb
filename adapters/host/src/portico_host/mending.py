"""What mends a package that raised, as one sentence with what to type or where to look."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import distribution as installed_distribution
from importlib.util import find_spec
from traceback import walk_tb
from urllib.parse import urlsplit
from urllib.request import url2pathname

from portico_host.entry_points import GROUP, damaged_entry_points, folded
from portico_host.requirements import Installation
from portico_host.shipped import SHIPPED
from portico_host.typed_words import quoted

__all__ = [
    "mend_by_authors",
    "mend_of_conflict",
    "mend_of_entry_point",
    "mend_of_failure",
    "mend_of_metadata",
    "where_it_is_worked_on",
]

_CORE = "portico-core"
_DEEPEST = 5


def mend_of_failure(distribution: str, package: str, error: BaseException) -> str:
    """Return what mends ``error``, raised when a package was imported, asked or made.

    A missing module names what brings it; a name that core has not, or a requirement that is not met, the upgrade; a
    compiled module for another Python the new installation. ``package`` is the entry point's name. Of a package that is
    worked on where it lies (PEP 610), the files are read again by the next command: only what its metadata says, which
    was made when it was installed, needs `pip`. What read the metadata of all distributions failed of a damaged one.
    """
    folder = where_it_is_worked_on(distribution)
    for cause in _causes(error):
        try:
            if _is_of_metadata(cause):
                for damaged in damaged_entry_points():
                    command = mend_of_metadata(damaged.distribution).removesuffix(".")
                    return f"{command}: its {damaged.file} is damaged."
            mend = _mend_there(distribution, folder, cause) if folder else _mend_by_command(distribution, cause)
        except Exception:  # noqa: BLE001 - errors and metadata of strangers may be damaged in any way
            mend = None
        if mend is not None:
            return mend
    return _saved(folder) or (
        f"Run `pip install --upgrade {distribution}`, `pip uninstall {distribution}`, or set PORTICO_DISABLE={package}."
    )


def mend_of_entry_point(distribution: str, package: str, error: BaseException) -> str:
    """Return what mends an entry point that leads to nothing, or to what is no module."""
    folder = where_it_is_worked_on(distribution)
    if not folder:
        return mend_of_failure(distribution, package, error)
    return f"Correct the entry point {package!r} in pyproject.toml, then run `pip install -e {quoted(folder)}`."


def mend_by_authors(distribution: str, package: str) -> str:
    """Say what helps against a mistake in the package itself, which only its authors can mend."""
    return _saved(where_it_is_worked_on(distribution)) or (
        f"Run `pip install --upgrade {distribution}`, or tell its authors and set PORTICO_DISABLE={package}."
    )


def mend_of_conflict(*owners: tuple[str, str]) -> str:
    """Return what helps where several register one name; ``owners`` are their distributions and packages.

    Who works on one of them where it lies changes the name there, and need uninstall none. Those of Portico's own keep
    theirs, though they may lie in somebody's clone.
    """
    for distribution, package in owners:
        if (folder := where_it_is_worked_on(distribution)) and folded(distribution) not in SHIPPED:
            return f"Register it under another name in {quoted(_file_of_hooks(distribution, package) or folder)}."
    return f"Run {' or '.join(f'`pip uninstall {distribution}`' for distribution, _ in owners)}."


def mend_of_metadata(distribution: str) -> str:
    """Return what mends the entry points of a distribution whose file of them is damaged."""
    folder = where_it_is_worked_on(distribution)
    if folder:
        return f"Correct the entry points in pyproject.toml, then run `pip install -e {quoted(folder)}`."
    return f"Run `pip install --force-reinstall --no-deps {distribution}`."


def _is_of_metadata(error: BaseException) -> bool:
    """Tell whether an error arose while the metadata of distributions were read; that one is not there is none."""
    return not isinstance(error, PackageNotFoundError) and any(
        str(frame.f_globals.get("__name__")).startswith("importlib.metadata")
        for frame, _ in walk_tb(error.__traceback__)
    )


def _file_of_hooks(distribution: str, package: str) -> str:
    """Return the file that an entry point leads to, which is imported already; empty where there is none."""
    for entry in installed_distribution(distribution).entry_points.select(group=GROUP, name=package):
        return getattr(sys.modules.get(entry.module), "__file__", None) or ""
    return ""


def where_it_is_worked_on(distribution: str) -> str:
    """Return the folder of what is installed in editable mode (PEP 610); empty where it is not."""
    try:
        told = json.loads(installed_distribution(distribution).read_text("direct_url.json") or "{}")
        editable = told.get("dir_info", {}).get("editable")
        return url2pathname(urlsplit(told["url"]).path) if editable else ""
    except (PackageNotFoundError, OSError, ValueError, KeyError, AttributeError, TypeError):
        return ""


def _saved(folder: str) -> str:
    return f"Mend it in {quoted(folder)}; it is read again at once." if folder else ""


def _mend_there(distribution: str, folder: str, error: BaseException) -> str | None:
    """Return what its author does; None where that is to change a file, as always where nothing else tells."""
    top = _top(error)
    installation = Installation()
    if _is_of_core(error, top):
        unmet = [need.written for need, _ in installation.unmet_needs(distribution) if _is_core(need.requirement.name)]
        return f"Run `pip install --upgrade {quoted(unmet[0])}`." if unmet else None
    if isinstance(error, ModuleNotFoundError) and folded(top) != folded(distribution):
        brings = installation.what_brings(distribution, error.name or "")
        if brings:
            return f"Run `pip install {quoted(brings)}`."
        if find_spec(top) is None:
            return f"Add `{top}` to its dependencies in pyproject.toml, then run `pip install -e {quoted(folder)}`."
    elif isinstance(error, ImportError):
        command = _new_build(installation, distribution)
        return f"Run `{command}`." if command else None
    return None


def _mend_by_command(distribution: str, error: BaseException) -> str | None:
    command = _command(distribution, error)
    return f"Run `{command}`." if command else None


def _command(distribution: str, error: BaseException) -> str | None:
    top = _top(error)
    installation = Installation()
    if _is_of_core(error, top):
        unmet = [need for need, _ in installation.unmet_needs(distribution)]
        wanted = next((need.written for need in unmet if _is_core(need.requirement.name)), _CORE)
        return f"pip install --upgrade {quoted(wanted)} {distribution}"
    if isinstance(error, ModuleNotFoundError):
        if folded(top) == folded(distribution):
            return f"pip install --force-reinstall --no-deps {distribution}"
        brings = installation.what_brings(distribution, error.name or "")
        return f"pip install {quoted(brings)}" if brings else None
    return _new_build(installation, distribution) if isinstance(error, ImportError) else None


def _top(error: BaseException) -> str:
    """Return the package whose module could not be imported; empty where the error is another."""
    return (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""


def _is_of_core(error: BaseException, top: str) -> bool:
    return top == "portico" or (isinstance(error, TypeError) and "Registration.__init__()" in str(error))


def _is_core(distribution: str) -> bool:
    return folded(distribution) == _CORE


def _new_build(installation: Installation, distribution: str) -> str | None:
    for defect in installation.wrong_builds(distribution):
        return defect.mend.partition("`")[2].partition("`")[0]
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it was raised from, the first one first."""
    found = [error]
    while found[-1].__cause__ is not None and len(found) < _DEEPEST:
        found.append(found[-1].__cause__)
    return found
