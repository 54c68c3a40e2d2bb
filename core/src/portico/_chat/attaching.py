"""What goes with a question beside its words: put into requests, and fitted to what a service takes."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico._chat.json_form import part_from_json, to_json
from portico._chat.messages import Attached, File, Message, Source, Text, takes_type, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from portico._chat.messages import ChatCapabilities, ChatRequest, Part


def fit(request: ChatRequest, capabilities: ChatCapabilities) -> ChatRequest:
    """Write as text what a service does not take as data, and text can hold: sources, and files that are text."""
    kinds = {type(part) for message in request.messages for part in message.content}
    if Source in kinds and not capabilities.sources:
        request = replace(request, messages=Message.render_sources(request.messages))
    if File not in kinds or not capabilities.language_model:
        return request
    fitted = [
        replace(each, content=tuple(_fitting(part, capabilities) for part in each.content)) for each in request.messages
    ]
    return replace(request, messages=tuple(fitted))


def _fitting(part: Part, capabilities: ChatCapabilities) -> Part:
    if not isinstance(part, File) or part.data is None or (capabilities.files and takes_type(part, capabilities)):
        return part
    words = words_of(part.data)
    if words is None:
        return part
    from html import escape

    return Text(f'<file name="{escape(part.name)}">\n{escape(words, quote=False)}\n</file>\n')


@dataclass(slots=True)
class Attachments:
    """What is attached to the goal of a run."""

    parts: tuple[Attached, ...] = ()
    beside: list[Message] = field(default_factory=list)
    """The messages that they went with."""

    @property
    def shown(self) -> bool:
        """Whether a model was shown them."""
        return bool(self.beside)

    @staticmethod
    def to_json(given: Iterable[Any]) -> list[Any]:
        """Return parts in the JSON form of threads, also those that have it; ``TypeError`` for any other part."""
        written = []
        for part in given:
            attached = part_from_json(part, "$.attached") if isinstance(part, dict) else part
            if not isinstance(attached, Attached):
                raise TypeError(f"an Image, Audio or File can be attached, not {part!r}")
            written.append(to_json(attached, "$.attached"))
        return written

    def put_into(self, request: ChatRequest) -> ChatRequest:
        """Return a request with them in the message that they went with before, else in the user's last one.

        Examples of a planner stand before the goal, and its exchanges with the model after it.
        """
        messages = list(request.messages)
        users = [index for index, message in enumerate(messages) if message.role == "user"]
        if not self.parts or not users:
            return request
        place = next((index for index in users if messages[index] in self.beside), users[-1])
        asked = messages[place]
        if asked not in self.beside:
            self.beside.append(asked)
        messages[place] = replace(asked, content=(*asked.content, *self.parts))
        return replace(request, messages=tuple(messages))


_current: ContextVar[Attachments] = ContextVar("attachments", default=Attachments())  # noqa: B039 - it is empty


def attachments() -> Attachments:
    """Return what is attached to the goal of the run under way."""
    return _current.get()


@contextmanager
def attaching(written: Iterable[Any]) -> Iterator[Attachments]:
    """Attach parts, in the JSON form of threads, to what planners ask in a block."""
    parts: Iterable[Any] = (part_from_json(part, "$.attached") for part in written)
    attached = Attachments(tuple(parts))
    token = _current.set(attached)
    try:
        yield attached
    finally:
        _current.reset(token)
