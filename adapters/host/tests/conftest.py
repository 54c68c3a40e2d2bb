"""Real distributions, made in a temporary folder: what discovery sees is what `pip install` leaves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.packages import forget


class Site:
    """A folder like `site-packages`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self,
        distribution: str,
        plugin: str,
        modules: Mapping[str, str] | None = None,
        *,
        entry: str | None = None,
        version: str = "1.0",
        extra: str = "",
    ) -> str:
        """Install a distribution whose `_plugin.py` is ``plugin``; return its package's import name."""
        package = distribution.replace("-", "_")
        entry = entry or distribution.removeprefix("portico-")
        home = self.folder / package
        home.mkdir()
        (home / "__init__.py").write_text("")
        for name, source in {"_plugin": plugin, **(modules or {})}.items():
            (home / f"{name}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[portico]\n{entry} = {package}._plugin\n{extra}")
        (info / "RECORD").write_text("")
        return package


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("PORTICO_DISABLE", raising=False)
    yield Site(folder)
    forget(folder)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with nothing of Portico in the environment."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


ACME_PLUGIN = """
    from portico.plugins import Registration

    def portico_text_searches():
        return [
            Registration(name="acme", factory="portico_acme.search:AcmeSearch",
                         settings="portico_acme.config:AcmeSettings", summary="Search Acme."),
            Registration(name="plain", factory="portico_acme.search:PlainSearch", summary="Needs nothing."),
        ]

    def portico_chat_services():
        return [Registration(name="acme", factory="portico_acme.search:AcmeChat",
                             settings="portico_acme.config:ChatSettings", summary="Chat with Acme.")]

    def portico_function_plugins():
        return [Registration(name="acme", factory="portico_acme.search:AcmeFunctions", summary="Functions of Acme.")]

    def portico_run_stores():
        return [Registration(name="acme", factory="portico_acme.search:AcmeRuns", summary="Runs on Acme.")]
"""

ACME_CONFIG = """
    from pathlib import Path
    from typing import Literal
    from attrs import field, frozen, validators
    from portico.plugins import Secret

    @frozen
    class Limits:
        requests: int = field(default=5, metadata={"doc": "Requests at a time."})
        token: Secret | None = None

    @frozen
    class AcmeSettings:
        api_key: Secret = field(metadata={"doc": "The key from your account."})
        language: Literal["en", "de"] = "en"
        timeout: float = field(default=5.0, validator=validators.ge(0))
        folder: Path | None = None
        sites: tuple[str, ...] = ()
        strict: bool = False
        headers: dict[str, Secret] = field(factory=dict)
        limits: Limits = Limits()

    @frozen
    class ChatSettings:
        model: str = "small"
        api_key: Secret | None = None
        retries: int = 2
"""

ACME_SEARCH = """
    from portico import Function, FunctionPlugin
    from portico.search import SearchCapabilities
    from portico.ports import ChatService, TextSearch

    closed = []

    class AcmeSearch:
        index = None
        capabilities = SearchCapabilities()
        def __init__(self, settings, services):
            self.settings, self.services, self.name = settings, services, "acme"
        async def search(self, query, options=None): ...
        async def get_text_search_results(self, query, options=None): ...
        async def get_search_results(self, query, options=None): ...
        async def aclose(self):
            closed.append(self.name)

    class PlainSearch(AcmeSearch):
        def __init__(self, settings, services):
            super().__init__(settings, services)
            self.name = "plain"

    class AcmeChat(AcmeSearch):
        async def complete(self, prompt, options=None): ...
        def stream(self, prompt, options=None): ...
        def __init__(self, settings, services):
            super().__init__(settings, services)
            self.name = "chat"
            if settings.model == "circle":
                services.get(TextSearch, "around")
            if settings.model == "raises":
                raise RuntimeError(f"no entry with {settings.api_key.reveal()}")
            if settings.model == "stands":
                self.base = services.get(TextSearch, "plain")

    class AcmeFunctions:
        def __init__(self, settings, services): ...
        async def load(self, name):
            def shout(text: str) -> str:
                '''Shout.'''
                return text.upper()
            return FunctionPlugin(name, (Function.of(shout, plugin=name),), "Shouts.")

    class AcmeRuns(AcmeSearch):
        async def acquire(self, run, *, owner, seconds): ...
        async def renew(self, lease, *, seconds): ...
        async def release(self, lease): ...
        async def append(self, lease, entries): ...
        async def read(self, run): ...
        async def held(self, run): ...
        async def runs(self): ...

    class AroundSearch(AcmeSearch):
        def __init__(self, settings, services):
            services.get(ChatService)
"""


@pytest.fixture
def acme(site: Site) -> Site:
    """A plugin package that offers something for several ports."""
    site.install("portico-acme", ACME_PLUGIN, {"config": ACME_CONFIG, "search": ACME_SEARCH})
    return site
