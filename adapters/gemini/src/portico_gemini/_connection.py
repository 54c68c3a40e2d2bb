"""The connection to Gemini: Google's SDK says where a request goes and with which key, and portico-wire sends it.

The SDK itself cannot send: it keeps no ``Retry-After``, tries again at other times than the settings say, and reads an
error however long it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from urllib.parse import urlencode

import google.auth.exceptions
import httpx2
from google.genai import __version__
from google.genai._api_client import BaseApiClient
from google.genai.types import HttpOptions

from portico.errors import AuthenticationFailed, ServiceUnavailable
from portico_gemini.config import GeminiSettings
from portico_wire.connection import headers_of, secrets_of
from portico_wire.errors import TRANSPORT_ERRORS, Peer
from portico_wire.sending import Poster, PostingConnection

_KEY = "x-goog-api-key"


class GeminiConnection(PostingConnection):
    """Sends to the Gemini API, or to Vertex."""

    def __init__(self, settings: GeminiSettings, kind: str, http_client: httpx2.AsyncClient | None = None) -> None:
        peer = Peer(
            kind,
            "gemini",
            "Gemini",
            settings.model,
            settings.address,
            settings.host,
            settings.api_key is not None or settings.through == "vertex",
            tuple(secrets_of(settings)),
            TRANSPORT_ERRORS,
            ("google_genai", "google.auth"),
            key="api_key" if settings.api_key is not None else "the credentials of Google Cloud",
            ending="/v1beta1" if settings.through == "vertex" else "/v1beta",
        )
        super().__init__(settings, peer, partial(Poster, settings.connect_timeout, http_client), http_client)
        self._gemini = settings
        self._sdk: BaseApiClient | None = None
        self._requests: dict[str, tuple[str, dict[str, str]]] = {}
        self._own_headers = headers_of(settings)

    def path(self, method: str) -> str:
        """Return what follows the address for a method of the model."""
        model = self._gemini.model
        if self._gemini.through == "developer":
            return f"{model if '/' in model else f'models/{model}'}:{method}"
        if model.startswith(("projects/", "publishers/", "models/")):
            return f"{model}:{method}"
        publisher, _, name = model.rpartition("/")
        return f"publishers/{publisher or 'google'}/models/{name}:{method}"

    async def address(self, path: str) -> tuple[str, Mapping[str, str]]:
        """Return the URL of ``path`` and the headers of a request to it, the key among them."""
        sdk = self._sdk or await self._begin()
        known = self._requests.get(path)
        if known is None:
            known = self._requests[path] = self._build(sdk, path)
        url, headers = known
        if self._gemini.through == "vertex" and self._gemini.api_key is None and "authorization" not in headers:
            headers = {**headers, **await self._credentials(sdk)}
        return url, headers

    async def _begin(self) -> BaseApiClient:
        settings = self._gemini
        cloud = settings.through == "vertex" and bool(settings.project)
        sdk = BaseApiClient(
            vertexai=settings.through == "vertex",
            # The SDK would read the environment for None.
            api_key=settings.api_key.reveal() if settings.api_key else None if cloud else "none",
            project=settings.project if cloud else None,
            location=settings.location if cloud else None,
            http_options=HttpOptions(base_url=settings.address, api_version=""),
        )
        # Its own HTTP clients are not used.
        sdk.close()
        await sdk.aclose()
        self._sdk = sdk
        return sdk

    def _build(self, sdk: BaseApiClient, path: str) -> tuple[str, dict[str, str]]:
        query = urlencode(self._gemini.query)
        built = sdk._build_request("post", f"{path}{'&' if '?' in path else '?'}{query}" if query else path, {})  # noqa: SLF001
        # The SDK tells of the machine that it runs on.
        headers = httpx2.Headers(
            {"User-Agent": f"portico-gemini/{version('portico-gemini')} google-genai/{__version__}"}
        )
        headers["Content-Type"] = "application/json"
        if self._gemini.api_key is not None:
            headers[_KEY] = built.headers[_KEY]
        headers.update(self._own_headers)
        return built.url, dict(headers.items())

    async def _credentials(self, sdk: BaseApiClient) -> dict[str, str]:
        """Return the headers of Google Cloud's credentials, which the SDK finds and renews."""
        try:
            token = await sdk._async_access_token()  # noqa: SLF001
        except google.auth.exceptions.GoogleAuthError as error:
            # Google adds what its server sent as a second argument.
            said = self.peer.shorten(str(error.args[0] if error.args else error))
            if isinstance(error, google.auth.exceptions.TransportError):
                raise ServiceUnavailable(
                    self.peer.says(f"was not asked: Google gave no credentials: {said}.")
                ) from error
            advice = "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS."
            what = f"was not asked for want of Google Cloud's credentials: {said}. {advice}"
            raise AuthenticationFailed(self.peer.says(what)) from error
        quota = getattr(sdk._credentials, "quota_project_id", None)  # noqa: SLF001
        return {"Authorization": f"Bearer {token}", **({"x-goog-user-project": quota} if quota else {})}
