"""The Handlebars planner keeps the contract of planners."""

from __future__ import annotations

import pytest

from portico.chat import ChatRequest
from portico.functions import function
from portico.kernel import Kernel
from portico.ports.chat_service import ChatService
from portico.ports.template_language import TemplateLanguage
from portico_handlebars.language import HandlebarsTemplates
from portico_handlebars_planner.config import HandlebarsPlannerSettings
from portico_handlebars_planner.planner import HandlebarsPlanner
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
    return f'```handlebars\n{{{{set "said" (Weather-forecast city="Town {asked}")}}}}\n{{{{json said}}}}\n```'


class TestHandlebarsPlanner(PlannerKit):
    @pytest.fixture
    def services(self) -> FixedServices:
        chat = ScriptedChat(plan_for, repeat=True)
        return FixedServices({ChatService: chat, TemplateLanguage: HandlebarsTemplates()})

    @pytest.fixture
    def kernel(self, services: FixedServices) -> Kernel:
        kernel = Kernel(services)
        kernel.add_plugin(Weather)
        return kernel

    @pytest.fixture
    def planner(self, services: FixedServices) -> HandlebarsPlanner:
        return HandlebarsPlanner(HandlebarsPlannerSettings(), services)

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be?"
