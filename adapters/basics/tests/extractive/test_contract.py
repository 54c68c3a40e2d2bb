"""ExtractiveChat does what every ChatService must, with and without embeddings."""

import pytest

from portico_basics.extractive.chat import ExtractiveChat
from portico_testkit.chat_service import ChatServiceKit
from portico_testkit.fakes.embedding_generator import HashingEmbeddings


class TestExtractiveChat(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    def chat_service(self) -> ExtractiveChat:
        return ExtractiveChat()


class TestExtractiveChatWithEmbeddings(ChatServiceKit):
    deterministic = True

    @pytest.fixture
    def chat_service(self) -> ExtractiveChat:
        generator = HashingEmbeddings()

        class Services:
            def get(self, port, name=None):
                return generator

            def names(self, port):
                return (generator.name,)

        return ExtractiveChat(None, Services())
