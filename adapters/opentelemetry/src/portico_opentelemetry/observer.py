"""The observer: it traces where there is a tracer to trace with, and is not there otherwise."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from portico.errors import ConfigurationError
from portico_opentelemetry.config import OpenTelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from portico import Middleware
    from portico.plugins import Services
    from portico_opentelemetry._file import FileTracerProvider
    from portico_opentelemetry._spans import Tracing

_PROVIDERS = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""The variables by which OpenTelemetry finds providers that no code has set."""


class OpenTelemetryObserver:
    """Makes spans and metrics of runs, proposals, steps, tool calls, agents, chat, embeddings and searches.

    >>> from portico import Kernel
    >>> kernel = Kernel()
    >>> OpenTelemetryObserver().observe_kernel(kernel.middleware)  # No provider is set: nothing is added.
    >>> kernel.middleware.step
    []

    Spans go to the settings' ``file`` or to the ``tracer_provider``, metrics to the ``meter_provider``; by default
    these are the providers that the process has when a kernel opens. Without any it adds nothing to a kernel or a
    service. Raises ``ConfigurationError`` for a file that cannot be written.
    """

    name = "opentelemetry"

    def __init__(
        self,
        settings: OpenTelemetrySettings | None = None,
        services: Services | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._settings = settings or OpenTelemetrySettings()
        self._tracers = tracer_provider
        self._meters = meter_provider
        self._lock = threading.Lock()
        self._tracing: Tracing | None = None
        self._file: FileTracerProvider | None = None

    def observe_kernel(self, middleware: Middleware) -> None:
        """Add what makes spans to the middleware of a kernel."""
        tracing = self._find()
        if tracing is not None:
            tracing.observe(middleware)

    def observe_service(self, port: str, service: Any) -> Any:
        """Return a chat service, an embedding generator or a text search with spans around its calls."""
        tracing = self._find() if port in ("ChatService", "EmbeddingGenerator", "TextSearch") else None
        if tracing is None:
            return service
        from portico_opentelemetry import _services

        return getattr(_services, f"Traced{port}")(service, tracing)

    async def aclose(self) -> None:
        """Close the file of the spans."""
        if self._file is not None:
            self._file.close()

    def _find(self) -> Tracing | None:
        with self._lock:
            given = self._settings.file or self._tracers or self._meters
            if self._tracing is None and (given is not None or _is_set_up()):
                self._tracing = self._open()
            return self._tracing

    def _open(self) -> Tracing:
        from opentelemetry import metrics, trace

        from portico_opentelemetry._names import SCOPE
        from portico_opentelemetry._spans import Tracing

        tracers, file = self._tracers or trace.get_tracer_provider(), self._settings.file
        if file is not None:
            from portico_opentelemetry._file import FileTracerProvider

            try:
                tracers = self._file = FileTracerProvider(file)
            except OSError as error:
                raise ConfigurationError(
                    f"The trace cannot be written to {file}: {error.strerror or error}. Name another file."
                ) from error
        meters = self._meters or metrics.get_meter_provider()
        return Tracing(tracers.get_tracer(SCOPE), meters.get_meter(SCOPE), content=self._settings.content)


def _is_set_up() -> bool:
    """Tell whether this process has a provider; where nothing has imported OpenTelemetry, it has none."""
    if any(map(os.environ.get, _PROVIDERS)):
        return True
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import metrics, trace

    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    return not (isinstance(tracers, trace.ProxyTracerProvider) and type(meters).__name__ == "_ProxyMeterProvider")
