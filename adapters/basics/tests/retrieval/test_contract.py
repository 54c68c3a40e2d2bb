"""The retrieval planner keeps the contract of planners."""

from __future__ import annotations

import pytest

from portico import ChatRequest, Kernel
from portico.errors import ServiceUnavailable
from portico.ports import ChatService
from portico.search import search_plugin
from portico_basics.config import RetrievalSettings
from portico_basics.retrieval.planner import RetrievalPlanner
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices
from portico_testkit.fakes.text_search import ListEntry, ListSearch
from portico_testkit.planner import PlannerKit


def first_source(request: ChatRequest) -> str:
    """Answer by what was asked, so that the same question has the same answer."""
    return f"Asked for {len(request.messages[-1].text)} letters, this says it [1]."


class TestRetrievalPlanner(PlannerKit):
    @pytest.fixture
    def kernel(self) -> Kernel:
        kernel = Kernel()
        for name in ("docs", "web"):
            kernel.add_plugin(search_plugin(ListSearch([ListEntry(f"Ports are protocols, says {name}.")]), name))
        return kernel

    @pytest.fixture
    def planner(self) -> RetrievalPlanner:
        chat = ScriptedChat(first_source, repeat=True)
        return RetrievalPlanner(RetrievalSettings(), FixedServices({ChatService: chat}))

    @pytest.fixture
    def failing_planner(self) -> RetrievalPlanner:
        away = ScriptedChat(ServiceUnavailable("The model is away."), repeat=True)
        return RetrievalPlanner(RetrievalSettings(), FixedServices({ChatService: away}))

    @pytest.fixture
    def goal(self) -> str:
        return "What are ports?"
