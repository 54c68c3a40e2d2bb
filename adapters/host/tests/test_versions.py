"""A package that was built for another major version of a port is refused, and nothing else is."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

import portico_host
from portico.errors import PluginBroken
from portico.plugins import Registration
from portico.ports import PORTS, TextSearch

pytestmark = pytest.mark.usefixtures("work")

REGISTERING = """
from portico.plugins import Registration

def {hook}():
    return [
        Registration(name="{name}", factory="portico_acme.search:PlainSearch", summary="For {{}}.".format(version),
                     port_version=version)
        for version in {versions}
    ]
"""
NEWER = (
    "Text search 'odd' of portico-odd was built for version 3 of the port TextSearch; the portico-core that is "
    "installed has version 2. The core is the older side: run `pip install --upgrade portico-core`."
)
OLDER = (
    "Text search 'odd' of portico-odd was built for version 1 of the port TextSearch; the portico-core that is "
    "installed has version 2. The package is the older side: run `pip install --upgrade portico-odd`."
)


@pytest.fixture
def ports_at_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every port had changed once."""
    later = tuple(replace(port, version=2) for port in PORTS)
    for module in ("discovery", "packages"):
        monkeypatch.setattr(f"portico_host.{module}.PORTS", later)


def install(site: Any, *versions: int, name: str = "odd", hook: str = "portico_text_searches") -> None:
    source = REGISTERING.format(name=name, hook=hook, versions=list(versions))
    site.install(f"portico-{name}", source)


def found(plugins: Any, distribution: str = "portico-odd") -> Any:
    return next(package for package in plugins.packages if package.distribution == distribution)


@pytest.mark.usefixtures("ports_at_two")
@pytest.mark.parametrize(("version", "said"), [(3, NEWER), (1, OLDER)])
def test_choosing_it_says_what_was_built_for_what_and_which_side_to_upgrade(site: Any, version: int, said: str) -> None:
    install(site, version)
    plugins = portico_host.discover()
    with pytest.raises(PluginBroken) as caught:
        plugins.offer("TextSearch", "odd")
    assert str(caught.value) == said
    package = found(plugins)
    assert package.state == "incompatible"
    assert f"{package.problem} {package.mend}" == said


@pytest.mark.usefixtures("ports_at_two")
@pytest.mark.parametrize("version", [1, 3])
async def test_configured_or_named_it_is_refused_before_its_code_is_imported(site: Any, version: int) -> None:
    install(site, version)
    configured = portico_host.load(overrides={"search": {"web": {"use": "odd"}}})
    with pytest.raises(PluginBroken, match="was built for version"):
        async with configured.kernel():
            pass
    with pytest.raises(PluginBroken, match="was built for version"):
        async with portico_host.load().services(["odd"]) as services:
            services.get(TextSearch, "odd")
    (problem,) = [p for p in configured.check() if p.subject == "text search web"]
    assert "pip install --upgrade portico-" in problem.mend
    assert "pip install" not in problem.cause


def test_everything_else_works(acme: Any) -> None:
    install(acme, 2)
    plugins = portico_host.discover()
    assert found(plugins, "portico-acme").state == "ok"
    assert found(plugins).state == "incompatible"
    services = portico_host.load().services()
    assert services.get(TextSearch, "plain").name == "plain"


def test_what_else_the_package_offers_works(acme: Any) -> None:
    acme.install(
        "portico-odd",
        REGISTERING.format(name="old", hook="portico_planners", versions=[2])
        + REGISTERING.format(name="odd", hook="portico_text_searches", versions=[1]),
    )
    plugins = portico_host.discover()
    assert found(plugins).state == "incompatible"
    assert plugins.offer("TextSearch", "odd").registration.port_version == 1


@pytest.mark.parametrize(("hook", "name", "port"), [("vector_stores", "faiss", "VectorStore")])
def test_it_is_not_silently_the_default(
    site: Any, hook: str, name: str, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTICO_DISABLE", "portico-faiss")
    site.install("portico-thing", REGISTERING.format(name=name, hook=f"portico_{hook}", versions=[2]))
    from portico.ports import VectorStore

    with pytest.raises(PluginBroken, match=f"'{name}' of portico-thing was built for version 2 of the port {port}"):
        portico_host.load().services().get(VectorStore)
    errors = [problem.subject for problem in portico_host.load().check() if problem.severity == "error"]
    assert "portico-thing" in errors


async def test_a_journal_that_nobody_chose_is_left_out_with_a_warning(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PORTICO_DISABLE", "portico-basics")
    site.install("portico-thing", REGISTERING.format(name="sqlite", hook="portico_run_stores", versions=[2]))
    with caplog.at_level(logging.WARNING, "portico_host"):
        async with portico_host.open() as kernel:
            assert kernel.run_store is None
    assert "Run store 'sqlite' of portico-thing was built for version 2" in caplog.text
    assert "`portico doctor`" in caplog.text


@pytest.mark.parametrize("versions", [(1, 2), (2, 1), (3, 1, 2)])
def test_a_package_for_several_versions_gives_the_one_that_fits(
    acme: Any, request: pytest.FixtureRequest, versions: tuple[int, ...]
) -> None:
    install(acme, *versions)
    before = portico_host.discover()
    assert (found(before).state, before.offer("TextSearch", "odd").registration.port_version) == ("ok", 1)
    request.getfixturevalue("ports_at_two")
    after = portico_host.discover()
    assert (found(after).state, after.offer("TextSearch", "odd").registration.port_version) == ("ok", 2)
    assert [offer.name for offer in found(after).offers] == ["odd"], "one of them stands for all"


def test_a_package_for_several_versions_of_which_none_fits_is_told_of_once(site: Any) -> None:
    install(site, 2, 3)
    (problem,) = found(portico_host.discover()).problems
    assert "was built for version 3" in problem.cause


def test_a_version_that_is_registered_twice_is_the_packages_mistake(site: Any) -> None:
    install(site, 1, 1)
    problem = found(portico_host.discover()).problem
    assert problem == "Its hook portico_text_searches registers 'odd' twice; the first counts."


def test_the_editor_is_not_offered_what_is_refused(site: Any) -> None:
    install(site, 2)
    assert "odd" not in str(portico_host.load().schema())


@given(st.integers(max_value=0))
def test_a_version_is_at_least_one(version: int) -> None:
    with pytest.raises(ValueError, match=r"port_version is at least 1, not .* \(registration 'acme'\)"):
        Registration(name="acme", factory="a:b", summary="Acme.", port_version=version)


@given(st.integers(min_value=1))
def test_every_whole_number_from_one_is_a_version(version: int) -> None:
    assert Registration(name="acme", factory="a:b", summary="Acme.", port_version=version).port_version == version


def test_a_package_whose_version_is_none_is_broken_and_says_why(site: Any) -> None:
    install(site, 0)
    assert "port_version is at least 1, not 0 (registration 'odd')" in found(portico_host.discover()).problem
