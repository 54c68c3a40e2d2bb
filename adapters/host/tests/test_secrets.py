from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.plugins import Secret
from portico_host.configuration import read_configuration
from portico_host.problems import SettingsInvalid
from portico_host.settings import SecretSource, Structurer
from portico_host.tree import Given


@frozen
class Login:
    password: Secret
    user: str = "me"


def refuse(instance: object, attribute: object, value: Secret | None) -> None:
    if value is not None:
        raise ValueError(f"the key {value.reveal()} is too short")


@frozen
class Holder:
    api_key: Secret | None = None
    keys: tuple[Secret, ...] = ()
    headers: Mapping[str, Secret] = field(factory=dict)
    login: Login | None = None
    logins: list[Login] = field(factory=list)
    either: Secret | int = 1
    checked: Secret | None = field(default=None, validator=refuse)


def make(
    values: Mapping[str, Any], folder: Path, environ: Mapping[str, str] | None = None, inside: bool = False
) -> Holder:
    made = Structurer(SecretSource(environ or {}, folder, inside)).structure(Holder, values)
    assert isinstance(made, Holder)
    return made


def sentence(*arguments: Any, **options: Any) -> str:
    with pytest.raises(SettingsInvalid) as caught:
        make(*arguments, **options)
    (problem,) = caught.value.problems
    return str(problem)


def test_a_secret_comes_from_a_variable(tmp_path: Path) -> None:
    key = make({"api_key": {"env": "KEY"}}, tmp_path, {"KEY": "hunter2"}).api_key
    assert key is not None
    assert (key.reveal(), key.origin) == ("hunter2", "env KEY")


def test_a_secret_comes_from_a_file_outside_the_configurations_folder(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "key").write_text("hunter2\n")
    key = make({"api_key": {"file": "../key"}}, tmp_path / "project").api_key
    assert key is not None
    assert (key.reveal(), key.origin) == ("hunter2", "file ../key")


def test_a_secrets_file_inside_the_configurations_folder_is_refused_unless_allowed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2")
    refused = sentence({"api_key": {"file": "key"}}, tmp_path)
    assert "lies inside the configuration's folder" in refused
    assert "allow_files_inside = true in [secrets]" in refused
    assert make({"api_key": {"file": "key"}}, tmp_path, inside=True).api_key == Secret("hunter2")


def test_a_link_out_of_and_into_the_folder_is_followed_before_it_is_judged(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "key").write_text("hunter2")
    (tmp_path / "link").symlink_to(project / "key")
    assert "lies inside" in sentence({"api_key": {"file": "../link"}}, project)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"env": "KEY"}, "api_key: the environment variable KEY is not set. Run `export KEY=…` first."),
        ({"env": "EMPTY"}, "api_key: the environment variable EMPTY is empty. Run `export EMPTY=…` first."),
        ({"env": "A", "file": "b"}, "got a table with 'env', 'file'."),
        ({}, "got an empty table."),
        ({"enw": "KEY"}, "got a table with 'enw'."),
        ({"env": 5}, "got a table with 'env'."),
        ({"env": ""}, "got a table with 'env'."),
        ("", "got an empty string."),
        ({"file": "/no/such"}, "the secret's file '/no/such' cannot be read: No such file or directory."),
        ({"file": "/"}, "cannot be read: Is a directory."),
        ({"file": "a\0b"}, "or its name is not a path."),
    ],
)
def test_each_mistake_with_a_secret_is_told(raw: Any, said: str, tmp_path: Path) -> None:
    assert said in sentence({"api_key": raw}, tmp_path, {"EMPTY": ""})


def test_a_secrets_file_is_bounded_and_must_be_text(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for content, said in [(b"a" * 70_000, "more than 65536 bytes"), (b"\xff\xfe", "not UTF-8"), (b"\n", "is empty")]:
        (tmp_path / "key").write_bytes(content)
        assert said in sentence({"api_key": {"file": "../key"}}, folder)


def test_a_validator_that_quotes_a_secret_is_scrubbed(tmp_path: Path) -> None:
    assert "hunter2" not in sentence({"checked": "hunter2"}, tmp_path)


def test_a_number_where_a_secret_may_be_is_not_shown(tmp_path: Path) -> None:
    assert sentence({"either": 1234.5}, tmp_path).endswith("got a float.")


SECRETS = st.text("abcdefghijklmnopqrstuvwxyz0123456789/+-_\"'\\ ", min_size=8, max_size=20).map(
    lambda text: f"sk-{text}!"
)


def placed(secret: str) -> st.SearchStrategy[dict[str, Any]]:
    wherever = st.recursive(
        st.sampled_from([secret, Given(secret, "env PORTICO_X", textual=True), {"env": "KEY"}, 5, True]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["password", "user", "env", "file", "a", "passwort"]), inner, max_size=3)
        ),
        max_leaves=6,
    )
    return st.dictionaries(
        st.sampled_from([*(a.name for a in Holder.__attrs_attrs__), "api_kee"]), wherever, max_size=4
    )  # type: ignore[attr-defined]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_secret_is_in_any_error_or_repr(tmp_path: Path, data: st.DataObject) -> None:
    secret = data.draw(SECRETS)
    values = data.draw(placed(secret))
    structurer = Structurer(SecretSource({"KEY": secret}, tmp_path))
    try:
        shown = repr(structurer.structure(Holder, values))
    except SettingsInvalid as error:
        shown = "".join(traceback.format_exception(error)) + repr(error) + str(error) + repr(error.__context__)
    # A secret in a field of plain text (`user`), or as the name of a variable or file, is none to us.
    if not {"user", "env", "file"} & set(names(values)):
        assert secret not in shown
        assert repr(secret)[1:-1] not in shown


def names(value: Any) -> list[str]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    here = [key for key, part in value.items() if part != "KEY"] if isinstance(value, dict) else []
    return here + [name for part in parts for name in names(part)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECRETS.filter(lambda text: "\\" not in text and '"' not in text))
def test_no_secret_is_in_the_repr_or_the_errors_of_a_configuration(work: Path, secret: str) -> None:
    (work / "portico.toml").write_text(f'[chat.x]\napi_key = "{secret}"\n')
    environ = {"PORTICO_CHAT__X__OTHER": secret}
    configuration = read_configuration(environ=environ)
    assert secret not in repr(configuration)
    assert secret not in repr(configuration.entries)
    assert secret not in repr(__import__("portico_host").Application(configuration).settings())
    for wrong in (
        f'chat = "{secret}"',
        f'[chat]\nx = "{secret}"',
        f'[chatt]\nx = "{secret}"',
        f'[search]\nx = "{secret}"',
    ):
        (work / "portico.toml").write_text(wrong)
        with pytest.raises(SettingsInvalid) as caught:
            read_configuration(environ={})
        assert secret not in "".join(traceback.format_exception(caught.value))
