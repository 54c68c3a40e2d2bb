"""The SDKs that Stainless makes, OpenAI's and Anthropic's: their retries and keys without their models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from portico_wire.connection import Connection
from portico_wire.sending import AT_ONCE, Portions


class CopiedRequests:
    """A mixin of an SDK's client, without what it reads from the environment and sends about this machine.

    With ``copies``, the SDK builds only the first request of a kind and repeated ones. The others are copies of the
    first with another body, which saves a fifth of a call: headers, key and address do not change.
    """

    def __init__(self, own_headers: Mapping[str, Any], *, copies: bool, **options: Any) -> None:
        self._own_headers = {**own_headers}
        self._copies = copies
        self._models: dict[tuple[str, str], httpx2.Request] = {}
        super().__init__(**options)

    @property
    def default_headers(self) -> dict[str, Any]:
        """The headers of every request."""
        return self._own_headers

    def _build_request(self, options: Any, **rest: Any) -> httpx2.Request:
        build: Any = super()._build_request  # type: ignore[misc]  # the SDK's
        body = options.content
        if not self._copies or not isinstance(body, bytes):
            return build(options, **rest)  # type: ignore[no-any-return]
        kind = (options.url, options.headers["Accept"])
        model = self._models.get(kind)
        if model is None or rest.get("retries_taken"):
            model = build(options, **rest)
            del model.headers["Content-Length"]
            self._models.setdefault(kind, model)
        if len(body) <= AT_ONCE:
            sent: dict[str, Any] = {"headers": model.headers, "content": body}
        else:
            headers = model.headers.copy()
            headers["Content-Length"] = str(len(body))
            sent = {"headers": headers, "stream": Portions(body)}
        return httpx2.Request(model.method, model.url, extensions=model.extensions, **sent)


class StainlessConnection(Connection):
    """Sends by the client of such an SDK; ``omitted`` are headers that the SDK would miss."""

    stream_class: Any
    omitted: Mapping[str, Any] = {}

    async def send(self, sdk: Any, path: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        """Post ``body`` by the SDK's client and return the response unread."""
        # With these options the SDK returns the response of the HTTP client unread; its types do not say so.
        response: httpx2.Response = await sdk.post(
            self.settings.base_url.rstrip("/") + path,
            cast_to=httpx2.Response,
            content=body,
            options={"headers": {**headers, **self.omitted}, "follow_redirects": False},
            stream=True,
            stream_cls=self.stream_class,
        )
        return response
