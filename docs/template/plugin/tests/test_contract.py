"""The function source does what every one must, and the package what every package must."""

from pathlib import Path

import pytest
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.package import PackageKit

from portico_acme.config import AcmeSettings
from portico_acme.functions import AcmeFunctions


class TestAcmeFunctions(FunctionSourceKit):
    @pytest.fixture
    def function_source(self) -> AcmeFunctions:
        return AcmeFunctions(AcmeSettings(), None)

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> AcmeFunctions:
        settings = AcmeSettings(path=tmp_path / "missing.json")
        return AcmeFunctions(settings, None)


class TestPackage(PackageKit):
    distribution = "portico-acme"
