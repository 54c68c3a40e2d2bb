"""The planners that ask a model share the settings that say how it writes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from portico import ChatCapabilities, Kernel, function
from portico.errors import PorticoError
from portico.ports import ChatService, TemplateLanguage
from portico_function_calling_planner.config import FunctionCallingSettings
from portico_function_calling_planner.planner import FunctionCallingPlanner
from portico_host.fields import settings_fields
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_stepwise_planner.config import StepwiseSettings
from portico_stepwise_planner.planner import StepwisePlanner
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.planner.config import HandlebarsPlannerSettings
from portico_templates.planner.planner import HandlebarsPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices


@function
def today() -> str:
    return "1 May"


PLANNERS = [
    (FunctionCallingPlanner, FunctionCallingSettings),
    (HandlebarsPlanner, HandlebarsPlannerSettings),
    (SequentialPlanner, SequentialSettings),
    (StepwisePlanner, StepwiseSettings),
    (StructuredPlanner, StructuredSettings),
]
each_planner = pytest.mark.parametrize(("planner", "settings"), PLANNERS)


def test_the_settings_that_planners_share_are_said_once_and_in_the_same_words() -> None:
    for name in ("chat", "instructions", "temperature", "top_p", "seed"):
        said = {str(field) for _, cls in PLANNERS for field in settings_fields(cls) if field.key == name}
        assert len(said) == 1, name


@each_planner
def test_a_number_outside_of_its_limits_is_refused_by_the_name_of_its_setting(planner: Any, settings: Any) -> None:
    limited = [field for field in settings_fields(settings) if field.limits]
    assert {"temperature", "top_p", "max_tokens", "manual_tokens"} <= {field.key for field in limited}
    for field in limited:
        for number in (field.limits["minimum"], field.limits["maximum"]):
            settings(**{field.key: number})
        for number in (field.limits["minimum"] - 1, field.limits["maximum"] + 1):
            with pytest.raises(ValueError, match=f"^{field.key} is "):
                settings(**{field.key: number})


@each_planner
async def test_a_planner_asks_with_the_settings_and_the_instructions_that_it_was_given(
    planner: Any, settings: Any
) -> None:
    given = {"temperature": 0.25, "top_p": 0.5, "seed": 7, "max_tokens": 321}
    chat = ScriptedChat("No.", repeat=True, capabilities=ChatCapabilities(tools=True, sampling=frozenset(given)))
    services = FixedServices({ChatService: chat, (TemplateLanguage, "handlebars"): HandlebarsTemplates()})
    kernel = Kernel()
    kernel.add_function(today)
    with suppress(PorticoError):
        await kernel.run_goal("When?", planner=planner(settings(**given, instructions="Be brief."), services))
    request = chat.requests[0]
    assert {name: getattr(request, name) for name in given} == given
    assert request.messages[0].role == "system"
    assert request.messages[0].text.rstrip().endswith("Be brief.")
