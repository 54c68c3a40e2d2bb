"""Read plans from files, find places in them, and write plans in their forms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from portico.errors import PlanFormatError
from portico.plans import Finding, Plan, XmlPlan, plan_from_json, plan_to_json, plan_to_mermaid, plan_to_text
from portico.ports import SavedPlan
from portico_cli.arguments import read_text
from portico_cli.show.plans import Placed

if TYPE_CHECKING:
    from portico import FunctionSpec


_MAXIMUM_BYTES = 10_000_000
_NAMES = re.compile(r"[^\s.\[\]]+")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan with its text and the file's name; for JSON ``xml`` is None, and ``edited`` too if no store saved it."""

    plan: Plan
    text: str
    name: str
    xml: XmlPlan | None = None
    edited: bool | None = None
    version: int = 2
    """The version that the document says, for JSON."""


def shown_name(name: str) -> str:
    """Return the name of a file for messages; ``-`` is standard input."""
    return "standard input" if name == "-" else name


def read_plan_file(name: str, catalogue: Mapping[str, FunctionSpec] | None = None, *, input: Any = None) -> PlanFile:
    """Read a plan from a file, or from standard input for ``-``: JSON, or XML if it begins with ``<``.

    XML finds its functions in ``catalogue``, and variables in ``input``. Raises ``Misused`` for a file that
    cannot be read, and ``PlanFormatError``, with the file and the place, for one that is not a plan.
    """
    return parse_plan(read_plan_text(name), shown_name(name), catalogue, input=input)


def read_plan_text(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    return read_text(name, _MAXIMUM_BYTES, shown_name(name))


def parse_plan(
    text: str,
    shown: str,
    catalogue: Mapping[str, FunctionSpec] | None = None,
    *,
    xml: bool | None = None,
    input: Any = None,
) -> PlanFile:
    """Parse a plan; ``shown`` names the file in errors. Without ``xml`` the first character tells the form."""
    if not text.strip():
        raise PlanFormatError(f"{shown}: the file is empty; a plan is JSON or XML.")
    try:
        if text.lstrip().startswith("<") if xml is None else xml:
            found = XmlPlan.read(text, catalogue, input=input)
            return PlanFile(found.plan, text, shown, found)
        document, edited = _load(text), None
        if isinstance(document, dict) and "portico_saved_plan" in document:
            try:
                saved = SavedPlan.from_json(document)
            except ValueError as error:
                raise PlanFormatError(f"{error}.") from error
            document, edited = saved.plan, saved.edited
        plan = plan_from_json(document)
        return PlanFile(plan, text, shown, edited=edited, version=document["version"])  # type: ignore[index]
    except PlanFormatError as error:
        raise PlanFormatError(f"{shown}: {error}", line=error.line, column=error.column) from error


def _load(text: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # The last value of a key would count, and a reader may have seen the first.
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise PlanFormatError(f"one object has the key {twice!r} twice.")
        return made

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise PlanFormatError(f"{place}: not JSON: {error.msg}.", line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        raise PlanFormatError(f"not JSON that can be read: {error}.") from error


def place_findings(file: PlanFile, findings: Sequence[Finding]) -> list[Placed]:
    """Return the findings with their lines and columns in the file."""
    if file.xml is not None:
        return [Placed(each, *(file.xml.place_of(each.step, each.place) or (1, 1))) for each in findings]
    if file.version < (needed := plan_to_json(file.plan)["version"]):
        words = f"version {needed} adds `each`, `when` and paths that select several; write {needed}"
        findings = [Finding(words, None, "version", "warning"), *findings]
    if file.edited:
        words = "the plan was edited since it was saved; if that was you, delete this line"
        findings = [Finding(words, None, "digest", "warning"), *findings]
    return [Placed(each, *json_place(file.text, each.step, each.place)) for each in findings]


def json_place(text: str, step: str | None, place: str) -> tuple[int, int]:
    r"""Return the line and column, from 1, where a plan in JSON has what a finding is about.

    The text is searched for the step and then for each name of the place. That is exact where a step begins with its
    id, as plans are written; otherwise it may be the place of the step, or of the same name nearby.
    """
    at = 0
    for id in re.split(r"(?:\[\d+\])?(?:/|\Z)", step) if step else ():
        found = re.compile(rf'"id"\s*:\s*{re.escape(json.dumps(id))}').search(text, at)
        at = found.start() if found else at
    following = re.compile(r'"id"\s*:').search(text, at + 1) if step else None
    end = following.start() if following else len(text)
    for name in _NAMES.findall(place):
        found = re.compile(rf"{re.escape(json.dumps(name))}\s*:").search(text, at, end)
        at = found.start() if found else at
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


class Form(NamedTuple):
    """A form of plans: how it is written with the functions and the findings of a check, and its files' endings."""

    write: Callable[[Plan, Mapping[str, FunctionSpec] | None, Sequence[Finding]], str]
    endings: tuple[str, ...]


FORMS = {
    "text": Form(lambda plan, catalogue, _: plan_to_text(plan, catalogue=catalogue), (".txt",)),
    "json": Form(lambda plan, *_: json.dumps(plan_to_json(plan), ensure_ascii=False, indent=2), (".json",)),
    "xml": Form(lambda plan, catalogue, _: XmlPlan.write(plan, catalogue, bare=True), (".xml",)),
    "mermaid": Form(lambda plan, _, findings: plan_to_mermaid(plan, findings), (".mmd", ".mermaid")),
}


def write_plan(
    plan: Plan, form: str, catalogue: Mapping[str, FunctionSpec] | None = None, findings: Sequence[Finding] = ()
) -> str:
    """Return a plan in one of `FORMS`. Raises ``PlanError`` if XML cannot hold it."""
    return FORMS[form].write(plan, catalogue, findings)


def form_of(file: Path) -> str:
    """Return the form that a file's ending asks for; JSON for any other."""
    return next((name for name, form in FORMS.items() if file.suffix.lower() in form.endings), "json")
