"""What is refused as a setting, and that no password is seen anywhere."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given, strategies as st
from sqlalchemy.exc import OperationalError

from portico.errors import StoreUnavailable
from portico.plugins import Secret
from portico_dbos._errors import map_errors
from portico_dbos._names import attempt_id, id_of, kind_of, name_of, queue_of, step_name, workflow_of
from portico_dbos.config import DbosSettings, Rate
from portico_dbos.runner import DbosRunner

names = st.text(min_size=1, max_size=60)


@given(names, names)
def test_any_name_is_an_identifier_of_its_own_and_comes_back(one: str, other: str) -> None:
    assert name_of(id_of(one)) == one
    assert (id_of(one) == id_of(other)) == (one == other)
    assert id_of(one).strip()
    assert "\x00" not in id_of(one)
    assert kind_of(workflow_of(one)) == one
    assert len({id_of(one), attempt_id(one, 1), attempt_id(one, 2)}) == 3
    assert attempt_id(one, 1) != id_of(other)


@given(st.text(max_size=60))
def test_any_name_is_one_of_a_step(name: str) -> None:
    assert name_of(step_name(name)) == name
    assert step_name(name)


@pytest.mark.parametrize("wrong", ["", "x" * 1_001, "\x00" * 400], ids=["empty", "long", "long when it is written"])
def test_names_that_no_database_takes_are_refused(wrong: str) -> None:
    for make in (id_of, queue_of, workflow_of):
        with pytest.raises(ValueError, match=r"name of a job|kind of a job"):
            make(wrong)


@given(st.text(min_size=3, max_size=30) | st.text(st.sampled_from("a1:/?#@%[]&="), min_size=1, max_size=12))
def test_no_password_is_in_a_repr_a_place_or_a_complaint(password: str) -> None:
    password = f"s3c{password}w4l"
    for uri in (
        f"postgresql://ada:{password}@db.example/portico",
        f"postgres://ada:{quote(password, '')}@[::1]:5/p?a=b",
    ):
        try:
            settings = DbosSettings(uri=Secret(uri))
        except ValueError as error:
            said = f"{error} {error!r}"
        else:
            runner = DbosRunner(settings)
            said = f"{settings!r} {runner!r} {runner.jobs!r} {runner.jobs.place}"
            assert runner.jobs.place.endswith(("://db.example/portico", "://[::1]:5/p"))
        assert "s3c" not in said
        assert "w4l" not in said


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("concurrency", [0, -1, 1_001]),
        ("poll", [0, -1.0, float("nan"), float("inf"), 61]),
        ("worker_timeout", [0, 0.1, float("nan"), 3_601]),
        ("attempts", [0, 1_001]),
        ("keep_days", [0, -1, float("nan")]),
        ("pool_size", [0, 3, 1_001]),
        ("version", ["", " ", "a\nb", "x" * 101]),
        ("schema", ["", "pg_catalog", "a\x00b", "x" * 64, "ä" * 32, 'a"b', "a:b", "a%sb", "1a", "a b", "a\n"]),
        ("uri", [Secret("sqlite:///x"), Secret("postgresql://a b/c"), Secret("")]),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(name: str, values: list[Any]) -> None:
    for wrong in values:
        with pytest.raises(ValueError, match=name):
            DbosSettings(**{name: wrong})


@pytest.mark.parametrize(("jobs", "seconds"), [(0, 1.0), (1, 0.0), (1, float("nan")), (1, -1.0)])
def test_a_rate_that_makes_no_sense_is_refused(jobs: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"jobs|seconds"):
        Rate(jobs, seconds)


def test_what_the_library_says_of_each_host_is_one_sentence_each() -> None:
    said = (
        'connection failed: connection to server at "a", port 1 failed: Connection refused\n'
        "\tIs the server running on that host and accepting TCP/IP connections?\n"
        'connection to server at "b", port 2 failed: timeout expired'
    )
    with pytest.raises(StoreUnavailable) as caught, map_errors("postgresql://a,b/p"):
        raise OperationalError("SELECT 1", None, psycopg.OperationalError(said))
    assert str(caught.value) == (
        'postgresql://a,b/p cannot be reached: connection to server at "a", port 1 failed: '
        'Connection refused; connection to server at "b", port 2 failed: timeout expired. '
        "Start the server, or correct `uri` in [runner.dbos]."
    )


def test_a_server_that_only_starts_is_to_be_asked_again_and_not_to_be_corrected() -> None:
    said = 'connection failed: connection to server at "a", port 1 failed: FATAL:  the database system is starting up'
    told = r"cannot be reached: .*starting up\. Start the server"
    with pytest.raises(StoreUnavailable, match=told), map_errors("postgresql://a/p"):
        raise OperationalError("SELECT 1", None, psycopg.OperationalError(said))


def test_nothing_is_opened_or_imported_before_it_is_used() -> None:
    program = """
import sys, threading
from pathlib import Path
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner
runner = DbosRunner(DbosSettings(path=Path("/no/such/folder/dbos.sqlite3")))
runner.jobs.place, repr(runner)
print([name for name in ("dbos", "sqlalchemy", "psycopg") if name in sys.modules], threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[] 1\n", "")
