"""`portico_host.open` takes instances of the application in place of what is configured."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico import ChatCapabilities, FunctionPlugin, Image, function
from portico.errors import ConfigurationError, PluginBroken, ServiceUnavailable
from portico.plugins import Registration
from portico.ports import ChatService, FunctionSource, Planner, RunStore, SchemaValidator, TextSearch, TypeCodec
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.text_search import ListEntry, ListSearch

pytestmark = pytest.mark.usefixtures("work", "acme")

FILE = {
    "chat": {"use": "acme", "acme": {"model": "raises"}},
    "search": {"web": {"use": "acme", "api_key": "k"}, "plain": {"use": "plain"}},
    "runs": {"use": "acme"},
}


class Closing:
    name = "closing"
    closed = False

    async def aclose(self) -> None:
        self.closed = True


async def test_given_services_take_the_place_of_those_configured() -> None:
    chat, store, web, notes = (
        ScriptedChat("Hello."),
        MemoryRunStore(),
        ListSearch([]),
        ListSearch([ListEntry("a door")]),
    )
    services = {ChatService: chat, RunStore: store, (TextSearch, "web"): web, (TextSearch, "notes"): notes}
    async with portico_host.open(overrides=FILE, services=services) as kernel:
        assert kernel.service(ChatService) is chat
        assert kernel.run_store is store
        assert kernel.service(TextSearch, "web") is web
        assert list(kernel.plugins) == ["web", "notes", "plain", "answers"]
        assert await kernel.invoke("notes-Search", query="door") == ["a door"]
        assert (await kernel.complete("Say hello.")).text == "Hello."


async def test_settings_of_what_a_given_service_replaces_are_not_read() -> None:
    broken = {"chat": {"use": "not-installed"}, "search": {"web": {"use": "acme"}}}
    services = {ChatService: ScriptedChat(), (TextSearch, "web"): ListSearch([])}
    async with portico_host.open(overrides=broken, services=services) as kernel:
        assert list(kernel.plugins) == ["web", "answers"]
    with pytest.raises(ConfigurationError, match=r"search\.web\.api_key"):
        async with portico_host.open(overrides=broken, services={ChatService: ScriptedChat()}):
            pass


async def test_a_given_service_is_used_where_the_file_has_none() -> None:
    chat = ScriptedChat()
    async with portico_host.open(overrides={"chat": {"use": "none"}}, services={ChatService: chat}) as kernel:
        assert kernel.service(ChatService) is chat


async def test_sources_choose_of_the_given_ones_too() -> None:
    services = {(TextSearch, "notes"): ListSearch([]), (TextSearch, "wiki"): ListSearch([])}
    async with portico_host.open(overrides=FILE, sources=["plain", "wiki"], services=services) as kernel:
        assert list(kernel.plugins) == ["plain", "wiki", "answers"]


async def test_a_given_service_is_not_closed() -> None:
    given: Any = Closing()
    async with portico_host.open(services={Planner: given}) as kernel:
        assert kernel.service(Planner, "closing") is given
    assert not given.closed


async def test_given_codecs_and_validators_are_those_of_the_kernel() -> None:
    codec, validator = object(), object()
    async with portico_host.open(services={TypeCodec: codec, SchemaValidator: validator}) as kernel:
        assert kernel.type_codecs[0] is codec
        assert kernel.schema_validator is validator


async def test_what_a_given_source_of_functions_raises_comes_out_unchanged() -> None:
    class Source:
        async def load(self, name: str) -> FunctionPlugin:
            raise RuntimeError("no entry")

    with pytest.raises(RuntimeError, match="no entry"):
        async with portico_host.open(services={(FunctionSource, "mine"): Source()}):
            pass


async def test_plugins_are_function_plugins_objects_and_classes() -> None:
    class Sums:
        @function
        def add(self, left: int, right: int) -> int:
            """Add."""
            return left + right

    async with portico_host.open(plugins=[Sums(), FunctionPlugin("Empty", ())]) as kernel:
        assert list(kernel.plugins) == ["Sums", "Empty"]
        assert await kernel.invoke("Sums-add", left=1, right=2) == 3
    with pytest.raises(ConfigurationError, match="there is a function plugin 'Sums' already"):
        async with portico_host.open(plugins=[Sums, Sums]):
            pass


OWN = """
from portico.plugins import Registration
from portico_testkit.fakes.text_search import ListEntry, ListSearch

def portico_text_searches():
    return [Registration(name="doors", factory=f"{__name__}:make", summary="Search doors.")]

def make(settings, services):
    return ListSearch([ListEntry("a red door")])
"""


class Marked:
    @portico_host.hookimpl(specname="portico_text_searches")
    def searches(self) -> list[Registration]:
        return [Registration(name="doors", factory="own_doors:make", summary="Search doors.")]


class Broken:
    def portico_text_searches(self) -> list[Registration]:
        raise KeyError("doors")


@pytest.mark.parametrize("kind", ["module", "class", "object"])
async def test_a_plugin_with_hooks_is_a_package_that_need_not_be_installed(
    kind: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "own_doors.py").write_text(OWN, "utf-8")
    (work / "portico.toml").write_text('[plugins]\nonly = ["basics"]\n[search.doors]\nuse = "doors"\n', "utf-8")
    monkeypatch.syspath_prepend(work)
    plugin = {"module": import_module("own_doors"), "class": Marked, "object": Marked()}[kind]
    async with portico_host.open(plugins=[plugin, FunctionPlugin("Empty", ())]) as kernel:
        assert list(kernel.plugins) == ["doors", "Empty", "answers"]
        assert await kernel.invoke("doors-Search", query="door") == ["a red door"]
    with pytest.raises(PluginBroken, match=r"(?s)Broken.*KeyError: 'doors'.*Correct Broken") as raised:
        async with portico_host.open(plugins=[Broken, plugin], overrides={"search": {"broken": {"use": "broken"}}}):
            pass
    assert isinstance(raised.value.__cause__, KeyError)


async def test_services_by_another_key_are_refused() -> None:
    with pytest.raises(TypeError, match="by port"):
        async with portico_host.open(services={"chat": ScriptedChat()}):
            pass


async def test_a_run_that_is_resumed_finds_its_planner_by_the_name_that_the_user_gave_it() -> None:
    chat = ScriptedChat(ServiceUnavailable("away"), "Red.", capabilities=ChatCapabilities(images=True))
    planner = {"use": "mine", "mine": {"use": "retrieval", "chat": "seer"}}
    services = {(ChatService, "seer"): chat, RunStore: MemoryRunStore()}
    async with portico_host.open(overrides={"planner": planner}, services=services) as kernel:
        with pytest.raises(ServiceUnavailable):
            await kernel.run_goal("Which?", context={"attached": [Image(b"x")]}, run="r")
        run = await kernel.resume("r")
    assert (run.planner, run.services) == ("mine", ("scripted",))
