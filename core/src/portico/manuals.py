"""The renderings of a function's manual: indented text, JSON Schema, an entry of a tool list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from portico.chat import Tool
from portico.functions import FunctionManual

__all__ = ["schema_manual", "text_manual", "tool"]


def text_manual(manuals: Iterable[FunctionManual]) -> str:
    """Write manuals as indented text, a block for each function, in the form of Semantic Kernel's planners.

    >>> from portico import Function
    >>> def forecast(city: str, days: int = 1) -> str:
    ...     '''Tell the weather.
    ...
    ...     Args:
    ...         city: Where, by its English name.
    ...     '''
    >>> print(text_manual([Function.of(forecast, plugin="Weather").manual]))
    Weather.forecast:
      description: Tell the weather.
      inputs:
      - city: Where, by its English name.
      - days: (default: 1)

    Names have a dot. Defaults are JSON.
    """
    return "\n\n".join("\n".join(_lines(manual)) for manual in manuals)


def _lines(manual: FunctionManual) -> Iterator[str]:
    yield f"{manual.name.replace('-', '.')}:"
    yield f"  description: {_one_line(manual.description)}".rstrip()
    properties: Mapping[str, Any] = manual.parameters.get("properties", {})
    yield "  inputs:" if properties else "  inputs: none"
    required = manual.parameters.get("required", ())
    for name, schema in properties.items():
        known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        words = [_one_line(str(known.get("description", "")))]
        if name not in required:
            default = json.dumps(known["default"], ensure_ascii=False) if "default" in known else None
            words.append("(optional)" if default is None else f"(default: {default})")
        yield f"  - {name}: {' '.join(filter(None, words))}".rstrip()


def schema_manual(manual: FunctionManual) -> dict[str, Any]:
    """Write a manual as JSON Schema of inputs and output, in the form of an OpenAPI operation.

    >>> from portico import Function
    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> schema_manual(Function.of(double).manual)["responses"]["200"]["content"]["application/json"]["schema"]
    {'type': 'integer'}

    ``parameters`` and each ``schema`` are whole schemas with their own ``$defs``. Semantic Kernel calls this form a
    JsonSchemaFunctionView.
    """
    return {
        "name": manual.name,
        "description": manual.description,
        "parameters": manual.parameters,
        "responses": {
            "200": {
                "description": manual.returns.get("description") or "Success",
                "content": {"application/json": {"schema": manual.returns}},
            }
        },
    }


def tool(manual: FunctionManual, *, name: str | None = None) -> Tool:
    """Make an entry of a chat service's tool list; the default ``name`` is the full name.

    >>> from portico import Function
    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> tool(Function.of(double, plugin="Sums").manual).name
    'Sums-double'
    """
    return Tool(name or manual.name, manual.description, manual.parameters)


def _one_line(text: str) -> str:
    return " ".join(text.split())
