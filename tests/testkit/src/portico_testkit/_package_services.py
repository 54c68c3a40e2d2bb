"""Stand-ins for whatever a factory asks for, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from portico.errors import PluginNotInstalled
from portico.registration import Services

__all__ = ["Lent", "StandIns"]

P = TypeVar("P")

_FAKES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ChatService": ("portico_testkit.fakes.chat_service:ScriptedChat", ("Noon.",)),
    "EmbeddingGenerator": ("portico_testkit.fakes.embedding_generator:HashingEmbeddings", ()),
    "FunctionSelector": ("portico_testkit.fakes.function_selector:WordSelector", ()),
    "HttpClient": ("portico_testkit.fakes.http_client:RecordedHttpClient", ({},)),
    "PageReader": ("portico_testkit.fakes.page_reader:ShelfReader", ({},)),
    "PlanStore": ("portico_testkit.fakes.plan_store:MemoryPlanStore", ()),
    "Planner": ("portico_testkit.fakes.planner:ScriptedPlanner", ()),
    "RunStore": ("portico_testkit.fakes.run_store:MemoryRunStore", ()),
    "SchemaValidator": ("portico.schemas:PlainSchemaValidator", ()),
    "TextSearch": ("portico_testkit.fakes.text_search:ListSearch", ([],)),
    "VectorStore": ("portico_testkit.fakes.vector_store:DictVectorStore", ()),
}


class StandIns:
    """Services that have a fake for each port that there is one for, under every name.

    >>> from portico.ports.chat_service import ChatService
    >>> StandIns().get(ChatService, "any").name
    'scripted'
    """

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the fake; ``PluginNotInstalled`` where there is none for the port."""
        wanted = getattr(port, "__name__", str(port))
        if wanted not in _FAKES:
            raise PluginNotInstalled(f"The kit has no stand-in for a {wanted}. Give it by the fixture `services`.")
        found: P = _made(wanted)
        return found

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return one name for a port that there is a fake for."""
        return ("stand-in",) if getattr(port, "__name__", "") in _FAKES else ()


class Lent:
    """The services that a factory is given, which remember what the given ones are called.

    >>> from portico.ports.chat_service import ChatService
    >>> lent = Lent(StandIns())
    >>> lent.get(ChatService, "any").name, lent.called
    ('scripted', {'scripted'})
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self.called: set[object] = set()

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service."""
        found = self._services.get(port, name)
        self.called.add(getattr(found, "name", None))
        return found

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names of the services of a port."""
        return self._services.names(port)


def _made(port: str) -> Any:
    reference, arguments = _FAKES[port]
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)(*arguments)
