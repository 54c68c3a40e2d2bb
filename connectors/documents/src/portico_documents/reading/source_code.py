"""Source code: the file's own lines, each stretch under the names of the definitions around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from portico_documents.chunking import Section
from portico_documents.reading.markup import LineSections, Outline

_LONGEST_DEFINITION = 300

_CLASS_LIKE = re.compile(
    r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|abstract|final|async|unsafe|sealed"
    r"|open|data|partial|override|declare|extern|inline|const|local)\s+)*+"
    r"(?:class|interface|struct|enum|trait|impl|union|record|object|module|namespace|fn|func|function|def|type|protocol"
    r"|extension|mod|macro_rules!|defmodule|contract|service|message)\b\s*+\*?\s*+(?:\([^)]*\)|<[^>]*>)?\s*+([A-Za-z_$][\w$.:]*+)"
)
_CONSTANT_FUNCTION = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\w$]+)\s*=\s*(?:async\b\s*)?(?:function\b|\(|[\w$]+\s*=>)"
)
_C_FUNCTION = re.compile(
    r"(?!(?:if|for|while|switch|return|else|do|typedef|using)\b)[A-Za-z_][^;=(){}]*?([\w:~]+)\s*\([^;]*$"
)
_SHELL = re.compile(r"(?:function\s+)?([\w:.-]+)\s*\(\s*\)")
_SQL = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unique\s+|materialized\s+)?"
    r"(?:table|view|function|procedure|trigger|index|type)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]]+)",
    re.IGNORECASE,
)
_PYTHON = re.compile(r"(?:async\s+def|def|(class))\s+(\w+)")


def _rules(suffixes: str, *rules: re.Pattern[str]) -> dict[str, tuple[re.Pattern[str], ...]]:
    return {f".{suffix}": rules for suffix in suffixes.split()}


_RULES = {
    **_rules("c h cc cpp cxx hh hpp hxx m mm cu d java cs", _CLASS_LIKE, _C_FUNCTION),
    **_rules("js mjs cjs jsx ts mts cts tsx vue svelte", _CLASS_LIKE, _CONSTANT_FUNCTION),
    **_rules("go rs rb kt kts scala swift php dart ex exs jl lua zig nim groovy proto cr sol", _CLASS_LIKE),
    **_rules("sh bash zsh ksh fish", _SHELL, _CLASS_LIKE),
    **_rules("toml ini cfg conf properties desktop service"),
    **_rules("sql", _SQL),
    **_rules("json jsonl ndjson json5 yaml yml xml xsd xsl csv tsv log diff patch ipynb graphql hcl nix cmake mk"),
    **_rules("css scss sass less hs ml mli fs clj cljs el lisp scm erl hrl pl pm r tcl vim bat cmd ps1 psm1"),
    **_rules("asm s f f90 for pas tf gradle v vhd sv bzl dockerfile svg"),
}
SUFFIXES = frozenset(_RULES)
"""The file name extensions, in small letters, that are read as code."""

_CLOSING = re.compile(r"[)\]}>{:#]|(?:end|fi|done|esac|where|then|else|elif|EOF)\b")
_LEADING = re.compile(r"//|/\*|\*|#|--|@|;|\"\"\"|template\b")


def read(text: str, suffix: str) -> list[Section]:
    r"""Return the sections of a source file: one for each definition that starts a line, and what lies between.

    A definition lasts until the next line that starts at the margin and closes nothing; comments right above belong
    to it. It is a rule of thumb on lines, for any language.

    >>> [(section.line, section.headings) for section in read("use a;\n\n// Adds.\nfn add() {\n}\n\nx\n", ".rs")]
    [(1, ()), (3, ('add',)), (7, ())]
    """
    lines = text.split("\n")
    return _write(lines, _definitions(lines, _RULES.get(suffix, ())))


def read_python(text: str) -> list[Section]:
    r"""Return the sections of a Python file: one for each function, method and class, and what lies between.

    A function inside a function stays in it. Indentation decides what is inside, with no regard to other syntax.

    >>> [(section.line, section.headings) for section in read_python("class A:\n    x = 1\n\n    def b(self): ...\n")]
    [(1, ('A',)), (4, ('A', 'b'))]
    """
    lines = text.split("\n")
    return _write(lines, _python_definitions(lines))


def _python_definitions(lines: list[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    opened: list[tuple[int, str, bool]] = []  # indentation, name, whether it is a class
    above = decorator = -1  # the first line above a definition that belongs to it; the indentation of a decorator
    quote = ""
    for index, line in enumerate(lines):
        if quote:
            quote = "" if quote in line else quote
            continue
        quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        bare = line.lstrip()
        indent = len(line) - len(bare)
        if not bare:
            above = decorator = -1
            continue
        if bare[0] in "#@":
            above = index if above < 0 else above
            decorator = indent if bare[0] == "@" else decorator
            continue
        if bare[0] in ")]}" or 0 <= decorator < indent:
            continue
        left = False
        while opened and indent <= opened[-1][0]:
            opened.pop()
            left = True
        headings = tuple(name for _, name, _ in opened)
        definition = _PYTHON.match(bare[:_LONGEST_DEFINITION])
        if definition and all(is_class for _, _, is_class in opened):
            opened.append((indent, definition[2], definition[1] is not None))
            yield index if above < 0 else above, (*headings, definition[2])
        elif left:
            yield index, headings
        above = decorator = -1


def _definitions(lines: list[str], rules: tuple[re.Pattern[str], ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    floor = 0
    inside = False
    if not rules:
        return
    for index, line in enumerate(lines):
        if not line or line[0].isspace():
            continue
        matches = (rule.match(line[:_LONGEST_DEFINITION]) for rule in rules)
        if name := next((match[1] for match in matches if match), ""):
            first = index
            while first > floor and _LEADING.match(lines[first - 1].lstrip()):
                first -= 1
            yield first, (name,)
            floor = index + 1
            inside = True
        elif inside and not _CLOSING.match(line):
            inside = False
            yield index, ()


def _write(lines: list[str], starts: Iterable[tuple[int, tuple[str, ...]]]) -> list[Section]:
    writer = LineSections(lines, Outline(), code=True)
    for index, headings in starts:
        writer.part(index, headings)
    return writer.finish()
