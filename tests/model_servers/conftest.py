"""Servers of others that speak the forms of several vendors: `nox -s models` installs and asks them."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from llmock.testing import LLMockServer
from tests.support.processes import started

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / ".nox" / "models"
KEY = "sk-test-0123456789"
"""The key of the proxy."""
MODEL = "gpt-4o-mini"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.models)
            item.add_marker(pytest.mark.timeout(500))


@pytest.fixture(scope="session")
def litellm(outer_environment: dict[str, str]) -> Path:
    """Install the version of LiteLLM that is listed here, unless it is there."""
    scripts = FOLDER / "python" / ("Scripts" if sys.platform == "win32" else "bin")
    wanted, there = HERE / "requirements.txt", FOLDER / "requirements.txt"
    if not there.exists() or there.read_text("utf-8") != wanted.read_text("utf-8"):
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        install = ["uv", "pip", "install", "--quiet", "--no-config", "--python", str(scripts / "python")]
        for command in (
            ["uv", "venv", "--quiet", "--no-project", "--python", sys.executable, "python"],
            [*install, "-r", str(wanted)],
        ):
            subprocess.run(command, cwd=FOLDER, env=outer_environment, check=True, timeout=400)
        shutil.copy(wanted, there)
    return scripts / "litellm"


@pytest.fixture(scope="session")
def proxy(litellm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run LiteLLM's proxy in front of llmock: it answers in the forms of OpenAI, Anthropic and Gemini."""
    folder = tmp_path_factory.mktemp("litellm")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with LLMockServer() as server:
        behind = {"model": f"openai/{MODEL}", "api_base": server.base_url("openai"), "api_key": "sk-behind"}
        configuration = {
            "model_list": [{"model_name": MODEL, "litellm_params": behind}],
            "general_settings": {"master_key": KEY},
            "litellm_settings": {"drop_params": True, "telemetry": False},
        }
        (folder / "config.yaml").write_text(json.dumps(configuration), "utf-8")  # JSON is YAML
        command = [str(litellm), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        # Else it fetches prices when it is imported.
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        quiet = ["sh", "-c", 'exec "$@" >proxy.log 2>&1', "sh", *command]
        address = f"http://127.0.0.1:{port}"
        with started(quiet, cwd=folder, env=environment, until=lambda: is_up(address)):
            yield address


def is_up(address: str) -> bool:
    """Tell whether the proxy answers."""
    try:
        with urllib.request.urlopen(f"{address}/health/liveliness", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
