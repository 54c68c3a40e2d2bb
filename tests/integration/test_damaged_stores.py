"""A byte that changes, or a file that is cut, is never silent: in the journal, in saved plans, in kept embeddings."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.damaged_journal import HELD, KILLED, kernel_of, plan_of

from portico.errors import StoreError
from portico.plans import plan_to_json
from portico.plugins import RunState
from portico.ports import SavedPlan
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.store import FolderPlanStore
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

FIRST = "first "
TEXTS = [f"text {number}" for number in range(60)]
Seen = tuple[dict[str, Any], list[str]]
"""What was read, by name, and what was said."""


def damage(folder: Path, at_random: random.Random, *, cut: bool) -> str:
    """Change one byte of a file, cut it, or remove it, and say where."""
    file = at_random.choice(sorted(each for each in folder.rglob("*") if each.is_file() and each.stat().st_size > 100))
    content = bytearray(file.read_bytes())
    if cut and at_random.random() < 0.1:
        file.unlink()
        return f"{file.name} removed"
    # Half of them where a page or a file begins: most of what decides about others is there.
    at = at_random.randrange(len(content))
    if at_random.random() < 0.5:
        at = min(at // 4096 * 4096 + at_random.randrange(120), len(content) - 1)
    if cut:
        file.write_bytes(content[: at_random.choice([0, at, at // 4096 * 4096])])
        return f"{file.name} cut at {at}"
    change = at_random.randrange(1, 256)
    content[at] ^= change
    file.write_bytes(content)
    return f"{file.name} at {at} ^ {change}"


async def sweep(
    whole: Path, scratch: Path, look: Callable[[Path], Awaitable[Seen]], flips: int, cuts: int
) -> dict[str, int]:
    """Damage copies of a folder, and count what was noticed; fail for what was silent."""
    untouched = shutil.copytree(whole, scratch / "untouched")
    expected, said = await look(untouched)
    assert said == []
    counts = dict.fromkeys(("same", "told", "others read", "others not read"), 0)
    silent: list[str] = []
    for number in range(flips + cuts):
        folder = Path(shutil.copytree(whole, scratch / str(number)))
        what = damage(folder, random.Random(number), cut=number >= flips)
        found, said = await look(folder)
        wrong = {name for name in found if name not in expected or found[name] != expected[name]}
        missing = expected.keys() - found.keys()
        if wrong or (missing and not said):
            silent.append(f"{number}: {what}: {sorted(wrong | missing)}")
        counts["told" if said else "same"] += 1
        if said:
            lost = [name for name in missing if name.startswith(FIRST)]
            counts["others read" if len(lost) <= 1 else "others not read"] += 1
        shutil.rmtree(folder)
    print(whole.name, counts)
    assert silent == []
    return counts


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    command = [sys.executable, os.fspath(Path(__file__).with_name("damaged_journal.py")), os.fspath(folder)]
    assert subprocess.run(command, check=False).returncode == 9
    assert (folder / "runs.sqlite3-wal").stat().st_size > 10_000
    return folder


async def look_at_journal(folder: Path) -> Seen:
    """Read every run, resume the one that is held, begin another, and read every run again."""
    kernel, found, said, failed = kernel_of(folder), {}, [], set()
    store = kernel.run_store

    async def read_all(when: str) -> None:
        for name in await store.runs():
            try:
                state = RunState.of(entries) if (entries := await store.read(name)) else None
            except StoreError as error:
                said.append(f"{name}: {error}")
                continue
            if name not in failed:
                found[when + name] = (state.results, state.outcome) if state and name in (HELD, "another") else state

    for what, look in {"all": read_all(FIRST), KILLED: store.read(KILLED), "none": store.read("none")}.items():
        try:
            found[what] = await look
        except StoreError as error:
            said.append(str(error))
    for name in (HELD, "another"):
        try:
            run = await (kernel.resume(name) if name == HELD else kernel.run_plan(plan_of(name), run=name))
            found[f"{name} again"] = run.outcome.value
        except StoreError as error:
            said.append(str(error))
            failed.add(name)
    for look in (read_all("later "), store.aclose()):
        try:
            await look
        except StoreError as error:
            said.append(str(error))
    return found, said


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


async def save_plans(folder: Path) -> None:
    for number in range(3):
        plan = plan_to_json(plan_of(f"plan {number}"))
        saved = SavedPlan(f"goal {number}", "c1", plan, "2026-01-01T00:00:00+00:00", "structured")
        await FolderPlanStore(PlanFolderSettings(path=folder)).put(saved)


async def look_at_plans(folder: Path) -> Seen:
    store, found, said = FolderPlanStore(PlanFolderSettings(path=folder)), {}, []
    for number in range(3):
        try:
            saved = await store.get(f"goal {number}", "c1")
        except StoreError as error:
            said.append(str(error))
            continue
        if saved is None or saved.edited:
            said.append("edited, or removed")
        else:
            found[f"{FIRST}{number}"] = saved
    return found, said


async def look_at_embeddings(folder: Path) -> Seen:
    cached = CachedEmbeddings(HashingEmbeddings(), path=folder)
    found = {f"vectors {number}": bytes((await cached.embed(TEXTS)).buffer) for number in range(2)}
    await cached.aclose()
    return found, []


async def sweep_all(journal: Path, scratch: Path, flips: int, cuts: int) -> None:
    """Give a quarter of the damage to each: a journal whose process was killed, one that was closed, plans, vectors."""
    closed = kernel_of(Path(shutil.copytree(journal, scratch / "closed"))).run_store
    await closed.runs()
    await closed.aclose()
    for name in ("journals", "of closed", "of plans", "of embeddings", "plans", "embeddings"):
        (scratch / name).mkdir()
    await save_plans(scratch / "plans")
    cached = CachedEmbeddings(HashingEmbeddings(), path=scratch / "embeddings")
    await cached.embed(TEXTS)
    await cached.aclose()
    await sweep(journal, scratch / "journals", look_at_journal, flips // 4, cuts // 4)
    await sweep(scratch / "closed", scratch / "of closed", look_at_journal, flips // 4, cuts // 4)
    await sweep(scratch / "plans", scratch / "of plans", look_at_plans, flips // 4, cuts // 4)
    await sweep(scratch / "embeddings", scratch / "of embeddings", look_at_embeddings, flips // 4, cuts // 4)


async def test_no_change_of_a_byte_and_no_cut_is_silent(journal: Path, tmp_path: Path) -> None:
    await sweep_all(journal, tmp_path, flips=32, cuts=12)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_no_change_of_many_bytes_and_no_cut_is_silent(journal: Path, tmp_path: Path) -> None:
    await sweep_all(journal, tmp_path, flips=1_200, cuts=240)
