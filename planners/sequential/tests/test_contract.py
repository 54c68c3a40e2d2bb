"""The sequential planner keeps the contract of planners."""

from __future__ import annotations

import pytest

from portico.chat import ChatRequest
from portico.functions import function
from portico.kernel import Kernel
from portico.ports.chat_service import ChatService
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.planner import PlannerKit


class Weather:
    @function
    def forecast(self, city: str) -> str:
        """Tell the weather."""
        return f"Sun in {city}"


def plan_for(request: ChatRequest) -> str:
    """Write a plan by what was asked, so that the same question has the same answer."""
    asked = sum(len(message.text) for message in request.messages)
    return f'<plan><function.Weather.forecast city="Town {asked}" appendToResult="RESULT__WEATHER"/></plan>'


class TestSequentialPlanner(PlannerKit):
    @pytest.fixture
    def kernel(self) -> Kernel:
        kernel = Kernel()
        kernel.add_plugin(Weather)
        return kernel

    @pytest.fixture
    def planner(self) -> SequentialPlanner:
        chat = ScriptedChat(plan_for, repeat=True)
        return SequentialPlanner(SequentialSettings(), FixedServices({ChatService: chat}))

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be?"
