"""Which cases of the Handlebars specification pass.

The format is that of handlebars-spec: each case has a template, data, and what comes out or that it fails; further
helpers and partials. These are skipped: a case with a helper or a value in JavaScript (`!code`), one with compile
options, which we do not have, and one that says nothing of what comes out, or whose template is no text. What is for
other languages only does not count. Cases of the parser compare the printed tree, those of the tokenizer the tokens.
Which error is raised is not compared: the messages are our own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.eval.handlebars_tree import printed

from portico.errors import FunctionNotFound, LimitExceeded, TemplateError
from portico_templates.handlebars._parsing import parse, scan
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.handlebars.values import MISSING

__all__ = ["add_arguments", "describe", "run"]

INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
_ENDS = ("EOF", "INVALID")
"""The tokens at which the tests of handlebars.js stop to look, so that its cases do not list them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, help="case files of handlebars-spec", metavar="FILE")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every case of every file; a file that is no list of cases is an error."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures: list[dict[str, Any]] = []
    for file in arguments.files:
        cases = read(file)
        for case in cases:
            reason = asyncio.run(judged(case, file.stem)) if can_be_judged(case) else None
            counts["skipped" if reason is None else "failed" if reason else "passed"] += 1
            if reason:
                failures.append(
                    {"file": file.name, "number": case.get("number", "00"), "it": case.get("it", ""), "reason": reason}
                )
        print(f"{file}: {len(cases)} cases", file=sys.stderr)
    return {**counts, "failures": failures}


def read(file: Path) -> list[Any]:
    """Return the cases of a file; raises ``ValueError`` where there is none."""
    try:
        cases = json.loads(file.read_text("utf-8-sig"))
    except RecursionError as error:
        raise ValueError(f"{file} is nested too deeply") from error
    if not isinstance(cases, list) or not any(isinstance(case, dict) and "template" in case for case in cases):
        raise ValueError(f"{file} has no list of cases")
    return cases


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['passed']} passed, {result['failed']} failed, {result['skipped']} skipped"
    for one in result["failures"]:
        yield f"  {one['file']} {one['it']} ({one['number']}): {one['reason']}"


def can_be_judged(case: Any) -> bool:
    """Tell whether a case has a template and says what comes out of it, without code of JavaScript."""
    if not isinstance(case, dict) or not isinstance(case.get("template"), str):
        return False
    if not expects_error(case) and case.get("expected") is None:
        return False
    data = [case.get("data"), mapping(case, "runtimeOptions").get("data")]
    has_options = any(mapping(case, "compileOptions").values()) or any(mapping(case, "options").values())
    return not has_options and not is_javascript(case) and not is_code(data)


def expects_error(case: Mapping[str, Any]) -> bool:
    return case.get("exception") is True or isinstance(case.get("exception"), str)


def is_javascript(value: Any) -> bool:
    """Tell whether there is code of JavaScript in a value, at any depth."""
    if isinstance(value, dict):
        return "javascript" in value or any(map(is_javascript, value.values()))
    return isinstance(value, list) and any(map(is_javascript, value))


def is_code(value: Any) -> bool:
    """Tell whether there is code of any language in a value, at any depth."""
    if isinstance(value, dict):
        return bool(value.get("!code")) or any(map(is_code, value.values()))
    return isinstance(value, list) and any(map(is_code, value))


def mapping(case: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a field of a case that has names; an empty list, as PHP writes it, has none."""
    value = case.get(name)
    return value if isinstance(value, dict) else {}


async def judged(case: Mapping[str, Any], suite: str) -> str:
    """Return what is wrong with what comes out; an empty text where nothing is."""
    try:
        result = await rendered(case, suite)
    except (TemplateError, LimitExceeded) as error:
        if not expects_error(case):
            return f"it fails: {error}"
        return "" if isinstance(error, TemplateError) else f"another error was expected than {error}"
    except Exception as error:
        return f"it raises {error!r}"
    if expects_error(case):
        return f"an error was expected ({case['exception']}), not {result!r}"
    return "" if result == case["expected"] else f"expected {case['expected']!r}, got {result!r}"


async def rendered(case: Mapping[str, Any], suite: str) -> Any:
    """Return what a case gives: a text, or the tokens or the tree where it is one of the tokenizer or the parser."""
    template = case["template"]
    if isinstance(case.get("expected"), list) or suite == "tokenizer":
        return [{"name": each.name, "text": each.text} for each in scan(template) if each.name not in _ENDS]
    if suite == "parser" or (str(case.get("description", "")).lower().startswith("parser") and "data" not in case):
        return printed(parse(template))
    runtime = mapping(case, "runtimeOptions")
    given = {**mapping(case, "globalPartials"), **mapping(case, "partials"), **mapping(runtime, "partials")}
    partials = {name: text for name, text in given.items() if isinstance(text, str)}
    language = HandlebarsTemplates(escape="html", semantic_kernel_helpers=False, partials=partials)
    data = decoded(runtime.get("data"))
    return await language.compile(template).render_context(
        decoded(case.get("data")), call=no_function, data=data if isinstance(data, dict) else None
    )


def decoded(value: Any) -> Any:
    """Return data with its sparse lists made lists with holes."""
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if not value.get("!sparsearray"):
        # JavaScript puts the keys that are indexes first.
        keys = sorted(value, key=lambda key: int(key) if INDEX.fullmatch(key) else float("inf"))
        return {key: decoded(value[key]) for key in keys}
    places = {int(key): decoded(each) for key, each in value.items() if key.isdecimal()}
    length = value.get("!length", max(places, default=-1) + 1)
    return [places.get(index, MISSING) for index in range(length)]


def no_function(name: str, arguments: Mapping[str, object], positional: Any = (), /) -> Any:
    """Refuse every call: the specification knows no functions of a kernel."""
    raise FunctionNotFound(name)
