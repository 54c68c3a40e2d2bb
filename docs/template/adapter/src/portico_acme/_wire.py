"""Between the vendor's form and Portico's: pure functions, which tests can call without any service."""

from portico import ChatReply, ChatRequest, Citations, Message, Source

__all__ = ["documents_of", "messages_of", "reply_of"]


def messages_of(request: ChatRequest) -> list[dict[str, str]]:
    """Return the words of the conversation as the vendor takes them."""
    return [{"role": message.role, "content": message.text} for message in request.messages]


def documents_of(request: ChatRequest) -> list[dict[str, str]]:
    """Return the sources as the vendor takes them."""
    return [{"id": str(source.number), "text": source.text} for source in _sources(request)]


def reply_of(text: str, request: ChatRequest, *, model: str, service: str) -> ChatReply:
    """Return what the vendor said as a reply, with the sources that its marks cite."""
    citations = Citations.check(text, _sources(request)).cited
    return ChatReply(Message.of("assistant", text), model=model, service=service, citations=citations)


def _sources(request: ChatRequest) -> list[Source]:
    return [part for message in request.messages for part in message.content if isinstance(part, Source)]
