"""Distributions that are broken, in conflict or switched off, installed in an environment of the test's own.

What a person sees of them, and that everything else works.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("uv") is None, reason="the environment is made with uv")

REGISTERING = """
from portico.plugins import Registration

def portico_text_searches():
    return [Registration(name="acme", factory="{module}:Search", summary="Search Acme.")]
"""
DISTRIBUTIONS = {
    "portico-torn": "import a_vendor_that_is_not_there\n",
    "portico-acme": REGISTERING,
    "portico-other-acme": REGISTERING,
    "portico-noisy": "raise RuntimeError('imported although it is disabled')\n",
}


def wheel(folder: Path, name: str, plugin: str) -> Path:
    """Write a wheel that holds nothing but a plugin module."""
    package = name.replace("-", "_")
    module = f"{package}._plugin"
    info = f"{package}-1.0.dist-info"
    contents = {
        f"{package}/__init__.py": "",
        f"{package}/_plugin.py": plugin.format(module=module),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[portico]\n{name.removeprefix('portico-')} = {module}\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*contents, f"{info}/RECORD"))
    file = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return file


class Installed:
    """An environment with the four distributions and the workspace's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_"))}
        self.environ |= {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(folder / "cache"), "UV_NO_CONFIG": "1"}
        self.environ |= {"XDG_CACHE_HOME": str(folder), "PORTICO_DISABLE": "noisy", "PYTHONUTF8": "1"}
        self.run("uv", "venv", "--quiet", "--python", sys.executable, folder / "environment")
        wheels = [wheel(folder, name, plugin) for name, plugin in DISTRIBUTIONS.items()]
        self.run("uv", "pip", "install", "--quiet", "--no-deps", "--python", self.python, *wheels)
        there = self.run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
        here = sysconfig.get_path("purelib")
        Path(there, "zz_workspace.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    def run(self, *command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        line = [str(part) for part in command]
        done = subprocess.run(
            line, check=False, env=self.environ, cwd=self.folder, capture_output=True, encoding="utf-8"
        )
        assert done.returncode == code, f"{line} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def portico(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.run(self.python, "-m", "portico_cli", *arguments, code=code)
        assert "Traceback" not in done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def test_portico_plugins_says_which_do_not_work_and_why(installed):
    listed = json.loads(installed.portico("plugins", "--json").stdout)
    packages = {package["distribution"]: package for package in listed["packages"]}
    state = {name: packages[name]["state"] for name in DISTRIBUTIONS}
    assert state == {
        "portico-torn": "broken",
        "portico-acme": "conflict",
        "portico-other-acme": "conflict",
        "portico-noisy": "disabled",
    }
    assert "a_vendor_that_is_not_there" in str(packages["portico-torn"])
    assert "portico-other-acme" in str(packages["portico-acme"])
    assert packages["portico-documents"]["state"] == "ok"
    for_people = " ".join(installed.portico("plugins").stdout.split())
    assert "a_vendor_that_is_not_there" in for_people
    assert "PORTICO_DISABLE" in for_people


def test_portico_doctor_fails_with_what_mends_each(installed):
    done = installed.portico("doctor", code=1)
    assert "pip uninstall portico-torn" in done.stdout
    assert "portico-other-acme" in done.stdout


def test_everything_else_works(installed):
    (installed.folder / "docs").mkdir()
    (installed.folder / "docs" / "tea.md").write_text("# Tea\n\nGreen tea is steeped at eighty degrees.\n")
    done = installed.portico("ask", "How hot is green tea steeped?", "--docs", "docs", "--json")
    assert "eighty degrees" in json.loads(done.stdout)["citations"][0]["quote"]


def test_choosing_a_name_that_two_have_names_both(installed):
    done = installed.portico("search", "tea", "--source", "acme", code=2)
    assert "portico-acme" in done.stderr
    assert "portico-other-acme" in done.stderr
