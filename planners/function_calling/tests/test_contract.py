"""The function calling planner keeps the contract of planners, with tools as they are and in strict form."""

from __future__ import annotations

import pytest

from portico import ChatCapabilities, ChatRequest, Kernel, Part, Reasoning, ToolCall, ToolResult, function
from portico.errors import ServiceUnavailable
from portico.ports import ChatService
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.package import PackageKit
from portico_testkit.planner import PlannerKit


class Weather:
    """The weather."""

    @function
    def forecast(self, city: str, days: int = 1) -> dict[str, str]:
        """Tell the weather of a city."""
        return {"sky": f"clear over {city}"}


def by_what_was_asked(request: ChatRequest) -> str | list[Part | str]:
    """Call twice, then answer, by what was asked, so that the same question has the same answer."""
    results = [part for message in request.messages for part in message.content if isinstance(part, ToolResult)]
    if results:
        words = "; ".join(result.content for result in results)
        return f"{len(request.messages[1].text)} letters were asked: {words}"
    return [
        Reasoning({"opaque": [1, None]}, "Thinking."),
        "I look.",
        ToolCall("c1", "Weather-forecast", '{"city": "Oslo", "days": "2"}'),
        ToolCall("c2", "Weather-forecast", '{"city": "Bergen", "days": null}' if strict(request) else '{"city": "B"}'),
    ]


def strict(request: ChatRequest) -> bool:
    return request.tools[0].strict


class _Weather(PlannerKit):
    capabilities = ChatCapabilities(tools=True)

    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(plugins=[Weather])

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be in Oslo and in Bergen?"

    @pytest.fixture
    def planner(self) -> FunctionCallingPlanner:
        chat = ScriptedChat(by_what_was_asked, repeat=True, capabilities=self.capabilities)
        return FunctionCallingPlanner(FunctionCallingSettings(), FixedServices({ChatService: chat}))

    @pytest.fixture
    def failing_planner(self) -> FunctionCallingPlanner:
        away = ScriptedChat(ServiceUnavailable("The model is away."), repeat=True, capabilities=self.capabilities)
        return FunctionCallingPlanner(FunctionCallingSettings(), FixedServices({ChatService: away}))


class TestFunctionCalling(_Weather):
    """Tools as they are."""


class TestStrictFunctionCalling(_Weather):
    """Tools in strict form."""

    capabilities = ChatCapabilities(tools=True, strict=True)


class TestPackage(PackageKit):
    distribution = "portico-function-calling-planner"
