"""What is imported when, seen from a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

VENDORS = {
    "faiss",
    "numpy",
    "wordllama",
    "tokenizers",
    "lxml",
    "pypdfium2",
    "openai",
    "httpx",
    "httpx2",
    "snowballstemmer",
}


def modules_after(code: str, folder: Path) -> set[str]:
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_host_imports_next_to_nothing(tmp_path: Path) -> None:
    loaded = modules_after("import portico_host", tmp_path)
    assert not loaded & {"attr", "attrs", "cattrs", "pluggy", "platformdirs", "tomllib", "asyncio", *VENDORS}


def test_listing_every_package_imports_no_vendor(tmp_path: Path) -> None:
    loaded = modules_after(
        "import portico_host\nstates = {p.name: p.state for p in portico_host.discover().packages}\n"
        "assert states and set(states.values()) == {'ok'}, states",
        tmp_path,
    )
    assert not loaded & VENDORS
    assert "cattrs" not in loaded


def test_settings_and_schema_need_no_vendor(tmp_path: Path) -> None:
    loaded = modules_after(
        "import portico_host\napplication = portico_host.load()\napplication.schema()\napplication.settings()", tmp_path
    )
    assert not loaded & VENDORS


def test_listing_commands_imports_no_package(tmp_path: Path) -> None:
    loaded = modules_after("import portico_host\nportico_host.commands()", tmp_path)
    assert not loaded & {"portico_faiss", "portico_documents", "portico_basics.extractive", "portico_wordllama"}


def test_every_public_name_is_there() -> None:
    import portico_host

    assert {"Application", "commands", "diagnose", "discover", "load", "open"} <= {*dir(portico_host)}
    assert [name for name in dir(portico_host) if getattr(portico_host, name, None) is None] == []
