"""LlamaCppChat does what every ChatService must, with chat templates that know tools and that do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_testkit.chat_service import ChatServiceKit

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TEMPLATE = Path(__file__).with_name("hermes.jinja")


class TestLlamaCppChat(ChatServiceKit):
    reports_usage = True
    max_output = 16
    long_history = 100

    @pytest.fixture
    async def chat_service(self) -> AsyncIterator[LlamaCppChat]:
        service = LlamaCppChat(LlamaCppSettings(context_size=4096, parallel=2, temperature=0, threads=1))
        yield service
        await service.aclose()
