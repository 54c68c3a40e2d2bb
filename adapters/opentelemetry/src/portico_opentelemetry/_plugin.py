"""What portico-opentelemetry registers."""

from portico.plugins import Registration


def portico_observers() -> list[Registration]:
    """Register the observer."""
    return [
        Registration(
            name="opentelemetry",
            factory="portico_opentelemetry.observer:OpenTelemetryObserver",
            settings="portico_opentelemetry.config:OpenTelemetrySettings",
            summary="Traces and metrics of runs, steps, models and searches.",
        )
    ]
