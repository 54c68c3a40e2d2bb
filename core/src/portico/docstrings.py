"""What a docstring says of a callable and its parameters: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

__all__ = ["describe"]

_SPHINX = re.compile(r":param (?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_GOOGLE_HEADING = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*)?")


def describe(callable: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a callable's summary (its docstring's first paragraph) and the text on each parameter."""
    doc = inspect.getdoc(callable)
    if not inspect.isroutine(callable) and not isinstance(callable, type):
        doc = inspect.getdoc(type(callable).__call__) or doc
    if not doc:
        return "", {}
    lines = doc.splitlines()
    summary: list[str] = []
    for line in lines:
        if not line.strip() or _SPHINX.match(line) or _GOOGLE_HEADING.fullmatch(line):
            break
        summary.append(line.strip())
    return " ".join(summary), _sphinx(lines) or _google(lines) or _numpy(lines)


def _sphinx(lines: list[str]) -> dict[str, str]:
    return _entries(lines, _SPHINX.match, lambda line: line[:1] == " ")


def _google(lines: list[str]) -> dict[str, str]:
    start = next((i for i, line in enumerate(lines) if _GOOGLE_HEADING.fullmatch(line)), None)
    if start is None:
        return {}
    body = []
    for line in lines[start + 1 :]:
        if line.strip() and line[:1] != " ":
            break
        body.append(line)
    indent = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    dedented = [line[indent:] for line in body]
    return _entries(dedented, _GOOGLE_ENTRY.match, lambda line: line[:1] == " ")


def _numpy(lines: list[str]) -> dict[str, str]:
    start = next(
        (i for i, line in enumerate(lines[:-1]) if line.strip() == "Parameters" and set(lines[i + 1].strip()) == {"-"}),
        None,
    )
    if start is None:
        return {}
    body = []
    for i in range(start + 2, len(lines)):
        following = lines[i + 1].strip() if i + 1 < len(lines) else ""
        if following and set(following) == {"-"}:
            break
        body.append(lines[i])
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body:
        match = _NUMPY_ENTRY.fullmatch(line)
        if match:
            current = found.setdefault(match[1], [])
        elif line.strip():
            current.append(line.strip())
    return {name: " ".join(text) for name, text in found.items()}


def _entries(
    lines: list[str], entry: Callable[[str], re.Match[str] | None], continues: Callable[[str], bool]
) -> dict[str, str]:
    found: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        match = entry(line)
        if match:
            current = match[1]
            found[current] = match[2].strip()
        elif current is not None and line.strip() and continues(line):
            found[current] = f"{found[current]} {line.strip()}".strip()
        else:
            current = None
    return found
