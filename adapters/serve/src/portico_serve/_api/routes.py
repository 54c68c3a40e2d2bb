"""The routes of /api: JSON and event streams over the runs and the conversations."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from portico.errors import (
    ConfigurationError,
    FunctionNotFound,
    LimitExceeded,
    PlanFormatError,
    PlanInvalid,
    PlanStale,
    PluginError,
    PluginNotInstalled,
    PorticoError,
    RunError,
    RunNotFound,
    ServiceError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    ThreadBusy,
    UnsupportedOption,
)
from portico.plans import Finding
from portico.ports import ChatService, Planner
from portico_serve._chats import ANSWERS
from portico_serve._inputs import Fields, InputInvalid, NotFound, NotJson, short
from portico_serve._json import JsonResponse
from portico_serve._runs.feeds import Watcher
from portico_serve._runs.graphs import finding_to_json

if TYPE_CHECKING:
    from portico import Kernel
    from portico_host import Application
    from portico_serve._desk import Desk

_PING = 15.0
_MOST_LISTED = 200
_STATUSES: tuple[tuple[type[PorticoError], int], ...] = (
    (RunNotFound, 404),
    (NotFound, 404),
    (NotJson, 400),
    (RunError, 409),
    (StoreBusy, 409),
    (ThreadBusy, 409),
    (UnsupportedOption, 409),
    (InputInvalid, 422),
    (PlanInvalid, 422),
    (PlanFormatError, 422),
    (PlanStale, 422),
    (ConfigurationError, 422),
    (FunctionNotFound, 422),
    (StoreDamaged, 500),
    (StoreError, 503),
    (PluginNotInstalled, 422),
    (PluginError, 503),
    (ServiceError, 503),
    (LimitExceeded, 503),
)


def routes(desk: Desk) -> list[BaseRoute]:
    """Return the routes of /api, without security: that is around them."""
    api = _Api(desk)
    table: tuple[tuple[str, str, Callable[[Request], Awaitable[Response]]], ...] = (
        ("GET", "/about", api.about),
        ("GET", "/plugins", api.plugins),
        ("POST", "/plans/check", api.check_plan),
        ("POST", "/runs", api.start),
        ("GET", "/runs", api.list_runs),
        # A name may have slashes in it, and so has the id of a step inside of another.
        ("GET", "/runs/{run:path}/steps/{id:path}", api.describe_step),
        ("GET", "/runs/{run:path}/events", api.watch_run),
        ("GET", "/runs/{run:path}/passages/{number:int}", api.passage),
        ("GET", "/runs/{run:path}/trace", api.trace),
        ("GET", "/runs/{run:path}", api.describe_run),
        ("POST", "/runs/{run:path}/approve", api.approve),
        ("POST", "/runs/{run:path}/refuse", api.refuse),
        ("POST", "/runs/{run:path}/resume", api.resume),
        ("POST", "/runs/{run:path}/cancel", api.cancel),
        ("POST", "/runs/{run:path}/replay", api.replay),
        ("POST", "/chats", api.create_chat),
        ("GET", "/chats", api.list_chats),
        ("GET", "/chats/{chat}", api.describe_chat),
        ("DELETE", "/chats/{chat}", api.delete_chat),
        ("POST", "/chats/{chat}/messages", api.send),
        ("POST", "/chats/{chat}/answers", api.answer),
        ("POST", "/chats/{chat}/stop", api.stop),
        ("GET", "/chats/{chat}/events", api.watch_chat),
    )
    return [Route(f"/api{path}", _answering(endpoint), methods=[method]) for method, path, endpoint in table]


def error_response(error: PorticoError) -> JsonResponse:
    """Return an error as JSON, with the status that it means."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    body: dict[str, Any] = {"message": str(error), "kind": type(error).__name__}
    if isinstance(error, PlanInvalid):
        body["findings"] = [finding_to_json(each) for each in error.findings if isinstance(each, Finding)]
    return JsonResponse({"error": body}, status)


def _answering(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers with what it raises."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except PorticoError as error:
            return error_response(error)

    return answer


class _EventStream(StreamingResponse):
    """What a watcher gets, as server-sent events. It stops watching as soon as its client has gone."""

    def __init__(self, watched: AbstractAsyncContextManager[Watcher], watcher: Watcher) -> None:
        super().__init__(_events(watcher), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._watched = watched

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._watched.__aexit__(None, None, None)


async def event_stream(watched: AbstractAsyncContextManager[Watcher]) -> Response:
    """Return a stream of what is watched; raises what watching raises, before anything is sent."""
    return _EventStream(watched, await watched.__aenter__())


async def _events(watcher: Watcher) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    while (pieces := await watcher.take(_PING)) is not None:
        yield "".join(f"event: {event}\ndata: {data}\n\n" for event, data in pieces) or ": ping\n\n"


async def _fields(request: Request, *known: str) -> Fields:
    """Return the members of the body; none where it is empty."""
    content = await request.body()
    try:
        return Fields(json.loads(content) if content.strip() else {}, *known)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"The body is not JSON: {error}.") from error


class _Api:
    """The endpoints: each reads its request, asks the runs or the conversations, and answers in JSON."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runs, self._chats = desk.runs, desk.chats

    async def about(self, request: Request) -> Response:
        return JsonResponse(about(self._desk))

    async def plugins(self, request: Request) -> Response:
        from portico_cli.commands.doctor import examine, findings_to_json
        from portico_cli.commands.plugins import packages_to_json

        application = self._desk.application
        found = await examine(application.configuration.path, lambda words: None)
        return JsonResponse({**packages_to_json(application), **findings_to_json(found)})

    async def check_plan(self, request: Request) -> Response:
        fields = await _fields(request, "plan", "run")
        return JsonResponse(await self._runs.check(fields.value("plan"), fields.name("run")))

    async def start(self, request: Request) -> Response:
        fields = await _fields(request, "goal", "sources", "planner", "input", "approve")
        run = await self._runs.start(
            fields.text("goal"),
            sources=fields.names("sources"),
            planner=fields.name("planner"),
            input=fields.value("input"),
            approve=fields.name("approve") or "effects",
        )
        return JsonResponse({"run": run}, 201)

    async def list_runs(self, request: Request) -> Response:
        given = request.query_params
        text = short("query", given.get("query", ""), 1_000)
        limit = given.get("limit", "50")
        if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= _MOST_LISTED:
            raise InputInvalid(f"limit is a number from 1 to {_MOST_LISTED}, not {limit!r:.80}.")
        state, before = given.get("state", ""), given.get("before")
        return JsonResponse(await self._runs.listing(query=text, state=state, limit=int(limit), before=before))

    async def describe_run(self, request: Request) -> Response:
        return JsonResponse(await self._runs.describe(_run(request)))

    async def watch_run(self, request: Request) -> Response:
        return await event_stream(self._runs.watch(_run(request)))

    async def describe_step(self, request: Request) -> Response:
        return JsonResponse(await self._runs.step(_run(request), request.path_params["id"]))

    async def passage(self, request: Request) -> Response:
        return JsonResponse(await self._runs.passage(_run(request), request.path_params["number"]))

    async def trace(self, request: Request) -> Response:
        return JsonResponse(await self._runs.trace(_run(request)))

    async def approve(self, request: Request) -> Response:
        fields = await _fields(request, "step", "plan", "proposal")
        run, proposal = _run(request), fields.take("proposal", int)
        await self._runs.approve(run, step=fields.name("step"), plan=fields.value("plan"), proposal=proposal)
        return JsonResponse({"run": run}, 202)

    async def refuse(self, request: Request) -> Response:
        fields = await _fields(request, "reason", "proposal")
        run = _run(request)
        await self._runs.refuse(run, fields.text("reason"), proposal=fields.take("proposal", int))
        return JsonResponse({"run": run}, 202)

    async def resume(self, request: Request) -> Response:
        fields = await _fields(request, "retry", "results")
        run = _run(request)
        await self._runs.resume(run, retry=fields.names("retry") or (), results=fields.take("results", dict))
        return JsonResponse({"run": run}, 202)

    async def cancel(self, request: Request) -> Response:
        await _fields(request)
        run = _run(request)
        await self._runs.cancel(run)
        return JsonResponse({"run": run}, 202)

    async def replay(self, request: Request) -> Response:
        await _fields(request)
        return JsonResponse({"run": await self._runs.replay(_run(request))}, 201)

    async def create_chat(self, request: Request) -> Response:
        await _fields(request)
        return JsonResponse({"chat": self._chats.create()}, 201)

    async def list_chats(self, request: Request) -> Response:
        return JsonResponse({"chats": await self._chats.listing()})

    async def describe_chat(self, request: Request) -> Response:
        return JsonResponse(self._chats.describe(_chat(request)))

    async def delete_chat(self, request: Request) -> Response:
        await self._chats.delete(_chat(request))
        return Response(status_code=204)

    async def send(self, request: Request) -> Response:
        fields = await _fields(request, "text")
        chat = _chat(request)
        self._chats.send(chat, fields.text("text"))
        return JsonResponse({"chat": chat}, 202)

    async def answer(self, request: Request) -> Response:
        fields = await _fields(request, "question", "answer")
        chat, said = _chat(request), fields.text("answer")
        if said not in ANSWERS:
            raise InputInvalid(f"answer is one of {', '.join(ANSWERS)}, not {said!r:.80}.")
        self._chats.answer(chat, fields.text("question"), said)
        return JsonResponse({"chat": chat}, 202)

    async def stop(self, request: Request) -> Response:
        await _fields(request)
        chat = _chat(request)
        await self._chats.stop(chat)
        return JsonResponse({"chat": chat}, 202)

    async def watch_chat(self, request: Request) -> Response:
        return await event_stream(self._chats.watch(_chat(request)))


def about(desk: Desk) -> dict[str, Any]:
    """Return what this server has: its sources, planners, and chat service."""
    kernel = desk.kernel
    assert kernel.services is not None  # noqa: S101 - a kernel of the host has services
    planners = list(dict.fromkeys([*kernel.services.names(Planner), *_usable_planners(desk.application)]))
    chat = None
    if kernel.services.names(ChatService):
        service = kernel.service(ChatService)
        chat = {"name": service.name, "language_model": getattr(service.capabilities, "language_model", True)}
    return {
        "version": version("portico-serve"),
        "sources": [{"name": each, "summary": _summary(kernel, each)} for each in desk.sources],
        "planners": planners,
        "planner": planners[0] if planners else None,
        "chat": chat,
        "workers": desk.runs.queue is not None,
    }


def _usable_planners(application: Application) -> Iterator[str]:
    """Yield the installed planners that need no settings, and those that have them."""
    services = application.services(())
    for name in application.plugins.names(Planner.__name__):
        with suppress(PorticoError):
            services.prepare(Planner.__name__, name)
            yield name


def _summary(kernel: Kernel, source: str) -> str:
    plugin = kernel.plugins.get(source.replace("-", "_"))
    return next((each.spec.description for each in plugin or () if each.spec.is_search), "")


def _run(request: Request) -> str:
    return str(request.path_params["run"])


def _chat(request: Request) -> str:
    return str(request.path_params["chat"])
