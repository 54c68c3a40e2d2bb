"""Traces and metrics by OpenTelemetry.

`portico_opentelemetry.observer.OpenTelemetryObserver` makes them.
"""
