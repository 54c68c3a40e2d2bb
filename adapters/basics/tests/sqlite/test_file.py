"""The file: where it is, what it keeps, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from portico.errors import StoreBusy, StoreDamaged, StoreError
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore
from portico_testkit.event_loop import heartbeat


async def finish(store: SqliteRunStore, run: str, kind: str = "answer", entries: int = 1) -> None:
    lease = await store.acquire(run, owner="me", seconds=60)
    for _ in range(entries):
        await store.append(lease, [{"type": "step-finished", "step": "s1", "result": "x" * 100}])
    await store.append(lease, [{"type": "outcome", "kind": kind}])
    await store.release(lease)


def change(file: Path, statement: str) -> None:
    """Change the file behind the back of any store."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


@contextmanager
def another_writer(file: Path) -> Iterator[None]:
    """Hold the file as another process does that writes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


async def test_nothing_is_opened_before_the_first_call_and_reading_makes_no_file(opened: Any, file: Path) -> None:
    store = opened()
    assert await store.read("r1") == []
    assert await store.runs() == []
    assert not await store.held("r1")
    assert not file.parent.exists()


async def test_without_a_path_it_lies_in_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path))
    store = SqliteRunStore()
    await finish(store, "r1")
    await store.aclose()
    if sys.platform == "linux":
        assert (tmp_path / "portico" / "runs.sqlite3").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
async def test_others_cannot_read_what_runs_gave(opened: Any, file: Path) -> None:
    await finish(opened(), "r1")
    for made in (file, file.with_name("runs.sqlite3-wal")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600, made
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_it_is_gone_on_with_after_closing(opened: Any) -> None:
    store = opened()
    await finish(store, "r1")
    await store.aclose()
    await store.aclose()
    await finish(store, "r2")
    assert await store.runs() == ["r1", "r2"]


async def test_closing_leaves_no_thread(opened: Any) -> None:
    store = opened()
    await finish(store, "r1")
    threads = [each for each in threading.enumerate() if each.name.startswith("portico-basics")]
    assert len(threads) == 1, "all calls have one thread"
    await store.aclose()
    threads[0].join(5)
    assert not threads[0].is_alive()


def test_it_serves_one_event_loop_after_another(file: Path) -> None:
    store = SqliteRunStore(SqliteSettings(path=file))
    for run in ("r1", "r2"):
        asyncio.run(finish(store, run))
    assert asyncio.run(store.runs()) == ["r1", "r2"]
    asyncio.run(store.aclose())


async def test_the_newest_runs_that_ended_are_kept_and_all_that_wait_for_somebody(opened: Any) -> None:
    store = opened(keep=3)
    for number in range(4):
        await finish(store, f"held{number}", "held")
    lease = await store.acquire("running", owner="me", seconds=60)
    await store.append(lease, [{"type": "pursuit"}])
    for number in range(8):
        await finish(store, f"done{number}", ["answer", "infeasible", "failed"][number % 3])
    kept = await store.runs()
    assert kept == ["held0", "held1", "held2", "held3", "running", "done5", "done6", "done7"]
    assert await store.read("done1") == []


async def test_a_backlog_is_removed_in_small_steps(opened: Any) -> None:
    many = opened(keep=1_000)
    for number in range(30):
        await finish(many, f"r{number}")
    few = opened(keep=2)
    await finish(few, "next")
    left = len(await few.runs())
    assert 20 <= left < 30, "some go at a time, so that nobody waits"
    for number in range(3):
        await finish(few, f"later{number}")
    assert len(await few.runs()) == 2


async def test_a_run_that_ended_and_was_resumed_is_not_removed_under_way(opened: Any) -> None:
    store = opened(keep=0)
    lease = await store.acquire("r1", owner="me", seconds=60)
    await store.append(lease, [{"type": "outcome", "kind": "failed"}])
    await store.append(lease, [{"type": "resumed", "planner": "plan"}])
    await store.release(lease)
    await finish(store, "r2")
    assert await store.runs() == ["r1"]


async def test_entries_are_kept_as_they_were_when_they_were_given(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r\ud800é", owner="\udc00", seconds=60)
    given = {"text": "half \ud800 a pair, é, \x00", "n": [1, 1.5, None, True]}
    writing = asyncio.ensure_future(store.append(lease, [given]))
    await asyncio.sleep(0)
    given["n"] = "changed afterwards"
    await writing
    assert await store.read("r\ud800é") == [{"text": "half \ud800 a pair, é, \x00", "n": [1, 1.5, None, True]}]
    assert await store.runs() == ["r\ud800é"]


@pytest.mark.parametrize("entry", [{"n": float("nan")}, {"n": object()}, {"n": {1, 2}}])
async def test_what_is_no_json_is_refused_and_nothing_of_it_written(opened: Any, entry: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    with pytest.raises(StoreError, match="not JSON"):
        await store.append(lease, [{"type": "pursuit"}, entry])
    assert await store.read("r1") == []


async def test_a_damaged_file_says_what_to_do(opened: Any, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreDamaged, match=r"runs\.sqlite3 is damaged.*Move it away.*a new one is begun"):
        await opened().acquire("r1", owner="me", seconds=60)


async def test_damage_inside_is_noticed(opened: Any, file: Path) -> None:
    store = opened()
    for number in range(20):
        await finish(store, f"r{number}", entries=20)
    await store.aclose()
    content = bytearray(file.read_bytes())
    content[4096 * 2 :] = b"\x07" * (len(content) - 4096 * 2)
    file.write_bytes(content)
    with pytest.raises(StoreDamaged, match="damaged"):
        for number in range(20):
            await opened().read(f"r{number}")


async def test_damage_that_no_message_can_quote_is_damage_too(opened: Any, file: Path) -> None:
    store = opened()
    await finish(store, "r1")
    await store.aclose()
    content = file.read_bytes()
    assert b"CREATE TABLE runs" in content
    file.write_bytes(content.replace(b"CREATE TABLE runs", b"CREATE TABL\xff runs"))
    for call in (lambda store: store.read("r1"), lambda store: store.acquire("r2", owner="me", seconds=60)):
        with pytest.raises(StoreDamaged, match=r"is damaged.*0xff.*Move it away"):
            await call(opened())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("CAST(x'ff5b31' AS TEXT)", "entry 2 of the run r1 is no JSON"),
        ("'[1'", "entry 2 of the run r1 is no JSON"),
        ("replace(entry, 'answer', 'failed')", "entry 2 of the run r1 is not as it was written: its checksum differs"),
    ],
    ids=["no text", "no JSON", "another text"],
)
async def test_an_entry_that_is_none_any_more_is_damage_of_its_run_alone(
    opened: Any, file: Path, entry: str, message: str
) -> None:
    store = opened()
    await finish(store, "r1")
    await finish(store, "r2")
    change(file, f"UPDATE entries SET entry = {entry} WHERE number = 2 AND run = 1")
    with pytest.raises(StoreDamaged, match=f"{message}.*Other runs are not concerned"):
        await store.read("r1")
    assert await store.runs() == ["r1", "r2"]
    assert len(await store.read("r2")) == 2


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM entries WHERE number = 1", "entry 1 of the run r1 is missing"),
        ("DELETE FROM entries WHERE number = 3", "the run r1 had 3 entries and has 2"),
        ("INSERT INTO entries VALUES (1, 4, '{}')", "the run r1 had 3 entries and has 4"),
        ("UPDATE runs SET finished = 0", "what it has of the run r1 is not what was written"),
    ],
)
async def test_a_run_is_whole_or_damaged(opened: Any, file: Path, statement: str, message: str) -> None:
    store = opened()
    await finish(store, "r1", entries=2)
    change(file, statement)
    assert await store.runs() == ["r1"]
    with pytest.raises(StoreDamaged, match=message):
        await store.read("r1")


async def write_killed(opened: Any) -> dict[str, list[Any]]:
    """Write runs that are as after a kill, closed without a release: how many entries they had is not known."""
    written = {f"r{k}": [{"run": f"r{k}", "number": each} for each in range(1, 7 - k)] for k in range(1, 5)}
    for run, entries in written.items():
        store = opened()
        await store.append(await store.acquire(run, owner="me", seconds=60), entries)
        await store.aclose()
    return written


@pytest.mark.parametrize("number", [2, 3, 4])
async def test_a_changed_number_of_an_entry_concerns_its_run_alone(opened: Any, file: Path, number: int) -> None:
    written = await write_killed(opened)
    content = bytearray(file.read_bytes())
    at = content.index(f'{{"run":"r2","number":{number}'.encode()) - 1
    for content[at] in {*range(7), 127, 128, 255} - {number}:
        file.write_bytes(content)
        store = opened()
        with pytest.raises(StoreDamaged, match=r"entry \d of the run r2 is missing.*Other runs are not concerned"):
            await store.read("r2")
        assert all([await store.read(run) == written[run] for run in ("r1", "r3", "r4")])
        await store.aclose()


@pytest.mark.parametrize("number", [2, 3, 4])
async def test_no_run_is_read_wrongly_where_an_entry_has_another_run(opened: Any, file: Path, number: int) -> None:
    written = await write_killed(opened)
    content = bytearray(file.read_bytes())
    at = content.index(f'{{"run":"r2","number":{number}'.encode()) - 2
    for content[at] in {*range(7), 127, 128, 255} - {2}:
        file.write_bytes(content)
        store = opened()
        for run in written:
            with suppress(StoreDamaged):
                assert await store.read(run) == written[run]
        await store.aclose()


async def test_a_run_is_held_by_whatever_path_the_journal_is_opened(tmp_path: Path) -> None:
    (link := tmp_path / "link.db").symlink_to(file := tmp_path / "journal.db")
    one, other = (SqliteRunStore(SqliteSettings(path=path)) for path in (file, link))
    await one.acquire("r1", owner="one", seconds=60)
    with pytest.raises(StoreBusy):
        await other.acquire("r1", owner="other", seconds=60)
    await one.aclose()
    await other.aclose()


async def test_a_killed_journal_is_read_where_no_folder_takes_a_copy(
    opened: Any, file: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    store = opened()
    await store.append(await store.acquire("r1", owner="me", seconds=60), [{"type": "x"}])
    left = Path(shutil.copytree(file.parent, tmp_path / "left"), file.name)  # with its log, as a kill leaves it
    full = FullFolder()
    monkeypatch.setattr("portico_basics.sqlite.log.TemporaryDirectory", full)
    again = SqliteRunStore(SqliteSettings(path=left))
    assert await again.read("r1") == [{"type": "x"}]
    assert full.asked
    await again.aclose()


class FullFolder:
    asked = False

    def __call__(self, **options: Any) -> Any:
        self.asked = True
        raise OSError(28, "No space left on device")


async def test_a_run_whose_name_was_changed_is_listed_and_damaged(opened: Any, file: Path) -> None:
    store = opened()
    for run in ("r1", "r2"):
        await finish(store, run)
    change(file, "UPDATE runs SET name = x'ff31' WHERE id = 1")
    names = await store.runs()
    assert names[1:] == ["r2"]
    assert len(await store.read("r2")) == 2
    with pytest.raises(StoreDamaged, match="Other runs are not concerned"):
        await store.read(names[0])


@pytest.mark.parametrize("how", ["emptied", "removed"])
async def test_a_journal_that_was_there_is_not_a_new_one(opened: Any, file: Path, how: str) -> None:
    store = opened()
    await finish(store, "r1")
    await store.aclose()
    file.write_bytes(b"") if how == "emptied" else file.unlink()
    for call in (store.runs(), store.read("r1"), store.held("r1"), store.acquire("r2", owner="me", seconds=60)):
        with pytest.raises(StoreDamaged, match=r"is gone or empty.*Restore it.*delete .*runs\.sqlite3-begun"):
            await call
    file.with_name("runs.sqlite3-begun").unlink()
    await finish(store, "r2")
    assert await store.runs() == ["r2"]


async def test_a_database_of_something_else_is_left_alone(opened: Any, file: Path) -> None:
    file.parent.mkdir()
    change(file, "CREATE TABLE photos (name)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"not a journal of Portico but another database; set another `path`"):
        await opened().acquire("r1", owner="me", seconds=60)
    assert file.read_bytes() == before


async def test_a_journal_of_a_later_version_asks_for_a_newer_package(opened: Any, file: Path) -> None:
    store = opened()
    await finish(store, "r1")
    await store.aclose()
    change(file, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match=r"version 99.*pip install --upgrade portico-basics"):
        await store.runs()


async def test_a_folder_that_cannot_be_made_is_a_clear_error(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = opened(path=tmp_path / "file" / "inside" / "runs.sqlite3")
    with pytest.raises(StoreError, match=r"cannot be opened: .*Not a directory.*path.*\[runs\.sqlite\]"):
        await store.acquire("r1", owner="me", seconds=60)


async def test_a_full_disk_is_told_and_what_was_written_stays(opened: Any) -> None:
    store = opened()
    await finish(store, "r1")
    lease = await store.acquire("r2", owner="me", seconds=60)
    # SQLite's own bound on pages gives the same error as a disk that takes no more.
    await store._do(lambda: store._open().execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(StoreError, match=r"disk of the journal .* is full; nothing was written"):
        await store.append(lease, [{"type": "x", "text": "y" * 1_000_000}])
    assert await store.read("r2") == []
    assert len(await store.read("r1")) == 2


async def test_a_writer_that_does_not_end_is_waited_for_only_so_long(opened: Any, file: Path) -> None:
    store = opened(wait=0.2)
    await finish(store, "r1")
    with another_writer(file), pytest.raises(StoreBusy, match="Another process is writing"):
        await store.acquire("r2", owner="me", seconds=60)
    await finish(store, "r2")


async def test_the_event_loop_goes_on_while_a_writer_is_waited_for(opened: Any, file: Path) -> None:
    store = opened(wait=30)
    await finish(store, "r1")
    async with heartbeat() as beat:
        with another_writer(file):
            waiting = asyncio.create_task(store.acquire("r2", owner="me", seconds=60))
            await beat.turned(20)
            assert not waiting.done(), "the event loop stood still while the thread waited"
        await waiting


async def test_a_cancelled_append_has_happened_as_a_whole_or_not_at_all(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number in range(50):
        task = asyncio.create_task(store.append(lease, [{"n": number, "part": part} for part in range(5)]))
        await asyncio.sleep(0)
        if number % 3:
            await asyncio.sleep(0.0001 * (number % 7))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    entries = await store.read("r1")
    for start in range(0, len(entries), 5):
        assert [entry["part"] for entry in entries[start : start + 5]] == [0, 1, 2, 3, 4]
        assert len({entry["n"] for entry in entries[start : start + 5]}) == 1


WRITE = """
import asyncio, sys
from pathlib import Path
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

async def write(name):
    store = SqliteRunStore(SqliteSettings(path=Path(sys.argv[1])))
    for number in range(10):
        lease = await store.acquire(f"{name}-{number}", owner=name, seconds=60)
        for step in range(5):
            await store.append(lease, [{"step": step}])
        await store.release(lease)
    await store.aclose()

asyncio.run(write(sys.argv[2]))
"""


async def test_processes_begin_and_write_one_file_at_once(opened: Any, file: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITE, os.fspath(file), f"p{n}"]) for n in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    store = opened()
    runs = await store.runs()
    assert sorted(runs) == sorted(f"p{n}-{number}" for n in range(3) for number in range(10))
    for run in runs:
        assert await store.read(run) == [{"step": step} for step in range(5)]


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("call", [lambda store: store.runs(), lambda store: store.acquire("r", owner="me", seconds=60)])
async def test_a_journal_that_another_process_begins_between_two_looks_is_not_gone(
    opened: Any, file: Path, monkeypatch: pytest.MonkeyPatch, call: Any, look: int
) -> None:
    looks, exists = [], Path.exists

    def look_and_pause(path: Path) -> bool:
        seen = exists(path)
        looks.append(path)
        if len(looks) == look:
            subprocess.run([sys.executable, "-c", WRITE, os.fspath(file), "another"], check=True)
        return seen

    monkeypatch.setattr(Path, "exists", look_and_pause)
    await call(opened())
    assert len(await opened().runs()) >= 10


@pytest.mark.parametrize(
    ("sync", "waits"), [("always", [True] * 5), ("effects", [False, True, False, False, True]), ("never", [False] * 5)]
)
async def test_the_disk_is_waited_for_around_effects_as_the_setting_says(
    opened: Any, sync: str, waits: list[bool]
) -> None:
    store = opened(sync=sync)
    lease = await store.acquire("r1", owner="me", seconds=60)
    seen = []
    for entry in (
        {"type": "step-started", "step": "s1"},
        {"type": "step-started", "step": "s2", "effects": True},
        {"type": "step-finished", "step": "s1", "result": 1},
        {"type": "plan", "plan": {}},
        {"type": "step-finished", "step": "s2", "result": 1},
    ):
        await store.append(lease, [entry])
        [(level,)] = await store._do(lambda: store._open().execute("PRAGMA synchronous").fetchall())
        seen.append(level == 2)
    assert seen == waits


@pytest.mark.parametrize("wrong", [{"keep": -1}, {"wait": -1.0}, {"sync": "sometimes"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SqliteSettings(**wrong)


async def test_the_outline_is_what_is_read_but_steps_inside_others_and_the_last_entry(opened: Any) -> None:
    store = opened()
    steps = ["s1", "s1/a", "s2[0]", "s2[0]/a", "[", "/"]
    written: list[dict[str, Any]] = [{"type": "pursuit", "goal": "g/[0]"}]
    written += [
        {"type": kind, "step": step, "result": "s1[0]"} for step in steps for kind in ("step-finished", "approved")
    ]
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number, entry in enumerate(written, 1):
        await store.append(lease, [entry])
        inside = [each["type"] == "step-finished" and each["step"] != "s1" for each in written[:number]]
        left = [each for each, out in zip(written, inside, strict=False) if not out or each is entry]
        assert await store.outline("r1") == left
    assert await store.outline("r2") == []
    assert await store.read("r1") == written
