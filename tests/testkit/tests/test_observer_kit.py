"""The Observer kit passes an observer that only watches and catches those that change what they watch."""

from __future__ import annotations

from typing import Any

import pytest

from portico import Middleware
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.observer import ObserverKit


class Counting:
    """Counts calls of functions, and of the members of services."""

    name = "counting"

    def __init__(self) -> None:
        self.count = 0

    def observe_kernel(self, middleware: Middleware) -> None:
        async def count(context: Any, proceed: Any) -> Any:
            self.count += 1
            return self.changed(await proceed())

        middleware.step.append(count)

    def observe_service(self, port: str, service: Any) -> Any:
        return Around(service, self) if port == "ChatService" else service

    def changed(self, result: Any) -> Any:
        return result


class Around:
    """Stands for a service, and counts what is asked of it."""

    def __init__(self, service: Any, observer: Counting) -> None:
        self._service = service
        self._observer = observer

    def __getattr__(self, name: str) -> Any:
        self._observer.count += 1
        return getattr(self._service, name)


class TestCounting(ObserverKit):
    @pytest.fixture
    def observer(self) -> Counting:
        return Counting()


FAULTS = KnownFaults(TestCounting, lambda kind: {"observer": kind})


@FAULTS.caught_by("a_kernel_does_what_it_did", "odd")
class ChangesResults(Counting):
    def changed(self, result):
        return result + 1


@FAULTS.caught_by("a_service_has_all_its_members", "cannot know")
class TakesEveryService(Counting):
    def observe_service(self, port, service):
        return Around(service, self)


@FAULTS.caught_by("a_service_has_all_its_members", "lacks")
class HidesMembers(Counting):
    def observe_service(self, port, service):
        class Plain:
            name = service.name

        return Plain() if port == "TextSearch" else super().observe_service(port, service)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
