"""One call of a tool: what it gives, its progress, its end when it is cancelled, and the question to the user."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
from attrs import field, frozen
from mcp.server.context import ServerRequestContext
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from portico import Citation, Source, TextSearchResult
from portico.plans import Event, RunEvent

ANY_JSON = "2026-07-28"
"""The first revision whose structured results are any JSON, and that asks users by a result that needs input."""
_STRUCTURED = "2025-06-18"
"""The first revision with structured results and links to resources."""
_QUESTION = "approve"
_MOST_WAITING = 1_000
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run it", "description": "Whether this may run."}},
    "required": ["run"],
}


@frozen
class Given:
    """What a tool gives: a JSON ``value``, the ``text`` beside it if that is not the value's JSON, and links.

    With ``error`` the call failed, and the text says why. With ``content`` the value is content of the protocol, as
    functions of other servers give it.
    """

    value: Any
    text: str | None = None
    links: tuple[ResourceLink, ...] = ()
    error: bool = False
    content: bool = False

    def result(self, revision: str) -> CallToolResult:
        """Return the result as a revision of the protocol can hold it."""
        value, text = self.value, self.text
        if self.content and not isinstance(value, str):
            return CallToolResult(content=[_block(part) for part in value])
        if text is None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        content: list[ContentBlock] = [TextContent(text=text)]
        structured = None
        if revision >= _STRUCTURED and not self.content:
            content += self.links
            structured = value if isinstance(value, dict) or revision >= ANY_JSON else None
        return CallToolResult(content=content, structured_content=structured, is_error=self.error)


def _block(part: Mapping[str, Any]) -> ContentBlock:
    """Return a part of `PARTS` as content."""
    media, name, uri = part.get("media_type", "application/octet-stream"), part.get("name"), part.get("uri", "")
    match part["type"]:
        case "text":
            return TextContent(text=part.get("text", ""))
        case "image":
            return ImageContent(data=part.get("data", ""), mime_type=media)
        case "audio":
            return AudioContent(data=part.get("data", ""), mime_type=media)
        case "resource_link":
            return ResourceLink(uri=uri, name=name or uri, mime_type=part.get("media_type"))
        case _ if "text" in part:
            return EmbeddedResource(
                resource=TextResourceContents(uri=uri, text=part["text"], mime_type=part.get("media_type"))
            )
        case _:
            return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=part.get("data", ""), mime_type=media))


def links_of(passages: Iterable[Source | Citation | TextSearchResult]) -> tuple[ResourceLink, ...]:
    """Return a link to each document of passages; those without a URL have none."""
    links = {each.link: each.name or each.link for each in passages if each.link and urlsplit(each.link).scheme}
    return tuple(ResourceLink(uri=link, name=name) for link, name in links.items())


Work = Callable[[Callable[[RunEvent], None]], Awaitable[Any]]


@frozen
class Call:
    """A call of a tool as a client made it."""

    context: ServerRequestContext[Any, Any]
    params: CallToolRequestParams
    _steps: list[str] = field(factory=list, init=False)

    async def carry_out(self, work: Work, *, planned: int | None = None) -> Any:
        """Await ``work``, and tell the client of its steps; a cancelled call cancels it once, and waits for its end.

        ``work`` gets what takes the events of a run. ``planned`` is the number of its steps, if that is known. It runs
        in its own task, because the SDK cancels again at each await, and a run has to write its end into the journal.
        """
        events: asyncio.Queue[RunEvent | None] = asyncio.Queue()

        async def run() -> Any:
            return await work(events.put_nowait)

        task = asyncio.create_task(run())
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                await self._tell(event, planned)
            return await task
        finally:
            if not task.done():
                task.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([task])

    async def _tell(self, event: RunEvent, planned: int | None) -> None:
        """Report a step that began or ended; steps inside of others are not counted beforehand, so not reported."""
        match event:
            case Event.StepStarted(step):
                words = f"{step.id} began" + (f": {step.function}" if isinstance(step.function, str) else "")
            case Event.StepFinished(step):
                words = f"{step.id} ended"
            case Event.StepFailed(step):
                words = f"{step.id} failed"
            case _:
                return
        if "/" not in step.id:
            self._steps.append(words)
            # Two for each step: a number may not come twice.
            await self.context.session.report_progress(len(self._steps), planned and 2 * planned, words)

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user with a form."""
        session = self.context.session
        asking = session.client_capabilities and session.client_capabilities.elicitation
        if not asking or (asking.form is None and asking.url is not None):
            return False
        return self.context.protocol_version >= ANY_JSON or session.can_send_request

    async def ask(self, question: str, digest: str, waiting: dict[str, str]) -> bool | InputRequiredResult:
        """Ask the user, and return whether that is approved; a client of a newer revision calls again with the answer.

        ``digest`` is of what is asked about: an answer to another question does not count, and none counts twice.
        ``waiting`` are the questions without an answer yet.
        """
        context, params = self.context, self.params
        answer: object
        if context.protocol_version >= ANY_JSON:
            asked = waiting.pop(params.request_state or "", None)
            answer = (params.input_responses or {}).get(_QUESTION) if asked == digest else None
            if answer is None:
                while len(waiting) >= _MOST_WAITING:
                    del waiting[next(iter(waiting))]
                state = secrets.token_urlsafe(16)
                waiting[state] = digest
                form = ElicitRequestFormParams(message=question, requested_schema=_FORM)
                return InputRequiredResult(input_requests={_QUESTION: ElicitRequest(params=form)}, request_state=state)
        else:
            answer = await context.session.elicit_form(question, _FORM, context.request_id)
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            return False
        return (answer.content or {}).get("run") is True
