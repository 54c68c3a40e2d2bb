"""The connection to Anthropic, Bedrock or Vertex, by Anthropic's SDK."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import anthropic
import httpx2

from portico.errors import AuthenticationFailed, ConfigurationError
from portico_anthropic._wire import BINDING, VERSION
from portico_anthropic.config import AnthropicChatSettings
from portico_wire.connection import headers_of, look_at, secrets_of
from portico_wire.errors import TRANSPORT_ERRORS, Peer
from portico_wire.stainless import CopiedRequests, StainlessConnection

_NOT_SENT = ("x-stainless-timeout", "x-stainless-read-timeout")
_LIBRARIES = {"bedrock": ("boto3", "boto3"), "vertex": ("google.auth", "'portico-anthropic[vertex]'")}
"""The libraries that find credentials, and what installs them."""
_CREDENTIALS = {"bedrock": "the credentials of AWS and aws_region", "vertex": "the credentials of Google and project"}


class _Sdk(CopiedRequests):
    """The SDK's client of any of the three, without the headers that it takes from the environment."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._custom_headers: dict[str, str] = {}


class AnthropicConnection(StainlessConnection):
    """Sends to one service by Anthropic's SDK, which signs for Bedrock and fetches tokens for Vertex."""

    stream_class = anthropic.AsyncStream[Any]

    def __init__(
        self, settings: AnthropicChatSettings, kind: str, http_client: httpx2.AsyncClient | None = None
    ) -> None:
        through = settings.through
        library = None if settings.api_key or settings.auth_token else _LIBRARIES.get(through)
        if library and not _is_installed(library[0]):
            given = "an api_key" if through == "bedrock" else "an auth_token"
            raise ConfigurationError(
                f"Chat service 'anthropic' needs {library[0]} for through = {through!r} without {given}. "
                f"Run `pip install {library[1]}`."
            )
        key = settings.api_key.reveal() if settings.api_key else ""
        token = settings.auth_token.reveal() if settings.auth_token else ""
        own_headers = {
            "Content-Type": "application/json",
            "User-Agent": f"portico-anthropic/{version('portico-anthropic')} anthropic/{anthropic.__version__}",
            **({"anthropic-version": VERSION[through]} if through == "anthropic" else {}),
            **({"X-Api-Key": key} if key and through == "anthropic" else {}),
            **({"Authorization": f"Bearer {token}"} if token else {}),
            **headers_of(settings),
        }
        if settings.preserves_thinking and through != "bedrock":
            name = next((name for name in own_headers if name.lower() == "anthropic-beta"), "anthropic-beta")
            own_headers[name] = ",".join(filter(None, (own_headers.get(name), BINDING)))
        self.omitted = dict.fromkeys(_NOT_SENT, anthropic.Omit())
        if not any(name.lower() in {"authorization", "x-api-key"} for name in own_headers):
            # The SDK requires one unless it is omitted explicitly.
            self.omitted["Authorization"] = anthropic.Omit()
        secrets = (
            *secrets_of(settings),
            settings.auth_token,
            settings.aws_access_key,
            settings.aws_secret_key,
            settings.aws_session_token,
        )
        peer = Peer(
            kind,
            "anthropic",
            "Anthropic",
            settings.model,
            settings.base_url,
            settings.host,
            bool(key or token or library),
            secrets,
            (anthropic.AnthropicError, *TRANSPORT_ERRORS),
            ("anthropic", "anthropic._base_client"),
            key="api_key" if key else "auth_token" if token else _CREDENTIALS.get(through, "api_key"),
        )
        options = {
            # A signature belongs to one body; an injected HTTP client may add to each request.
            "copies": http_client is None and through == "anthropic",
            "base_url": settings.base_url,
            "max_retries": settings.max_retries,
            # `Incoming` bounds the waiting.
            "timeout": httpx2.Timeout(None, connect=settings.connect_timeout),
            "default_query": settings.query,
            "open_telemetry": False,
            **_who_asks(settings, key),
        }
        sdk = _client_class(through)

        def make() -> Any:
            own = http_client or anthropic.DefaultAioHttpClient(event_hooks={"response": [look_at]})
            return sdk(own_headers, http_client=own, **options)

        self._looks_for_credentials = library is not None
        super().__init__(settings, peer, make, http_client)

    async def send(self, sdk: Any, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        """Post ``body``; raises ``AuthenticationFailed`` where Amazon's or Google's library finds no credentials."""
        try:
            return await super().send(sdk, path, body, headers)
        except Exception as error:
            # What Amazon's and Google's libraries raise have no class in common.
            if not self._looks_for_credentials or self._clients.closed or isinstance(error, self.peer.errors):
                raise
            said = self.peer.shorten(str(error))
            raise AuthenticationFailed(self.peer.says(f"was not asked: {said}. Look at {self.peer.key}.")) from error


def _who_asks(settings: AnthropicChatSettings, key: str) -> dict[str, Any]:
    """Return the SDK's options that say who asks. Empty strings, since it reads the environment for None."""

    def revealed(name: str) -> str | None:
        secret = getattr(settings, name)
        return secret.reveal() if secret else None

    match settings.through:
        case "bedrock":
            names = ("aws_access_key", "aws_secret_key", "aws_session_token")
            who = {name: revealed(name) for name in names}
            return {
                "api_key": key or revealed("auth_token"),
                "aws_region": settings.aws_region,
                "aws_profile": settings.aws_profile,
                **who,
            }
        case "vertex":
            return {"project_id": settings.project, "region": settings.region, "access_token": revealed("auth_token")}
    return {"api_key": "", "webhook_key": ""}


def _client_class(through: str) -> Any:
    base: type = anthropic.AsyncAnthropic
    if through == "bedrock":
        base = anthropic.AsyncAnthropicBedrock
    elif through == "vertex":
        base = anthropic.AsyncAnthropicVertex
    return type("Client", (_Sdk, base), {})


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False
