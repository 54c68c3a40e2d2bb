"""A plan takes what the tool of one server gives to the tool of another, and is checked before anything runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_servers.conftest import Servers

from portico.errors import PlanInvalid
from portico.plans import Answer, From, ListOf, ObjectOf, Plan, Step, TextOf, Value


def time_into_file(path: Path, *read: str | int) -> Plan:
    """Return a plan that asks one server for the time, and lets another write what stands at a path of the answer."""
    return Plan(
        "Write the time down",
        (
            Step("s1", "time-get_current_time", {"timezone": Value("Asia/Tokyo")}),
            Step("s2", "filesystem-write_file", {"path": Value(str(path)), "content": From("s1", read)}),
            Step("s3", "filesystem-read_text_file", {"path": Value(str(path))}, after=("s2",)),
        ),
        From("s3", ("content",)),
    )


async def value_of(servers: Servers, plan: Plan) -> Any:
    """Run a plan and return its result."""
    outcome = (await servers.kernel.run_plan(plan)).outcome
    assert isinstance(outcome, Answer)
    return outcome.value


async def test_the_time_of_one_server_is_written_by_another(servers: Servers, tmp_path: Path) -> None:
    await servers.add("time")
    await servers.add("filesystem")
    plan = time_into_file(tmp_path / "time.txt", "timezone")
    assert servers.kernel.check_plan(plan) == []
    assert await value_of(servers, plan) == "Asia/Tokyo"


@pytest.mark.parametrize("path", [("time",), ("timezone", "name"), (0,), ("is_dst",), ()])
async def test_a_wrong_path_into_a_result_is_refused_before_anything_runs(
    servers: Servers, tmp_path: Path, path: tuple[str | int, ...]
) -> None:
    await servers.add("time")
    await servers.add("filesystem")
    file = tmp_path / "time.txt"
    plan = time_into_file(file, *path)
    (finding,) = servers.kernel.check_plan(plan)
    assert (finding.step, finding.severity) == ("s2", "error")
    with pytest.raises(PlanInvalid):
        await servers.kernel.run_plan(plan)
    assert not file.exists()


async def test_the_commits_of_one_server_are_remembered_by_another(servers: Servers, tmp_path: Path) -> None:
    await servers.add("git")
    await servers.add("memory")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True, timeout=60)
    status = Step("s1", "git-git_status", {"repo_path": Value(str(tmp_path))})
    entity = ObjectOf({"name": Value("work"), "entityType": Value("status"), "observations": ListOf((From("s1"),))})
    remember = Step("s2", "memory-create_entities", {"entities": ListOf((entity,))})
    plan = Plan("Remember", (status, remember), TextOf(("Remembered: ", From("s2", ("entities", 0, "name")))))
    assert servers.kernel.check_plan(plan) == []
    assert await value_of(servers, plan) == "Remembered: work"
    wrong = Plan("Remember", (status, remember), From("s2", ("entities", 0, "title")))
    assert [finding.severity for finding in servers.kernel.check_plan(wrong)] == ["error"]
