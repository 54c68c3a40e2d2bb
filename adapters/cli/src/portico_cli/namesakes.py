"""Distributions of other projects that a user may have installed in place of ours."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata

from portico_host import Problem

_NAMES = ("portico", "portico-cli")


def find_namesakes() -> Iterator[Problem]:
    """Find the installed distributions that have one of our names and are not ours."""
    for name in _NAMES:
        try:
            about = metadata(name)
        except PackageNotFoundError:
            continue
        what = f", {about['Summary'].rstrip('.')!r}," if "Summary" in about else ""
        cause = f"The distribution {name} {about['Version']}{what} is another project. Portico is portico-ai."
        # It may have written over files of ours, which go with it.
        mend = f"Run `pip uninstall {name}`, then `pip install --force-reinstall --no-deps portico-ai portico-core`."
        yield Problem(cause, mend, subject=name, severity="warning")
