"""Our Handlebars, set up as handlebars.js is: values escaped for HTML, the helpers of README.md and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from portico.errors import FunctionNotFound, PorticoError
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.handlebars.values import MISSING, SafeString

CASES = Path(__file__).parent / "cases"
ERROR = {"error": True}


def upper(options: Any, text: Any = MISSING, *_: Any, **__: Any) -> Any:
    return text.upper() if isinstance(text, str) and not isinstance(text, SafeString) else text


def join(options: Any, values: Any = None, separator: Any = None, *_: Any, **__: Any) -> str:
    return separator.join(map(str, values)) if isinstance(values, list) and isinstance(separator, str) else ""


def listed(options: Any, *values: Any, **_: Any) -> list[Any]:
    return list(values)


def shown_options(options: Any, *values: Any, **named: Any) -> str:
    return " ".join([*map(shown, values), *(f"{name}={shown(named[name])}" for name in sorted(named))])


def bold(options: Any, text: Any = None, *_: Any, **__: Any) -> str:
    inner = options.fn() if options.is_block else text
    return f"<b>{'' if inner is None or inner is MISSING else inner}</b>"


def wrap(options: Any, value: Any = None, *_: Any, **__: Any) -> Any:
    return options.fn(block_params=[value])


def raw(options: Any, *_: Any, **__: Any) -> Any:
    return options.fn()


def safe(options: Any, text: Any = "", *_: Any, **__: Any) -> SafeString:
    return SafeString("" if text is None or text is MISSING else str(text))


HELPERS = {
    "upper": upper,
    "join": join,
    "list": listed,
    "options": shown_options,
    "bold": bold,
    "wrap": wrap,
    "raw": raw,
    "safe": safe,
}


def shown(value: Any) -> str:
    """Write a value as the helper `options` does in answer.mjs."""
    if value is None or value is MISSING:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, Mapping):
        return "{…}"
    return json.dumps(value, ensure_ascii=False)


def cases() -> list[tuple[str, dict[str, Any]]]:
    """Return the recorded cases, each with its name."""
    found = []
    for path in sorted(CASES.glob("*.json")):
        for number, case in enumerate(json.loads(path.read_text("utf-8"))["cases"], 1):
            found.append((f"{path.stem}-{number:02}", case))
    return found


def recorded(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a case that is handlebars.js's answer."""
    return {key: case[key] for key in ("expected", "error") if key in case}


def question(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a case that is asked."""
    return {key: value for key, value in case.items() if key not in ("expected", "error")}


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return our answer to a case, in the form that handlebars.js's has."""
    language = HandlebarsTemplates(
        escape="html", helpers=HELPERS, partials=case.get("partials", {}), semantic_kernel_helpers=False
    )
    try:
        return {
            "expected": str(
                asyncio.run(language.compile(case["template"]).render_context(case["data"], call=no_function))
            )
        }
    except PorticoError:
        return ERROR


def no_function(name: str, arguments: Mapping[str, object], positional: Any = (), /) -> Any:
    """Stand for a kernel without functions."""
    raise FunctionNotFound(name)
