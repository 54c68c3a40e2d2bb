"""The adapter does what every chat service must, and the package what every package must."""

from collections.abc import AsyncIterator

import pytest
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.package import PackageKit

from portico_acme.chat import AcmeChat
from portico_acme.config import AcmeSettings


class TestAcmeChat(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    async def chat_service(self) -> AsyncIterator[AcmeChat]:
        service = AcmeChat(AcmeSettings(), None)
        yield service
        await service.aclose()


class TestPackage(PackageKit):
    distribution = "portico-acme"
