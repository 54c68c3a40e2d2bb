"""Calling one operation: from arguments to a request, and from the answer to a result."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import httpx

from portico.errors import (
    ArgumentsInvalid,
    AuthenticationFailed,
    ConfigurationError,
    LimitExceeded,
    ResponseInvalid,
    ServiceError,
)
from portico.plugins import HttpResponse, Secret
from portico_openapi._bodies import Body
from portico_openapi._client import LOGGERS, Client, Outgoing, no_answer
from portico_openapi._errors import Unusable, show
from portico_openapi._parameters import Parts, Sent
from portico_openapi._responses import RequestFailed, Responses
from portico_openapi._security import Credentials, Scheme
from portico_openapi._servers import Server, origin_of
from portico_openapi._styles import Unwritable, percent
from portico_openapi.config import OpenAPISettings

_LONGEST_WAIT = 30.0
"""Seconds: a service that asks for a longer pause gets no second request; the call fails."""

_FIRST_WAIT = 0.5
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_KEPT_IN_A_PATH = "/%:@!$&'()*+,;=?[]"


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """What the function of an operation calls; arguments are JSON values by the names of its parameters."""

    name: str
    label: str
    method: str
    path: str
    sent: tuple[Sent, ...]
    body: Body | None
    responses: Responses
    server: Server | str
    """The server, or why there is none."""
    schemes: tuple[Scheme, ...]
    trusted: bool
    """Whether it goes to the origin that secrets may go to."""
    lacking: str | None
    """Why it cannot be called: credentials that are missing, or may not go where it goes."""
    effects: bool
    client: Client
    credentials: Credentials
    settings: OpenAPISettings

    @property
    def _label(self) -> str:
        return f"{self.name} ({self.label})"

    async def __call__(self, /, **arguments: Any) -> Any:
        """Call the operation and return its result as JSON. Raises ``ArgumentsInvalid`` and ``ServiceError``."""
        if self.lacking is not None:
            raise AuthenticationFailed(f"{self._label} was not called: {self.lacking}")
        if isinstance(self.server, str):
            raise ConfigurationError(
                f"{self._label} was not called: there is no server to call: {self.server}. "
                'Set `server = "https://…"` in the settings of the plugin.'
            )
        with Secret.hiding(self.credentials.hidden, LOGGERS):
            answer = await self._send(self._request(self.server, arguments), self.server)
            label = answer.headers.get("content-type", "")
            try:
                return None if self.method == "head" else self.responses.value(label, answer.body)
            except ValueError as error:
                advice = f"Expected JSON, got {show(label) or 'an answer without a label'}."
                hidden = self.credentials.hidden
                raise answer.error(self._label, ResponseInvalid, hidden=hidden, advice=advice) from error

    def _request(self, server: Server, arguments: Mapping[str, Any]) -> Outgoing:
        """Make the request. Raises ``ArgumentsInvalid`` with everything that cannot be sent."""
        parameters = [*(one.parameter for one in self.sent), *(self.body.parameters if self.body else ())]
        names = {one.name for one in parameters}
        faults = [f"{one.name}: missing" for one in parameters if one.required and one.name not in arguments]
        faults += [f"{name}: unknown" for name in arguments if name not in names]
        parts = Parts({}, [], [], [])
        for sent in self.sent:
            name = sent.parameter.name
            if name in arguments:
                try:
                    sent.write(arguments[name], parts)
                except Unwritable as error:
                    faults.append(f"{name}: {error}")
        body = None
        if self.body is not None:
            try:
                body = self.body.write(arguments)
            except Unwritable as error:
                faults.append(f"{self.body.argument_of(error.member)}: {error}")
        path = "" if faults else self._path(parts.path, faults)
        if faults:
            raise ArgumentsInvalid(self.name, faults)
        media_type, content = body or (None, None)
        query = f"{'&' if '?' in path else '?'}{'&'.join(parts.query)}" if parts.query else ""
        secrets = [(one.key, self.credentials.secret_of(one)) for one in self.schemes if one.place == "query"]
        return Outgoing(
            self.method.upper(),
            f"{server.url}{path}{query}",
            self._headers(parts, media_type),
            content,
            tuple(f"{percent(key)}={percent(secret)}" for key, secret in secrets),
        )

    def _path(self, values: Mapping[str, str], faults: list[str]) -> str:
        """Put the values in their places. None may make a segment that leads out of the path."""
        path = _VARIABLE.sub(lambda found: values[found[1]], self.path)
        for segment in path.partition("?")[0].split("/") if values else ():
            words = re.split(r"[/\\]", unquote(segment))
            if ".." in words or words == ["."]:
                name = next((name for name, value in values.items() if value in segment), "path")
                argument = next((sent.parameter.name for sent in self.sent if sent.name == name), name)
                faults.append(f"{argument}: {show(unquote(segment))!r} in a path would lead elsewhere")
        return path

    def _headers(self, parts: Parts, content_type: str | None) -> tuple[tuple[str, str], ...]:
        given = [("Accept", self.responses.accept)]
        given += self.credentials.fixed_headers() if self.trusted else []
        given += parts.headers
        cookies = list(parts.cookies)
        for scheme in self.schemes:
            if scheme.place == "header":
                given.append((scheme.key, self.credentials.secret_of(scheme)))
            elif scheme.place == "cookie":
                cookies.append(f"{scheme.key}={percent(self.credentials.secret_of(scheme))}")
        given += [("Content-Type", content_type)] if content_type is not None else []
        # Of several headers of one name the last counts.
        headers = {name.casefold(): (name, value) for name, value in given}
        if cookies:
            fixed = [headers["cookie"][1]] if "cookie" in headers else []
            headers["cookie"] = ("Cookie", "; ".join([*fixed, *cookies]))
        return tuple(headers.values())

    async def _send(self, request: Outgoing, server: Server) -> HttpResponse:
        """Send a request until it is answered well, as often as its effects and the settings allow."""
        settings = self.settings
        attempt = 0
        while True:
            # A spread keeps many callers from coming back at the same moment.
            wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1)
            try:
                answer, _ = await self.client.send(
                    request,
                    seconds=settings.timeout,
                    maximum_bytes=settings.maximum_response_bytes,
                    may_follow=lambda target: origin_of(target) == server.origin,
                )
            except Unusable as problem:
                raise ServiceError(f"{self._label} failed: {problem}. If the service moved, set `server`.") from problem
            except LimitExceeded as problem:
                message = f"The answer to {self._label} is too large: {problem}; maximum_response_bytes allows more."
                raise LimitExceeded(message) from problem
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as failure:
                error = no_answer(self._label, server.url, failure, settings.timeout, self.credentials.hidden)
                error.__cause__ = failure
                late = isinstance(failure, TimeoutError | httpx.TimeoutException)
                passing = isinstance(failure, _NEVER_SENT) or not (self.effects or late)
            else:
                if answer.status < 400:
                    return answer
                advice = "Check the arguments." if answer.status in (400, 404, 409, 422) else None
                error = answer.error(self._label, hidden=self.credentials.hidden, advice=advice)
                if type(error) is ServiceError:
                    error = RequestFailed(str(error), status=answer.status)
                passing = answer.status in _PASSING and not self.effects
                asked = HttpResponse.retry_after(answer.headers)
                wait = wait if asked is None else asked
            if not passing or attempt == settings.retries or wait > _LONGEST_WAIT:
                raise error
            await asyncio.sleep(wait)
            attempt += 1


def encode_path(path: str) -> str:
    """Return a document's path as it is sent: percent-encoded outside of its variables, without a fragment."""
    parts = re.split(r"(\{[^{}]*\})", path.partition("#")[0])
    return "".join(part if number % 2 else quote(part, safe=_KEPT_IN_A_PATH) for number, part in enumerate(parts))
