"""The sequential planner keeps the contract of planners that have a model write the whole plan."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import unescape

import pytest

from portico import ChatRequest, Kernel, function
from portico.ports import ChatService
from portico_sequential_planner.config import SequentialSettings
from portico_sequential_planner.planner import SequentialPlanner
from portico_testkit.fakes.services import FixedServices
from portico_testkit.package import PackageKit
from portico_testkit.whole_plan import WholePlanKit


class Weather:
    @function
    def forecast(self, city: str) -> str:
        """Tell the weather."""
        return f"Sun in {city}"

    @function
    def measure(self, city: str) -> dict[str, int]:
        """Measure the warmth."""
        return {"degrees": len(city)}


class TestSequentialPlanner(WholePlanKit):
    infeasible = "<!-- Nobody knows. -->\n<plan/>"
    unusable = (
        ("I look out of the window.", "no <plan>"),
        (
            '<plan>\n<function.Weather.forecast city="$NOBODY"/></plan>',
            "line 2, column 28: there is no variable $NOBODY",
        ),
        (
            '<plan><function.Weather.forecast city="$INPUT"/></plan>',
            "Step 1 needs a value for city: there is no $INPUT",
        ),
        (
            (
                '<plan><function.Weather.measure city="a" setContextVariable="M"/>'
                '<function.Weather.forecast city="It has $M[0] degrees"/></plan>'
            ),
            "Step 2, city: $M[0] does not exist",
        ),
    )

    @pytest.fixture
    def kernel(self) -> Kernel:
        return Kernel(plugins=[Weather])

    @pytest.fixture
    def goal(self) -> str:
        return "What will the weather be?"

    def planner_with(self, chat: ChatService, **settings: Any) -> SequentialPlanner:
        return SequentialPlanner(SequentialSettings(**settings), FixedServices({ChatService: chat}))

    def reply_to(self, request: ChatRequest) -> str:
        asked = sum(len(message.text) for message in request.messages)
        return f'<plan><function.Weather.forecast city="Town {asked}" appendToResult="RESULT__WEATHER"/></plan>'

    def told_goal(self, text: str) -> str:
        _, _, goal = text.rpartition("\n<goal>")
        assert goal.count("<") == 1, f"the goal opens an element: {goal!r}"
        return unescape(goal.removesuffix("</goal>"))


class TestPackage(PackageKit):
    distribution = "portico-sequential-planner"
