"""The structured planner keeps the contract of planners, however its service can be asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portico import ChatCapabilities, ChatRequest, Kernel, function
from portico.errors import ServiceUnavailable
from portico.ports import ChatService
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.planner import StructuredPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.package import PackageKit
from portico_testkit.planner import PlannerKit


class Writer:
    @function
    def poem(self, about: str) -> str:
        """Write a poem."""
        return f"O {about}!"

    @function
    def shout(self, text: str) -> str:
        """Say a text aloud."""
        return text.upper()


def next_step(request: ChatRequest) -> str:
    """Answer by what was said, so that the same conversation has the same answer."""
    said = [message.text for message in request.messages]
    written = sum(message.role == "assistant" and "next" in message.text for message in request.messages)
    run = said[1].count("has run")
    failed = said[1].count(" failed: ")
    step: dict[str, Any]
    match (run + written, run + failed + written):
        case (0, before):
            about = {"value": str(len(said[1]) + before)}
            step = {"function": "Writer-poem", "reason": "It is asked for.", "arguments": {"about": about}}
        case (1, number):
            text = {"from": f"s{number}", "path": "$"}
            step = {"function": "Writer-shout", "reason": "", "arguments": {"text": text}}
        case (_, number):
            step = {"function": "finish", "result": {"from": f"s{number}", "path": "$"}}
    return json.dumps({"next": step})


class Contract(PlannerKit):
    capabilities = ChatCapabilities()
    settings = StructuredSettings()

    @pytest.fixture
    def kernel(self) -> Kernel:
        kernel = Kernel()
        kernel.add_plugin(Writer)
        return kernel

    @pytest.fixture
    def planner(self) -> StructuredPlanner:
        chat = ScriptedChat(next_step, repeat=True, capabilities=self.capabilities)
        return StructuredPlanner(self.settings, FixedServices({ChatService: chat}))

    @pytest.fixture
    def failing_planner(self) -> StructuredPlanner:
        away = ScriptedChat(ServiceUnavailable("The model is away."), repeat=True, capabilities=self.capabilities)
        return StructuredPlanner(self.settings, FixedServices({ChatService: away}))

    @pytest.fixture
    def goal(self) -> str:
        return "Write a poem about John Doe and say it aloud."


class TestWithStrictSchemas(Contract):
    capabilities = ChatCapabilities(response_schema=True, strict=True)


class TestWithSchemas(Contract):
    capabilities = ChatCapabilities(response_schema=True)


class TestInWords(Contract):
    pass


class TestOneStepAtATime(Contract):
    capabilities = ChatCapabilities(response_schema=True)
    settings = StructuredSettings(one_step=True)


class TestPackage(PackageKit):
    distribution = "portico-structured-planner"
