"""A broken, a duplicate and a disabled distribution, really installed in an environment of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "{name}"
version = "1.0"
"""

# A build backend of a few lines, so that the test needs no network and no build tool.
BACKEND = """
import zipfile
NAME, ENTRY = {name!r}, {entry!r}

def build_wheel(directory, settings=None, metadata=None):
    package = NAME.replace("-", "_")
    file = f"{{package}}-1.0-py3-none-any.whl"
    info = f"{{package}}-1.0.dist-info"
    contents = {{
        f"{{package}}/__init__.py": "",
        f"{{package}}/_plugin.py": open("plugin.py").read(),
        f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: 1.0\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{{info}}/entry_points.txt": f"[portico]\\n{{ENTRY}} = {{package}}._plugin\\n",
    }}
    record = "".join(f"{{path}},,\\n" for path in contents) + f"{{info}}/RECORD,,\\n"
    with zipfile.ZipFile(f"{{directory}}/{{file}}", "w") as wheel:
        for path, text in {{**contents, f"{{info}}/RECORD": record}}.items():
            wheel.writestr(path, text)
    return file
"""

REGISTERING = """
from portico.plugins import Registration
def portico_vector_stores():
    return [Registration(name={name!r}, factory="{package}._plugin:Store", summary="A store.")]
class Store:
    name, persistent, filter_support = {name!r}, False, None
    upsert = delete = get = search = count = ids = drop = None
    def __init__(self, settings, services): ...
"""

REPORT = """
import json, portico_host
from portico.errors import PluginError
from portico.ports import ChatService, VectorStore
application = portico_host.load()
def chosen(port, name):
    try:
        return application.services().get(port, name).name
    except PluginError as error:
        return f"{type(error).__name__}: {error}"
print(json.dumps({
    "packages": {p.distribution: [p.state, p.problem] for p in application.plugins.packages},
    "extractive": chosen(ChatService, "extractive"),
    "acme": chosen(VectorStore, "acme"),
    "faiss": chosen(VectorStore, "faiss"),
    "broken": chosen(VectorStore, "broken"),
    "disabled": chosen(VectorStore, "disabled"),
    "problems": [[p.severity, p.subject, p.cause, p.mend] for p in application.check()],
}))
"""


def write_project(folder: Path, name: str, plugin: str) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name))
    (folder / "backend.py").write_text(BACKEND.format(name=name, entry=name.removeprefix("portico-")))
    (folder / "plugin.py").write_text(plugin)
    return folder


@pytest.mark.skipif(shutil.which("uv") is None, reason="the environment is made with uv")
def test_a_broken_a_duplicate_and_a_disabled_distribution_leave_the_rest_working(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PORTICO_", "VIRTUAL_ENV", "PYTHON"))
    }
    clean |= {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1"}

    def run(*command: str | Path, **more: str) -> str:
        done = subprocess.run(
            [str(part) for part in command], env=clean | more, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("uv", "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    projects = [
        write_project(tmp_path / "a", "portico-broken", "import a_vendor_that_is_not_there"),
        write_project(tmp_path / "b", "portico-zcopy", REGISTERING.format(name="faiss", package="portico_zcopy")),
        write_project(tmp_path / "c", "portico-disabled", "raise RuntimeError('imported though disabled')"),
        write_project(tmp_path / "d", "portico-acme", REGISTERING.format(name="acme", package="portico_acme")),
    ]
    run("uv", "pip", "install", "--quiet", "--no-deps", "--python", python, *projects)
    # What the tests themselves run with is seen too: the first-party packages and their vendors.
    here = sysconfig.get_path("purelib")
    there = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(there, "zz_outer.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    report = json.loads(run(python, "-c", REPORT, PORTICO_DISABLE="disabled", XDG_CACHE_HOME=str(tmp_path)))
    packages = report["packages"]
    assert packages["portico-broken"][0] == "broken"
    assert "No module named 'a_vendor_that_is_not_there'" in packages["portico-broken"][1]
    assert packages["portico-zcopy"][0] == packages["portico-faiss"][0] == "conflict"
    assert "Vector store 'faiss' is registered by portico-faiss too." in packages["portico-zcopy"][1]
    assert packages["portico-disabled"] == ["disabled", "Switched off by PORTICO_DISABLE (disabled)."]
    assert packages["portico-acme"] == packages["portico-basics"] == ["ok", None]
    assert (report["acme"], report["extractive"]) == ("acme", "extractive")
    assert report["faiss"].startswith(
        "PluginConflict: Vector store 'faiss' is registered by portico-faiss and portico-zcopy."
    )
    assert report["broken"].startswith("PluginBroken: ")
    assert report["disabled"].startswith("PluginNotInstalled: ")
    errors = {subject for severity, subject, _, _ in report["problems"] if severity == "error"}
    assert errors == {"portico-broken", "portico-faiss", "portico-zcopy", "vector store faiss"}
