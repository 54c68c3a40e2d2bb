"""What is wrong with a template as a plan, beyond the functions that it calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from portico import FunctionSpec
from portico.plans import path_problem
from portico.ports import Template

_COMMENT = re.compile(r"\{\{~?!(--)?")
_ENDS = {"--": re.compile(r"--~?\}\}"), None: re.compile(r"\}\}")}
_TAG = re.compile(r"\{\{(?:[^{}'\"]|'[^']*'|\"[^\"]*\")*\}\}")
_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_BLOCK = re.compile(r"\{\{~?\s*([#/])\s*([>*]?)\s*([^\s}~|()]+)")
_WITHOUT_LOOP = {"if", "unless", "with", "raw"}
_SAME_CONTEXT = {"if", "unless", "raw", "message"}
_SET = re.compile(r"\{\{~?\s*set\s+(?:name\s*=\s*)?['\"]([^'\"]+)['\"](?:\s+(?:value\s*=\s*)?\(\s*([\w.-]+))?")
_GET = re.compile(r"[({]~?\s*get\s+(?:name\s*=\s*)?['\"]([^'\"]+)['\"]")
_PARTIAL = re.compile(r"\{\{~?\s*#?>\s*[^\s}]+")
_NAME = re.compile(r"(?<![\w.@/\[\]|-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?!\w|-\w|\s*=|\s*/)")
_PARAMETERS = re.compile(r"\bas\s+\|([^|]*)\|")
_FIELD = re.compile(r"[A-Za-z_]\w*")


def template_problems(
    source: str, template: Template, given: Collection[str], catalogue: Mapping[str, FunctionSpec], *, allow_loops: bool
) -> Iterator[str]:
    """Yield what is wrong: variables that nothing sets or that a loop hides, fields that are not there, loops.

    ``given`` are the variables that the template has from the beginning.
    """
    bare = _without_comments(source)
    made_by = dict(_SET.findall(bare))
    is_set = {*given, *made_by}
    paths = _GET.findall(bare)
    wanted = [*getattr(template, "variables", ()), *(path.partition(".")[0] for path in paths)]
    for name in dict.fromkeys(name for name in wanted if name not in is_set):
        call = f" A call is written between parentheses: ({name} …)." if "-" in name else ""
        yield f"The variable {name!r} is never set.{call}"
    hidden, plain = _named(bare, is_set)
    for name in hidden:
        yield (
            f"Inside of a loop or a with block, {name} is read as a field of the element. "
            f'Read the variable with (get "{name}"); where a field is meant, give the variable another name.'
        )
    yield from _missing_fields(bare, dict.fromkeys([*paths, *plain]), made_by, catalogue)
    if not allow_loops:
        opened = (match.groups() for match in _BLOCK.finditer(bare) if match[1] == "#")
        for name in dict.fromkeys(name for _, sign, name in opened if sign or name not in _WITHOUT_LOOP):
            yield f"The block {name!r} may be a loop, and loops are not allowed: use #if, #unless and #with only."


def _without_comments(source: str) -> str:
    kept: list[str] = []
    position = 0
    while (begin := _COMMENT.search(source, position)) is not None:
        end = _ENDS[begin[1]].search(source, begin.end())
        if end is None:
            break
        kept.append(source[position : begin.start()])
        position = end.end()
    return "".join((*kept, source[position:]))


def _named(bare: str, is_set: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the variables that are named where another context hides them, and the paths that are named elsewhere."""
    hidden: dict[str, None] = {}
    plain: dict[str, None] = {}
    inside: list[tuple[str, set[str]]] = []
    for tag in _TAG.findall(bare):
        block = _BLOCK.match(tag)
        if block is not None and block[1] == "/":
            if inside:
                inside.pop()
            continue
        words = _PARTIAL.sub("", _TEXT.sub(" '' ", tag))
        parameters = {name for _, names in inside for name in names}
        is_hidden = any(name not in _SAME_CONTEXT for name, _ in inside)
        for path in _NAME.findall(words):
            name = path.partition(".")[0]
            if name in is_set and name not in parameters:
                (hidden if is_hidden else plain)[name if is_hidden else path] = None
        if block is not None:
            declared = _PARAMETERS.search(words)
            inside.append((block[3], set(declared[1].split()) if declared else set()))
    return list(hidden), list(plain)


def _missing_fields(
    bare: str, paths: Collection[str], made_by: Mapping[str, str], catalogue: Mapping[str, FunctionSpec]
) -> Iterator[str]:
    """Yield the fields that the output of a function cannot have, for variables that are set once to one."""
    times = Counter(name for name, _ in _SET.findall(bare))
    for path in paths:
        name, *fields = path.split(".")
        spec = catalogue.get(made_by.get(name, ""))
        known: list[str] = []
        for field in fields:
            if not _FIELD.fullmatch(field) or field == "length":
                break
            known.append(field)
        if spec is None or times[name] != 1 or not known:
            continue
        problem = path_problem(spec.returns, tuple(known))
        if problem is not None:
            yield f"{path} is not in the output of {spec.name}: {problem}."
