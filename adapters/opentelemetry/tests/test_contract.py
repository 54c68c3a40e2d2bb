"""The package and its observer do what every package and every observer must."""

from __future__ import annotations

import pytest

from portico_opentelemetry.observer import OpenTelemetryObserver
from portico_testkit.observer import ObserverKit
from portico_testkit.package import PackageKit

from .conftest import Spans


class TestOpenTelemetryObserver(ObserverKit):
    @pytest.fixture
    def observer(self, spans: Spans) -> OpenTelemetryObserver:
        return spans.observer(content=True)


class TestPackage(PackageKit):
    distribution = "portico-opentelemetry"
