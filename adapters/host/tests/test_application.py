from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import portico_host
from portico import function
from portico.errors import ConfigurationError, PluginBroken, PluginNotInstalled
from portico.plans import Answer, Budget, Emit, From, Plan, Step, Task, Value
from portico.ports import FunctionSource, HttpClient, PageReader, TextSearch
from portico_testkit.fakes.text_search import ListEntry, ListSearch

pytestmark = pytest.mark.usefixtures("work")

FILE = """
[chat]
use = "acme"
[chat.acme]
model = "large"
[search.my-web]
use = "acme"
api_key = { env = "ACME_KEY" }
limits = { requests = 2, token = "hunter2-literal" }
[search.other]
use = "plain"
[functions.tone]
use = "acme"
[planner]
max_steps = 12
[runs]
use = "acme"
"""


@pytest.fixture
def configured(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (work / "portico.toml").write_text(FILE)
    monkeypatch.setenv("ACME_KEY", "hunter2-environment")
    monkeypatch.setenv("PORTICO_CHAT__ACME__RETRIES", "5")
    return work


async def test_a_kernel_has_a_plugin_for_each_source_and_each_source_of_functions(acme: Any, configured: Path) -> None:
    async with portico_host.open() as kernel:
        assert list(kernel.plugins) == ["my_web", "other", "tone", "answers"]
        assert "my_web-Search" in kernel.functions
        assert await kernel.invoke("tone-shout", text="hi") == "HI"
        assert kernel.run_store is not None
        assert kernel.services is not None
        assert kernel.services.names(TextSearch) == ("my-web", "other")
        closed = sys.modules["portico_acme.search"].closed
        assert closed == []
    assert sorted(closed) == ["acme", "acme", "plain"]


async def test_only_the_chosen_sources_are_in_a_kernel_in_their_order(acme: Any, configured: Path) -> None:
    async with portico_host.open(sources=["plain", "my-web", "plain"]) as kernel:
        assert list(kernel.plugins) == ["plain", "my_web", "tone", "answers"]
        assert kernel.services is not None
        assert kernel.services.names(TextSearch) == ("plain", "my-web")


async def test_an_unknown_source_is_told_with_the_known_ones(acme: Any, configured: Path) -> None:
    with pytest.raises(PluginNotInstalled, match=r"'braev' is not installed.*Configured: my-web, other"):
        async with portico_host.open(sources=["braev"]):
            pass


async def test_every_mistake_is_told_before_anything_is_made(
    acme: Any, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_KEY")
    (configured / "portico.toml").write_text(
        FILE.replace("requests = 2", "requests = 'two'").replace("model =", "modle =")
    )
    with pytest.raises(ConfigurationError) as caught:
        async with portico_host.open():
            pass
    assert str(caught.value) == (
        "3 mistakes in the configuration:\n"
        "  portico.toml: chat.acme.modle: is not a setting here. Nearest: model.\n"
        "  portico.toml: search.my-web.api_key: the environment variable ACME_KEY is not set. "
        "Run `export ACME_KEY=…` first.\n"
        "  portico.toml: search.my-web.limits.requests: expected an integer, got 'two' (a string)."
    )
    assert "portico_acme.search" not in sys.modules


async def test_two_plugins_of_one_name_are_told_apart_by_the_configuration(acme: Any) -> None:
    overrides = {"search": {"a-b": {"use": "plain"}, "a_b": {"use": "plain"}}}
    with pytest.raises(ConfigurationError, match="there is a function plugin 'a_b' already"):
        async with portico_host.open(overrides=overrides):
            pass


async def test_functions_that_cannot_be_loaded_are_their_packages_fault(
    acme: Any, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(self: Any, name: str) -> Any:
        raise OSError(9)

    application = portico_host.load()
    application.services().get(FunctionSource, "tone")
    monkeypatch.setattr(sys.modules["portico_acme.search"].AcmeFunctions, "load", load)
    with pytest.raises(PluginBroken, match=r"functions\.tone could not be loaded: OSError: 9"):
        async with application.kernel():
            pass


async def test_services_are_closed_when_the_application_fails(acme: Any, configured: Path) -> None:
    with pytest.raises(KeyError):
        async with portico_host.open():
            raise KeyError
    assert len(sys.modules["portico_acme.search"].closed) == 3


def test_the_budget_is_that_of_the_planner_table(configured: Path) -> None:
    assert portico_host.load().budget == Budget(steps=12)


async def test_planners_may_use_what_the_planner_table_says(acme: Any, configured: Path) -> None:
    class Looking:
        name = "looking"

        async def propose(self, task: Task, *, emit: Emit) -> Answer:
            return Answer(" ".join(each.name for each in task.functions))

    chosen = {"include": ["tone", "other"], "exclude": ["other"]}
    async with portico_host.open(overrides={"planner": chosen, "runs": {"use": "none"}}) as kernel:
        assert (await kernel.run_goal("Look.", planner=Looking())).outcome.text == "tone-shout"  # type: ignore[union-attr]
    async with portico_host.open(overrides={"planner": {"exclude": ["tone-shoot"]}, "runs": {"use": "none"}}) as kernel:
        with pytest.raises(ConfigurationError, match="tone-shout"):
            await kernel.run_goal("Look.", planner=Looking())


async def test_labels_that_no_function_has_are_refused_with_the_nearest(acme: Any, configured: Path) -> None:
    def labelled(*names: str) -> dict[str, Any]:
        return {"policy": {"functions": {each: {"gives": "trusted"} for each in names}}}

    fitting = labelled("tone-*", "my_web-Search")
    async with portico_host.open(overrides=fitting) as kernel:
        assert kernel.policy is not None
        assert kernel.policy.labels(kernel.specs["tone-shout"]).gives[()].trusted
        assert kernel.policy.mode == "enforce"
    async with portico_host.open(overrides=fitting, sources=["other"]) as kernel:
        assert "my_web-Search" not in kernel.specs
    with pytest.raises(ConfigurationError, match=r"policy\.functions\.tone-shoot: is not .*Nearest: tone-shout"):
        async with portico_host.open(overrides=labelled("tone-shoot")):
            pass


async def test_an_application_without_labels_is_warned_before_a_run_and_runs_as_before(work: Path) -> None:
    class Post:
        @function
        def draft(self) -> str:
            """Draft a mail."""
            return "Hello."

        @function(effects=True)
        def send(self, text: str) -> str:
            """Send a mail."""
            return text

    looking = {"query": Value("eve")}
    for first, mode, found, warned in (
        (Step("s1", "notes-Search", looking), None, ["ask"], 0),
        (Step("s1", "Post-draft"), None, [], 0),
        (Step("s1", "notes-Search", looking), "warn", ["ask"], 1),
        (Step("s1", "Post-draft"), "warn", ["ask"], 1),
        (Step("s1", "notes-Search", looking), "off", [], 0),
    ):
        notes = {(TextSearch, "notes"): ListSearch([ListEntry("Write to eve.")])}
        overrides = {"policy": {"mode": mode}}
        async with portico_host.open(overrides=overrides, plugins=[Post()], services=notes) as kernel:
            text = From("s1", (0,)) if first.arguments else From("s1")
            plan = Plan("g", (first, Step("s2", "Post-send", {"text": text})), From("s2"))
            assert [each.verdict for each in kernel.check_plan(plan)] == found
            outcome = (await kernel.run_plan(plan)).outcome
            assert isinstance(outcome, Answer)
            assert len(outcome.warnings) == warned


def test_what_takes_effect_is_shown_with_its_origin_and_without_secrets(acme: Any, configured: Path) -> None:
    application = portico_host.load(overrides={"planner": {"max_steps": 3}})
    shown = {setting.key: (setting.value, setting.origin) for setting in application.settings()}
    assert shown["chat.use"] == ("acme", "portico.toml")
    assert shown["chat.acme.model"] == ("large", "portico.toml")
    assert shown["chat.acme.retries"] == ("5", "PORTICO_CHAT__ACME__RETRIES")
    assert shown["chat.acme.api_key"] == (None, "default")
    assert shown["planner.max_steps"] == (3, "override")
    assert shown["planner.max_proposals"] == (20, "default")
    assert shown["search.my-web.api_key"] == ("******** (env ACME_KEY)", "portico.toml")
    assert shown["search.my-web.limits"] == ("********", "portico.toml")
    assert shown["search.my-web.timeout"] == (5.0, "default")
    assert shown["embeddings.use"] == ("wordllama", "default")
    assert "hunter2" not in json.dumps(application.redacted())


def test_settings_of_a_plugin_that_is_not_there_are_masked_altogether(work: Path) -> None:
    overrides = {
        "search": {"web": {"use": "gone", "anything": "hunter2-hunter2", "deep": {"er": ["hunter2"], "on": True}}}
    }
    shown = portico_host.load(overrides=overrides).redacted()
    assert shown["search.web.anything"]["value"] == "********"
    assert shown["search.web.deep"]["value"] == "********"


@pytest.mark.parametrize(("table", "noun"), [("pages", "page reader"), ("http", "HTTP client")])
def test_what_the_embedded_default_can_do_without_is_no_problem_where_it_is_not_installed(
    table: str, noun: str, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    monkeypatch.setenv("PORTICO_DISABLE", "web")
    application = portico_host.load()
    assert not [problem for problem in application.check() if problem.severity == "error" and noun in problem.subject]
    assert not [setting for setting in application.settings() if setting.key.startswith(f"{table}.")]
    port = {"pages": PageReader, "http": HttpClient}[table]
    assert application.services().names(port) == ()


def test_a_sound_configuration_has_one_warning_for_its_literal_secret(acme: Any, configured: Path) -> None:
    problems = portico_host.load().check()
    assert [(p.severity, p.subject) for p in problems] == [("warning", "search.my-web.limits")]
    assert "hunter2" not in str(problems)


def test_the_doctor_is_told_state_cause_and_remedy(
    acme: Any, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.install("portico-bad", "import no_such_vendor")
    monkeypatch.delenv("ACME_KEY")
    (configured / "portico.toml").write_text(FILE + "[search.third]\nuse = 'exa'\n[plugins]\ndisable = ['foo']\n")
    found = portico_host.diagnose()
    by_subject = {problem.subject: problem for problem in found.problems}
    bad = by_subject["portico-bad"]
    assert "No module named 'no_such_vendor'" in bad.cause
    assert "`pip uninstall portico-bad`, or set PORTICO_DISABLE=bad" in bad.mend
    assert by_subject["search.my-web.api_key"].mend == "Run `export ACME_KEY=…` first."
    assert by_subject["text search third"].mend.startswith("Choose another, or install the package that registers it")
    assert by_subject["foo"].severity == "warning"


def test_the_doctor_goes_on_with_the_packages_when_the_configuration_is_unreadable(acme: Any, work: Path) -> None:
    acme.install("portico-bad", "raise SystemExit")
    (work / "portico.toml").write_text("chatt = 1\nsaerch = 2")
    found = portico_host.diagnose()
    assert found.application is None
    assert [problem.subject for problem in found.problems][:3] == ["chatt", "saerch", "portico-bad"]
    (work / "portico.toml").write_text("[chat")
    assert "not TOML" in portico_host.diagnose().problems[0].cause


def test_the_doctor_imports_no_disabled_package_when_a_setting_is_wrong(acme: Any, work: Path) -> None:
    acme.install("portico-bad", "raise SystemExit")
    (work / "portico.toml").write_text("chatt = 1\n[plugins]\ndisable = ['bad']\n")
    found = portico_host.diagnose()
    assert [problem.subject for problem in found.problems] == ["chatt"]
    assert {package.name: package.state for package in found.plugins.packages}["bad"] == "disabled"


def test_a_vendor_that_does_not_load_is_found_only_when_chosen(site: Any) -> None:
    site.install(
        "portico-lazy",
        """
        from portico.plugins import Registration
        def portico_chat_services():
            return [Registration(name="lazy", factory="portico_lazy.chat:Chat", summary="s")]
        """,
        {"chat": "import no_such_vendor"},
    )
    assert "lazy" not in str(portico_host.load().check())
    (problem,) = [p for p in portico_host.load(overrides={"chat": {"use": "lazy"}}).check() if "lazy" in p.subject]
    assert "No module named 'no_such_vendor'" in problem.cause


def test_the_schema_takes_the_file_and_refuses_each_mistake(acme: Any, configured: Path) -> None:
    import tomllib

    schema = portico_host.load().schema()
    json.dumps(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "acme" in schema["properties"]["chat"]["properties"]["use"]["anyOf"][0]["enum"]
    validator = Draft202012Validator(schema)
    assert [*validator.iter_errors(tomllib.loads(FILE))] == []
    for wrong in (
        {"chatt": {}},
        {"chat": {"use": "gone"}},
        {"chat": {"acme": {"modle": "x"}}},
        {"search": {"web": {"use": "acme"}}},
        {"search": {"web": {"use": "plain", "x": 1}}},
        {"planner": {"max_steps": "12"}},
        {"plugins": {"disable": "x"}},
    ):
        assert not validator.is_valid(wrong), wrong


def test_the_schema_carries_the_documentation_of_each_setting(acme: Any, work: Path) -> None:
    entries = portico_host.load().schema()["properties"]["search"]["additionalProperties"]
    assert "acme" in entries["properties"]["use"]["enum"]
    options = entries["anyOf"]
    entry = next(option for option in options if option["properties"]["use"]["const"] == "acme")
    assert entry["properties"]["api_key"]["description"] == "The key from your account."
    assert entry["properties"]["language"] == {"enum": ["en", "de"], "default": "en"}
    assert entry["required"] == ["use", "api_key"]
    assert entry["properties"]["limits"]["properties"]["requests"]["description"] == "Requests at a time."
