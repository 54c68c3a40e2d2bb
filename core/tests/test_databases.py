"""What the SQLite files of Portico share: whole transactions, the log, and the codes of errors."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from portico._plugins.databases import Sqlite
from portico.errors import StoreBusy, StoreDamaged, StoreError


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None, timeout=0)) as opened:
        opened.execute("CREATE TABLE numbers (number INTEGER UNIQUE)")
        yield opened


@given(blocks=st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=4), st.booleans()), max_size=8))
def test_a_block_is_written_as_a_whole_or_not_at_all(blocks: list[tuple[list[int], bool]]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.execute("CREATE TABLE numbers (number INTEGER)")
        expected: list[int] = []
        for numbers, fails in blocks:
            try:
                with Sqlite.transaction(memory):
                    memory.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in numbers])
                    if fails:
                        raise KeyboardInterrupt
                expected += numbers
            except KeyboardInterrupt:
                assert fails
            assert not memory.in_transaction
            assert [number for (number,) in memory.execute("SELECT number FROM numbers ORDER BY rowid")] == expected


def test_an_error_that_has_rolled_back_already_comes_through_as_it_is(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError), Sqlite.transaction(connection):
        connection.execute("INSERT INTO numbers VALUES (1)")
        connection.execute("INSERT OR ROLLBACK INTO numbers VALUES (1)")
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)


def test_writing_keeps_other_writers_out_and_reading_sees_one_state(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    Sqlite.use_log(connection, 1)
    with closing(sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None, timeout=0)) as other:
        with (
            Sqlite.transaction(connection),
            pytest.raises(sqlite3.OperationalError, match="locked"),
            Sqlite.transaction(other),
        ):
            pass
        with Sqlite.transaction(other, write=False):
            assert other.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
            connection.execute("INSERT INTO numbers VALUES (1)")
            assert other.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM numbers").fetchone() == (1,)


def test_turning_the_log_on_waits_for_who_is_in_the_way_and_then_says_so(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            Sqlite.use_log(connection, 0.05)
        assert caught.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
        leaving = threading.Timer(0.1, other.execute, ["COMMIT"])
        leaving.start()
        Sqlite.use_log(connection, 30)
        leaving.join()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_is_none_of_ours_is_damaged_and_one_that_is_locked_is_busy(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(b"This is no database. " * 200)
    with closing(sqlite3.connect(tmp_path / "text")) as other, pytest.raises(sqlite3.Error) as caught:
        other.execute("SELECT * FROM numbers")
    assert type(Sqlite.error(caught.value, "The file", damaged="", advice="")) is StoreDamaged
    for statement in ("SELECT * FROM others", "SELECT other FROM numbers", "SELECT CAST(x'ff' AS TEXT)"):
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute(statement).fetchall()
        assert type(Sqlite.error(caught.value, "The file", damaged="", advice="")) is StoreDamaged, statement
    with closing(sqlite3.connect(tmp_path / "file.sqlite3", isolation_level=None, timeout=0)) as other:
        with Sqlite.transaction(connection), pytest.raises(sqlite3.Error) as caught, Sqlite.transaction(other):
            pass
        assert type(Sqlite.error(caught.value, "The file", damaged="", advice="")) is StoreBusy
    connection.execute("INSERT INTO numbers VALUES (1)")
    with pytest.raises(sqlite3.Error) as caught:
        connection.execute("INSERT INTO numbers VALUES (1)")
    assert type(Sqlite.error(caught.value, "The file", damaged="", advice="")) is StoreError


def seal(file: Path) -> None:
    """Make a database with a log, seal it and close it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        Sqlite.use_log(opened, 1)
        opened.execute("CREATE TABLE numbers (number INTEGER)")
        opened.execute("INSERT INTO numbers VALUES (1)")
        Sqlite.seal(opened, file)


@settings(max_examples=20)
@given(place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), cut=st.booleans())
def test_no_byte_of_a_sealed_database_changes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: float, bits: int, cut: bool
) -> None:
    file = tmp_path_factory.mktemp("sealed") / "file.sqlite3"
    seal(file)
    assert Sqlite.is_sealed(file)
    data = bytearray(file.read_bytes())
    at = int(place * len(data))
    data[at:] = b"" if cut else bytes([data[at] ^ bits]) + data[at + 1 :]
    file.write_bytes(data)
    with pytest.raises(sqlite3.OperationalError, match="not those that were written"):
        Sqlite.is_sealed(file)


def test_a_sealed_database_that_is_gone_is_noticed_and_one_without_a_seal_is_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "file.sqlite3"
    assert not Sqlite.is_sealed(file)
    seal(file)
    file.unlink()
    with pytest.raises(sqlite3.OperationalError):
        Sqlite.is_sealed(file)
    Sqlite.unseal(file)
    assert not Sqlite.is_sealed(file)


def test_a_database_that_others_read_or_write_is_not_sealed(connection: sqlite3.Connection, tmp_path: Path) -> None:
    file = tmp_path / "file.sqlite3"
    Sqlite.use_log(connection, 1)
    connection.execute("INSERT INTO numbers VALUES (1)")
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM numbers").fetchone() == (1,)
        connection.execute("INSERT INTO numbers VALUES (2)")
        Sqlite.seal(connection, file)
        assert not Sqlite.is_sealed(file)
        reader.execute("COMMIT")
    Sqlite.seal(connection, file)
    assert Sqlite.is_sealed(file)


def test_looking_at_a_seal_keeps_the_locks_of_an_open_database(tmp_path: Path) -> None:
    """POSIX drops the locks of a process on a file when the process closes any descriptor of it."""
    file = tmp_path / "file.sqlite3"
    seal(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        assert opened.execute("SELECT count(*) FROM numbers").fetchone() == (1,)
        assert Sqlite.is_sealed(file)
        opened.execute("INSERT INTO numbers VALUES (2)")
        other = f"import sqlite3; sqlite3.connect({str(file)!r}).execute('SELECT * FROM numbers').fetchall()"
        subprocess.run([sys.executable, "-c", other], check=True)
        # The last connection to a file takes its log away.
        assert file.with_name("file.sqlite3-wal").exists()
