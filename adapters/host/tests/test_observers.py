"""Observers are active without being configured: they see the middleware of a kernel and every service."""

from __future__ import annotations

from typing import Any

import pytest

import portico_host
from portico import Middleware
from portico.plugins import Registration
from portico.ports import ChatService, Observer
from portico_testkit.fakes.chat_service import ScriptedChat

pytestmark = pytest.mark.usefixtures("work")


class Around:
    """Stands for a service."""

    def __init__(self, service: Any) -> None:
        self.service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service, name)


class Watching:
    """Keeps what it was shown."""

    name = "watching"
    made: list[Watching] = []  # noqa: RUF012 - the host makes it, and the test looks at it

    def __init__(self, settings: object = None, services: object = None) -> None:
        self.kernels: list[Middleware] = []
        self.services: list[tuple[str, Any]] = []
        self.made.append(self)

    def observe_kernel(self, middleware: Middleware) -> None:
        self.kernels.append(middleware)

    def observe_service(self, port: str, service: Any) -> Any:
        self.services.append((port, service))
        return Around(service)


class Package:
    """The hooks of an application."""

    @staticmethod
    def portico_observers() -> list[Registration]:
        return [Registration("watching", f"{__name__}:Watching", "Watches.")]

    @staticmethod
    def portico_chat_services() -> list[Registration]:
        return [Registration("closing", f"{__name__}:ClosingChat", "Is closed.")]


class ClosingChat(ScriptedChat):
    """Says whether it was closed."""

    closed = 0

    def __init__(self, settings: object, services: object) -> None:
        super().__init__("Noon.")

    async def aclose(self) -> None:
        type(self).closed += 1


async def test_an_observer_sees_a_kernel_and_the_services_that_are_made_for_it() -> None:
    ClosingChat.closed = 0
    async with portico_host.open(overrides={"chat": {"use": "closing"}}, plugins=[Package]) as kernel:
        (observer,) = Watching.made[-1:]
        assert observer.kernels == [kernel.middleware]
        chat = kernel.service(ChatService)
        assert isinstance(chat, Around)
        assert kernel.service(ChatService) is chat, "it is put around a service once"
        assert ("ChatService", chat.service) in observer.services
        assert (await kernel.complete("When is it?")).value == "Noon."
    assert ClosingChat.closed == 1


async def test_an_observer_may_be_given_and_sees_given_services() -> None:
    observer, chat = Watching(), ScriptedChat("Noon.")
    given = {(Observer, "mine"): observer, ChatService: chat}
    async with portico_host.open(services=given) as kernel:
        assert observer.kernels == [kernel.middleware]
        assert kernel.service(ChatService).service is chat
        assert observer.services[-1] == ("ChatService", chat)
