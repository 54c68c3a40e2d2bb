"""Show plans: what a step calls, and what a check found in a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from portico.plans import Finding, Plan, Step, StepRecord, plan_to_json
from portico_cli.show.layout import Hanging
from portico_cli.show.output import one_line, plain, safe_text

_STYLES = {"error": "red", "warning": "yellow", "ask": "yellow", "refuse": "red"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding and its place in the file; no place if the plan comes from no file."""

    finding: Finding
    line: int | None = None
    column: int | None = None


def called_name(step: Step) -> str:
    """Return in a word or two what a step calls."""
    if isinstance(step.function, str):
        return step.function
    return "a nested plan" if isinstance(step.function, Plan) else f"a template in {step.function.language}"


def function_to_json(step: Step) -> Any:
    """Return what a step calls: a name, or the JSON form of a plan or a template."""
    return step.function if isinstance(step.function, str) else plan_to_json(Plan("", (step,)))["steps"][0]["function"]


def outcome_to_json(record: StepRecord) -> dict[str, Any]:
    """Return what a step gave, or how it failed; and whether it was skipped."""
    if record.error is not None:
        return {"error": record.error}
    return {"result": record.result, **({"skipped": True} if record.skipped else {})}


def argument_lines(arguments: Mapping[str, Any], indent: str = "  ") -> Iterator[RenderableType]:
    """Yield a line for each argument of a step."""
    for name, value in arguments.items():
        yield Hanging(safe_text(one_line(value)), f"{indent}{plain(name)} = ", "dim")


def finding_lines(name: str, findings: Sequence[Placed], *, enforced: bool = False) -> Iterator[RenderableType]:
    """Yield a line for each finding, as compilers write them: file, line, column, severity, message.

    Where the policy is ``enforced``, a flow has its verdict in place of the severity: "ask" or "refuse".
    """
    for each in findings:
        finding = each.finding
        where = f"{name}:{each.line}:{each.column}: " if each.line else f"{name}: " if name else ""
        kind = (enforced and finding.verdict) or finding.severity
        text = Text.assemble((plain(where), "bold"), (f"{kind}: ", _STYLES.get(kind, "")))
        # The other lines are an excerpt, which the place makes needless.
        text.append_text(safe_text(str(finding).partition("\n")[0]))
        if finding.fix is not None:
            text.append(" (--fix mends it)", style="dim")
        yield Hanging(text)


def finding_to_json(each: Placed) -> dict[str, Any]:
    """Return a finding as JSON values."""
    finding, fix = each.finding, None
    if finding.fix is not None:
        new: Any = finding.fix.new
        new = new if new is None or isinstance(new, str) else plan_to_json(Plan("", result=new))["result"]
        fix = {"place": list(finding.fix.place), "new": new}
    return {
        "severity": finding.severity,
        "verdict": finding.verdict or None,
        "step": finding.step,
        "place": finding.place,
        "message": finding.words,
        "nearest": list(finding.nearest),
        "line": each.line,
        "column": each.column,
        "fix": fix,
    }
