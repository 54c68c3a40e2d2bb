"""What a docstring says of a callable or a class: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Documentation", "describe", "describe_class"]

_PARAMETERS = ("Args", "Arguments", "Parameters", "Params", "Attributes")
_RETURNS = ("Returns", "Return")
_HEADINGS = (*_PARAMETERS, *_RETURNS, "Yields", "Raises", "Example", "Examples", "Note", "Notes", "See Also", "Warning")
_GOOGLE_HEADING = re.compile(rf"(?:{'|'.join(_HEADINGS)}):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*)?")
_SPHINX_ENTRY = re.compile(r":(?:param|parameter|arg|ivar|cvar|var) (?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_SPHINX_RETURNS = re.compile(r":(returns?):\s*(.*)")
_SPHINX_FIELD = re.compile(r":\w+(?: [^:]+)?:(?:\s|$)")
# A name or a type in front of what is returned: one word, with brackets and alternatives perhaps.
_TYPE = re.compile(r"[\w.]+(?:\[[^\]]*\]+)?(?:\s*\|\s*[\w.]+(?:\[[^\]]*\]+)?)*")


@dataclass(frozen=True, slots=True)
class Documentation:
    """What was found: the first paragraph, the text on each parameter or attribute, and on what is returned."""

    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""


def describe(callable: Callable[..., Any]) -> Documentation:
    """Read the docstring of a callable; of an object, that of its call or else of its class.

    >>> def add(a, b):
    ...     '''Add numbers.
    ...
    ...     Args:
    ...         a: The one.
    ...
    ...     Returns:
    ...         The sum.
    ...     '''
    >>> describe(add)
    Documentation(summary='Add numbers.', parameters={'a': 'The one.'}, returns='The sum.')
    """
    doc = inspect.getdoc(callable)
    if not inspect.isroutine(callable) and not isinstance(callable, type):
        doc = inspect.getdoc(type(callable).__call__) or doc
    return _read(doc or "")


def describe_class(kind: type) -> Documentation:
    """Read the docstring of a class, and of those it derives from what they say of its attributes.

    What Python writes by itself is passed over: the signature that a dataclass or a named tuple gets.
    """
    attributes: dict[str, str] = {}
    own = Documentation()
    for base in reversed(kind.__mro__[:-1]):
        own = _read(_written(base))
        attributes |= own.parameters
    return Documentation(own.summary, attributes)


def _written(kind: type) -> str:
    """Return the docstring that a class has of its own, if somebody wrote one."""
    doc = kind.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{kind.__name__}("):
        return ""
    return "" if kind.__module__ in ("builtins", "typing", "enum") else inspect.cleandoc(doc)


def _read(doc: str) -> Documentation:
    if not doc:
        return Documentation()
    lines = doc.splitlines()
    summary: list[str] = []
    for index, line in enumerate(lines):
        underlined = index + 1 < len(lines) and _is_rule(lines[index + 1])
        if not line.strip() or underlined or _SPHINX_FIELD.match(line) or _GOOGLE_HEADING.fullmatch(line):
            break
        summary.append(line.strip())
    parameters = _sphinx(lines, _SPHINX_ENTRY) or _google(lines) or _numpy(lines)
    returns = _sphinx(lines, _SPHINX_RETURNS)
    told = next(iter(returns.values()), "") or _google_returns(lines) or _numpy_returns(lines)
    return Documentation(" ".join(summary), parameters, told)


def _sphinx(lines: list[str], entry: re.Pattern[str]) -> dict[str, str]:
    return _entries(lines, entry.match)


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PARAMETERS:
        found |= _entries(_google_section(lines, (name,)), _GOOGLE_ENTRY.match)
    return found


def _google_returns(lines: list[str]) -> str:
    text = " ".join(_paragraph(_google_section(lines, _RETURNS)))
    kind, colon, rest = text.partition(": ")
    return rest.strip() if colon and _TYPE.fullmatch(kind) else text


def _google_section(lines: list[str], names: tuple[str, ...]) -> list[str]:
    """Return the lines under a heading, as far as they are indented, with that indent removed."""
    headings = [f"{name}:" for name in names]
    start = next((i for i, line in enumerate(lines) if line.rstrip() in headings), len(lines))
    body: list[str] = []
    for line in lines[start + 1 :]:
        if line.strip() and line[:1] != " ":
            break
        body.append(line)
    indent = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    return [line[indent:] for line in body]


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name in _PARAMETERS:
        current: list[str] = []
        for line in _numpy_section(lines, (name,)):
            match = _NUMPY_ENTRY.fullmatch(line)
            if match:
                current = found.setdefault(match[1], [])
            elif line.strip():
                current.append(line.strip())
    return {name: " ".join(text) for name, text in found.items()}


def _numpy_returns(lines: list[str]) -> str:
    body = [line for line in _numpy_section(lines, _RETURNS) if line.strip()]
    indented = [line.strip() for line in body if line[:1] == " "]
    if indented:
        return " ".join(indented)
    return "" if len(body) == 1 and _TYPE.fullmatch(body[0]) else " ".join(body)


def _numpy_section(lines: list[str], names: tuple[str, ...]) -> list[str]:
    """Return the lines under an underlined heading, up to the next one."""
    start = next(
        (i for i, line in enumerate(lines[:-1]) if line.strip() in names and _is_rule(lines[i + 1])), len(lines)
    )
    body: list[str] = []
    for index in range(start + 2, len(lines)):
        if index + 1 < len(lines) and _is_rule(lines[index + 1]):
            break
        body.append(lines[index])
    return body


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"-"}


def _paragraph(lines: list[str]) -> list[str]:
    """Return the first lines that are not blank, without their indent."""
    found: list[str] = []
    for line in lines:
        if line.strip():
            found.append(line.strip())
        elif found:
            break
    return found


def _entries(lines: list[str], entry: Callable[[str], re.Match[str] | None]) -> dict[str, str]:
    """Read ``name: text`` with indented lines that go on."""
    found: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        match = entry(line)
        if match:
            current = match[1]
            found[current] = match[2].strip()
        elif current is not None and line.strip() and line[:1] == " ":
            found[current] = f"{found[current]} {line.strip()}".strip()
        else:
            current = None
    return found
