"""Reading docstrings of callables and classes: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from itertools import takewhile
from textwrap import dedent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PARAMETERS = ("Args", "Arguments", "Parameters", "Params", "Attributes")
_RETURNS = ("Returns", "Return")
_LEFT_OUT = (*_PARAMETERS, *_RETURNS, "Yields", "Raises", "Warns", "Example", "Examples", "See Also", "References")
_GOOGLE_HEADING = re.compile(rf"(?:{'|'.join(_LEFT_OUT)}):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*)?()")
_SPHINX_ENTRY = re.compile(r":(?:param|parameter|arg|ivar|cvar|var) (?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)")
_SPHINX_RETURNS = re.compile(r":(returns?):\s*(.*)")
_SPHINX_FIELD = re.compile(r":\w+(?: [^:]+)?:(?:\s|$)")
# A name or a type before the words on a result: one word, perhaps with brackets and alternatives.
_TYPE = re.compile(r"[\w.]+(?:\[[^\]]*\]+)?(?:\s*\|\s*[\w.]+(?:\[[^\]]*\]+)?)*")


@dataclass(frozen=True, slots=True)
class Documentation:
    """The content of a docstring: its paragraphs, the text on each parameter or attribute, and on the result."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""

    @staticmethod
    def of_class(kind: type) -> Documentation:
        """Read the docstring of a class, and what its base classes say about attributes.

        Signatures that Python writes for a dataclass or a named tuple do not count.
        """
        attributes: dict[str, str] = {}
        own = Documentation()
        for base in reversed(kind.__mro__[:-1]):
            own = _read(_find_docstring(base))
            attributes |= own.parameters
        return Documentation(own.description, attributes)


def describe(callable: Callable[..., Any]) -> Documentation:
    """Read the docstring of a callable. For an object, it is that of ``__call__`` or else of its class.

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
    Documentation(description='Add numbers.', parameters={'a': 'The one.'}, returns='The sum.')
    """
    doc = inspect.getdoc(callable)
    if not inspect.isroutine(callable) and not isinstance(callable, type):
        doc = inspect.getdoc(type(callable).__call__) or doc
    return _read(doc or "")


def _find_docstring(kind: type) -> str:
    doc = kind.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{kind.__name__}("):
        return ""
    return "" if kind.__module__ in ("builtins", "typing", "enum") else inspect.cleandoc(doc)


def _read(doc: str) -> Documentation:
    lines = doc.splitlines()
    parameters = _entries(lines, _SPHINX_ENTRY.match)
    for name in _PARAMETERS:
        body, underlined = _section(lines, (name,))
        parameters = _entries(body, _NUMPY_ENTRY.fullmatch if underlined else _GOOGLE_ENTRY.match) | parameters
    returns = next(iter(_entries(lines, _SPHINX_RETURNS.match).values()), "") or _returns(*_section(lines, _RETURNS))
    return Documentation(_prose(lines), parameters, returns)


def _prose(lines: list[str]) -> str:
    """Return the paragraphs that are in no section which is read apart, and no example."""
    paragraphs, inside = [list[str]()], ""
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        text = line.strip()
        if text and _is_rule(below):
            inside = "underlined" if text in _LEFT_OUT else ""
            paragraphs.append([f"{text}:"] * (not inside))
        elif inside == "underlined" or _is_rule(line) or (inside == "indented" and (not text or line[0] == " ")):
            continue
        elif _SPHINX_FIELD.match(line) or _GOOGLE_HEADING.fullmatch(line):
            inside = "indented"
        elif text.startswith(">>>") or (inside == "session" and text):
            inside = "session"
        else:
            inside = ""
            paragraphs.append([]) if not text else paragraphs[-1].append(text)
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)


def _section(lines: list[str], names: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return the lines under a heading without their indent, and whether it is underlined, as in NumPy style."""
    for at, line in enumerate(lines, 1):
        heading = line.strip()
        if heading.removesuffix(":") not in names:
            continue
        below = lines[at:]
        if line.rstrip() in [f"{name}:" for name in names]:
            body = takewhile(lambda each: not each.strip() or each[:1] == " ", below)
            return dedent("\n".join(body)).splitlines(), False
        if heading in names and below and _is_rule(below[0]):
            end = next((place for place in range(2, len(below)) if _is_rule(below[place])), len(below) + 1)
            return below[1 : end - 1], True
    return [], False


def _returns(body: list[str], underlined: bool) -> str:
    if underlined:
        indented = [line.strip() for line in body if line[:1] == " "]
        text = " ".join(filter(None, indented or map(str.strip, body)))
        return "" if not indented and _TYPE.fullmatch(text) else text
    text = " ".join(filter(None, map(str.strip, body)))
    kind, colon, rest = text.partition(": ")
    return rest.strip() if colon and _TYPE.fullmatch(kind) else text


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"-"}


def _entries(lines: list[str], entry: Callable[[str], re.Match[str] | None]) -> dict[str, str]:
    """Read ``name: text`` with the indented lines that continue it."""
    found: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        match = entry(line)
        if match:
            current = match[1]
            found[current] = match[2].strip()
        elif current is not None and line.strip() and line[:1] == " ":
            found[current] = f"{found[current]} {line.strip()}".strip()
        elif line.strip():
            current = None
    return found
