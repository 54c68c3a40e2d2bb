"""A service on loopback that writes down what it gets, and documents that describe it."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from portico import FunctionPlugin, Kernel
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire: ``target`` is the part of the request line after the method."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Service:
    """Answers with what stands in ``answers``, in order; then with ``{}``."""

    url: str
    requests: list[Received] = field(default_factory=list)
    answers: deque[Response] = field(default_factory=deque)

    def handle(self, request: Request) -> Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = request.environ["RAW_URI"]
        self.requests.append(Received(request.method, target, headers, request.get_data()))
        return self.answers.popleft() if self.answers else Response("{}", content_type="application/json")

    def answer(
        self, content: Any = "", status: int = 200, content_type: str = "application/json", **headers: str
    ) -> None:
        """Add an answer; a header's name has underscores for hyphens."""
        body = content if isinstance(content, str | bytes) else json.dumps(content)
        response = Response(body, status, content_type=content_type)
        for name, value in headers.items():
            response.headers[name.replace("_", "-")] = value
        self.answers.append(response)

    @property
    def last(self) -> Received:
        return self.requests[-1]


@pytest.fixture
def service(httpserver: HTTPServer) -> Service:
    made = Service(httpserver.url_for("").rstrip("/"))
    httpserver.expect_request(re.compile(".*")).respond_with_handler(made.handle)
    return made


Open = Callable[..., Awaitable[FunctionPlugin]]


@dataclass
class Opened:
    """Loads documents and closes what it has opened; ``sources`` are the latest last."""

    folder: Path
    sources: list[OpenAPIFunctions] = field(default_factory=list)

    async def __call__(self, document: Mapping[str, Any] | str, /, **settings: Any) -> FunctionPlugin:
        text = document if isinstance(document, str) else json.dumps(document)
        path = self.folder / f"document{len(self.sources)}.{'json' if text[:1] == '{' else 'yaml'}"
        path.write_text(text, "utf-8")
        source = OpenAPIFunctions(OpenAPISettings(document=path, **{"retries": 0, "timeout": 10, **settings}))
        self.sources.append(source)
        return await source.load("service")

    @property
    def lost(self) -> dict[str, str]:
        return {one.operation: one.reason for one in self.sources[-1].lost}


@pytest_asyncio.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(tmp_path)
    yield made
    for source in made.sources:
        await source.aclose()


@pytest.fixture
def call() -> Callable[..., Awaitable[Any]]:
    """Call a function with JSON arguments, as plans and models do."""

    async def call(plugin: FunctionPlugin, name: str, /, **arguments: Any) -> Any:
        return await Kernel(plugins=[plugin]).invoke_json(f"{plugin.name}-{name}", arguments)

    return call


@pytest.fixture
def described(service: Service) -> Callable[..., dict[str, Any]]:
    """Make a document on the service with these paths; further keywords are further keys."""

    def described(paths: Mapping[str, Any], /, **keys: Any) -> dict[str, Any]:
        return {
            "openapi": "3.1.0",
            "info": {"title": "A service", "version": "1"},
            "servers": [{"url": service.url}],
            "paths": paths,
            **keys,
        }

    return described
