"""The planner does what every planner must, and the package what every package must."""

import pytest
from portico import Kernel
from portico_testkit.fakes.weather import Weather
from portico_testkit.package import PackageKit
from portico_testkit.planner import PlannerKit

from portico_acme_planner.config import AcmeSettings
from portico_acme_planner.planner import AcmePlanner


class TestAcmePlanner(PlannerKit):
    @pytest.fixture
    def kernel(self) -> Kernel:
        kernel = Kernel()
        kernel.add_plugin(Weather())
        return kernel

    @pytest.fixture
    def planner(self) -> AcmePlanner:
        return AcmePlanner(AcmeSettings(), None)

    @pytest.fixture
    def goal(self) -> str:
        return "Oslo"


class TestPackage(PackageKit):
    distribution = "portico-acme-planner"
