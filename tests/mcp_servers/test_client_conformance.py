"""What the protocol's own conformance suite says of the client."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.mcp_servers.conftest import Programs

CLIENT = Path(__file__).with_name("conformance_client.py")
PASSED = ("initialize", "tools_call", "sse-retry")
NOT_APPLICABLE = {
    "elicitation-sep1034-client-defaults": "a function has no user to ask, so the client declares no elicitation",
    "auth/": "the client sends the headers of its settings and runs no authorization flow",
}


def suite(programs: Programs, *arguments: str) -> str:
    """Run the suite and return what it prints."""
    command = [*programs.javascript("conformance"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_the_list_of_scenarios_is_the_one_that_is_known(programs: Programs) -> None:
    listed = suite(programs, "list").partition("Client scenarios")[2]
    scenarios = re.findall(r"^ +- (\S+)", listed, re.MULTILINE)
    without = [each for each in scenarios if each.startswith(tuple(NOT_APPLICABLE))]
    assert sorted(scenarios) == sorted([*PASSED, *without])
    print(f"{len(PASSED)} of {len(scenarios)} client scenarios apply")
    for prefix, reason in NOT_APPLICABLE.items():
        print(f"{sum(each.startswith(prefix) for each in scenarios)} of {prefix} do not: {reason}")


@pytest.mark.parametrize("scenario", PASSED)
def test_the_client_passes_a_scenario(programs: Programs, tmp_path: Path, scenario: str) -> None:
    command = shlex.join([sys.executable, str(CLIENT)])
    printed = suite(programs, "client", f"--command={command}", f"--scenario={scenario}", f"--output-dir={tmp_path}")
    (results,) = tmp_path.glob(f"{scenario}-*/checks.json")
    checks = json.loads(results.read_text("utf-8"))
    found = Counter(check["status"] for check in checks)
    assert found["SUCCESS"], printed
    assert not found["FAILURE"], printed
    assert not found["WARNING"], printed
    print(f"{scenario}: {found['SUCCESS']} checks passed, none failed")
