from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico import FunctionLabels
from portico.errors import ConfigurationError
from portico.ports import PORTS
from portico_host.configuration import Configuration, read_configuration
from portico_host.packages import port_named

TEXT_SEARCH = port_named("TextSearch")
CHAT = port_named("ChatService")


def read(text: str | bytes | None = None, environ: dict[str, str] | None = None, **overrides: Any) -> Configuration:
    if text is not None:
        Path("portico.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return read_configuration(environ=environ or {}, overrides=overrides)


def refusal(text: str | bytes | None = None, environ: dict[str, str] | None = None, **overrides: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(text, environ, **overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[chat]\nuse = "a', "portico.toml: not TOML: "),
        ("[chat\n", "(at line 1, column 6)"),
        ('[chat]\nuse = "a"\nuse = "b"', "not TOML: "),
        (b"[chat]\n\n# \xff", "portico.toml: the file is not UTF-8 text."),
        ("x = " + "[" * 5000, "portico.toml: the values are nested too deeply."),
        (b"#" * 1_100_000, "portico.toml: the file has more than 1048576 bytes."),
        ("[chatt]", "portico.toml: chatt: is not a table of the configuration. Nearest: chat,"),
        ("[qqqq]", "is not a table of the configuration. Known: chat, embeddings, functions"),
        ("chat = 5", "portico.toml: chat: expected a table, got an integer."),
        ("[chat]\nuse = 5", "portico.toml: chat.use: expected a name, got an integer."),
        ('[chat]\nuse = ""', "portico.toml: chat.use: expected a name, got an empty string."),
        (
            '[chat]\nuse = "x"\nmodel = "y"',
            "chat.model: is not a setting here. Settings of a chat service go into [chat.x].",
        ),
        ('[chat]\nues = "x"', "chat.ues: is not a setting here. Nearest: use."),
        ('[search]\ndocs = "x"', "search.docs: expected a table [search.NAME] with `use`, got a string."),
        ("[search.docs]\npath = 'x'", "portico.toml: search.docs.use: is missing; expected the name of a text search."),
        ("[search.'a b']\nuse = 'x'", "search.'a b': a name has letters, digits, '-' and '_' only."),
        ("[planner]\nmax_stepz = 3", "planner.max_stepz: is not a setting here. Nearest: max_steps"),
        ("[planner]\nmax_steps = '3'", "planner.max_steps: expected an integer, got '3' (a string)."),
        ("[planner]\nmax_steps = 0", "planner.max_steps: 'max_steps' must be >= 1: 0."),
        ("[plugins]\ndisable = 'x'", "plugins.disable: expected an array, each a string, got a string."),
        (
            "[policy]\nmode = 'strict'",
            "policy.mode: expected one of 'off', 'warn', 'enforce', got 'strict' (a string).",
        ),
        ("[policy]\nmodes = 'off'", "policy.modes: is not a setting here. Nearest: mode"),
        (
            "[policy.functions.'Mail-*']\ngives = 'trustd'",
            "portico.toml: policy.functions.'Mail-*'.gives: gives of '$': 'trustd' is not known; expected trusted,",
        ),
        (
            "[policy.functions.'Mail-*'.takes]\nto = 'none'",
            "policy.functions.'Mail-*'.takes: takes of 'to': 'none' is not known; expected trusted, anything,",
        ),
        ("[policy.functions.'Mail-*'.gives]\n'a..b' = 'trusted'", "policy.functions.'Mail-*'.gives: "),
        ("[policy.functions.'Mail-*']\nreach = true", "policy.functions.'Mail-*'.reach: is not a setting here."),
        ("[secrets]\nallow = true", "secrets.allow: is not a setting here. Known: allow_files_inside."),
    ],
    ids=lambda value: str(value)[:30],
)
def test_each_mistake_names_file_key_and_what_was_expected(work: Path, text: str | bytes, said: str) -> None:
    assert said in refusal(text)


def test_all_mistakes_are_told_at_once(work: Path) -> None:
    said = refusal("chatt = 1\nembeddings = 2\n[search.docs]\npath = 'x'\n", {"PORTICO_PLANNER__MAX_STEPS": "few"})
    assert said.startswith("4 mistakes in the configuration:\n")
    assert "PORTICO_PLANNER__MAX_STEPS: planner.max_steps: expected an integer, got 'few' (a string)." in said


def test_a_file_that_was_asked_for_must_be_there(work: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'no\.toml' cannot be read: No such file"):
        read_configuration("no.toml")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_configuration(".")
    with pytest.raises(ConfigurationError, match="its name is not a path"):
        read_configuration("a\0b")


def test_only_the_working_directorys_file_is_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "portico.toml").write_text('[chat]\nuse = "above"')
    (work / "below").mkdir()
    monkeypatch.chdir(work / "below")
    configuration = read()
    assert configuration.path is None
    assert configuration.use(CHAT) is None
    given = read_configuration(work / "portico.toml", environ={})
    assert (given.use(CHAT), given.folder) == ("above", work)


def test_a_byte_order_mark_is_no_mistake(work: Path) -> None:
    assert read(b'\xef\xbb\xbf[chat]\nuse = "x"').use(CHAT) == "x"


def test_overrides_go_over_the_environment_and_that_over_the_file(work: Path) -> None:
    text = '[chat]\nuse = "file"\n[chat.x]\na = 1\nb = 1\nc = 1\n'
    environ = {"PORTICO_CHAT__USE": "env", "PORTICO_CHAT__X__B": "2", "PORTICO_CHAT__X__C": "2"}
    configuration = read(text, environ, chat={"use": "over", "x": {"c": 3, "d": None}})
    entry = configuration.entry(CHAT, "x")
    assert entry is not None
    assert (configuration.use(CHAT), dict(entry.settings)) == ("over", {"a": 1, "b": "2", "c": 3})
    places = [configuration.place(("chat", "x", key)) for key in "abc"]
    assert places == ["portico.toml", "PORTICO_CHAT__X__B", "override"]


def test_a_variable_finds_a_name_with_hyphens_and_capitals(work: Path) -> None:
    configuration = read("[search.My-Docs]\nuse = 'x'", {"PORTICO_SEARCH__MY_DOCS__PATH": "a"})
    (entry,) = configuration.entries(TEXT_SEARCH)
    assert (entry.name, dict(entry.settings)) == ("My-Docs", {"path": "a"})


def test_a_source_can_come_from_the_environment_alone(work: Path) -> None:
    environ = {"PORTICO_SEARCH__WEB__USE": "brave", "PORTICO_SEARCH__WEB__API_KEY__ENV": "KEY"}
    (entry,) = read(None, environ).entries(TEXT_SEARCH)
    assert (entry.name, entry.use, dict(entry.settings)) == ("web", "brave", {"api_key": {"env": "KEY"}})


def test_variables_that_are_no_settings_are_left_alone(work: Path) -> None:
    assert read(None, {"PORTICO_DISABLE": "x", "PORTICO_HOME": "y", "OTHER__X": "z"}).values == {}


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"PORTICO_CHATT__USE": "x"}, "PORTICO_CHATT__USE: chatt: is not a table of the configuration. Nearest: chat,"),
        ({"PORTICO___X": "x"}, "PORTICO___X: is not of the form PORTICO_TABLE__KEY."),
        ({"PORTICO_SEARCH__WEB__PATH": "a"}, "PORTICO_SEARCH__WEB__PATH: search.web.use: is missing"),
    ],
)
def test_a_mistake_in_a_variable_names_it(work: Path, environ: dict[str, str], said: str) -> None:
    assert said in refusal(None, environ)


def test_a_source_given_to_another_plugin_keeps_nothing_of_the_first(work: Path) -> None:
    text = "[search.docs]\nuse = 'brave'\napi_key = 'x'\n"
    (entry,) = read(text, search={"docs": {"use": "documents", "path": "p"}}).entries(TEXT_SEARCH)
    assert (entry.use, dict(entry.settings)) == ("documents", {"path": "p"})
    (entry,) = read(text, search={"docs": {"use": "brave", "count": 3}}).entries(TEXT_SEARCH)
    assert dict(entry.settings) == {"api_key": "x", "count": 3}


def test_the_loops_budget_stands_beside_the_planners_name(work: Path) -> None:
    configuration = read("[planner]\nuse = 's'\nmax_steps = 12\nmax_seconds = 3\n[planner.s]\nmax_steps = 5")
    assert (configuration.budget.max_steps, configuration.budget.max_seconds) == (12, 3.0)
    entry = configuration.entry(port_named("Planner"), "s")
    assert entry is not None
    assert entry.settings == {"max_steps": 5}


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["use", "x", "disable", "max_steps", "a b", "file"]), inner, max_size=3)
    ),
    max_leaves=10,
)
NAMES = st.sampled_from([*(port.table for port in PORTS), "plugins", "secrets", "chatt", ""])
VARIABLES = st.lists(st.sampled_from(["CHAT", "SEARCH", "X", "USE", "PLANNER", "", "_", "É"]), min_size=1, max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(NAMES, TREES, max_size=5),
    st.dictionaries(VARIABLES.map(lambda words: "PORTICO_" + "__".join(words)), st.text(max_size=8), max_size=4),
)
def test_anything_is_a_configuration_or_a_configuration_error(
    work: Path, overrides: dict[str, Any], environ: dict[str, str]
) -> None:
    try:
        configuration = read(None, environ, **overrides)
    except ConfigurationError:
        return
    for port in PORTS:
        for entry in configuration.entries(port):
            assert configuration.place(entry.key)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_file_is_a_configuration_or_a_configuration_error(work: Path, content: str | bytes) -> None:
    said = "portico.toml"
    try:
        read(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    except ConfigurationError as error:
        said = str(error)
    assert "portico.toml" in said


@pytest.mark.parametrize(
    ("text", "mode", "quiet"),
    [
        ("", "warn", True),
        ("[policy]", "warn", True),
        ("[policy]\nmode = 'warn'", "warn", False),
        ("[policy]\nmode = 'off'", "off", False),
        ("[policy.functions.'Mail-*']\ntakes = { body = 'anything' }", "enforce", False),
        ("[policy]\nmode = 'warn'\n[policy.functions.x]\ngives = 'trusted'", "warn", False),
    ],
)
def test_an_application_that_says_nothing_is_warned_and_one_with_labels_is_guarded(
    work: Path, text: str, mode: str, *, quiet: bool
) -> None:
    policy = read(text).policy.policy()
    assert (policy.mode, policy.quiet) == (mode, quiet)


def test_labels_are_a_word_for_a_whole_result_or_a_table_of_paths(work: Path) -> None:
    written = "gives = { '[*].id' = 'trusted' }\ntakes = { to = 'trusted else refuse' }\nreaches_out = true"
    text = f"[policy.functions.'Mail-*']\n{written}\n[policy.functions.Clock-now]\ngives = 'trusted'"
    policy = read(text, {"PORTICO_POLICY__MODE": "warn"}).policy.policy()
    assert policy.mode == "warn"
    assert policy.functions == {
        "Mail-*": FunctionLabels.read({"[*].id": "trusted"}, {"to": "trusted else refuse"}, reaches_out=True),
        "Clock-now": FunctionLabels.read("trusted"),
    }
