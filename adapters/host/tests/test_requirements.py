"""What a package needs is read from its metadata once, whatever asks; and names are compared as installers do."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from typing import Any

import pytest

import portico_host
from portico_host.mending import mend_of_failure
from portico_host.requirements import Installation


@pytest.fixture
def acme(site: Any) -> Any:
    """Return what installs `Portico.Acme` with some lines of metadata."""

    def install(*lines: str) -> None:
        site.install("Portico.Acme", "", entry="acme")
        (info,) = site.folder.glob("*.dist-info")
        with (info / "METADATA").open("a") as stream:
            stream.writelines(f"{line}\n" for line in lines)

    return install


def test_each_distribution_is_read_once_whoever_needs_it(acme: Any, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    acme("Requires-Dist: pluggy", "Requires-Dist: portico-core>=0.1", 'Requires-Dist: attrs; extra == "a"')
    plugins = portico_host.discover()
    read: Counter[str] = Counter()
    found = importlib.metadata.distribution

    def counting(name: str) -> importlib.metadata.Distribution:
        read[name.replace("_", "-").lower()] += 1
        return found(name)

    monkeypatch.setattr("portico_host.requirements.distribution", counting)
    portico_host.check(portico_host.read_configuration(), plugins, imports=False)
    assert {"portico.acme", "pluggy", "portico-core"} <= read.keys()
    assert set(read.values()) == {1}, read.most_common(5)


def test_another_examination_sees_what_was_installed_meanwhile(acme: Any, site: Any) -> None:
    acme("Requires-Dist: acme-parts")
    assert [need.installed for need in Installation().needs_of("portico-acme")] == [None]
    site.install("acme_parts", "")
    assert [need.installed for need in Installation().needs_of("portico-acme")] == ["1.0"]


@pytest.mark.parametrize("required", ["Portico.Core>=99", "portico_core>=99", "portico-core>=99"])
def test_a_requirement_of_core_is_found_however_it_is_written(acme: Any, required: str) -> None:
    acme(f"Requires-Dist: {required}")
    error = ImportError("cannot import name 'Enrolment'", name="portico.registration")
    mend = mend_of_failure("Portico.Acme", "acme", error)
    assert mend == f'Run `pip install --upgrade "{required}" Portico.Acme`.'


@pytest.mark.parametrize("name", ["Portico.Acme", "portico-acme", "PORTICO_ACME"])
def test_a_module_of_its_own_is_found_however_its_distribution_is_written(acme: Any, name: str) -> None:
    acme()
    error = ModuleNotFoundError("No module named 'portico_acme.parts'", name="portico_acme.parts")
    mend = mend_of_failure(name, "acme", error)
    assert mend == f"Run `pip install --force-reinstall --no-deps {name}`."


def test_a_distribution_without_a_version_is_unknown_and_no_trouble(site: Any) -> None:
    site.install("portico-odd", "def portico_planners(): return []", entry="odd")
    (info,) = site.folder.glob("*.dist-info")
    (info / "METADATA").write_text("Name: portico-odd\n")
    (package,) = (each for each in portico_host.discover().packages if each.name == "odd")
    assert (package.state, package.version) == ("empty", "unknown")
    assert Installation().needs_of("portico-odd") == ()
