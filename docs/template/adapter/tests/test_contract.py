"""The adapter does what every chat service must, and the package what every package must."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import pytest
from portico import ChatRequest, Message
from portico.errors import (
    AuthenticationFailed,
    ContextOverflow,
    RateLimited,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.package import PackageKit

from portico_acme._vendor import VendorClient, VendorError
from portico_acme.chat import AcmeChat
from portico_acme.config import AcmeSettings


class Failing(VendorClient):
    """Say one word, then fail."""

    def __init__(self, status: int) -> None:
        super().__init__("m")
        self.status = status

    async def stream(
        self, messages: Sequence[dict[str, str]], documents: Sequence[dict[str, str]]
    ) -> AsyncGenerator[str, None]:
        yield "Well"
        raise VendorError(self.status, "so it is")


class TestAcmeChat(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    async def chat_service(self) -> AsyncIterator[AcmeChat]:
        service = AcmeChat(AcmeSettings(), None)
        yield service
        await service.aclose()

    @pytest.fixture
    async def failing_service(self) -> AsyncIterator[AcmeChat]:
        service = AcmeChat(AcmeSettings(), None, client=Failing(503))
        yield service
        await service.aclose()

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, ServiceError),
            (401, AuthenticationFailed),
            (413, ContextOverflow),
            (429, RateLimited),
            (503, ServiceUnavailable),
            (504, ServiceTimeout),
        ],
    )
    async def test_an_error_of_the_vendor_is_one_of_portico(self, status: int, kind: type[ServiceError]) -> None:
        service = AcmeChat(AcmeSettings(), None, client=Failing(status))
        request = ChatRequest([Message.of("user", "Which colour is the door?")])
        with pytest.raises(ServiceError, match="so it is") as complete:
            await service.complete(request)
        with pytest.raises(ServiceError, match="so it is") as stream:
            [delta async for delta in service.stream(request)]
        for raised in (complete, stream):
            assert type(raised.value) is kind
            assert isinstance(raised.value.__cause__, VendorError)


class TestPackage(PackageKit):
    distribution = "portico-acme"
