"""Read, check, mend and write plans in files."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from portico.errors import PlanFormatError
from portico.plans import Plan
from portico_cli.arguments import read_bytes
from portico_cli.failures import DONE, FAILED, Misused
from portico_cli.show.layout import Hanging, count_words
from portico_cli.show.output import console_for, plain, safe_text, show, write_as_it_is, write_json
from portico_cli.sources import Chosen, run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico import FunctionSpec, Kernel
    from portico.plans import Finding, XmlPlan
    from portico_cli.invocation import Invocation


_TOKEN = re.compile(r'[\s:,]*("(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s:,{}\[\]"]+)', re.DOTALL)

_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(slots=True)
class _Node:
    offset: int
    members: dict[str, _Node] | None = None
    items: list[_Node] | None = None
    text: str | None = None
    """What a string says."""
    key: str | None = None
    """The key of an object whose value comes next."""


class JsonPlaces:
    r"""The places of the values in a text that is JSON; lines and columns count from 1.

    >>> places = JsonPlaces('{"steps": [\n  {"id": "s1"}\n]}')
    >>> places.of(["steps", 0, "id"])
    (2, 10)

    What is not there has the place of what it would be in.
    """

    def __init__(self, text: str) -> None:
        self._lines = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        self._twice: dict[str, int] = {}
        self._root = _read(text, self._twice)

    def of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the line and column at which the value at ``path`` begins."""
        node = self._root
        for part in path:
            inner = _inside(node, part)
            if inner is None:
                break
            node = inner
        return self._place(node)

    def second(self, key: str) -> tuple[int, int]:
        """Return the place of a key that an object has already; that of the whole where there is none."""
        return self._place(_Node(self._twice.get(key, self._root.offset)))

    def of_finding(self, step: str | None, place: str) -> tuple[int, int]:
        """Return the place of what a check found in a plan: in which step, and where inside of it."""
        node = self._root
        for id in step.split("/") if step else ():
            node = _step(node, id) or node
        return self._place(_walked(node, place))

    def _place(self, node: _Node) -> tuple[int, int]:
        line = bisect_right(self._lines, node.offset)
        return line, node.offset - self._lines[line - 1] + 1


def _read(text: str, twice: dict[str, int]) -> _Node:
    stack: list[_Node] = []
    root = _Node(0)
    for token in _TOKEN.finditer(text):
        word, offset = token[1], token.start(1)
        if word in ("}", "]"):
            stack.pop()
            continue
        inside = stack[-1] if stack else None
        if inside is not None and inside.members is not None and inside.key is None:
            inside.key = json.loads(word)
            if inside.key in inside.members:
                twice.setdefault(inside.key, offset)
            continue
        text_of = json.loads(word) if word[0] == '"' else None
        node = _Node(offset, {} if word == "{" else None, [] if word == "[" else None, text_of)
        if inside is None:
            root = node
        elif inside.members is not None and inside.key is not None:
            inside.members[inside.key] = node
            inside.key = None
        elif inside.items is not None:
            inside.items.append(node)
        if word in ("{", "["):
            stack.append(node)
    return root


def _inside(node: _Node, part: str | int) -> _Node | None:
    if isinstance(part, str):
        return None if node.members is None else node.members.get(part)
    return node.items[part] if node.items is not None and 0 <= part < len(node.items) else None


def _step(plan: _Node, id: str) -> _Node | None:
    """Find a step by its id in a plan, or in the plan that a step holds."""
    nested = _inside(plan, "function")
    steps = _inside(nested if nested is not None and nested.members is not None else plan, "steps")
    for step in steps.items or () if steps is not None else ():
        written = _inside(step, "id")
        if written is not None and written.text == id:
            return step
    return None


def _walked(node: _Node, place: str) -> _Node:
    """Follow a place such as ``arguments.city.list[2]``; a name may hold any character, also a dot."""
    while place:
        index = _INDEX.match(place)
        inner: _Node | None
        if index is not None:
            inner, rest = _inside(node, int(index[1])), place[index.end() :]
        else:
            names = [name for name in node.members or () if _begins(place, name)]
            name = max(names, key=len, default="")
            inner, rest = _inside(node, name) if names else None, place[len(name) :]
            if inner is None:
                id, _, rest = place.partition(" ")
                inner = _step(node, id)
        if inner is None:
            return node
        node, place = inner, rest.lstrip(".")
    return node


def _begins(place: str, name: str) -> bool:
    return bool(name) and place.startswith(name) and place[len(name) : len(name) + 1] in ("", ".", "[")


_MAXIMUM_BYTES = 10_000_000
_LONGEST_MESSAGE = 450
_BEGINNING = 200
_STYLES = {"error": "red", "warning": "yellow"}


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan with its text; ``name`` is the name of the file, and ``xml`` is None for a plan in JSON."""

    plan: Plan
    text: str
    name: str
    xml: XmlPlan | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding and its place in the file; no place if the plan comes from no file."""

    finding: Finding
    line: int | None = None
    column: int | None = None


def read_plan_file(name: str, catalogue: Mapping[str, FunctionSpec] | None = None) -> PlanFile:
    """Read a plan from a file, or from standard input for ``-``: JSON, or XML if it begins with ``<``.

    XML finds its functions in ``catalogue``. Raises ``Misused`` for a file that cannot be read, and
    ``PlanFormatError``, with the file and the place, for one that is not a plan.
    """
    return _parse(_read_text(name), _shown_name(name), catalogue)


def written_plan(plan: Plan, form: str, catalogue: Mapping[str, FunctionSpec] | None = None) -> str:
    """Write a plan in one of `FORMS`. Raises ``PlanError`` if XML cannot hold it."""
    return FORMS[form].write(plan, catalogue)


def _text(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None) -> str:
    from portico.plans import plan_to_text

    return plan_to_text(plan, catalogue=catalogue)


def _plan_json(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None) -> str:
    from portico.plans import plan_to_json

    return json.dumps(plan_to_json(plan), ensure_ascii=False, indent=2)


def _xml(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None) -> str:
    from portico.plans import XmlPlan

    try:
        return XmlPlan.write(plan, catalogue, bare=True)
    except PlanFormatError as error:
        error.add_note("JSON holds every plan.")
        raise


def _mermaid(plan: Plan, catalogue: Mapping[str, FunctionSpec] | None) -> str:
    from portico.plans import plan_to_mermaid

    return plan_to_mermaid(plan)


class Form(NamedTuple):
    """A form of plans: how it is written, and the endings of its files."""

    write: Callable[[Plan, Mapping[str, FunctionSpec] | None], str]
    endings: tuple[str, ...]


FORMS = {
    "text": Form(_text, (".txt",)),
    "json": Form(_plan_json, (".json",)),
    "xml": Form(_xml, (".xml",)),
    "mermaid": Form(_mermaid, (".mmd", ".mermaid")),
}


def form_of(file: Path) -> str:
    """Return the form that a file's ending asks for; JSON for any other."""
    return next((name for name, form in FORMS.items() if file.suffix.lower() in form.endings), "json")


def write_text(file: Path, text: str) -> None:
    """Write a file as a whole: a kill leaves the old one or the new one. Raises ``Misused`` if that fails."""
    try:
        # A link stays; its target is replaced.
        target = file.resolve()
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text if text.endswith("\n") else f"{text}\n")
            mask = os.umask(0)
            os.umask(mask)
            Path(temporary).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            Path(temporary).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise Misused(f"{file} cannot be written: {error.strerror or error}.") from error


def _shown_name(name: str) -> str:
    return "standard input" if name == "-" else name


def _read_text(name: str) -> str:
    shown = _shown_name(name)
    content = read_bytes(name, _MAXIMUM_BYTES, shown)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PlanFormatError(f"{shown}, line {line}: this is not UTF-8 text.", line=line) from error


def _parse(
    text: str, shown: str, catalogue: Mapping[str, FunctionSpec] | None = None, *, xml: bool | None = None
) -> PlanFile:
    if not text.strip():
        raise PlanFormatError(f"{shown}: the file is empty; a plan is JSON or XML.")
    try:
        if text.lstrip().startswith("<") if xml is None else xml:
            from portico.plans import XmlPlan

            found = XmlPlan.read(text, catalogue)
            return PlanFile(found.plan, text, shown, found)
        from portico.plans import plan_from_json

        return PlanFile(plan_from_json(_json(text)), text, shown)
    except PlanFormatError as error:
        line, column, where, message = error.line, error.column, "", str(error)
        if line is None and message.startswith("$"):
            # The message begins with the path of the mistake.
            line, column = JsonPlaces(text).of_finding(None, message.partition(": ")[0].lstrip("$."))
            where = f"line {line}, column {column}: "
        if len(message) > _LONGEST_MESSAGE:
            # The path of something that is nested deeply.
            message = f"{message[:_BEGINNING]}…{message[-_BEGINNING:]}"
        raise PlanFormatError(f"{shown}: {where}{message}", line=line, column=column) from error


class _TwiceError(ValueError):
    """A key that an object has twice."""


def _json(text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # The last one would count, and a reader may have seen the first.
        made: dict[str, object] = {}
        for key, value in pairs:
            if key in made:
                raise _TwiceError(key)
            made[key] = value
        return made

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise PlanFormatError(
            f"line {error.lineno}, column {error.colno}: not JSON: {message}.", line=error.lineno, column=error.colno
        ) from error
    except RecursionError as error:
        raise PlanFormatError("this JSON is nested too deeply.") from error
    except _TwiceError as error:
        line, column = JsonPlaces(text).second(str(error))
        message = f"line {line}, column {column}: one object has the key {str(error)!r} twice."
        raise PlanFormatError(message, line=line, column=column) from error
    except ValueError as error:
        raise PlanFormatError(f"not JSON that can be read: {error}.") from error


def placed(file: PlanFile, findings: Sequence[Finding]) -> list[Placed]:
    """Return the findings with their lines and columns in the file."""
    if not findings:
        return []
    if file.xml is not None:
        return [Placed(each, *(file.xml.place_of(each.step, each.place) or (1, 1))) for each in findings]
    places = JsonPlaces(file.text)
    return [Placed(finding, *places.of_finding(finding.step, finding.place)) for finding in findings]


def finding_lines(name: str, findings: Sequence[Placed]) -> Iterator[RenderableType]:
    """Yield a line for each finding, as compilers write them: file, line, column, severity, message."""
    from rich.text import Text

    for each in findings:
        finding = each.finding
        where = f"{name}:{each.line}:{each.column}: " if each.line else f"{name}: " if name else ""
        text = Text(plain(where), style="bold")
        text.append(f"{finding.severity}: ", style=_STYLES.get(finding.severity, ""))
        # The other lines are an excerpt, which the place makes needless.
        text.append_text(safe_text(str(finding).partition("\n")[0]))
        if finding.fix is not None:
            text.append(" (--fix mends it)", style="dim")
        yield Hanging(text, "", "    ")


def placed_to_json(each: Placed) -> dict[str, Any]:
    """Return a finding as JSON values."""
    from portico.plans import plan_to_json

    finding, fix = each.finding, None
    if finding.fix is not None:
        new: Any = finding.fix.new
        new = new if new is None or isinstance(new, str) else plan_to_json(Plan("", result=new))["result"]
        fix = {"place": list(finding.fix.place), "new": new}
    return {
        "severity": finding.severity,
        "step": finding.step,
        "place": finding.place,
        "message": finding.words,
        "nearest": list(finding.nearest),
        "line": each.line,
        "column": each.column,
        "fix": fix,
    }


@dataclass(frozen=True, slots=True)
class _Checked:
    file: PlanFile
    findings: list[Placed]
    mended: tuple[str, ...] = ()


def check_file(invocation: Invocation, chosen: Chosen, name: str, output: Path | None, *, fix: bool) -> int:
    """Check the plan in a file, show the findings, and return the exit code; with ``fix`` mend the file."""
    checked = run(lambda: _check(chosen, name, fix=fix))
    file, findings = checked.file, checked.findings
    written = output or (None if name == "-" else Path(name))
    if checked.mended and written is not None:
        write_text(written, file.text)
    else:
        written = None
    errors = sum(each.finding.severity == "error" for each in findings)
    if invocation.json:
        write_json(
            {
                "file": file.name,
                "ok": not errors,
                "findings": [placed_to_json(each) for each in findings],
                "fixed": list(checked.mended),
                "written": None if written is None else str(written),
                "text": file.text if checked.mended and written is None else None,
            }
        )
    elif checked.mended and written is None:
        # Read from standard input: the mended plan goes to standard output, the findings beside it.
        write_as_it_is(file.text)
        console = console_for(sys.stderr)
        for line in finding_lines(file.name, findings):
            console.print(line)
    else:
        for words in checked.mended:
            show(safe_text(f"mended: {words}", "green"))
        if written is not None:
            show(safe_text(f"Wrote {written}.", "dim"))
        counts = ((errors, "error"), (len(findings) - errors, "warning"))
        words = ", ".join(count_words(number, word) for number, word in counts if number)
        words = words or f"{count_words(len(file.plan.steps), 'step')}, nothing wrong"
        show(*finding_lines(file.name, findings), safe_text(f"{file.name}: {words}.", "bold"))
    return FAILED if errors else DONE


async def _check(chosen: Chosen, name: str, *, fix: bool) -> _Checked:
    from portico.plans import Finding, XmlPlan

    async with chosen.application.kernel(chosen.sources) as kernel:
        text, shown = _read_text(name), _shown_name(name)
        mended: tuple[str, ...] = ()
        try:
            file = _parse(text, shown, kernel.specs)
        except PlanFormatError as error:
            if not fix or "<" not in text:
                raise
            try:
                # The text may be nearly an XML plan.
                found = XmlPlan.read(text, kernel.specs, recover=True)
            except PlanFormatError:
                raise error from None
            mended = tuple(str(mend) for mend in found.recovered)
            file = PlanFile(found.plan, text, shown, found)
        findings = _check_read(kernel, file)
        certain = [each.finding for each in findings if each.finding.fix is not None]
        mended += tuple(str(finding) for finding in certain)
        if not fix or not mended:
            return _Checked(file, findings)
        # The mended plan may show more findings: it is checked again, as it will be written.
        xml = file.xml is not None
        text = written_plan(Finding.fix_plan(file.plan, certain), "xml" if xml else "json", kernel.specs)
        file = _parse(text, shown, kernel.specs, xml=xml)
        return _Checked(file, _check_read(kernel, file), mended)


def _check_read(kernel: Kernel, file: PlanFile) -> list[Placed]:
    doubts = file.xml.findings if file.xml is not None else ()
    return placed(file, [*doubts, *kernel.check_plan(file.plan)])
