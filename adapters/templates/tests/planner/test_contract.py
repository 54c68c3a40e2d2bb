"""The Handlebars planner keeps the contract of planners that have a model write the whole plan."""

from __future__ import annotations

from typing import Any

import pytest

from portico import ChatRequest, Kernel, function
from portico.ports import ChatService, TemplateLanguage
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.planner.config import HandlebarsPlannerSettings
from portico_templates.planner.planner import HandlebarsPlanner
from portico_testkit.fakes.services import FixedServices
from portico_testkit.whole_plan import WholePlanKit


class Weather:
    @function
    def forecast(self, city: str) -> str:
        """Tell the weather."""
        return f"Sun in {city}"


def fenced(source: str) -> str:
    return f"```handlebars\n{source}\n```"


class TestHandlebarsPlanner(WholePlanKit):
    infeasible = "CANNOT: Nobody knows."
    unusable = (
        ("I look out of the window.", "It has no template"),
        (fenced("{{#if a}}{{json (Weather-forecast city='a')}}"), "line 1"),
        (fenced("{{json nothing_sets_it}}"), "'nothing_sets_it'"),
        (fenced("{{set 'a' Weather-forecast}}"), "(Weather-forecast …)"),
    )

    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(FixedServices({TemplateLanguage: HandlebarsTemplates()}), plugins=[Weather])

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be?"

    def planner_with(self, chat: ChatService, **settings: Any) -> HandlebarsPlanner:
        services = FixedServices({ChatService: chat, TemplateLanguage: HandlebarsTemplates()})
        return HandlebarsPlanner(HandlebarsPlannerSettings(**settings), services)

    def reply_to(self, request: ChatRequest) -> str:
        asked = sum(len(message.text) for message in request.messages)
        return fenced(f'{{{{set "said" (Weather-forecast city="Town {asked}")}}}}\n{{{{json said}}}}')

    def told_goal(self, text: str) -> str:
        return text.partition("\nThe goal is:\n")[2]
