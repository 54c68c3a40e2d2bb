"""PackageKit passes a good package, and finds what is broken at its test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portico_testkit.kit_failures import kit_failures, names_of_tests
from portico_testkit.package import PackageKit, StandIns

README = "Search the catalogue of Acme. " * 5
METADATA = f"""Metadata-Version: 2.4
Name: portico-acme
Version: 1.0
Summary: Search Acme.
License-Expression: Apache-2.0
Classifier: Typing :: Typed
Requires-Python: >=3.11
Requires-Dist: portico-core>=0.1
Requires-Dist: attrs>=24.2
Requires-Dist: hypothesis; extra == "fuzz"

{README}
"""
PLUGIN = """from portico.plugins import Registration

def portico_text_searches():
    return [Registration("acme", "portico_acme.search:AcmeSearch", "Acme.", "portico_acme.config:AcmeSettings")]
"""
CONFIG = """from attrs import field, frozen
from portico.plugins import Secret

@frozen
class AcmeSettings:
    api_key: Secret = field(metadata={"doc": "The key."})
    language: str = field(default="en", metadata={"doc": "The language."})
"""
SEARCH = """import asyncio
import os
from portico import SearchConnector, SearchResults, TextSearchResult

class AcmeSearch(SearchConnector[str]):
    name = "acme"

    def __init__(self, settings, services):
        self._services = services

    async def fetch(self, query, options): ...
    def to_text(self, record): ...
    def to_result(self, record): ...

    async def aclose(self):
        await asyncio.sleep(0)
"""
ENTRY = "[portico]\nacme = portico_acme._plugin\n"
BROKEN: dict[str, tuple[str, str, str, str]] = {
    # the file that differs, what is replaced in it by what, and the test that finds it
    "no licence": ("METADATA", "License-Expression: Apache-2.0\n", "", "its_metadata_is_complete"),
    "no core": ("METADATA", "Requires-Dist: portico-core>=0.1\n", "", "it_requires_core_and_lets_others_do_so_too"),
    "another name": ("entry_points.txt", "acme =", "acne =", "its_entry_point_is_named_for_it"),
    "a vendor": ("_plugin.py", "from portico", "import hypothesis\nfrom portico", "listing_it_imports_no_vendor"),
    "no doc": ("config.py", '{"doc": "The language."}', "{}", "every_setting_has_a_type_and_a_description"),
    "a bare key": ("config.py", "api_key: Secret", "api_key: str", "secrets_are_not_shown"),
    "a task": (
        "search.py",
        "        self._services = services\n",
        "        self.task = asyncio.create_task(asyncio.sleep(30))\n",
        "a_service_leaves_nothing_behind_when_it_is_closed",
    ),
    "undeclared": ("search.py", "import os", "import xdist", "it_imports_only_what_it_declares"),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, for packages that are there during a test only."""
    folder = tmp_path / "site"
    (folder / "portico_acme").mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    # Modules of equal names would be taken from the bytecode of the test before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    forget()
    yield folder
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "portico_acme"]:
        del sys.modules[name]


def install(site: Path, changed: str = "", old: str = "", new: str = "") -> None:
    """Put the package there as pip does, with one text replaced in one file."""
    package, info = site / "portico_acme", site / "portico_acme-1.0.dist-info"
    info.mkdir()
    for file, text in {
        package / "__init__.py": "",
        package / "py.typed": "",
        package / "_plugin.py": PLUGIN,
        package / "config.py": CONFIG,
        package / "search.py": SEARCH,
        info / "METADATA": METADATA,
        info / "entry_points.txt": ENTRY,
    }.items():
        assert old in text or file.name != changed
        file.write_text(text.replace(old, new) if file.name == changed else text, "utf-8")


class AcmeKit(PackageKit):
    distribution = "portico-acme"


async def failures(tmp_path: Path, *tests: str) -> dict[str, str]:
    fixtures: dict[str, Callable[[], Any]] = {"services": StandIns, "tmp_path": lambda: tmp_path}
    return await kit_failures(AcmeKit, fixtures, tests or names_of_tests(AcmeKit))


async def test_a_good_package_passes(site: Path, tmp_path: Path) -> None:
    install(site)
    assert await failures(tmp_path) == {}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_package_fails_at_its_test(site: Path, tmp_path: Path, case: str) -> None:
    *change, test = BROKEN[case]
    install(site, *change)
    assert list(await failures(tmp_path, f"test_{test}")) == [f"test_{test}"]
