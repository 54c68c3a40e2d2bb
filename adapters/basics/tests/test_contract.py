"""The distribution as a whole: what it declares, registers and documents. Each folder holds one plugin to its port."""

from __future__ import annotations

from portico_basics.config import FusedSettings
from portico_testkit.package import PackageKit


class TestPackage(PackageKit):
    distribution = "portico-basics"
    settings = (FusedSettings(("docs", "web")),)
