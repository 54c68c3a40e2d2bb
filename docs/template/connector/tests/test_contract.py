"""The connector does what every text search must, and the package what every package must."""

import pytest
from portico_testkit.package import PackageKit
from portico_testkit.text_search import TextSearchKit

from portico_acme.config import AcmeSettings
from portico_acme.search import AcmeSearch


class TestAcmeSearch(TextSearchKit):
    query = "the big anvil"
    other_query = "rocket skates"

    def best(self) -> str:
        return "ninety"

    @pytest.fixture
    def text_search(self) -> AcmeSearch:
        return AcmeSearch(AcmeSettings(), None)


class TestPackage(PackageKit):
    distribution = "portico-acme"
