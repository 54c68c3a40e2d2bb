"""The stepwise planner keeps the contract of planners, with lines of text and with objects under a schema."""

from __future__ import annotations

import json

import pytest

from portico import ChatCapabilities, ChatRequest, Kernel, function
from portico.errors import ServiceUnavailable
from portico.ports import ChatService
from portico_stepwise_planner.config import StepwiseSettings
from portico_stepwise_planner.planner import StepwisePlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.package import PackageKit
from portico_testkit.planner import PlannerKit


class Weather:
    """The weather."""

    @function
    def forecast(self, city: str, days: int = 1) -> dict[str, str]:
        """Tell the weather of a city."""
        return {"sky": "clear"}


def in_lines(request: ChatRequest) -> str:
    """Ask for the weather, then answer, by what was asked, so that the same question has the same answer."""
    last = request.messages[-1].text
    if last.startswith("Observation:"):
        return f"Thought: That is all.\nFinal answer: {len(request.messages[1].text)} letters were asked; {last}"
    return 'Thought: Look.\nAction: {"function": "Weather.forecast", "arguments": {"city": "Oslo"}}'


def in_objects(request: ChatRequest) -> str:
    """Do the same in objects."""
    last = request.messages[-1].text
    if last.startswith("Observation:"):
        return json.dumps({"thought": "All.", "action": {"final": f"{len(request.messages[1].text)}; {last}"}})
    call = {"function": "Weather-forecast", "arguments": {"city": "Oslo", "days": 1}}
    return json.dumps({"thought": "Look.", "action": call})


class _Weather(PlannerKit):
    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(plugins=[Weather])

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be in Oslo?"

    @pytest.fixture
    def failing_planner(self) -> StepwisePlanner:
        away = ScriptedChat(ServiceUnavailable("The model is away."), repeat=True)
        return StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: away}))


class TestInLines(_Weather):
    @pytest.fixture
    def planner(self) -> StepwisePlanner:
        chat = ScriptedChat(in_lines, repeat=True)
        return StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: chat}))


class TestInObjects(_Weather):
    @pytest.fixture
    def planner(self) -> StepwisePlanner:
        chat = ScriptedChat(in_objects, repeat=True, capabilities=ChatCapabilities(response_schema=True))
        return StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: chat}))


class TestPackage(PackageKit):
    distribution = "portico-stepwise-planner"
