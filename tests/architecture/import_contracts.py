"""Writes the configuration of import-linter: who may import whom, for the distributions that the tree holds.

    python tests/architecture/import_contracts.py FILE

A new distribution is in the contracts without being listed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRIVATE_ROOMS = "core/src/portico"
LAYERS = [
    "_kernel",
    "_runs : _planning : _agents : _bulk_embedding",
    "_tool_loop : _prompts : _plans : _search : _chat : _selection : _ports : _functions : _kernel_like",
    "_schema : _types",
    "_plugins | _jobs",
    "errors",
]
APPLICATION = ["portico_cli", "portico_eval", "portico_host", "portico_serve", "portico_testkit"]
LIBRARIES = ["portico_wire"]


def packages() -> list[str]:
    """Return the import packages of all distributions."""
    patterns = ("core", "adapters/*", "connectors/*", "planners/*", "tests/testkit")
    return sorted(file.parent.name for each in patterns for file in ROOT.glob(f"{each}/src/*/__init__.py"))


def private_modules() -> list[str]:
    """Return the private modules and packages of core."""
    found = (ROOT / PRIVATE_ROOMS).glob("_*")
    return sorted(f"portico.{each.stem}" for each in found if each.stem.strip("_") and not each.stem.startswith("__"))


def contracts() -> list[dict[str, Any]]:
    """Return the contracts, each as import-linter names its fields."""
    everything = packages()
    plugins = [name for name in everything if name not in {"portico", *APPLICATION, *LIBRARIES}]
    return [
        {
            "name": "Core imports nothing of ours",
            "type": "forbidden",
            "source_modules": ["portico"],
            "forbidden_modules": [name for name in everything if name != "portico"],
        },
        {
            "name": "The others import core's public modules only",
            "type": "forbidden",
            "source_modules": [name for name in everything if name != "portico"],
            "forbidden_modules": private_modules(),
            "allow_indirect_imports": True,
        },
        {
            "name": "The rooms of core import what is below them",
            "type": "layers",
            "containers": ["portico"],
            "layers": LAYERS,
        },
        {"name": "Plugin packages do not import each other", "type": "independence", "modules": plugins},
        {
            "name": "What plugin packages share stands on core alone",
            "type": "forbidden",
            "source_modules": LIBRARIES,
            "forbidden_modules": [*plugins, *APPLICATION],
        },
        {
            "name": "Plugin packages do not import the application",
            "type": "forbidden",
            "source_modules": plugins,
            "forbidden_modules": APPLICATION,
            # A command runs in the application.
            "ignore_imports": ["*.commands -> **", "*.commands.** -> **"],
            "unmatched_ignore_imports_alerting": "none",
        },
        {
            "name": "The host finds plugin packages, never imports them",
            "type": "forbidden",
            "source_modules": ["portico_host"],
            "forbidden_modules": [*plugins, "portico_cli", "portico_eval", "portico_serve", "portico_testkit"],
        },
        {
            "name": "The command line and what extends it reach plugin packages through the host",
            "type": "forbidden",
            "source_modules": ["portico_cli", "portico_eval", "portico_serve"],
            "forbidden_modules": [*plugins, "portico_testkit"],
        },
        {
            "name": "The command line does not import what extends it",
            "type": "forbidden",
            "source_modules": ["portico_cli"],
            "forbidden_modules": ["portico_eval", "portico_serve"],
        },
        {
            "name": "The testkit stands on core alone",
            "type": "forbidden",
            "source_modules": ["portico_testkit"],
            "forbidden_modules": [name for name in everything if name not in {"portico", "portico_testkit"}],
        },
    ]


def configuration() -> str:
    """Return the configuration as TOML. Strings and lists of JSON are TOML too."""
    lines = ["[tool.importlinter]", f"root_packages = {json.dumps(packages())}"]
    for contract in contracts():
        lines += ["", "[[tool.importlinter.contracts]]", *(f"{key} = {json.dumps(contract[key])}" for key in contract)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(configuration(), "utf-8")
