"""Calling one operation: from arguments to a request, and from the answer to a result."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from portico_openapi._bodies import Body
from portico_openapi._client import MOST_REDIRECTS, Answer, Client, Outgoing
from portico_openapi._parameters import Parts, Sent
from portico_openapi._responses import Responses, no_answer, refusal, retry_after, words_of
from portico_openapi._security import Credentials, Scheme
from portico_openapi._servers import NoServer, Server, joined, origin_of, shown_origin
from portico_openapi._styles import Unwritable, percent
from portico_openapi._wrong import shown

LONGEST_WAIT = 30.0
"""Seconds: a service that asks for a longer pause gets no second request; the caller is told."""

_FIRST_WAIT = 0.5
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_KEPT_IN_A_PATH = "/%:@!$&'()*+,;=?[]"


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is known of an operation before it is called."""

    name: str
    label: str
    method: str
    path: str
    sent: tuple[Sent, ...]
    body: Body | None
    responses: Responses
    server: Server | NoServer
    schemes: tuple[Scheme, ...]
    trusted: bool
    """Whether it goes to the origin that secrets may go to."""
    lacking: str | None
    """Why it cannot be called: credentials that are missing, or may not go where it goes."""
    effects: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """What the calls of one plugin share."""

    client: Client
    credentials: Credentials
    timeout: float
    retries: int
    maximum_bytes: int


class Call:
    """What the function of an operation calls; arguments are JSON values by the names of its parameters."""

    def __init__(self, plan: Plan, caller: Caller) -> None:
        self._plan = plan
        self._caller = caller
        self._said = f"{plan.name} ({plan.label})"
        parameters = [*(sent.parameter for sent in plan.sent), *(plan.body.parameters if plan.body else ())]
        self._required = {parameter.name: parameter.required for parameter in parameters}

    async def __call__(self, /, **arguments: Any) -> Any:
        """Call the operation and return its result as JSON. Raises ``ArgumentsInvalid`` and ``ServiceError``."""
        plan = self._plan
        if plan.lacking is not None:
            raise AuthenticationFailed(f"{self._said} was not called: {plan.lacking}")
        if isinstance(plan.server, NoServer):
            raise ConfigurationError(
                f"{self._said} was not called: there is no server to call: {plan.server.reason}. "
                'Set `server = "https://…"` in the settings of the plugin.'
            )
        answer = await self._answered(self._request(plan.server, arguments), plan.server)
        label = answer.headers.get("content-type", "")
        try:
            return None if plan.method == "head" else plan.responses.value(label, answer.content)
        except ValueError as error:
            words = self._caller.credentials.scrub(words_of(label, answer.content))
            message = f"{self._said} failed: expected JSON, got {shown(label) or 'an answer without a label'}: {words}"
            raise ResponseInvalid(message, text=words) from error

    def _request(self, server: Server, arguments: Mapping[str, Any]) -> Outgoing:
        """Make the request. Raises ``ArgumentsInvalid`` with everything that cannot be sent."""
        faults = [f"{name}: missing" for name, needed in self._required.items() if needed and name not in arguments]
        faults += [f"{name}: unknown" for name in arguments if name not in self._required]
        parts = Parts({}, [], [], [])
        for sent in self._plan.sent:
            name = sent.parameter.name
            if name in arguments:
                try:
                    sent.write(arguments[name], parts)
                except Unwritable as error:
                    faults.append(f"{name}: {error}")
        body = self._body(arguments, faults)
        path = "" if faults else self._path(parts.path, faults)
        if faults:
            raise ArgumentsInvalid(self._plan.name, faults)
        url = f"{server.url}{path}"
        if parts.query:
            url += f"{'&' if '?' in path else '?'}{'&'.join(parts.query)}"
        return Outgoing(
            self._plan.method.upper(),
            url,
            self._headers(parts, body[0] if body else None),
            body[1] if body else None,
            self._secret_query(),
        )

    def _body(self, arguments: Mapping[str, Any], faults: list[str]) -> tuple[str, bytes] | None:
        body = self._plan.body
        if body is None:
            return None
        try:
            return body.write(arguments)
        except Unwritable as error:
            faults.append(f"{body.argument_of(error.member)}: {error}")
            return None

    def _path(self, values: Mapping[str, str], faults: list[str]) -> str:
        """Put the values in their places. None may make a segment that leads out of the path."""
        path = _VARIABLE.sub(lambda found: values[found[1]], self._plan.path)
        for segment in path.partition("?")[0].split("/") if values else ():
            words = re.split(r"[/\\]", unquote(segment))
            if ".." in words or words == ["."]:
                name = next((name for name, value in values.items() if value in segment), "path")
                argument = next((sent.parameter.name for sent in self._plan.sent if sent.name == name), name)
                faults.append(f"{argument}: {shown(unquote(segment))!r} in a path would lead elsewhere")
        return path

    def _headers(self, parts: Parts, content_type: str | None) -> tuple[tuple[str, str], ...]:
        credentials = self._caller.credentials
        headers = {"accept": ("Accept", self._plan.responses.accept)}
        if self._plan.trusted:
            headers |= {name.casefold(): (name, value) for name, value in credentials.fixed_headers()}
        headers |= {name.casefold(): (name, value) for name, value in parts.headers}
        cookies = list(parts.cookies)
        for scheme in self._plan.schemes:
            if scheme.place == "header":
                headers[scheme.key.casefold()] = (scheme.key, credentials.secret_of(scheme))
            elif scheme.place == "cookie":
                cookies.append(f"{scheme.key}={percent(credentials.secret_of(scheme))}")
        if content_type is not None:
            headers["content-type"] = ("Content-Type", content_type)
        if cookies:
            given = [headers["cookie"][1]] if "cookie" in headers else []
            headers["cookie"] = ("Cookie", "; ".join([*given, *cookies]))
        return tuple(headers.values())

    def _secret_query(self) -> tuple[str, ...]:
        secrets = [(scheme.key, self._caller.credentials.secret_of(scheme)) for scheme in self._plan.schemes
                   if scheme.place == "query"]  # fmt: skip
        return tuple(f"{percent(key)}={percent(secret)}" for key, secret in secrets)

    async def _answered(self, request: Outgoing, server: Server) -> Answer:
        """Send a request until it is answered well, as often as its effects and the settings allow."""
        attempt = 0
        while True:
            error, wait = None, None
            try:
                answer = await self._redirected(request, server)
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as failure:
                error = self._no_answer(failure, server)
                unsent = isinstance(failure, _NEVER_SENT)
                late = isinstance(failure, TimeoutError | httpx.TimeoutException)
                passing = unsent or not (self._plan.effects or late)
            else:
                if answer.status < 400:
                    return answer
                error = refusal(
                    self._said, answer.status, answer.headers, answer.content, self._caller.credentials.scrub
                )
                passing = answer.status in _PASSING and not self._plan.effects
                wait = retry_after(answer.headers)
            if wait is None:
                # A spread keeps many callers from coming back at the same moment.
                wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1)
            if not passing or attempt == self._caller.retries or wait > LONGEST_WAIT:
                raise error
            await asyncio.sleep(wait)
            attempt += 1

    def _no_answer(self, failure: Exception, server: Server) -> ServiceError:
        error = no_answer(self._said, shown_origin(server.url), failure, self._caller.timeout)
        error.__cause__ = failure
        return error

    async def _redirected(self, request: Outgoing, server: Server) -> Answer:
        """Send a request and follow its redirects, as long as they stay at the server's origin."""
        caller = self._caller
        for _ in range(MOST_REDIRECTS + 1):
            try:
                answer = await caller.client.exchange(
                    request, seconds=caller.timeout, maximum_bytes=caller.maximum_bytes
                )
            except LimitExceeded as error:
                message = f"The answer to {self._said} is too large: {error}; maximum_response_bytes allows more."
                raise LimitExceeded(message) from error
            location = answer.headers.get("location")
            if answer.status not in (301, 302, 303, 307, 308) or location is None:
                return answer
            request = self._following(request, answer.status, location, server)
        raise ServiceError(f"{self._said} failed: it redirects more than {MOST_REDIRECTS} times.")

    def _following(self, request: Outgoing, status: int, location: str, server: Server) -> Outgoing:
        """Return the request to the place that a redirect names, at the same origin. Raises ``ServiceError``."""
        target = joined(request.url, location)
        if origin_of(target) != server.origin:
            raise ServiceError(
                f"{self._said} failed: it redirects to {shown_origin(target)}, another origin: nothing is sent there. "
                "If the service has moved, set `server`."
            )
        secrets = tuple(pair for pair in request.secret_query if pair not in target)
        if status == 303 and request.method != "HEAD":
            headers = tuple(pair for pair in request.headers if pair[0].casefold() != "content-type")
            return Outgoing("GET", target, headers, None, secrets)
        if status in (301, 302) and request.content is not None:
            raise ServiceError(
                f"{self._said} failed: it redirects a {request.method}, on which many services lose the body. "
                "If the service has moved, set `server`."
            )
        return replace(request, url=target, secret_query=secrets)


def written_path(path: str) -> str:
    """Return a document's path as it is sent: percent-encoded outside of its variables, without a fragment."""
    parts = re.split(r"(\{[^{}]*\})", path.partition("#")[0])
    return "".join(part if number % 2 else quote(part, safe=_KEPT_IN_A_PATH) for number, part in enumerate(parts))
