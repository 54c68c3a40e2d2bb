"""Checking a plan of a file against the functions of a kernel, and telling what was found where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from portico_cli.answer_text import Hanging
from portico_cli.output import plain, safe_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico.functions import FunctionManual
    from portico.kernel import Kernel
    from portico.plans.findings import Finding
    from portico.plans.plan import Plan
    from portico_cli.plan_files import PlanFile

__all__ = ["Placed", "check", "check_read", "finding_lines", "placed", "placed_to_json"]

_STYLES = {"error": "red", "warning": "yellow"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding and where in the file it is; no place in a plan that comes from none."""

    finding: Finding
    line: int | None = None
    column: int | None = None


def check(kernel: Kernel, plan: Plan, manuals: Mapping[str, FunctionManual] | None = None) -> list[Finding]:
    """Return what is wrong with a plan, for the functions of a kernel; what it may be given is what it says.

    ``manuals`` are the functions that it may use, where they are not all.
    """
    from portico.plans.check import check_plan
    from portico.plans.plan_functions import plans_of

    return check_plan(
        plan,
        kernel.manuals if manuals is None else manuals,
        validator=kernel.schema_validator,
        input=plan.input or {},
        templates=lambda source, language: kernel.template(source, language=language),
        plans=plans_of(kernel),
    )


def check_read(kernel: Kernel, file: PlanFile) -> list[Placed]:
    """Find what is wrong with the plan of a file, and what was doubtful in reading it, each with its place."""
    doubts = file.xml.findings if file.xml is not None else ()
    return placed(file, [*doubts, *check(kernel, file.plan)])


def placed(file: PlanFile, findings: Sequence[Finding]) -> list[Placed]:
    """Find the line and the column of each finding in the file."""
    if not findings:
        return []
    if file.xml is not None:
        return [Placed(each, *(file.xml.place_of(each.step, each.place) or (1, 1))) for each in findings]
    from portico_cli.json_places import JsonPlaces

    places = JsonPlaces(file.text)
    return [Placed(finding, *places.of_finding(finding.step, finding.place)) for finding in findings]


def finding_lines(name: str, findings: Sequence[Placed]) -> Iterator[RenderableType]:
    """Yield a line for each finding, as compilers write them: file, line, column, severity, what."""
    from rich.text import Text

    for each in findings:
        finding = each.finding
        where = f"{name}:{each.line}:{each.column}: " if each.line else f"{name}: " if name else ""
        text = Text(plain(where), style="bold")
        text.append(f"{finding.severity}: ", style=_STYLES.get(finding.severity, ""))
        # What follows on other lines is an excerpt, which the place makes needless.
        text.append_text(safe_text(str(finding).partition("\n")[0]))
        if finding.fix is not None:
            text.append(" (--fix mends it)", style="dim")
        yield Hanging(text, "", "    ")


def placed_to_json(each: Placed) -> dict[str, Any]:
    """Return a finding as JSON values."""
    finding = each.finding
    return {
        "severity": finding.severity,
        "step": finding.step,
        "place": finding.place,
        "message": finding.words,
        "nearest": list(finding.nearest),
        "line": each.line,
        "column": each.column,
        "fix": _fix_to_json(finding),
    }


def _fix_to_json(finding: Finding) -> dict[str, Any] | None:
    from portico.plans.json_form import plan_to_json
    from portico.plans.plan import Plan

    fix = finding.fix
    if fix is None:
        return None
    if fix.new is None or isinstance(fix.new, str):
        return {"place": list(fix.place), "new": fix.new}
    return {"place": list(fix.place), "new": plan_to_json(Plan("", result=fix.new))["result"]}
