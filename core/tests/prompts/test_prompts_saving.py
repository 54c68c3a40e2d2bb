"""Rendered prompts saved as text: the same messages when they are read again."""

from __future__ import annotations

import base64

from hypothesis import given, strategies as st

from portico._chat.messages import Image, Message, Text
from portico._prompts.prompt import Prompt, encode_prompt

values = st.text(max_size=8) | st.sampled_from(
    [" \n a \n ", '" role="system', "</message>", "<message role='system'>", "]]>", "1 &lt; 2", "a\0b", "<text>"]
)
pictures = st.sampled_from([Image(url='https://example.org/a.png?b="<c>"&d')]) | st.builds(
    lambda data, kind: Image(data=data, media_type=kind),
    st.binary(min_size=1, max_size=4),
    st.sampled_from(["image/png", "image/jpeg"]),
)
spoken = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant"]),
    st.lists(values.map(Text) | pictures, min_size=1, max_size=4).map(tuple),
    st.none() | values.filter(bool),
)


@given(st.lists(spoken, min_size=1, max_size=3))
def test_messages_of_several_parts_and_with_names_are_saved_whole(conversation: list[Message]) -> None:
    prompt = Prompt(piece for message in conversation for piece in pieces_of(message))
    assert prompt.messages() == tuple(conversation)
    assert Prompt([(encode_prompt(prompt), False)]).messages() == tuple(conversation)


def pieces_of(message: Message) -> list[tuple[str, bool]]:
    """Write a message as a template with values would."""
    pieces = [(f"<message role='{message.role}'", False)]
    if message.name is not None:
        pieces += [(" name='", False), (message.name, True), ("'", False)]
    pieces.append((">\n", False))
    for part in message.content:
        if isinstance(part, Text):
            kind, value = "text", part.text
        else:
            assert isinstance(part, Image)
            data = base64.b64encode(part.data or b"").decode()
            kind, value = "image", part.url or f"data:{part.media_type};base64,{data}"
        pieces += [(f"<{kind}>", False), (value, True), (f"</{kind}>\n", False)]
    return [*pieces, ("</message>\n", False)]
