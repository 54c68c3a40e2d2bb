"""llama.cpp's own HTTP server, which speaks OpenAI's protocol, on this machine."""

from __future__ import annotations

import secrets
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Literal, Self

from portico.errors import ServiceTimeout, ServiceUnavailable
from portico.plugins import Secret
from portico_llamacpp._process import ModelProcess
from portico_llamacpp._starting import start
from portico_llamacpp._wire import About
from portico_llamacpp.config import LlamaCppSettings


class LlamaCppServer:
    """Serve a model to clients of OpenAI's protocol, on the loopback address, within a ``with`` block.

    >>> server = LlamaCppServer(LlamaCppSettings(context_size=4096), pooling="mean")
    >>> server.api_key
    Secret(LlamaCppServer)

    It offers chat completions and embeddings. ``pooling`` says how the vectors of the tokens become one; "model" leaves
    that to a model made for embeddings. Requests need ``api_key``, a new one for each server. Requests go to the model
    unchanged: the settings for requests (system message, temperature and others) and the guard against control tokens
    exist in `LlamaCppChat` only.
    Entering waits until the model is loaded. It raises as `LlamaCppChat` does, and ``ValueError`` if already open.
    """

    def __init__(
        self,
        settings: LlamaCppSettings | None = None,
        *,
        port: int = 0,
        pooling: Literal["model", "mean", "cls", "last"] = "mean",
    ) -> None:
        self._settings = settings or LlamaCppSettings()
        self._port = port
        self._pooling = None if pooling == "model" else pooling
        self._process: ModelProcess | None = None
        self._about: About | None = None
        self.api_key = Secret(secrets.token_urlsafe(24), origin="LlamaCppServer")

    @property
    def base_url(self) -> str:
        """The address that clients take, with its ``/v1``. Raises ``ServiceUnavailable`` when not open."""
        return f"{self._open().address}/v1"

    @property
    def model(self) -> str:
        """The model's name. Raises ``ServiceUnavailable`` when not open."""
        return self._open().model

    def __enter__(self) -> Self:
        if self._process is not None:
            raise ValueError("this server is open already")
        self._process = start(
            self._settings, serve=True, port=self._port, pooling=self._pooling, api_key=self.api_key.reveal()
        )
        try:
            self._about = self._process.ready.result(self._settings.load_timeout)
        except BaseException as error:
            self.close()
            if isinstance(error, FutureTimeoutError):
                raise ServiceTimeout(
                    f"The server loaded no model within {self._settings.load_timeout:g} seconds. "
                    "Set a longer load_timeout."
                ) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server, if it is open."""
        process, self._process, self._about = self._process, None, None
        if process is not None:
            process.close()

    def _open(self) -> About:
        if self._about is None:
            raise ServiceUnavailable("The server is not open. Use it in a `with` block.")
        return self._about
