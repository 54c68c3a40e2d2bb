"""The client that the conformance suite starts: it calls every tool of the server whose URL is its last argument."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from portico import Kernel
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

EXAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True}


async def main(url: str) -> None:
    source = MCPFunctions(MCPSettings(url=url))
    try:
        kernel = Kernel()
        for function in kernel.add_plugin(await source.load("suite")):
            given: dict[str, Any] = {each.name: EXAMPLES[each.schema["type"]] for each in function.parameters}
            print(function.full_name, await kernel.invoke_json(function, given))
    finally:
        await source.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
