"""What stands around every route: who asks, from where, how much, and what browsers may do with the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portico_serve._guard.addresses import Addresses
from portico_serve._guard.limits import Allowances, Limits, read_body, too_large, too_many
from portico_serve._guard.refusals import FOR_PROGRAMS, ORIGIN, Refused, failure, is_below, openai_error
from portico_serve._guard.sessions import TOKEN_VARIABLE, Sessions
from portico_serve._json import to_json

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_SAFE = ("GET", "HEAD")
_METHODS = (*_SAFE, "POST", "DELETE")
_LONGEST_PATH = 4_000
_EVENTS = "/events"
_COMPLETIONS = "/v1/chat/completions"


class Guard:
    """Let only requests through that come from a session of ours or with the token, and from no other site.

    A body is read before the application is called: it is small, or refused. At the `end`, answers that stream end.
    """

    def __init__(
        self,
        app: ASGIApp,
        addresses: Addresses,
        sessions: Sessions,
        limits: Limits | None = None,
        report: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._app, self._addresses, self._sessions = app, addresses, sessions
        self.limits = limits or Limits()
        self._report = report
        self._requests = Allowances(self.limits.requests, self.limits.requests_a_second)
        self._wrong = Allowances(self.limits.wrong_tokens, self.limits.wrong_tokens_a_second)
        self._streams: set[asyncio.Task[object]] = set()
        self._ended = False
        port = urlsplit(addresses.main).port
        # Cookies do not tell ports apart: each server has a name for its own.
        self._cookie = f"portico-{port}" if port else "portico"

    def end(self) -> None:
        """End all answers that stream, and answer no more requests."""
        self._ended = True
        for task in self._streams:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(scope["path"], send)
        try:
            await self._answer(scope, receive, answer)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._ended or task is None:
                raise
            task.uncancel()
            if answer.started:
                await answer.send({"type": "http.response.body", "body": _last_words(answer.path)})
            else:
                await answer.refuse(_ending(), scope, receive)
        except Refused as refused:
            await answer.refuse(refused, scope, receive)
        except Exception as error:
            self._report(error)
            if answer.started and not answer.complete:
                raise  # the connection is closed, so that what was sent does not look whole
            if not answer.started:
                await answer.refuse(failure(), scope, receive)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        request = Request(scope)
        if self._ended:
            raise _ending()
        origin = scope[ORIGIN] = self._look_at_target(request)
        if request.method == "GET" and answer.path == "/" and "token" in request.query_params:
            await self._log_in(request, origin)(scope, receive, answer.send)
            return
        visitor, by_token = self._visitor(request)
        if not by_token:
            self._refuse_other_sites(request, origin)
        if (seconds := self._requests.wait(visitor)) > 0:
            raise too_many(seconds, "requests")
        self._requests.take(visitor)
        body: bytes | None = b""
        if request.method not in _SAFE:
            _refuse_other_types(request, answer.path)
            if _length(request) > self.limits.body:
                raise too_large(self.limits)
            body = await read_body(receive, self.limits)
        if body is None:
            return
        if answer.path.endswith(_EVENTS) or answer.path == _COMPLETIONS:
            await self._stream(scope, _given(body, receive), answer)
        else:
            await self._app(scope, _given(body, receive), answer.send)

    async def _stream(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        if len(self._streams) >= self.limits.streams:
            words = "Too many event streams are open. Close other pages of this server."
            raise Refused(503, "TooMany", words, {"retry-after": "5"})
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._streams.add(task)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            self._streams.discard(task)

    def _look_at_target(self, request: Request) -> str:
        """Return the origin at which the request came; refuse one that is not ours, and odd paths and methods."""
        hosts = request.headers.getlist("host")
        origin = self._addresses.origin_of(hosts[0]) if len(hosts) == 1 else None
        if origin is None:
            words = "This server does not answer to that name. Use the address that `portico serve` printed"
            raise Refused(421, "WrongHost", f"{words}, or start it with --address.")
        path = request.scope["path"]
        raw = request.scope.get("raw_path", b"").lower()
        odd = not raw.startswith(b"/") or any(each in raw for each in (b"%00", b"%5c", b"\\"))
        if odd or len(raw) > _LONGEST_PATH or ".." in path.split("/") or any(each < " " for each in path):
            raise Refused(404, "NotFound", "There is nothing at this path.")
        if request.method not in _METHODS:
            allowed = ", ".join(_METHODS)
            raise Refused(405, "WrongMethod", f"The methods here are {allowed}.", {"allow": allowed})
        if request.method == "HEAD" and path.endswith(_EVENTS):
            raise Refused(405, "WrongMethod", "A stream of events has no head alone: use GET.", {"allow": "GET"})
        if "upgrade" in request.headers:
            raise Refused(400, "NoUpgrade", "This server speaks HTTP alone.")
        if {"content-length", "transfer-encoding"} <= set(request.headers):
            raise Refused(400, "Malformed", "A request has one length, not two.")
        if request.method in _SAFE and _has_body(request):
            raise Refused(400, "Malformed", f"A request with the method {request.method} has no body.")
        return origin

    def _visitor(self, request: Request) -> tuple[str, bool]:
        """Return who asks, and whether by the token of programs."""
        if "authorization" in request.headers and any(is_below(request.scope["path"], each) for each in FOR_PROGRAMS):
            scheme, _, token = request.headers["authorization"].partition(" ")
            self._refuse_many_wrong(request)
            if scheme.lower() != "bearer" or not self._sessions.is_fixed(token.strip()):
                raise self._wrong_token(request)
            return "programs", True
        session = self._sessions.find(request.cookies.get(self._cookie, ""))
        if session is None and request.method in _SAFE and is_below(request.scope["path"], "/static"):
            return _peer(request), False  # what the page of a refusal needs is no secret
        if session is None:
            words = "This browser has no session here. Open the address that `portico serve` printed in its terminal."
            if is_below(request.scope["path"], "/v1"):
                words = f"Send the token as `Authorization: Bearer`: the value of {TOKEN_VARIABLE}."
            raise Refused(401, "NoSession", words, {"www-authenticate": "Bearer"})
        return session, False

    def _log_in(self, request: Request, origin: str) -> Response:
        tokens = request.query_params.getlist("token")
        if request.headers.get("sec-fetch-mode", "navigate") != "navigate":
            raise Refused(403, "WrongOrigin", "The address with the token is for the address bar of a browser.")
        cookie = self._sessions.enter_once(tokens[0])
        if cookie is None and self._sessions.find(request.cookies.get(self._cookie, "")) is None:
            self._refuse_many_wrong(request)
            cookie = self._sessions.enter(tokens[0])
            if cookie is None:
                raise self._wrong_token(request, used=self._sessions.was_used(tokens[0]))
        # Where another site or program opened the address, a browser does not yet send the cookie on a redirect.
        if request.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            response: Response = RedirectResponse("/", 303)
        else:
            response = Response(status_code=200, headers={"refresh": "0; url=/"}, media_type="text/html")
        if cookie is not None:
            secure = origin.startswith("https:")
            response.set_cookie(self._cookie, cookie, path="/", httponly=True, samesite="strict", secure=secure)
        return response

    def _refuse_many_wrong(self, request: Request) -> None:
        if (seconds := self._wrong.wait(_guesser(request))) > 0:
            raise too_many(seconds, "wrong tokens")

    def _wrong_token(self, request: Request, *, used: bool = False) -> Refused:
        self._wrong.take(_guesser(request))
        if used or not any(is_below(request.scope["path"], each) for each in FOR_PROGRAMS):
            how = "was used already" if used else "is not the one of this server"
            words = f"The token {how}. Open the newest address that `portico serve` printed in its terminal."
            return Refused(403, "WrongToken", words)
        return Refused(
            401,
            "WrongToken",
            f"The token is wrong: it is the value of {TOKEN_VARIABLE} where the server was started."
            if self._sessions.has_fixed
            else f"This server has no token for programs: start it with the variable {TOKEN_VARIABLE}.",
            {"www-authenticate": "Bearer"},
        )

    def _refuse_other_sites(self, request: Request, origin: str) -> None:
        """Refuse what a page of another origin asks for with our cookie."""
        site = request.headers.get("sec-fetch-site", "none")
        if request.method in _SAFE:
            # A link in another page may lead here; nothing else of it may.
            if site in ("same-origin", "none") or request.headers.get("sec-fetch-mode") == "navigate":
                return
        elif request.headers.getlist("origin") == [origin] and site in ("same-origin", "none"):
            return
        raise Refused(403, "WrongOrigin", "A page of another site asked for this. Use the page of this server.")


class _Answer:
    """The answer to one request, with our headers, and how far it is."""

    def __init__(self, path: str, send: Send) -> None:
        self.path, self._send = path, send
        self.started = self.complete = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["cache-control"] = "no-cache" if is_below(self.path, "/static") else "no-store"
            message = {**message, "headers": headers.raw}
        elif message["type"] == "http.response.body":
            self.complete = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, refused: Refused, scope: Scope, receive: Receive) -> None:
        """Send a refusal, if nothing was sent yet."""
        if not self.started:
            await refused.response(self.path)(scope, receive, self.send)


def _ending() -> Refused:
    return Refused(503, "Ending", "The server ends.", {"connection": "close"})


def _last_words(path: str) -> bytes:
    """Return what ends a stream that the server breaks off: half of an answer must not look whole."""
    if path != _COMPLETIONS:
        return b""
    ending = _ending()
    return f"data: {to_json(openai_error(ending.status, ending.message, ending.kind))}\n\n".encode()


def _refuse_other_types(request: Request, path: str) -> None:
    """Refuse a body that is no JSON, as a form of another site can send it."""
    if not any(is_below(path, each) for each in FOR_PROGRAMS):
        return
    given = request.headers.getlist("content-type")
    if (_has_body(request) or given) and [each.partition(";")[0].strip().lower() for each in given] != [
        "application/json"
    ]:
        raise Refused(415, "NotJSON", "Send JSON, with the header `Content-Type: application/json`.")


def _has_body(request: Request) -> bool:
    return _length(request) > 0 or "transfer-encoding" in request.headers


def _length(request: Request) -> int:
    value = request.headers.get("content-length", "0")
    return int(value) if value.isdecimal() else 0


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _guesser(request: Request) -> str:
    """Return whose wrong tokens count together: pages of other sites must not use up what programs here may try."""
    own = request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    return _peer(request) if own else f"pages at {_peer(request)}"


def _given(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body that was read, and then waits for the client to go away."""
    waiting = [body]

    async def give() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return give
