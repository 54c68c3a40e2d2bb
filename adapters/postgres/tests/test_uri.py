"""The URI of a database: PostgreSQL's library reads what is taken as core does, and what is refused is not quoted."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given, strategies as st
from psycopg.conninfo import conninfo_to_dict

from portico.errors import ConfigurationError
from portico.plugins import Secret
from portico_postgres._connections import Connections, Part
from portico_postgres.config import ConnectionSettings


def server_of(settings: ConnectionSettings) -> str:
    """Return how messages name the server."""
    return Connections(settings, Part("none", ()), table="[runs.postgres]").place


PASSWORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
ODD = st.text(st.sampled_from("ab1:/?#@%[]&=, +\\'\""), min_size=1, max_size=12)


@given(PASSWORDS)
def test_a_password_that_is_encoded_comes_through_as_it_is_and_is_not_in_the_name_of_the_server(password: str) -> None:
    settings = ConnectionSettings(uri=Secret(f"postgresql://ada:{quote(password, safe='')}@db.example:6543/portico"))
    assert conninfo_to_dict(settings.uri.reveal())["password"] == password
    assert server_of(settings) == "postgresql://db.example:6543/portico"


@given(PASSWORDS | ODD, st.sampled_from(["", "ada"]))
def test_a_password_that_is_not_encoded_is_taken_as_one_or_refused_without_being_quoted(
    password: str, user: str
) -> None:
    secret = f"zebra{password}walrus"
    uri = f"postgresql://{user}:{secret}@db.example/portico"
    try:
        settings = ConnectionSettings(uri=Secret(uri))
        server = server_of(settings)
    except (ValueError, ConfigurationError) as error:
        assert "zebra" not in str(error), "a part of the password is in the message"
        assert "walrus" not in str(error), "a part of the password is in the message"
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
    else:
        parts = conninfo_to_dict(uri)
        assert parts["host"] == "db.example", "a part of the password was taken for the host"
        assert parts["dbname"] == "portico"
        assert parts["password"] == unquote(secret)
        assert server == "postgresql://db.example/portico"


@given(st.text())
def test_any_text_is_a_uri_or_refused_without_being_quoted(text: str) -> None:
    try:
        server_of(ConnectionSettings(uri=Secret(f"zebra{text}")))
    except (ValueError, ConfigurationError) as error:
        assert "zebra" not in str(error)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://",
        "postgres://db.example",
        "postgresql:///portico",
        "postgresql://ada@/portico?host=/run/postgresql",
        "postgresql://ada:secret@%2Frun%2Fpostgresql/portico",
        "postgresql://ada:secret@one.example:5432,two.example:5433/portico?target_session_attrs=read-write",
        "postgresql://ada:secret@[::1]:5432/portico",
        "postgresql://ada:sec:ret@db.example/portico?sslmode=verify-full&application_name=worker",
    ],
)
def test_what_the_library_reads_is_taken(uri: str) -> None:
    settings = ConnectionSettings(uri=Secret(uri))
    assert server_of(settings)
    assert "secret" not in server_of(settings)


def test_an_option_that_the_library_does_not_know_is_refused_without_its_value() -> None:
    settings = ConnectionSettings(uri=Secret("postgresql://ada@db.example/portico?pasword=secret"))
    with pytest.raises(
        ConfigurationError, match="uri has an option, or a value of one, that PostgreSQL's library"
    ) as caught:
        server_of(settings)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schema": ""}, "schema takes"),
        ({"schema": "x" * 64}, "schema takes up to 63"),
        ({"schema": "half \ud800"}, "schema takes"),
        ({"schema": 'a"b'}, "schema takes"),
        ({"schema": "pg_mine"}, "schema takes .*not beginning with pg_"),
        ({"pool_size": 0}, "pool_size"),
        ({"connect_timeout": 0.0}, "connect_timeout"),
        ({"statement_timeout": 0.0}, "statement_timeout"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConnectionSettings(uri=Secret("postgresql://db.example/portico"), **wrong)
