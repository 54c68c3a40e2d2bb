"""Which operations of OpenAPI documents become functions.

Each document is loaded through the adapter as an application would load it, and each function's manual is made. An
operation is usable when it is a function with a manual that is JSON; the others are lost, with the adapter's reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from portico.errors import ConfigurationError
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions

__all__ = ["add_arguments", "describe", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, help="OpenAPI documents, JSON or YAML", metavar="FILE")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Load every file; one that is no document at all counts as one operation that is lost."""
    for file in arguments.files:
        file.stat()
    return asyncio.run(measure(arguments.files))


def describe(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures as lines for people."""
    yield f"{result['usable']} of {result['operations']} operations are usable"
    for one in result["lost"]:
        yield f"  {one['operation']}: {one['reason']}"


async def measure(files: Sequence[Path]) -> dict[str, Any]:
    usable = 0
    lost: list[dict[str, str]] = []
    for file in files:
        place = f"{file}: " if len(files) > 1 else ""
        started = time.perf_counter()
        source = OpenAPIFunctions(OpenAPISettings(document=file))
        try:
            plugin = await source.load("service")
        except ConfigurationError as error:
            lost.append({"operation": str(file), "reason": str(error)})
            continue
        finally:
            await source.aclose()
        for function in plugin:
            json.dumps([function.spec.parameters, function.spec.returns], allow_nan=False)
        usable += len(plugin.functions)
        lost += [{"operation": f"{place}{one.operation}", "reason": one.reason} for one in source.lost]
        seconds = time.perf_counter() - started
        print(f"{file}: {len(plugin.functions)} functions, {seconds:.2f} s", file=sys.stderr)
    return {"operations": usable + len(lost), "usable": usable, "lost": lost}
