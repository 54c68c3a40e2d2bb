"""Failures as core's errors. Each names the service, the model and the host, and says what to do."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2
import msgspec

from portico.errors import (
    AuthenticationFailed,
    ContentRefused,
    ContextOverflow,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.plugins import Secret

TRANSPORT_ERRORS = (httpx2.HTTPError, aiohttp.ClientError, OSError)
"""Errors of the transports of SDKs; ``TimeoutError`` is an ``OSError``."""

_SHOWN = 300
_FILTERED = {
    "bio_policy",
    "content_filter",
    "content_policy_violation",
    "image_content_policy_violation",
    "invalid_prompt",
    "misalignment_policy_violation",
    "responsibleaipolicyviolation",
}
_OVERFLOWN = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "max_tokens_per_request",
    "string_above_max_length",
}
# A response that failed has only a code: these are of what was sent.
_MISTAKEN = re.compile(r"(invalid|unsupported|empty|failed_to_download)_.*|image_.*")
_OUT_OF_CREDIT = {
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "insufficient_quota",
    "linked_organization_spend_limit_reached",
}
_NO_CREDIT_WORDS = re.compile(r"credit balance is too low", re.IGNORECASE)
_STATUS = {
    "invalid_request_error": 400,
    "validationexception": 400,
    "authentication_error": 401,
    "accessdeniedexception": 403,
    "permission_error": 403,
    "not_found_error": 404,
    "modeltimeoutexception": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "throttlingexception": 429,
}
"""The statuses that errors would have, Anthropic's and Bedrock's among them, had they come before the reply."""
# Ollama, vLLM, LM Studio, older llama.cpp and OpenAI's embeddings give no code for it.
_OVERFLOW_WORDS = re.compile(
    r"max(imum)? (context|model|input) (length|tokens)|exceed\w* (the )?(available |max )?context"
    r"|(context|input) (size|length)( has been)? exceed|context the overflows|greater than the context length"
    r"|token count .{0,40}exceeds the maximum|too (large|long) to process|(prompt|input) (is )?too long"
    r"|reduce the length of",
    re.IGNORECASE,
)
# llama.cpp fails with 500 where a model lacks something.
_UNSUPPORTED_WORDS = re.compile(r"\bnot (supported|implemented)\b|\bunsupported\b", re.IGNORECASE)
# Of a model that sees no images: llama.cpp, Ollama, vLLM, OpenAI, Mistral, LM Studio, OpenRouter, Z.ai. DeepSeek and
# Groq only say that a message should be one text, which is a list where there is an image.
_NO_IMAGES_WORDS = re.compile(
    r"\b(image(_url)?|vision|multi-?modal)( inputs?| content)? (is|are) (not|only) (supported|enabled|available)"
    r"|(not|n['’]t|that) support (images?|vision|multi-?modal)\b(?! (type|format|size|generation))"
    r"|missing data required for image|not a multi-?modal model|at most 0 image|only '?text'? content type is supported"
    r"|unknown variant `?image_url|untagged enum ChatCompletionRequestContent|sequence, expected a string"
    r"|content must be a string",
    re.IGNORECASE,
)
_NO_MODEL_WORDS = re.compile(r"\b(models?|deployment)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Peer:
    """The service, for messages; they never show ``secrets``.

    ``protocol`` is whose form its answers have, ``errors`` are those of its SDK and of the transports, ``loggers``
    those of the SDK, ``key`` is what to look at where it does not know who asks.
    """

    kind: str
    service: str
    protocol: str
    model: str
    base_url: str
    host: str
    has_key: bool = False
    secrets: tuple[Secret | None, ...] = ()
    errors: tuple[type[BaseException], ...] = TRANSPORT_ERRORS
    loggers: tuple[str, ...] = ()
    ending: str = "/v1"
    """How ``base_url`` usually ends."""
    key: str = "api_key"

    def says(self, what: str) -> str:
        """Return a sentence about the service."""
        return f"{self.kind} {self.service!r} ({self.model} at {self.host}) {what}"

    def hiding(self) -> AbstractContextManager[None]:
        """Mask the secrets in the errors of a block, and in what the SDK logs meanwhile."""
        return Secret.hiding(self.secrets, (*self.loggers, "httpx2"))

    def shorten(self, text: str) -> str:
        """Return the readable part of an answer, on one short line."""
        title = re.search(r"<title[^>]*>(.*?)</title", text, re.IGNORECASE | re.DOTALL)
        if title and "<" in text[:100]:
            text = f"a page in HTML with the title “{title.group(1)}”"
        # Before it is cut: a part of a key would not be found.
        text = " ".join(Secret.redact(text, self.secrets).split()).rstrip(".")
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def translate_error(peer: Peer, error: BaseException, *, received: int = 0) -> ServiceError:
    """Return core's error for one of the SDK or its transport, after ``received`` bytes."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        return status_error(peer, response.status_code, response.content, response.headers)
    chain = list(_chain(error))

    def found(*kinds: type[BaseException]) -> bool:
        return any(isinstance(link, kinds) for link in chain)

    said = peer.shorten(str(chain[-1])) or type(chain[-1]).__name__
    if found(httpx2.DecodingError):
        return ResponseInvalid(peer.says(f"sent a reply whose compression is broken: {said}."))
    if found(aiohttp.ServerTimeoutError, TimeoutError):
        return ServiceTimeout(peer.says("did not accept a connection in time (connect_timeout)."))
    if found(ConnectionRefusedError) and not found(aiohttp.ClientProxyConnectionError):
        reason = f"cannot be reached: nothing listens at {peer.host}. Start the server, or correct base_url."
    elif found(aiohttp.ClientConnectorError):  # a name that is not known, TLS, a proxy
        reason = f"cannot be reached: {said}. Look at base_url, the network, and HTTPS_PROXY if there is a proxy."
    elif found(aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionError):
        progress = f"after {received:,} bytes of the reply" if received else "before it answered"
        reason = f"broke the connection off {progress}. Try again; if it happens again, look at the server's log."
    elif found(aiohttp.ClientResponseError, aiohttp.http_exceptions.HttpProcessingError):
        return ResponseInvalid(peer.says(f"does not answer in HTTP: {said}. Look at base_url."))
    elif found(httpx2.TimeoutException):
        return ServiceTimeout(peer.says("did not answer in time."))
    else:
        reason = f"cannot be reached: {said}."
    return ServiceUnavailable(peer.says(reason))


def timeout_error(peer: Peer, seconds: float, setting: str, *, received: int = 0) -> ServiceTimeout:
    """Return the error for our own bound on time."""
    progress = f"fell silent after {received:,} bytes of its reply" if received else "did not answer"
    return ServiceTimeout(peer.says(f"{progress}: {seconds:g} s have passed ({setting})."))


def invalid(peer: Peer, what: str, excerpt: bytes | str = b"") -> ResponseInvalid:
    """Return the error for a reply of another format, with its beginning."""
    beginning = excerpt[:4096]
    text = beginning.decode("utf-8", "replace") if isinstance(beginning, bytes) else beginning
    shown = f": {peer.shorten(text)}" if text.strip() else ""
    advice = ". Look at base_url." if shown.startswith((": a page in HTML", ": <")) else ""
    return ResponseInvalid(peer.says(f"{what}{shown}{advice}"))


def status_error(peer: Peer, status: int, body: bytes, headers: Mapping[str, str]) -> ServiceError:
    """Return the error for an answer with a status other than 2xx."""
    if 300 <= status < 400:
        # A redirect would send the conversation to an address that is not configured.
        location = headers.get("location", "somewhere else")
        return ServiceError(
            peer.says(f"redirects to {peer.shorten(location)}. Set base_url to the service's new address.")
        )
    try:
        error = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        error = body[:4096].decode("utf-8", "replace")
    return _classify(peer, status, error, headers)


def reported_error(peer: Peer, error: Any) -> ServiceError:
    """Return the error for an ``error`` object that came with status 200, whole or inside of a stream."""
    _, names = _words_and_names(error)
    status = next((int(name) for name in names if name.isdecimal() and len(name) == 3), 500)
    status = next((_STATUS[name] for name in sorted(names & _STATUS.keys())), status)
    if names & _OUT_OF_CREDIT:
        status = 429
    elif status == 500 and any(map(_MISTAKEN.fullmatch, names)):
        status = 400
    return _classify(peer, status, error, {})


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, given as milliseconds, seconds or a date (RFC 9110, 10.2.3), or None."""
    for header, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(header)
        if value is None:
            continue
        try:
            seconds = float(value) / divisor
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def wait_asked(body: bytes, headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that an answer asks for: in its headers, or as Google does, in its body."""
    wait = retry_after(headers)
    if wait is None and b'"retryDelay"' in body:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _retry_delay(msgspec.json.decode(body))
    return wait


def _retry_delay(body: Any) -> float | None:
    for detail in _details(_inner(body)):
        with suppress(ValueError, TypeError):
            seconds = float(str(detail["retryDelay"]).removesuffix("s")) if "retryDelay" in detail else math.nan
            if math.isfinite(seconds):
                return max(0.0, seconds)
    return None


def _details(error: Any) -> list[dict[str, Any]]:
    """Return what Google writes beside the message: the reason, the quota, the time to wait."""
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _inner(body: Any) -> Any:
    """Return the error itself: some servers put it into a list of one, most into a member ``error``."""
    body = body[0] if isinstance(body, list) and body else body
    return (body.get("error") or body) if isinstance(body, dict) else body


def _words_and_names(body: Any) -> tuple[str, frozenset[str]]:
    """Return the message of an error, and its codes and types in lower case.

    Servers use several forms: OpenAI's, Google's, a bare text, FastAPI's ``detail``, a list of one.
    """
    error = _inner(body)
    codes: list[Any] = []
    words = error
    if isinstance(error, dict):
        words = error.get("message") or error.get("detail") or error.get("error") or error
        if wrote := error.get("failed_generation"):
            words = f"{words} It wrote: {wrote}"
        # Azure and OpenRouter tell of their filters beside the code.
        inner, details, metadata = error.get("innererror"), error.get("details"), error.get("metadata")
        codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
        codes += [error.get("status"), *(detail.get("reason") for detail in _details(error))]
        # Anthropic's type is broad, and its code says more.
        codes += [details.get("error_code")] if isinstance(details, dict) else []
        if isinstance(metadata, dict) and "flagged_input" in metadata:
            codes.append("content_filter")
    names = frozenset(str(code).lower() for code in codes if isinstance(code, str | int))
    return words if isinstance(words, str) else msgspec.json.encode(words).decode(), names


def _classify(peer: Peer, status: int, error: Any, headers: Mapping[str, str]) -> ServiceError:
    said, names = _words_and_names(error)
    words = peer.shorten(said) or f"status {status}"
    if names & _FILTERED:
        return ContentRefused(peer.says(f"filtered the request: {words}"))
    if names & _OUT_OF_CREDIT or status == 402 or _NO_CREDIT_WORDS.search(words):
        advice = f"has no credit left for this key: {words}. Waiting does not help: add credit, or use another key."
        return RateLimited(peer.says(advice)) if status == 429 else ServiceError(peer.says(advice))
    if status == 429:
        wait = retry_after(headers)
        wait = _retry_delay(error) if wait is None else wait
        advice = "later" if wait is None else f"in {wait:,.0f} s" if wait >= 10 else f"in {wait:g} s"
        return RateLimited(peer.says(f"asks for fewer requests: {words}. Try again {advice}."), retry_after=wait)
    # Google says so with status 400.
    if status in {401, 403} or "api_key_invalid" in names:
        advice = f"Look at {peer.key}." if peer.has_key else "No api_key is set."
        return AuthenticationFailed(peer.says(f"refused the key ({status}): {words}. {advice}"))
    if status == 413 or names & _OVERFLOWN or _OVERFLOW_WORDS.search(words):
        return ContextOverflow(peer.says(f"cannot take a request of this length: {words}. Send less at once."))
    if status in {400, 404, 415, 422, 500, 501} and _NO_IMAGES_WORDS.search(words):
        return ServiceError(
            peer.says(
                f"takes text and no images with this model ({status}): {words}. "
                "Send text only, or choose a model that sees images."
            )
        )
    if status == 404:
        if "model_not_found" in names or _NO_MODEL_WORDS.search(words):
            return ServiceError(peer.says(f"has no model {peer.model!r} at {peer.base_url}: {words}. Correct model."))
        return ServiceError(
            peer.says(f"has nothing at {peer.base_url}: {words}. base_url usually ends in {peer.ending}.")
        )
    if "tool_use_failed" in names:  # Groq reads the calls itself, and finds none where one must be.
        return ResponseInvalid(peer.says(f"could not read what the model wrote as a tool's call ({status}): {words}"))
    if status == 408:
        return ServiceTimeout(peer.says(f"took too long: {words}"))
    if status in {500, 501} and _UNSUPPORTED_WORDS.search(words):
        return ServiceError(peer.says(f"refused the request ({status}): {words}"))
    if status == 409 or status >= 500:
        return ServiceUnavailable(peer.says(f"failed ({status}): {words}. Try again later."))
    return ServiceError(peer.says(f"refused the request ({status}): {words}"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        # aiohttp keeps the error of the operating system beside its own.
        error = error.__cause__ or getattr(error, "os_error", None)
