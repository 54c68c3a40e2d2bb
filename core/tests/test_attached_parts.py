"""What a chat service does not take is refused before anything is sent."""

from __future__ import annotations

import pytest

from portico._chat.messages import Audio, ChatCapabilities, ChatRequest, File, Image, Message, Part
from portico.errors import UnsupportedOption

PICTURES = ChatCapabilities(images=True, files=True, audio=True, media_types=frozenset({"image/*", "application/pdf"}))


@pytest.mark.parametrize(
    ("part", "what"),
    [
        (File(None, "a.pdf", "application/pdf", "https://example.com/a.pdf"), "link"),
        (Audio(url="https://example.com/a.wav"), "link"),
        (File(b"a", "a.docx", "application/msword"), "application/msword"),
        (Audio(b"a"), "audio/wav"),
    ],
)
def test_links_and_media_types_that_a_service_does_not_take_are_refused_by_name(part: Part, what: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"'acme' .*{what}"):
        ChatRequest([Message.of("user", part)]).check(PICTURES, "acme")


@pytest.mark.parametrize(
    "part", [Image(b"a"), Image(b"a", media_type="image/webp"), Image(url="x"), File(b"a", "a.pdf", "application/pdf")]
)
def test_what_a_service_takes_is_sent(part: Part) -> None:
    ChatRequest([Message.of("user", part)]).check(PICTURES, "acme")


@pytest.mark.parametrize(
    ("part", "what"), [(Image(b"a"), "images"), (File(b"a", "a", "b"), "files"), (Audio(), "audio")]
)
def test_parts_that_a_service_does_not_take_are_refused(part: Part, what: str) -> None:
    with pytest.raises(UnsupportedOption, match=what):
        ChatRequest([Message.of("user", part)]).check(ChatCapabilities(), "acme")
