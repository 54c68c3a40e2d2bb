"""The URI of a database: what is taken, and that neither what is refused nor the place says anything secret."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import attrs
import pytest
from hypothesis import assume, given, strategies as st

from portico._plugins.registration import Secret, ValueForm


@attrs.frozen
class Acme:
    uri: Secret = attrs.field(validator=ValueForm.database_uri("postgresql", "postgres"))


ODD = st.text(st.sampled_from("ab1:/?#@%[]&=, +\\'\"."), max_size=12)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(TEXTS | ODD, st.sampled_from(["", "ada"]), st.sampled_from(["", ":6543"]))
def test_a_password_that_is_encoded_is_taken_and_is_not_in_the_place(password: str, user: str, port: str) -> None:
    assume("\0" not in password)
    secret = quote(f"zebra{password}walrus", safe="")
    uri = Secret(f"postgresql://{user}:{secret}@db.example{port}/portico?sslmode=require")
    Acme(uri)
    assert uri.database_place() == f"postgresql://db.example{port}/portico"


@given(TEXTS | ODD, st.sampled_from(["", "ada"]))
def test_a_password_that_is_not_encoded_is_taken_as_one_or_refused_without_being_quoted(
    password: str, user: str
) -> None:
    secret = f"zebra{password}walrus"
    uri = Secret(f"postgresql://{user}:{secret}@db.example/portico")
    taken, refused = [], []
    for read in (Acme, Secret.database_place):
        try:
            taken.append(str(read(uri)))
        except ValueError as error:
            refused.append(error)
    assert not taken or not refused, "who checks and who shows agree"
    for error in refused:
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
    for said in [*taken, *map(str, refused)]:
        assert "zebra" not in said, "a part of the password is in the message"
        assert "walrus" not in said, "a part of the password is in the message"
    if taken:
        assert taken[1] == "postgresql://db.example/portico"


@given(ODD | TEXTS, ODD, ODD, ODD)
def test_what_is_taken_has_the_same_parts_for_every_reader_of_uris(
    user: str, hosts: str, database: str, options: str
) -> None:
    uri = f"postgresql://{user}@{hosts}/{database}?{options}"
    try:
        place = Secret(uri).database_place()
        parts = urlsplit(uri)
    except ValueError:
        # Python refuses some more: a port out of range, brackets around what is no address.
        return
    named = parts.netloc.rpartition("@")[2]
    assert place.partition("?")[0] == f"postgresql://{named}/{parts.path.removeprefix('/')}"
    assert parts.fragment == ""


@given(st.text())
def test_any_text_is_a_uri_or_refused_without_being_quoted(text: str) -> None:
    # The first is no scheme: a scheme is shown.
    for uri in (
        Secret(f"://zebra{text}"),
        Secret(f"postgresql://zebra{text}@h/d"),
        Secret(f"postgresql://:zebra{text}@"),
    ):
        for read in (Acme, Secret.database_place):
            try:
                said = repr(read(uri))
            except ValueError as error:
                said = str(error)
            assert "zebra" not in said


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("postgresql://", "postgresql:///"),
        ("postgres://db.example", "postgres://db.example/"),
        ("postgresql:///portico", "postgresql:///portico"),
        ("postgresql://ada@/portico?host=/run/postgresql", "postgresql:///portico?host=/run/postgresql"),
        ("postgresql://ada:secret@%2Frun%2Fpostgresql/portico", "postgresql://%2Frun%2Fpostgresql/portico"),
        (
            "postgresql://ada:secret@one.example:5432,two.example:5433/portico?target_session_attrs=read-write",
            "postgresql://one.example:5432,two.example:5433/portico",
        ),
        ("postgresql://ada:secret@[::1]:5432/portico", "postgresql://[::1]:5432/portico"),
        ("postgresql://ada:sec:ret@db.example/portico?host=other&password=secret", "postgresql://db.example/portico"),
    ],
)
def test_the_place_is_the_uri_without_what_is_secret(uri: str, place: str) -> None:
    Acme(Secret(uri))
    assert Secret(uri).database_place() == place


@pytest.mark.parametrize(
    "uri",
    [
        "db.example",
        "postgresql+psycopg://ada:secret@db.example/portico",
        "host=db.example password=secret",
        "postgresql://ada:secret@db.example/portico\n",
        "postgresql://ada:sec%ret@db.example/portico",
        "postgresql://ada:sec%00ret@db.example/portico",
        "postgresql://ada:sec@ret@db.example/portico",
        "postgresql://ada:sec/ret@db.example/portico",
        "postgresql://ada:sec?ret@db.example/portico",
        "postgresql://ada:sec#ret@db.example/portico",
        "postgresql://ada:sec[ret@db.example/portico",
        "postgresql://ada:123/ret@db.example/portico",
        "postgresql://ada:1/x?y=secret@db.example/portico",
        "postgresql://ada:secret@db.example:000005432/portico",
    ],
)
def test_what_cannot_be_read_says_what_to_write(uri: str) -> None:
    with pytest.raises(ValueError, match=r"^uri is of the form postgresql://.*%40 .*%25$") as caught:
        Acme(Secret(uri))
    said = str(caught.value).replace("%23 ", "")
    assert not any(part in said for part in ("secret", "sec/", "sec?", "sec#", "sec[", "ret@", "123"))
