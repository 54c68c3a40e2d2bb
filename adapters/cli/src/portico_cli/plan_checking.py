"""`portico plan --check`: a file's plan against the functions that there are, and what can be mended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from portico.errors import PlanFormatError
from portico_cli.failures import DONE, FAILED
from portico_cli.output import safe_text, show, write_as_it_is, write_json
from portico_cli.plan_check import Placed, check_read, finding_lines, placed_to_json
from portico_cli.plan_files import PlanFile, parse_plan, read_text, reread, shown_name, write_text, written_plan
from portico_cli.sources import Chosen, run

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico_cli.invocation import Invocation

__all__ = ["check_file"]


@dataclass(frozen=True, slots=True)
class _Checked:
    file: PlanFile
    findings: list[Placed]
    mended: tuple[str, ...] = ()
    """What was put right, in words."""


def check_file(invocation: Invocation, chosen: Chosen, name: str, output: Path | None, *, fix: bool) -> int:
    """Check the plan in a file, tell what was found, and return the exit code."""
    checked = run(lambda: _check(chosen, name, fix=fix))
    written = _write(checked, name, output) if fix else None
    errors = sum(each.finding.severity == "error" for each in checked.findings)
    if invocation.json:
        write_json(
            {
                "file": checked.file.name,
                "ok": not errors,
                "findings": [placed_to_json(each) for each in checked.findings],
                "fixed": list(checked.mended),
                "written": None if written is None else str(written),
                "text": checked.file.text if checked.mended and written is None else None,
            }
        )
        return FAILED if errors else DONE
    if fix and written is None and checked.mended:
        # Read from standard input: the mended plan goes on to standard output, what was found beside it.
        write_as_it_is(checked.file.text)
        _tell_beside(checked)
        return FAILED if errors else DONE
    for words in checked.mended:
        show(safe_text(f"mended: {words}", "green"))
    if written is not None and checked.mended:
        show(safe_text(f"Wrote {written}.", "dim"))
    show(*finding_lines(checked.file.name, checked.findings), safe_text(_summary(checked, errors), "bold"))
    return FAILED if errors else DONE


async def _check(chosen: Chosen, name: str, *, fix: bool) -> _Checked:
    async with chosen.application.kernel(chosen.sources) as kernel:
        text = read_text(name)
        try:
            file = parse_plan(text, name, kernel.manuals)
            recovered: tuple[str, ...] = ()
        except PlanFormatError as error:
            if not fix:
                raise
            file, recovered = _recovered(text, name, kernel, error)
        findings = check_read(kernel, file)
        certain = [each.finding for each in findings if each.finding.fix is not None]
        mended = (*recovered, *(str(finding) for finding in certain))
        if not fix or not mended:
            return _Checked(file, findings)
        from portico.plans.fixes import apply_fixes

        plan = apply_fixes(file.plan, certain)
        # What was mended may show more: the whole is checked again, as it will be written.
        file = reread(file, written_plan(plan, file.form, kernel.manuals), kernel.manuals)
        return _Checked(file, check_read(kernel, file), mended)


def _recovered(text: str, name: str, kernel: Kernel, error: PlanFormatError) -> tuple[PlanFile, tuple[str, ...]]:
    """Mend a text that is nearly an XML plan; raise ``error`` for any other."""
    from portico.plans.xml_form import read_plan

    if "<" not in text:
        raise error
    try:
        found = read_plan(text, kernel.manuals, recover=True)
    except PlanFormatError:
        raise error from None
    mends = tuple(str(mend) for mend in found.recovered)
    return PlanFile(found.plan, text, shown_name(name), found), mends


def _write(checked: _Checked, name: str, output: Path | None) -> Path | None:
    target = output or (None if name == "-" else Path(name))
    if target is None or not checked.mended:
        return None
    write_text(target, checked.file.text)
    return target


def _summary(checked: _Checked, errors: int) -> str:
    warnings = len(checked.findings) - errors
    if not checked.findings:
        count = len(checked.file.plan.steps)
        return f"{checked.file.name}: {count} step{'' if count == 1 else 's'}, nothing wrong."
    parts = [
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((errors, "error"), (warnings, "warning"))
        if number
    ]
    return f"{checked.file.name}: {', '.join(parts)}."


def _tell_beside(checked: _Checked) -> None:
    import sys

    from portico_cli.output import console_for

    console = console_for(sys.stderr)
    for line in finding_lines(checked.file.name, checked.findings):
        console.print(line)
