from __future__ import annotations

import sys
from typing import Any

import pytest

import portico_host
from portico.errors import PluginBroken, PluginConflict, PluginNotInstalled
from portico.ports import PORTS
from portico_host.packages import Plugins, distribution_for, port_named

GOOD = """
    from portico.plugins import Registration

    def portico_text_searches():
        return [Registration(name="{name}", factory="{package}.search:Search", summary="Search.")]
"""


def good(name: str, package: str) -> str:
    return GOOD.format(name=name, package=package)


def package(plugins: Any, distribution: str) -> Any:
    return next(found for found in plugins.packages if found.distribution == distribution)


def test_a_package_registers_by_the_names_of_its_functions(acme: Any) -> None:
    plugins = portico_host.discover()
    found = package(plugins, "portico-acme")
    assert (found.state, found.problem, found.version, found.name) == ("ok", None, "1.0", "acme")
    assert {registration.name for registration in found.offers} == {"acme", "plain"}
    assert plugins.offer("ChatService", "acme").registration.factory == "portico_acme.search:AcmeChat"
    assert "portico_acme.search" not in sys.modules
    assert "portico_acme.config" not in sys.modules


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_every_port_has_a_hook_that_is_called(port: Any, site: Any) -> None:
    site.install("portico-each", good("each", "portico_each").replace("portico_text_searches", port.hook))
    assert portico_host.discover().offer(port.name, "each").name == "each"


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_vendor", "ModuleNotFoundError: No module named 'no_such_vendor'."),
        ("raise SystemExit(3)", "SystemExit: 3."),
        ("def portico_text_searches(:", "SyntaxError"),
        ("raise ValueError('a' * 5000)", "ValueError: aaa"),
        ("import warnings\nwarnings.warn('old', DeprecationWarning)", "DeprecationWarning: old."),
    ],
)
def test_a_package_that_cannot_be_imported_is_recorded_and_the_rest_works(acme: Any, source: str, cause: str) -> None:
    acme.install("portico-bad", source)
    plugins = portico_host.discover()
    bad = package(plugins, "portico-bad")
    assert bad.state == "broken"
    assert f"Its import failed: {cause}" in bad.problem
    assert len(bad.problem) < 400
    assert package(plugins, "portico-acme").state == "ok"
    with pytest.raises(PluginBroken, match="package portico-bad is broken") as caught:
        plugins.offer("TextSearch", "bad")
    assert caught.value.__cause__ is bad.error


def test_ctrl_c_is_not_swallowed(site: Any) -> None:
    site.install("portico-bad", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        portico_host.discover()


@pytest.mark.parametrize("failure", ["raise RuntimeError('no entry')", "raise SystemExit(1)", "exit(2)"])
def test_a_hook_that_raises_stops_no_other_hook(site: Any, failure: str) -> None:
    site.install(
        "portico-half",
        good("half", "portico_half") + f"\n    def portico_planners():\n        {failure}\n"
        "\n    def portico_chat_services():\n"
        "        return [Registration(name='half', factory='portico_half.x:Y', summary='Chat.')]\n",
    )
    plugins = portico_host.discover()
    half = package(plugins, "portico-half")
    assert half.state == "broken"
    assert "Its hook portico_planners failed" in half.problem
    assert plugins.offer("TextSearch", "half").name == "half"
    assert plugins.offer("ChatService", "half").name == "half"
    with pytest.raises(PluginBroken, match="portico_planners failed"):
        plugins.offer("Planner", "half")


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("None", "returned nothing, not a list of Registrations"),
        ("'acme'", "returned a value of the type str, not a list"),
        ("[1]", "returned a value of the type int among its Registrations"),
        ("[Registration(name='a b', factory='x:y', summary='s')]", "ValueError: a registration's name"),
        ("[ok, ok]", "registers 'odd' twice"),
    ],
)
def test_what_a_hook_returns_is_checked(site: Any, returned: str, problem: str) -> None:
    site.install(
        "portico-odd",
        f"""
        from portico.plugins import Registration
        def portico_text_searches():
            ok = Registration(name="odd", factory="x:y", summary="s")
            return {returned}
        """,
    )
    found = package(portico_host.discover(), "portico-odd")
    assert found.state == "broken"
    assert problem in found.problem


def test_a_misspelt_hook_is_reported_with_the_nearest(site: Any) -> None:
    site.install("portico-odd", "def portico_text_serches():\n    return []")
    found = package(portico_host.discover(), "portico-odd")
    assert found.state == "broken"
    assert "portico_text_serches is not a hook and is not called. The nearest is portico_text_se" in found.problem


def test_two_distributions_of_one_name_are_an_error_only_when_it_is_chosen(site: Any) -> None:
    site.install("portico-one", good("same", "portico_one"))
    site.install(
        "portico-two", good("same", "portico_two") + good("other", "portico_two").replace("text_searches", "planners")
    )
    plugins = portico_host.discover()
    assert plugins.offer("Planner", "other").name == "other"
    assert package(plugins, "portico-one").state == package(plugins, "portico-two").state == "conflict"
    assert "portico-two" in package(plugins, "portico-one").problem
    with pytest.raises(PluginConflict, match="portico-one and portico-two"):
        plugins.offer("TextSearch", "same")
    assert (
        portico_host.discover(disable=["two"])
        .offer("TextSearch", "same")
        .registration.factory.startswith("portico_one")
    )


@pytest.mark.parametrize("name", ["bad", "portico-bad", "portico_bad", "Portico.Bad", "BAD"])
@pytest.mark.parametrize("way", ["environment", "disable", "only"])
def test_a_package_that_is_switched_off_is_never_imported(
    acme: Any, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    acme.install("portico-bad", "raise RuntimeError('imported')")
    if way == "environment":
        monkeypatch.setenv("PORTICO_DISABLE", f"foo, {name}")
        plugins = portico_host.discover()
    elif way == "disable":
        plugins = portico_host.discover(disable=[name])
    else:
        plugins = portico_host.discover(only=["acme"])
    assert package(plugins, "portico-bad").state == "disabled"
    assert package(plugins, "portico-acme").state == "ok"
    assert "portico_bad" not in sys.modules
    with pytest.raises(PluginNotInstalled, match="portico-bad is disabled"):
        plugins.offer("TextSearch", "bad")


def test_a_name_that_switches_nothing_off_is_told(acme: Any) -> None:
    assert portico_host.discover(disable=["amce", "acme"]).unmatched == ("amce",)


def test_a_name_of_ours_that_is_not_installed_says_what_to_install() -> None:
    plugins = Plugins(())
    for port, name, package in (
        ("TextSearch", "brave", "portico-brave"),
        ("Planner", "structured", "portico-structured-planner"),
        ("TypeCodec", "attrs", "portico-basics"),
    ):
        with pytest.raises(PluginNotInstalled, match=f"Installed: none. Run `pip install {package}`."):
            plugins.offer(port, name)


def test_of_a_name_that_nobody_ships_no_package_is_guessed(acme: Any) -> None:
    """Whoever has taken the guessed name at the index would be installed."""
    plugins = portico_host.discover(only=["acme"])
    with pytest.raises(PluginNotInstalled) as caught:
        plugins.offer("TextSearch", "exa")
    assert str(caught.value) == (
        "Text search 'exa' is not installed. Installed: acme, plain. "
        "Choose another, or install the package that registers it."
    )
    for port, name in (("Planner", "dreaming"), ("ChatService", "gemma"), ("TextSearch", "plian"), ("Runner", "")):
        with pytest.raises(PluginNotInstalled) as caught:
            plugins.offer(port, name)
        assert "pip install" not in str(caught.value)


def test_a_name_that_is_near_to_a_registered_one_is_taken_for_it(acme: Any) -> None:
    plugins = portico_host.discover(only=["acme"])
    with pytest.raises(PluginNotInstalled, match="Did you mean plain"):
        plugins.offer("TextSearch", "plian")
    with pytest.raises(ValueError, match="there is no port 'Nothing'"):
        plugins.offer("Nothing", "x")


def test_the_advice_to_install_names_the_distribution_that_has_it() -> None:
    assert distribution_for(port_named("TextSearch"), "full-pages") == "portico-web"
    offers = [offer for package in portico_host.discover().packages for offer in package.offers]
    wrong = [
        f"{offer.port.noun} {offer.name} is in {offer.distribution}"
        for offer in offers
        if distribution_for(offer.port, offer.name) != offer.distribution
    ]
    assert wrong == [], "name what registers several names in portico_host.packages"


def test_what_a_package_prints_on_import_stays_off_stdout(site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    hook = good("loud", "portico_loud").replace("        return", "        print('there')\n        return")
    site.install("portico-loud", f"    print('hello')\n{hook}")
    assert package(portico_host.discover(), "portico-loud").state == "ok"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        ("def portico_planners(config): ...", "portico_planners() missing 1 required positional argument: 'config'"),
        ("def portico_planners(a, /, b, *, c, d=1, **e): ...", "Its hook portico_planners failed: TypeError: "),
        ("async def portico_planners(): return []", "returned a value of the type coroutine, not a list"),
        ("async def portico_planners(): yield", "returned a value of the type async_generator, not a list"),
        (
            "async def later(): return []\n    def portico_planners(): return later()",
            "Its hook portico_planners returned a value of the type coroutine, not a list of Registrations.",
        ),
    ],
)
def test_a_hook_that_cannot_be_called_as_one_is_told_of_and_stops_no_other(site: Any, hook: str, problem: str) -> None:
    """Nothing is complained of in words of Python's: warnings are errors here."""
    site.install("portico-half", f"{good('half', 'portico_half')}\n    {hook}\n")
    plugins = portico_host.discover()
    half = package(plugins, "portico-half")
    assert (half.state, len(half.problems)) == ("broken", 1)
    assert problem in half.problem
    assert "pip install --upgrade portico-half" in half.mend
    assert plugins.offer("TextSearch", "half").name == "half"


@pytest.mark.parametrize("parameters", ["config=None", "*words", "**settings", "*, config=None"])
def test_a_hook_that_can_be_called_without_anything_is_one(site: Any, parameters: str) -> None:
    site.install("portico-half", good("half", "portico_half").replace("searches()", f"searches({parameters})"))
    assert package(portico_host.discover(), "portico-half").state == "ok"


def test_a_package_whose_hooks_return_nothing_is_empty_as_one_without_hooks_is(site: Any) -> None:
    site.install("portico-bare", "def portico_planners():\n    return []\ndef portico_chat_services():\n    return ()")
    bare = package(portico_host.discover(), "portico-bare")
    assert bare.state == "empty"
    assert bare.problem == "It registers nothing: what portico_chat_services, portico_planners returns is empty."
    site.install("portico-half", good("half", "portico_half") + "\n    def portico_planners():\n        return []\n")
    assert package(portico_host.discover(), "portico-half").state == "ok"


def test_of_commands_with_one_name_the_others_are_known_too(site: Any) -> None:
    for name in ("lend", "ape", "zoo"):
        site.install(f"portico-{name}", "", extra="[portico.commands]\nlend = portico_lend.missing:lend\n")
    (lend,) = (command for command in portico_host.commands() if command.name == "lend")
    assert lend.distribution == "portico-ape"
    (lend,) = (command for command in portico_host.commands(disable=["ape"]) if command.name == "lend")
    assert lend.distribution == "portico-lend"


def test_damaged_metadata_of_another_distribution_hides_nothing(acme: Any) -> None:
    info = acme.folder / "broken-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_bytes(b"[portico]\n\xff\xfe = = portico")
    (acme.folder / "empty-1.dist-info").mkdir()
    assert package(portico_host.discover(), "portico-acme").state == "ok"


def test_commands_come_from_metadata_alone(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = "[portico.commands]\nlend = portico_lend.missing:lend\nstop = portico_lend._plugin:STOP\n"
    site.install("portico-lend", "STOP = 'stop'", extra=extra)
    site.install("portico-ape", "", extra="[portico.commands]\nlend = portico_ape:lend\n")
    found = {command.name: command for command in portico_host.commands()}
    assert found["lend"].distribution == "portico-ape"
    assert found["stop"].load() == "stop"
    with pytest.raises(PluginBroken, match="command 'lend' of portico-ape is broken"):
        found["lend"].load()
    assert not [c for c in portico_host.commands(disable=["lend", "portico-ape"]) if c.name in ("lend", "stop")]
    monkeypatch.setenv("PORTICO_DISABLE", "lend, portico-ape")
    assert not [c for c in portico_host.commands() if c.name in ("lend", "stop")]
    assert portico_host.discover().unmatched == (), "they are installed"


MARKED = """
    import pluggy
    from portico.plugins import Registration

    hookimpl = pluggy.HookimplMarker("portico")

    class Plugin:
        def __init__(self, name="mine"):
            self.name = name

        @hookimpl(specname="portico_text_searches", tryfirst=True)
        def searches(self):
            return [Registration(name=self.name, factory="portico_mine.search:Search", summary="Search.")]

        @hookimpl
        def portico_planners(self):
            return [Registration(name=self.name, factory="portico_mine.search:Plans", summary="Plan.")]

        def portico_text_searches(self):
            return [Registration(name=f"{self.name}-too", factory="portico_mine.search:Search", summary="Search.")]

    plugin = Plugin("made")
    searches, portico_planners, portico_text_searches = plugin.searches, plugin.portico_planners, lambda: []
"""


@pytest.mark.parametrize(
    ("entry", "name", "searches"),
    [("Plugin", "mine", ("mine", "mine-too")), ("plugin", "made", ("made", "made-too")), ("", "made", ("made",))],
    ids=["class", "object", "module"],
)
def test_marked_functions_of_a_module_an_object_or_a_class_are_hooks(
    site: Any, entry: str, name: str, searches: tuple[str, ...]
) -> None:
    home = site.install("portico-mine", MARKED)
    points = site.folder / "portico_mine-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[portico]\nmine = {home}._plugin{entry and ':'}{entry}\n")
    plugins = portico_host.discover()
    found = package(plugins, "portico-mine")
    assert (found.state, found.problem) == ("ok", None)
    assert tuple(offer.name for offer in plugins.offers("TextSearch") if offer.package == "mine") == searches
    assert plugins.offer("Planner", name).distribution == "portico-mine"


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ("hookimpl", "Its function searches is not a hook and is not called."),
        (
            'hookimpl(specname="portico_text_search")',
            "searches, marked as portico_text_search, is not a hook and is not called. The nearest is portico_text_sea",
        ),
    ],
)
def test_a_mark_that_names_no_hook_is_reported(site: Any, mark: str, problem: str) -> None:
    site.install(
        "portico-odd", f"import pluggy\nhookimpl = pluggy.HookimplMarker('portico')\n@{mark}\ndef searches(): ..."
    )
    found = package(portico_host.discover(), "portico-odd")
    assert found.state == "broken"
    assert problem in str(found.problem)


def test_a_class_that_cannot_be_made_breaks_its_package_only(acme: Any) -> None:
    home = acme.install("portico-odd", "class Plugin:\n    def __init__(self, needed): ...")
    (acme.folder / "portico_odd-1.0.dist-info" / "entry_points.txt").write_text(
        f"[portico]\nodd = {home}._plugin:Plugin\n"
    )
    plugins = portico_host.discover()
    assert "needed" in str(package(plugins, "portico-odd").problem)
    assert package(plugins, "portico-acme").state == "ok"
