"""Findings as lines of text, for tests that hold all of what a check says."""

from __future__ import annotations

from collections.abc import Iterable

from portico.plans import Finding

__all__ = ["told"]


def told(findings: Iterable[Finding]) -> list[str]:
    """Return all that findings say: a line for each, and one for its hint, what is near and its fix, where it has them.

    >>> told([Finding("there is no step 'y'", "x", "arguments.a", nearest=("t",))])
    ["error in x arguments.a: there is no step 'y'", '  near: t']
    """
    lines: list[str] = []
    for each in findings:
        lines.append(f"{each.severity} in {each.step} {each.place}: {each.message}")
        lines += [f"  hint: {each.hint}"] * (each.hint != "")
        lines += [f"  near: {', '.join(each.nearest)}"] * (each.nearest != ())
        if each.fix is not None:
            lines.append(f"  fix: {each.fix.within} {each.fix.place} {each.fix.new}")
    return lines
