"""The connection to a service that speaks OpenAI's protocol, by OpenAI's SDK."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import httpx2
import openai

from portico_openai.config import OpenAISettings
from portico_wire.connection import headers_of, look_at, secrets_of
from portico_wire.errors import TRANSPORT_ERRORS, Peer
from portico_wire.stainless import CopiedRequests, StainlessConnection


class _Sdk(CopiedRequests, openai.AsyncOpenAI):
    pass


class OpenAIConnection(StainlessConnection):
    """Sends to one service by OpenAI's SDK."""

    stream_class = openai.AsyncStream[Any]

    def __init__(self, settings: OpenAISettings, kind: str, http_client: httpx2.AsyncClient | None = None) -> None:
        key = settings.api_key.reveal() if settings.api_key else ""
        headers = headers_of(settings)
        by_header = settings.api_key_header.lower() != "authorization"
        own_scheme = any(name.lower() == "authorization" for name in headers)
        bearer = "" if by_header else key
        # The SDK requires this header unless it is omitted explicitly.
        self.omitted = {} if bearer or own_scheme else {"Authorization": openai.Omit()}
        own_headers = {
            "Content-Type": "application/json",
            "User-Agent": f"portico-openai/{version('portico-openai')} openai/{openai.__version__}",
            **({settings.api_key_header: key} if by_header and key else {}),
            **headers,
        }
        peer = Peer(
            kind,
            "openai",
            "OpenAI",
            settings.model,
            settings.base_url,
            settings.host,
            bool(key),
            tuple(secrets_of(settings)),
            (openai.OpenAIError, *TRANSPORT_ERRORS),
            ("openai", "openai._base_client"),
        )

        def make() -> openai.AsyncOpenAI:
            return _Sdk(
                own_headers,
                # An injected HTTP client may add to each request.
                copies=http_client is None,
                # Empty strings, since the SDK reads the environment for None.
                api_key=bearer,
                admin_api_key="",
                organization="",
                project="",
                webhook_secret="",
                base_url=settings.base_url,
                max_retries=settings.max_retries,
                # `Incoming` bounds the waiting.
                timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
                default_query=settings.query,
                http_client=http_client or openai.DefaultAioHttpClient(event_hooks={"response": [look_at]}),
            )

        super().__init__(settings, peer, make, http_client)
