"""What is this adapter's own: the vendor's form, and the settings."""

import pytest
from portico import ChatRequest, Message, Secret, Source

from portico_acme._wire import documents_of, messages_of, reply_of
from portico_acme.config import AcmeSettings

SOURCES = (Source(1, "The door is red.", "House", "https://docs.example/house"), Source(2, "The roof is grey."))
REQUEST = ChatRequest([Message.of("system", "Be brief."), Message.of("user", "Which colour is the door?", *SOURCES)])


def test_the_vendor_is_sent_the_words_and_the_sources() -> None:
    assert messages_of(REQUEST) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which colour is the door?"},
    ]
    assert documents_of(REQUEST) == [{"id": "1", "text": "The door is red."}, {"id": "2", "text": "The roof is grey."}]


def test_a_mark_in_the_reply_is_a_citation() -> None:
    reply = reply_of("It is red [1].", REQUEST, model="m", service="s")
    assert [citation.link for citation in reply.citations] == ["https://docs.example/house"]
    assert (reply.model, reply.service) == ("m", "s")


def test_the_key_does_not_show() -> None:
    assert "sk-123" not in repr(AcmeSettings(api_key=Secret("sk-123")))


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(ValueError, match="model is empty"):
        AcmeSettings(model=" ")
