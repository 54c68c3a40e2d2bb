"""Plans in files: JSON or XML, read and written."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from portico.errors import PlanFormatError
from portico.plans.plan import Plan
from portico_cli.failures import Misused

if TYPE_CHECKING:
    from portico.functions import FunctionManual
    from portico.plans.xml_form import XmlPlan

__all__ = [
    "Format",
    "PlanFile",
    "parse_plan",
    "read_plan_file",
    "read_text",
    "reread",
    "shown_name",
    "write_text",
    "written_plan",
]

Format: TypeAlias = Literal["text", "json", "xml", "mermaid"]
_MAXIMUM_BYTES = 10_000_000
_LONGEST_MESSAGE = 450
_BEGINNING = 200


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan with the text that it was read from; ``name`` is the file's, or that of standard input.

    ``xml`` is what reading found in a text in XML, None for one in JSON.
    """

    plan: Plan
    text: str
    name: str
    xml: XmlPlan | None = None

    @property
    def form(self) -> Literal["json", "xml"]:
        """The form of the text."""
        return "json" if self.xml is None else "xml"


def read_plan_file(name: str, catalogue: Mapping[str, FunctionManual] | None = None) -> PlanFile:
    """Read a plan from a file, or from standard input for ``-``: JSON, or XML where it begins with ``<``.

    ``catalogue`` is what XML finds its functions in. Raises ``Misused`` for what cannot be read and
    ``PlanFormatError``, with the file and the place, for what is no plan.
    """
    return parse_plan(read_text(name), name, catalogue)


def parse_plan(text: str, name: str, catalogue: Mapping[str, FunctionManual] | None = None) -> PlanFile:
    """Read a plan from the text of a file. Raises ``PlanFormatError``, with the file and the place."""
    shown = shown_name(name)
    if not text.strip():
        raise PlanFormatError(f"{shown}: there is nothing in it; a plan is JSON or XML.")
    try:
        return _parsed(text, shown, catalogue, xml=text.lstrip().startswith("<"))
    except PlanFormatError as error:
        line, column = error.line, error.column
        where = ""
        if line is None and str(error).startswith("$"):
            from portico_cli.json_places import JsonPlaces

            # The message begins with the path of what is wrong.
            line, column = JsonPlaces(text).of_finding(None, str(error).partition(": ")[0].lstrip("$."))
            where = f"line {line}, column {column}: "
        raise PlanFormatError(f"{shown}: {where}{_short(str(error))}", line=line, column=column) from error


def reread(file: PlanFile, text: str, catalogue: Mapping[str, FunctionManual]) -> PlanFile:
    """Return what a file holds once ``text`` is written to it."""
    return _parsed(text, file.name, catalogue, xml=file.xml is not None)


def written_plan(plan: Plan, format: Format, catalogue: Mapping[str, FunctionManual] | None = None) -> str:
    """Write a plan in one of its forms. Raises ``PlanError`` for one that XML cannot hold."""
    match format:
        case "text":
            from portico.plans.text_form import plan_to_text

            return plan_to_text(plan, catalogue=catalogue)
        case "xml":
            from portico.plans.xml_form import plan_to_xml

            try:
                return plan_to_xml(plan, catalogue, bare=True)
            except PlanFormatError as error:
                error.add_note("JSON holds every plan.")
                raise
        case "mermaid":
            from portico.plans.mermaid import plan_to_mermaid

            return plan_to_mermaid(plan)
        case _:
            from portico.plans.json_form import plan_to_json

            return json.dumps(plan_to_json(plan), ensure_ascii=False, indent=2)


def write_text(file: Path, text: str) -> None:
    """Write a file as a whole: a kill leaves the old one or the new. Raises ``Misused`` where that cannot be."""
    try:
        # In place of what a link leads to, not of the link.
        target = file.resolve()
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text if text.endswith("\n") else f"{text}\n")
            if target.exists():
                Path(temporary).chmod(target.stat().st_mode & 0o777)
            else:
                Path(temporary).chmod(0o666 & ~_mask())
            Path(temporary).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise Misused(f"{file} cannot be written: {error.strerror or error}.") from error


def _parsed(text: str, name: str, catalogue: Mapping[str, FunctionManual] | None, *, xml: bool) -> PlanFile:
    if xml:
        from portico.plans.xml_form import read_plan

        found = read_plan(text, catalogue)
        return PlanFile(found.plan, text, name, found)
    from portico.plans.json_form import plan_from_json

    return PlanFile(plan_from_json(_json(text)), text, name)


def shown_name(name: str) -> str:
    """Return what messages call a file: its name, or standard input."""
    return "standard input" if name == "-" else name


def _short(message: str) -> str:
    # The path of something that is nested deeply.
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_BEGINNING]}…{message[-_BEGINNING:]}"


def read_text(name: str) -> str:
    """Return what a file has, or standard input for ``-``.

    Raises ``Misused`` for what cannot be read and ``PlanFormatError`` for what is no text.
    """
    shown = shown_name(name)
    try:
        if name == "-":
            content = sys.stdin.buffer.read(_MAXIMUM_BYTES + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Misused(f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(content) > _MAXIMUM_BYTES:
        raise Misused(f"{shown} has more than {_MAXIMUM_BYTES:,} bytes, which no plan has.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PlanFormatError(f"{shown}, line {line}: this is not UTF-8 text.", line=line) from error


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise PlanFormatError(
            f"line {error.lineno}, column {error.colno}: not JSON: {message}.", line=error.lineno, column=error.colno
        ) from error
    except RecursionError as error:
        raise PlanFormatError("not JSON that can be read: it is nested too deeply.") from error
    except _Twice as error:
        from portico_cli.json_places import JsonPlaces

        line, column = JsonPlaces(text).second(error.key)
        message = f"line {line}, column {column}: the key {error.key!r} is there twice in one object."
        raise PlanFormatError(message, line=line, column=column) from error
    except ValueError as error:
        raise PlanFormatError(f"not JSON that can be read: {error}.") from error


class _Twice(ValueError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # The last one would count, and a reader may have seen the first.
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return made


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
