"""Say where a package failed and what mends it: the command to type, or the file to look in."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import PurePath
from traceback import walk_tb
from urllib.parse import urlsplit
from urllib.request import url2pathname

from portico_host.shipped import SHIPPED, folded
from portico_host.typed_words import quoted

__all__ = ["mend_by_authors", "mend_of_conflict", "mend_of_failure", "raised_at", "where_it_is_worked_on"]


def mend_of_failure(owner: str, package: str, error: BaseException) -> str:
    """Return what mends ``error``, which the distribution ``owner`` raised; ``package`` is its entry point's name.

    An upgrade also installs requirements that are missing. The files of an editable distribution are read again by
    the next command, but its dependencies and entry points are not.
    """
    if folder := where_it_is_worked_on(owner):
        mend = _edit(folder)
        if isinstance(error, ModuleNotFoundError):
            mend += f" After a change of its pyproject.toml, run `pip install -e {quoted(folder)}`."
        return mend
    missing = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if missing == "portico" or (isinstance(error, TypeError) and "Registration.__init__()" in str(error)):
        return f"Run `pip install --upgrade portico-core {owner}`."
    return f"Run `pip install --upgrade {owner}`, `pip uninstall {owner}`, or set PORTICO_DISABLE={package}."


def mend_by_authors(owner: str, package: str) -> str:
    """Return what helps against a mistake in the package, which only its authors can correct."""
    if folder := where_it_is_worked_on(owner):
        return _edit(folder)
    return f"Run `pip install --upgrade {owner}`, or tell its authors and set PORTICO_DISABLE={package}."


def mend_of_conflict(*owners: str) -> str:
    """Return what helps where several distributions register one name.

    The author of one of them can choose another name. Portico's distributions keep their names.
    """
    for owner in owners:
        if (folder := where_it_is_worked_on(owner)) and folded(owner) not in SHIPPED:
            return f"Register it under another name in {quoted(folder)}."
    return f"Run {' or '.join(f'`pip uninstall {owner}`' for owner in owners)}."


def where_it_is_worked_on(owner: str) -> str:
    """Return the folder of a distribution that is installed in editable mode (PEP 610), otherwise an empty string."""
    try:
        origin = json.loads(distribution(owner).read_text("direct_url.json") or "{}")
        editable = origin.get("dir_info", {}).get("editable")
        return url2pathname(urlsplit(origin["url"]).path) if editable else ""
    except (PackageNotFoundError, OSError, ValueError, KeyError, AttributeError, TypeError):
        return ""


def _edit(folder: str) -> str:
    return f"Mend it in {quoted(folder)}; it is read again at once."


_DEEPEST = 5


def raised_at(error: BaseException, module: str) -> str:
    """Return the innermost line of the package of ``module`` that an error went through, as " See FILE:LINE.".

    Empty where it went through none. The file is named from its package on, ``portico_acme/_plugin.py:16``. A
    SyntaxError says by itself where it is.
    """
    package = module.partition(".")[0]
    cause: BaseException | None = error
    for _ in range(_DEEPEST):
        if cause is None or isinstance(cause, SyntaxError):
            break
        places = [
            _place(frame.f_code.co_filename, line, package)
            for frame, line in walk_tb(cause.__traceback__)
            if _is_of(frame.f_globals.get("__name__"), package)
        ]
        if places:
            return f" See {places[-1]}."
        cause = cause.__cause__
    return ""


def _is_of(name: object, package: str) -> bool:
    return isinstance(name, str) and name.partition(".")[0] == package


def _place(file: str, line: int, package: str) -> str:
    parts = PurePath(file).parts
    # A folder of the checkout may have the name of the package in it.
    start = next((index for index in reversed(range(len(parts))) if parts[index] == package), len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{line}"
