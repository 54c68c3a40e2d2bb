from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico.errors import ConfigurationError, PluginBroken, PluginNotInstalled
from portico.plugins import Services
from portico.ports import ChatService, EmbeddingGenerator, FunctionSource, Runner, TextSearch, VectorStore
from portico_host import HostServices

pytestmark = pytest.mark.usefixtures("work")

WEB = {"search": {"web": {"use": "acme", "api_key": "literal-key"}}}


def services(overrides: dict[str, Any] | None = None, sources: list[str] | None = None) -> HostServices:
    return portico_host.load(overrides=overrides).services(sources)


def test_a_service_is_made_when_first_asked_for_and_shared(acme: Any) -> None:
    made: Services = services(WEB)
    assert "portico_acme.search" not in sys.modules
    search = made.get(TextSearch, "web")
    assert made.get(TextSearch) is made.get(TextSearch, "web") is search
    assert search.settings.api_key.reveal() == "literal-key"  # type: ignore[attr-defined]
    assert search.services is made  # type: ignore[attr-defined]


def test_a_service_is_made_once_even_when_threads_ask_at_once(acme: Any) -> None:
    made = services(WEB)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(made.get(TextSearch, "web"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_one_plugin_may_serve_several_sources(acme: Any) -> None:
    two = {"search": {name: {"use": "acme", "api_key": name} for name in ("one", "two")}}
    made = services(two)
    assert made.names(TextSearch) == ("one", "two")
    assert made.get(TextSearch, "one") is not made.get(TextSearch, "two")
    with pytest.raises(ConfigurationError, match="one must be named: one, two"):
        made.get(TextSearch)


def test_a_port_with_one_choice_may_have_several_services_of_one_plugin(acme: Any) -> None:
    tables = {"use": "short", "short": {"use": "extractive", "maximum_quotes": 1}, "long": {"use": "extractive"}}
    made = services({"chat": tables})
    assert made.names(ChatService) == ("short", "long")
    assert made.get(ChatService) is made.get(ChatService, "short")
    assert made.get(ChatService, "short") is not made.get(ChatService, "long")
    with pytest.raises(PluginNotInstalled, match=r"Configured: short, long\. Did you mean short\?"):
        made.get(ChatService, "shrt")
    wrong = services({"chat": {"use": "short", "short": {"use": "extractiv"}}})
    with pytest.raises(PluginNotInstalled, match=r"Did you mean extractive"):
        wrong.get(ChatService)


def test_an_installed_source_without_settings_is_used_when_named_and_never_by_itself(acme: Any) -> None:
    made = services()
    assert made.names(TextSearch) == ()
    assert made.get(TextSearch, "plain").name == "plain"
    assert made.names(TextSearch) == ()
    with pytest.raises(ConfigurationError, match=r"search\.acme\.api_key: is missing.*The key from your account"):
        made.get(TextSearch, "acme")


def test_settings_that_are_missing_belong_into_the_file_whoever_chose_the_plugin(acme: Any) -> None:
    """As with `--chat NAME`, which has no settings to change."""
    made = services({"search": {"mine": {"use": "acme"}}})
    with pytest.raises(ConfigurationError, match=r"^no portico\.toml: search\.mine\.api_key: is missing"):
        made.get(TextSearch, "mine")


def test_a_plugin_that_is_not_installed_is_named_with_file_key_and_remedy(acme: Any, work: Path) -> None:
    (work / "portico.toml").write_text("[chat]\nuse = 'acne'\n[search.web]\nuse = 'exa'\n[plugins]\nonly = ['acme']")
    made = services()
    with pytest.raises(PluginNotInstalled) as caught:
        made.get(TextSearch, "web")
    assert str(caught.value) == (
        "portico.toml: search.web.use: Text search 'exa' is not installed. Installed: acme, plain. "
        "Choose another, or install the package that registers it."
    )
    with pytest.raises(PluginNotInstalled, match=r"^portico\.toml: chat\.use: .*Did you mean acme"):
        made.get(ChatService)
    with pytest.raises(PluginNotInstalled, match="Configured: web"):
        made.get(TextSearch, "other")


def test_nothing_configured_and_no_default_says_where_to_set_it(acme: Any) -> None:
    made = services()
    assert made.names(Runner) == ()
    with pytest.raises(ConfigurationError, match=r"No runner is configured: set `use` in \[runner\] of portico.toml"):
        made.get(Runner)
    with pytest.raises(ConfigurationError, match=r"add a table \[functions\.NAME\]"):
        made.get(FunctionSource)


def test_settings_of_a_plugin_without_settings_are_a_mistake(acme: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"search\.p\.many: is not known: 'plain' has no settings"):
        services({"search": {"p": {"use": "plain", "many": 3}}}).get(TextSearch, "p")


def test_a_misspelt_table_of_settings_is_not_passed_over(acme: Any, work: Path) -> None:
    (work / "portico.toml").write_text("[chat]\nuse = 'acme'\n[chat.acmee]\nmodel = 'large'\n")
    with pytest.raises(
        ConfigurationError, match=r"portico.toml: chat\.acmee: is not an installed chat service. Nearest: acme"
    ):
        services().get(ChatService)


def test_a_variable_reaches_a_plugin_with_a_hyphen_in_its_name(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install(
        "portico-two-words",
        """
        from dataclasses import dataclass
        from portico.plugins import Registration
        @dataclass
        class Settings:
            size: int = 1
        def portico_chat_services():
            return [Registration(name="two-words", factory="portico_two_words._plugin:Chat", settings=Settings,
                                 summary="s")]
        class Chat:
            name, capabilities = "chat", None
            def __init__(self, settings, services): self.settings = settings
            async def complete(self, request): ...
            def stream(self, request): ...
        """,
    )
    monkeypatch.setenv("PORTICO_CHAT__USE", "two-words")
    monkeypatch.setenv("PORTICO_CHAT__TWO_WORDS__SIZE", "7")
    assert services().get(ChatService).settings.size == 7  # type: ignore[attr-defined]


def test_a_circle_of_services_is_told(acme: Any) -> None:
    acme.install(
        "portico-around",
        """
        from portico.plugins import Registration
        def portico_text_searches():
            return [Registration(name="around", factory="portico_acme.search:AroundSearch", summary="s")]
        """,
    )
    made = services({"chat": {"use": "acme", "acme": {"model": "circle"}}})
    for _ in range(2):
        with pytest.raises(ConfigurationError) as caught:
            made.get(ChatService)
        assert "in a circle: chat service 'acme' → text search 'around' → chat service 'acme'" in str(caught.value)


def test_a_factory_that_raises_is_the_packages_fault_and_shows_no_secret(acme: Any) -> None:
    made = services({"chat": {"use": "acme", "acme": {"model": "raises", "api_key": "hunter2-hunter2"}}})
    match = r"Chat service 'acme' of portico-acme is broken: it could not be made"
    with pytest.raises(PluginBroken, match=match) as caught:
        made.get(ChatService)
    assert "RuntimeError: no entry with ********" in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)), "a traceback shows the cause too"
    assert caught.value.__context__ is None
    made = services({"chat": {"use": "acme", "acme": {"model": "raises"}}})
    with pytest.raises(PluginBroken, match=match) as caught:
        made.get(ChatService)
    assert isinstance(caught.value.__cause__, AttributeError)


@pytest.mark.parametrize(
    ("factory", "settings", "said"),
    [
        ("portico_odd.missing:X", "None", "No module named 'portico_odd.missing'"),
        ("portico_odd._plugin:X", "None", "has no attribute 'X'"),
        ("portico_odd._plugin:VALUE", "None", "cannot be called"),
        ("portico_odd._plugin:dict", "'portico_odd._plugin:VALUE'", "neither an attrs class nor a dataclass"),
        ("portico_odd._plugin:dict", "'portico_odd._plugin:Unresolved'", "its settings class cannot be read"),
    ],
)
def test_what_a_registration_names_is_checked_when_chosen(site: Any, factory: str, settings: str, said: str) -> None:
    site.install(
        "portico-odd",
        f"""
        from dataclasses import dataclass
        from portico.plugins import Registration
        VALUE = 5
        @dataclass
        class Unresolved:
            size: "NoSuchType" = 1
        def portico_chat_services():
            return [Registration(name="odd", factory={factory!r}, settings={settings}, summary="s")]
        """,
    )
    made = services()
    with pytest.raises(PluginBroken, match=r"Chat service 'odd' of portico-odd is broken") as caught:
        made.get(ChatService, "odd")
    assert said in str(caught.value)


async def test_services_are_closed_in_reverse_order_and_only_once(acme: Any) -> None:
    made = services({"chat": {"use": "acme", "acme": {"model": "stands"}}, **WEB})
    async with made:
        made.get(ChatService)
        made.get(TextSearch, "web")
        closed = sys.modules["portico_acme.search"].closed
        assert closed == []
    assert closed == ["acme", "chat", "plain"]
    await made.aclose()
    assert len(closed) == 3
    with pytest.raises(
        RuntimeError, match=r"the services are closed: use the kernel while portico_host\.open\(\) is entered"
    ):
        made.get(ChatService)


@pytest.mark.parametrize("failing", [["chat"], ["chat", "plain"]])
async def test_every_service_is_closed_though_some_fail(
    acme: Any, monkeypatch: pytest.MonkeyPatch, failing: list[str]
) -> None:
    made = services({"chat": {"use": "acme", "acme": {"model": "stands"}}, **WEB})
    made.get(ChatService)
    made.get(TextSearch, "web")
    module = sys.modules["portico_acme.search"]

    async def aclose(self: Any) -> None:
        module.closed.append(self.name)
        if self.name in failing:
            raise OSError(self.name)

    monkeypatch.setattr(module.AcmeSearch, "aclose", aclose)
    message = f"of portico-acme is broken: it could not be closed: OSError: {failing[-1]}."
    with pytest.raises(PluginBroken, match=message) as caught:
        await made.aclose()
    assert isinstance(caught.value.__cause__, OSError)
    assert module.closed == ["acme", "chat", "plain"]


async def test_a_cancelled_closing_still_closes_the_rest(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = services(WEB)
    made.get(TextSearch, "plain")
    made.get(TextSearch, "web")
    module = sys.modules["portico_acme.search"]
    started = asyncio.Event()

    async def aclose(self: Any) -> None:
        if self.name == "acme":
            started.set()
            await asyncio.sleep(3600)
        module.closed.append(self.name)

    monkeypatch.setattr(module.AcmeSearch, "aclose", aclose)
    closing = asyncio.create_task(made.aclose())
    await started.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert module.closed == ["plain"]


async def test_what_fails_in_closing_does_not_hide_what_failed_before(
    acme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = services(WEB)

    async def aclose(self: Any) -> None:
        raise OSError("stuck")

    made.get(TextSearch, "web")
    monkeypatch.setattr(sys.modules["portico_acme.search"].AcmeSearch, "aclose", aclose)
    with pytest.raises(ValueError, match="first") as caught:
        async with made:
            raise ValueError("first")
    (note,) = caught.value.__notes__
    said = "Text search 'acme' of portico-acme is broken: it could not be closed: OSError: stuck."
    assert note.startswith(f"Closing the services failed too: {said}")


async def test_what_is_told_of_a_failed_closing_shows_no_secret(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "mellon-of-moria"
    table = {"search": {"web": {"use": "acme", "api_key": secret}}}

    async def aclose(self: Any) -> None:
        raise OSError(f"no gate opens for {self.settings.api_key.reveal()}")

    async def told(*, failed: bool) -> str:
        made = services(table)
        made.get(TextSearch, "web")
        monkeypatch.setattr(sys.modules["portico_acme.search"].AcmeSearch, "aclose", aclose)
        with pytest.raises(ValueError if failed else PluginBroken) as caught:
            async with made:
                if failed:
                    raise ValueError("first")
        return "".join(traceback.format_exception(caught.value))

    for text in (await told(failed=False), await told(failed=True)):
        assert "it could not be closed: OSError: no gate opens for ********." in text
        assert secret not in text


def test_the_embedded_default_keeps_vectors_in_the_users_cache(tmp_path: Path) -> None:
    made = services()
    assert made.names(ChatService) == ("extractive",)
    assert made.names(EmbeddingGenerator) == ("wordllama",)
    assert made.prepare("VectorStore").settings.path == tmp_path / "cache" / "portico" / "vectors"
    assert made.prepare("VectorStore", "faiss") is made.prepare("VectorStore")


def test_faiss_that_was_chosen_without_a_path_stays_in_memory() -> None:
    assert services({"vectors": {"use": "faiss"}}).prepare("VectorStore").settings.path is None


def test_a_path_of_ones_own_goes_over_the_default() -> None:
    made = services({"vectors": {"faiss": {"path": "mine"}}})
    assert made.prepare("VectorStore").settings.path == Path.cwd() / "mine"


def test_an_unknown_port_is_a_programmers_mistake() -> None:
    class Strange: ...

    with pytest.raises(ValueError, match="there is no port 'Strange'"):
        services().get(Strange)
    assert VectorStore.__name__ == "VectorStore"
