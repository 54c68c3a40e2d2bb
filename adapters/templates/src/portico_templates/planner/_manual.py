"""Functions as a model is told of them: helpers, with JSON Schema of what goes in and what comes out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from portico import FunctionSpec


def helper_manual(specs: Iterable[FunctionSpec]) -> str:
    """Write manuals as helpers of a template, a block for each.

    >>> from portico import Function
    >>> def forecast(city: str, days: int = 1) -> str:
    ...     '''Tell the weather.'''
    >>> print(helper_manual([Function.of(forecast, plugin="Weather").spec]))
    ### {{Weather-forecast}}
    Tell the weather.
    Inputs:
    - city (required): {"type": "string"}
    - days (optional): {"type": "integer", "default": 1}
    Output: {"type": "string"}
    """
    return "\n\n".join("\n".join(_lines(spec)) for spec in specs)


def _lines(spec: FunctionSpec) -> Iterator[str]:
    yield f"### {{{{{spec.name}}}}}"
    description = " ".join(spec.description.split())
    if description:
        yield description
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", ())
    yield "Inputs:" if properties else "Inputs: none"
    for name, schema in properties.items():
        yield f"- {name} ({'required' if name in required else 'optional'}): {_json(schema)}"
    if "$defs" in spec.parameters:
        yield f"Definitions of the inputs: {_json(spec.parameters['$defs'])}"
    yield f"Output: {_json(spec.returns)}"


def _json(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False)
