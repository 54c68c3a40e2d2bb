"""Type codecs are active without being configured, and so is a schema validator that is the only one."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points
from typing import Any

import pytest

import portico_host
from portico import function
from portico.errors import ConfigurationError, PluginBroken, PluginConflict, PluginNotInstalled
from portico.ports import SchemaValidator, TypeCodec

pytestmark = pytest.mark.usefixtures("work")

REGISTERING = """
from portico.plugins import Registration
from dataclasses import dataclass

@dataclass
class Settings:
    words: int = 1

@dataclass
class Needy:
    key: str

def portico_type_codecs():
    return [Registration(name=name, factory=f"{package}.codec:{{cls}}".format(cls=cls), settings=settings, summary="s")
            for name, cls, settings in {offers}]

def portico_schema_validators():
    return [Registration(name=name, factory=f"{package}.codec:{{cls}}".format(cls=cls), summary="s")
            for name, cls in {validators}]
"""

CODEC = """
from portico.plugins import Compiled

class Coin:
    pass

class Coins:
    name = "coins"
    def __init__(self, settings, services):
        self.words = getattr(settings, "words", 0)
    def compile(self, hint, inner):
        if hint is not Coin:
            return None
        return Compiled({"type": "string"}, lambda value: Coin(), lambda coin: " ".join(["coin"] * self.words))

class Raising:
    name = "raising"
    def __init__(self, settings, services):
        raise RuntimeError("no mint here")

class Failing(Coins):
    name = "failing"
    def compile(self, hint, inner):
        raise KeyError("no mint there")

class Checks:
    name = "checks"
    def __init__(self, settings, services): ...
    def compile(self, schema):
        return lambda value: []
"""


@pytest.fixture(autouse=True)
def nothing_else(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out what the environment of the tests has."""
    there = {point.name for point in entry_points(group="portico")}
    monkeypatch.setenv("PORTICO_DISABLE", ",".join(sorted(there & {"basics"})))


def install(
    site: Any,
    *,
    name: str = "portico-mint",
    codecs: list[tuple[str, str, str | None]] = (),
    validators: list[tuple[str, str]] = (),
    codec: str = CODEC,
) -> None:
    package = name.replace("-", "_")
    offers = f"[{', '.join(f'({each!r}, {cls!r}, {settings})' for each, cls, settings in codecs)}]"
    plugin = REGISTERING.replace("{package}", package).replace("{offers}", offers)
    site.install(name, plugin.replace("{validators}", repr(list(validators))), {"codec": codec})


def problems(**options: Any) -> list[Any]:
    """Return what the doctor finds, without the defaults that are switched off here."""
    return [each for each in portico_host.load(**options).check() if "portico-basics is disabled" not in each.cause]


def a_function() -> Any:
    from portico_mint.codec import Coin

    def pay(coin: Coin) -> Coin:
        return coin

    pay.__annotations__ = {"coin": Coin, "return": Coin}
    return function(pay)


async def test_an_installed_codec_is_active_without_being_configured(site: Any) -> None:
    install(site, codecs=[("silver", "Coins", "Settings"), ("coins", "Coins", None)])
    async with portico_host.open() as kernel:
        assert [type(codec).__name__ for codec in kernel.type_codecs] == ["Coins", "Coins"]
        assert kernel.services is not None
        assert kernel.services.names(TypeCodec) == ("coins", "silver"), "the order is not that of the names"
        kernel.add_function(a_function())
        assert kernel.functions["pay"].spec.parameters["properties"]["coin"] == {"type": "string"}


async def test_a_configured_codec_has_its_settings_and_comes_first(site: Any) -> None:
    install(site, codecs=[("silver", "Coins", "Settings"), ("coins", "Coins", None)])
    async with portico_host.open(overrides={"types": {"mine": {"use": "silver", "words": 3}}}) as kernel:
        assert kernel.services is not None
        assert kernel.services.names(TypeCodec) == ("mine", "coins")
        kernel.add_function(a_function())
        assert await kernel.invoke_json("pay", {"coin": "x"}) == "coin coin coin"


async def test_a_codec_that_is_switched_off_is_not_active(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, codecs=[("coins", "Coins", None)], validators=[("checks", "Checks")])
    for overrides in ({"plugins": {"disable": ["mint"]}}, {"plugins": {"only": ["faiss"]}}):
        async with portico_host.open(overrides=overrides) as kernel:
            assert kernel.type_codecs == ()
            assert kernel.schema_validator is None


async def test_a_broken_codec_breaks_no_kernel_that_does_not_need_it(site: Any, caplog: Any) -> None:
    install(site, codecs=[("raising", "Raising", None), ("gone", "NotThere", None), ("coins", "Coins", "Settings")])
    with caplog.at_level(logging.WARNING, "portico_host"):
        async with portico_host.open() as kernel:
            assert [codec.name for codec in kernel.type_codecs] == ["coins"]
            kernel.add_function(a_function())
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith("Type codec 'gone' of portico-mint is broken")
    assert "RuntimeError: no mint here" in told[1]
    assert "`portico doctor`" in told[1]


async def test_a_broken_codec_that_is_configured_is_an_error_at_once(site: Any) -> None:
    install(site, codecs=[("raising", "Raising", None)])
    with pytest.raises(PluginBroken, match="no mint here"):
        async with portico_host.open(overrides={"types": {"coins": {"use": "raising"}}}):
            pass
    with pytest.raises(PluginNotInstalled, match="Type codec 'goold' is not installed"):
        async with portico_host.open(overrides={"types": {"coins": {"use": "goold"}}}):
            pass


async def test_a_codec_that_needs_settings_waits_for_them(site: Any, caplog: Any) -> None:
    install(site, codecs=[("needy", "Coins", "Needy")])
    async with portico_host.open() as kernel:
        assert kernel.type_codecs == ()
    assert caplog.records == []
    assert problems() == []
    async with portico_host.open(overrides={"types": {"n": {"use": "needy", "key": "k"}}}) as kernel:
        assert len(kernel.type_codecs) == 1


async def test_two_packages_with_a_codec_of_one_name_are_both_left_out(site: Any, caplog: Any) -> None:
    install(site, codecs=[("coins", "Coins", None)])
    install(site, name="portico-zmint", codecs=[("coins", "Coins", None)])
    async with portico_host.open() as kernel:
        assert kernel.type_codecs == ()
    assert "registered by portico-mint and portico-zmint" in caplog.text
    with pytest.raises(PluginConflict):
        async with portico_host.open(overrides={"types": {"coins": {"use": "coins"}}}):
            pass


def test_the_doctor_tells_of_a_broken_codec(site: Any) -> None:
    install(site, codecs=[("gone", "NotThere", None), ("coins", "Coins", None)], validators=[("lost", "NotThere")])
    assert [(problem.severity, problem.subject) for problem in problems()] == [
        ("error", "type codec gone"),
        ("error", "schema validator lost"),
    ]
    assert "has no attribute 'NotThere'" in problems()[0].cause


async def test_the_only_schema_validator_is_used_without_being_chosen(site: Any) -> None:
    install(site, validators=[("checks", "Checks")])
    async with portico_host.open() as kernel:
        assert kernel.schema_validator is not None
        assert kernel.schema_validator.name == "checks"
        assert kernel.service(SchemaValidator) is kernel.schema_validator
        assert kernel.services is not None
        assert kernel.services.names(SchemaValidator) == ("checks",)


async def test_settings_of_a_validator_that_nobody_chose_are_not_passed_over(site: Any) -> None:
    install(site, validators=[("checks", "Checks")])
    wrong = {"schemas": {"checks": {"formats": True}}}
    with pytest.raises(ConfigurationError, match=r"schemas\.checks\.formats: is not known"):
        async with portico_host.open(overrides=wrong):
            pass
    assert [problem.subject for problem in problems(overrides=wrong)] == ["schemas.checks.formats"]


async def test_of_two_schema_validators_the_chosen_one_is_used_and_none_without_a_choice(site: Any) -> None:
    install(site, validators=[("checks", "Checks"), ("others", "Checks")])
    async with portico_host.open() as kernel:
        assert kernel.schema_validator is None
    async with portico_host.open(overrides={"schemas": {"use": "others"}}) as kernel:
        assert kernel.schema_validator is not None


async def test_a_broken_schema_validator_is_left_out_and_refused_when_chosen(site: Any, caplog: Any) -> None:
    install(site, validators=[("lost", "NotThere")])
    async with portico_host.open() as kernel:
        assert kernel.schema_validator is None
    assert "Schema validator 'lost' of portico-mint is broken" in caplog.text
    with pytest.raises(PluginBroken):
        async with portico_host.open(overrides={"schemas": {"use": "lost"}}):
            pass
