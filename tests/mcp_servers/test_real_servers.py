"""Every tool of servers that people use is a function, which can be called and gives what it says."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pytest_httpserver import HTTPServer
from tests.mcp_servers.conftest import Servers

from portico import Kernel
from portico.errors import PorticoError
from portico.ports import ChatService
from portico_testkit.fakes.chat_service import ScriptedChat

TOOLS = {"time": 2, "git": 12, "fetch": 1, "everything": 13, "filesystem": 14, "memory": 9}
# What a server has beside tools: prompts, and resources that are listed and read.
OTHERS = {
    "fetch": {"fetch2"},
    "everything": {
        "simple_prompt", "args_prompt", "completable_prompt", "resource_prompt", "list_resources", "read_resource"
    },
    "memory": {"list_resources", "read_resource"},
}  # fmt: skip
TYPED = {"time": 2, "git": 0, "fetch": 0, "everything": 1, "filesystem": 14, "memory": 9}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ADA = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
ENGINE = {"name": "Engine", "entityType": "machine", "observations": []}
BUILT = {"from": "Ada", "to": "Engine", "relationType": "describes"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give a repository with two commits."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for text in ("one\n", "one\ntwo\n"):
        (folder / "notes.txt").write_text(text, "utf-8")
        git(folder, "add", ".")
        git(folder, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "-m", text.strip())
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    (folder / "notes.txt").write_text("one\ntwo\nthree\n", "utf-8")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=60)


@pytest.fixture
def page() -> Iterator[str]:
    """Serve a page on loopback."""
    with HTTPServer() as server:
        text = f"<html><body><article><h1>Ports</h1><p>{'A port is a promise. ' * 30}</p></article></body></html>"
        server.expect_request("/page").respond_with_data(text, content_type="text/html")
        yield server.url_for("/page")


class Calls:
    """Calls functions of one plugin and remembers which; a value of one that says what it returns must be that."""

    def __init__(self, servers: Servers, name: str) -> None:
        self.kernel, self.name = servers.kernel, name
        self.called: set[str] = set()

    async def __call__(self, function: str, **arguments: Any) -> Any:
        full = f"{self.name}-{function}"
        value = await self.kernel.invoke_json(full, arguments)
        self.called.add(full)
        if self.returned(full):
            jsonschema.validate(value, self.returned(full))
            assert not isinstance(value, str)
        return value

    def returned(self, full: str) -> Mapping[str, Any]:
        """Return the schema of the result of a function that has one from its server."""
        schema = self.kernel.functions[full].spec.returns
        return schema if schema and "properties" in schema else {}

    def assert_complete(self) -> None:
        functions = self.kernel.plugins[self.name]
        others = OTHERS.get(self.name, set())
        assert self.called == {each.full_name for each in functions if each.name not in others}
        assert {each.name for each in functions} >= others
        assert len(self.called) == TOOLS[self.name]
        assert sum(bool(self.returned(each)) for each in self.called) == TYPED[self.name]
        print(f"{self.name}: {len(self.called)} tools called, {TYPED[self.name]} with a typed result")


async def test_the_time_is_told_and_converted(servers: Servers) -> None:
    await servers.add("time")
    call = Calls(servers, "time")
    assert (await call("get_current_time", timezone="Asia/Tokyo"))["timezone"] == "Asia/Tokyo"
    converted = await call("convert_time", source_timezone="Etc/UTC", time="12:00", target_timezone="Asia/Tokyo")
    assert converted["time_difference"] == "+9.0h"
    call.assert_complete()


async def test_a_repository_is_read_and_changed(servers: Servers, repository: Path) -> None:
    await servers.add("git")
    call = Calls(servers, "git")
    at: dict[str, Any] = {"repo_path": str(repository)}
    assert "notes.txt" in await call("git_status", **at)
    assert "+three" in await call("git_diff_unstaged", **at)
    assert "+three" in await call("git_diff", target="HEAD", **at)
    await call("git_add", files=["notes.txt"], **at)
    assert "+three" in await call("git_diff_staged", **at)
    await call("git_reset", **at)
    await call("git_add", files=["notes.txt"], **at)
    await call("git_commit", message="three", **at)
    assert "three" in await call("git_log", max_count=1, **at)
    assert "+three" in await call("git_show", revision="HEAD", **at)
    await call("git_create_branch", branch_name="side", **at)
    await call("git_checkout", branch_name="side", **at)
    assert "side" in await call("git_branch", branch_type="local", **at)
    call.assert_complete()


async def test_a_page_is_fetched(servers: Servers, page: str) -> None:
    await servers.add("fetch")
    call = Calls(servers, "fetch")
    assert "A port is a promise" in await call("fetch", url=page)
    call.assert_complete()


async def test_files_are_written_read_and_moved(servers: Servers, tmp_path: Path) -> None:
    await servers.add("filesystem")
    call = Calls(servers, "filesystem")
    notes, picture = str(tmp_path / "notes.txt"), str(tmp_path / "pixel.png")
    Path(picture).write_bytes(PIXEL)
    assert str(tmp_path) in (await call("list_allowed_directories"))["content"]
    await call("write_file", path=notes, content="one\ntwo\n")
    assert await call("read_file", path=notes) == {"content": "one\ntwo\n"}
    assert await call("read_text_file", path=notes, head=1) == {"content": "one"}
    assert "two" in (await call("read_multiple_files", paths=[notes]))["content"]
    (media,) = (await call("read_media_file", path=picture))["content"]
    assert base64.b64decode(media["data"]) == PIXEL
    await call("edit_file", path=notes, edits=[{"oldText": "two", "newText": "three"}])
    assert Path(notes).read_text("utf-8") == "one\nthree\n"
    await call("create_directory", path=str(tmp_path / "inner"))
    await call("move_file", source=notes, destination=str(tmp_path / "inner" / "moved.txt"))
    assert "inner" in (await call("list_directory", path=str(tmp_path)))["content"]
    assert "pixel.png" in (await call("list_directory_with_sizes", path=str(tmp_path)))["content"]
    assert "moved.txt" in (await call("directory_tree", path=str(tmp_path)))["content"]
    assert "moved.txt" in (await call("search_files", path=str(tmp_path), pattern="**/moved.*"))["content"]
    assert "size" in (await call("get_file_info", path=picture))["content"]
    call.assert_complete()


async def test_a_graph_is_remembered_and_forgotten(servers: Servers) -> None:
    await servers.add("memory")
    call = Calls(servers, "memory")
    await call("create_entities", entities=[ADA, ENGINE])
    await call("create_relations", relations=[BUILT])
    added = await call("add_observations", observations=[{"entityName": "Ada", "contents": ["born 1815"]}])
    assert added == {"results": [{"entityName": "Ada", "addedObservations": ["born 1815"]}]}
    assert (await call("search_nodes", query="1815"))["entities"][0]["name"] == "Ada"
    assert (await call("open_nodes", names=["Engine"]))["entities"] == [ENGINE]
    await call("delete_observations", deletions=[{"entityName": "Ada", "observations": ["born 1815"]}])
    await call("delete_relations", relations=[BUILT])
    await call("delete_entities", entityNames=["Engine"])
    assert await call("read_graph") == {"entities": [ADA], "relations": []}
    call.assert_complete()


async def test_every_kind_of_content_is_returned(servers: Servers) -> None:
    await servers.add("everything")
    call = Calls(servers, "everything")
    assert await call("echo", message="hello") == "Echo: hello"
    assert "5" in await call("get_sum", a=2, b=3)
    assert (await call("get_structured_content", location="Chicago"))["conditions"]
    assert "PATH" in await call("get_env")
    for function, given in (
        ("get_annotated_message", {"messageType": "error", "includeImage": True}),
        ("get_resource_links", {"count": 2}),
        ("get_resource_reference", {"resourceType": "Blob", "resourceId": 1}),
        ("get_tiny_image", {}),
        ("gzip_file_as_resource", {"data": "data:text/plain,hello", "outputType": "resource"}),
        ("toggle_simulated_logging", {}),
        ("toggle_subscriber_updates", {}),
        ("trigger_long_running_operation", {"duration": 0.2, "steps": 2}),
    ):
        assert await call(function, **given)
    # It can only be called as a task, which is an extension of the protocol that a client may have or not.
    with pytest.raises(PorticoError, match=r"functions\.everything: .*task"):
        await call("simulate_research_query", topic="ports")
    call.called.add("everything-simulate_research_query")
    call.assert_complete()


async def test_resources_are_listed_and_read(servers: Servers) -> None:
    await servers.add("everything")
    listed = await servers.kernel.invoke("everything-list_resources")
    assert listed
    assert await servers.kernel.invoke("everything-read_resource", uri=listed[0]["uri"])


async def test_a_prompt_asks_the_chat_service_with_what_the_server_makes(servers: Servers) -> None:
    chat = ScriptedChat("It rains.")
    servers.kernel = Kernel({ChatService: chat})
    await servers.add("everything")
    assert await servers.kernel.invoke("everything-args_prompt", city="Ghent") == "It rains."
    assert "Ghent" in str(chat.requests)


async def test_the_environment_of_the_application_is_not_handed_over(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_APPLICATION", "s3cret")
    await servers.add("everything")
    assert "s3cret" not in await servers.kernel.invoke("everything-get_env")


async def test_what_a_tool_refuses_is_an_error_with_its_words(servers: Servers) -> None:
    await servers.add("filesystem")
    with pytest.raises(PorticoError, match=r"functions\.filesystem: .*(outside|denied)"):
        await servers.kernel.invoke("filesystem-read_text_file", path="/elsewhere.txt")
