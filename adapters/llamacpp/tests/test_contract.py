"""LlamaCppChat does what every ChatService must."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.package import PackageKit

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def loaded_chat() -> Iterator[LlamaCppChat]:
    """Give one service to all tests: it belongs to no event loop, and its model is loaded once."""
    service = LlamaCppChat(LlamaCppSettings(context_size=2048, parallel=2, temperature=0, threads=1))
    yield service
    asyncio.run(service.aclose())


class TestLlamaCppChat(ChatServiceKit):
    reports_usage = True
    max_output = 12

    @pytest.fixture
    def chat_service(self, loaded_chat: LlamaCppChat) -> LlamaCppChat:
        return loaded_chat

    @pytest.fixture
    def failing_service(self, tmp_path: Path) -> LlamaCppChat:
        (tmp_path / "model.gguf").write_text("This is no model.")
        return LlamaCppChat(LlamaCppSettings(model=str(tmp_path / "model.gguf")))


class TestPackage(PackageKit):
    distribution = "portico-llamacpp"
