"""Plans in a folder: names of files, what is damaged, several writers, and plans as functions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import portico_basics.plan_folder.store
from portico import Kernel, function
from portico.errors import ConfigurationError, StoreDamaged, StoreError
from portico.plans import From, Plan, Step, plan_to_json
from portico.ports import SavedPlan
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.functions import PlanFiles
from portico_basics.plan_folder.store import SAVED_NAME, FolderPlanStore, encode_saved, file_name, read_saved

SHOUT = Plan("Shout", (Step("s1", "Tone-shout", {"text": From("input", ("text",))}),), result=From("s1"))
SAVED = SavedPlan("Shout it", "c1", plan_to_json(SHOUT), "2026-01-01T00:00:00+00:00", "structured")
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(10))}


@pytest.fixture
def store(tmp_path: Path) -> FolderPlanStore:
    return FolderPlanStore(PlanFolderSettings(path=tmp_path / "plans"))


def only_file(store: FolderPlanStore) -> Path:
    (path,) = store.settings.path.iterdir()
    return path


@given(st.text() | st.sampled_from(sorted(RESERVED)), st.text())
def test_a_file_has_a_name_that_every_file_system_takes(goal: str, catalogue: str) -> None:
    name = file_name(goal, catalogue)
    assert SAVED_NAME.fullmatch(name)
    assert len(name) <= 80
    assert name.partition(".")[0] not in RESERVED


@given(st.tuples(st.text(max_size=3), st.text(max_size=3)), st.tuples(st.text(max_size=3), st.text(max_size=3)))
def test_two_keys_never_have_one_file(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (file_name(*one) == file_name(*other)) == (one == other)


@given(
    st.builds(
        SavedPlan,
        st.text(st.characters(exclude_categories=())),
        st.text(st.characters(exclude_categories=())),
        st.dictionaries(st.text(), st.text(st.characters(exclude_categories=())), max_size=3),
        st.just("2026-01-01T00:00:00+00:00"),
        st.text(),
    )
)
def test_a_file_is_read_as_it_was_written(saved: SavedPlan) -> None:
    assert read_saved(encode_saved(saved)) == replace(saved, goal=saved.goal.strip())


async def test_a_file_is_named_for_people_and_holds_the_plan_for_them_to_read(store: FolderPlanStore) -> None:
    await store.put(replace(SAVED, goal="Übersetze das Gedicht, bitte!"))
    path = only_file(store)
    assert re.fullmatch(r"ubersetze-das-gedicht-bitte-[0-9a-f]{24}\.json", path.name)
    document = json.loads(path.read_text("utf-8"))
    assert document["plan"] == plan_to_json(SHOUT)
    assert "Übersetze" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        (b"", "it is not JSON"),
        (b'{"portico_saved_plan": 1, "goal"', "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[]", "a saved plan has"),
        (b'{"version": 1, "goal": "g", "steps": []}', "a saved plan has"),
        (encode_saved(SAVED).replace(b'plan": 1', b'plan": 2'), "it is of version 2; version 1 is read here"),
        (b'{"portico_saved_plan": 99, "steps": []}', "it is of version 99; version 1 is read here"),
        (b'{"portico_saved_plan": 1}', "a saved plan has"),
        (b"[" * 100_000, "it is not JSON"),
        (encode_saved(SAVED).replace(b'"c1"', b"1"), "the texts goal, catalogue, saved_at, planner"),
        (encode_saved(SAVED).replace(b"2026-01-01T", b"yesterday"), "Invalid isoformat string"),
        (encode_saved(SAVED).replace(b'"c1"', b'"c2"'), "goal and catalogue do not fit its name"),
    ],
)
async def test_a_damaged_file_is_told_by_its_name(store: FolderPlanStore, contents: bytes, says: str) -> None:
    await store.put(SAVED)
    path = only_file(store)
    path.write_bytes(contents)
    with pytest.raises(StoreDamaged, match=re.escape(says)) as raised:
        await store.get("Shout it", "c1")
    assert str(path) in str(raised.value)
    if "do not fit" not in says:
        with pytest.raises(StoreDamaged, match=re.escape(says)):
            await store.plans()
    assert await store.remove("Shout it", "c1") is True
    assert await store.plans() == []


async def test_a_plan_that_a_person_edited_is_used_and_said_to_be_edited(
    store: FolderPlanStore, caplog: pytest.LogCaptureFixture
) -> None:
    await store.put(SAVED)
    path = only_file(store)
    text = path.read_text("utf-8")
    path.write_text(json.dumps(json.loads(text)), "utf-8")
    assert (await store.plans())[0].edited is False, "another layout is no other plan"
    path.write_text(text.replace('"text"', '"words"'), "utf-8")
    found = await store.get("Shout it", "c1")
    assert found is not None
    assert found.edited
    await PlanFiles(PlanFolderSettings(path=store.settings.path)).load("recipes")
    assert f"{path} was edited since it was saved" in caplog.text
    path.write_text(re.sub(r',\s*"digest": "\w+"', "", path.read_text("utf-8")), "utf-8")
    (found,) = await store.plans()
    assert not found.edited, "without its digest a plan is a person's"
    await store.put(replace(found, edited=True))
    assert not (await store.plans())[0].edited


async def test_a_file_that_is_cut_anywhere_is_damaged_and_never_half_a_plan(store: FolderPlanStore) -> None:
    await store.put(SAVED)
    path = only_file(store)
    whole = path.read_bytes()
    for length in range(len(whole) - 2):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreDamaged):
            await store.get("Shout it", "c1")


async def test_other_files_in_the_folder_are_left_alone(store: FolderPlanStore) -> None:
    await store.put(SAVED)
    for name in ("notes.txt", "recipe.json", ".left-over.tmp", "Shout-it-ABCDEF.json"):
        (store.settings.path / name).write_text("{")
    assert await store.plans() == [SAVED]
    assert len(list(store.settings.path.iterdir())) == 5


async def test_nothing_but_plans_is_left_behind(store: FolderPlanStore) -> None:
    for number in range(5):
        await store.put(replace(SAVED, planner=str(number)))
    assert SAVED_NAME.fullmatch(only_file(store).name)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from portico.ports import SavedPlan
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.store import FolderPlanStore
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
saved = SavedPlan("Shout it", "c1", {"notes": ["killed"]}, "2026-01-01T00:00:00+00:00", "killed")
asyncio.run(FolderPlanStore(PlanFolderSettings(path=Path(sys.argv[1]))).put(saved))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
async def test_what_a_killed_writer_leaves_is_no_plan(store: FolderPlanStore) -> None:
    await store.put(SAVED)
    folder = store.settings.path
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False).returncode == -9
    assert len(list(folder.glob(".*"))) == 2
    assert await store.get("Shout it", "c1") == SAVED
    assert await store.plans() == [SAVED]


async def test_what_is_too_large_is_refused_with_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderPlanStore(PlanFolderSettings(path=tmp_path))
    await store.put(SAVED)
    monkeypatch.setattr(portico_basics.plan_folder.store, "MOST_BYTES", 300)
    with pytest.raises(StoreError, match=r"its file would have [0-9,]+ bytes, and at most 300 are allowed"):
        await store.put(SAVED)
    with pytest.raises(StoreDamaged, match="more than 300 bytes"):
        await store.get("Shout it", "c1")


async def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("x")
    store = FolderPlanStore(PlanFolderSettings(path=tmp_path / "plans"))
    for call in (store.put(SAVED), store.plans(), store.get("Shout it", "c1"), store.remove("Shout it", "c1")):
        with pytest.raises(StoreError, match="The plan store cannot") as raised:
            await call
        assert str(tmp_path / "plans") in str(raised.value)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written_to_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(StoreError, match="cannot write to"):
            await FolderPlanStore(PlanFolderSettings(path=tmp_path)).put(SAVED)
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everywhere")
async def test_a_folder_that_may_be_written_to_and_not_listed_takes_plans(tmp_path: Path) -> None:
    store = FolderPlanStore(PlanFolderSettings(path=tmp_path))
    tmp_path.chmod(stat.S_IWUSR | stat.S_IXUSR)
    try:
        await store.put(SAVED)
        assert await store.get("Shout it", "c1") == SAVED
        with pytest.raises(StoreError, match="cannot read"):
            await store.plans()
    finally:
        tmp_path.chmod(stat.S_IRWXU)


WRITER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from portico.ports import SavedPlan
from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.store import FolderPlanStore
store = FolderPlanStore(PlanFolderSettings(path=Path(sys.argv[1])))
async def main():
    for number in range(40):
        notes = [f"{sys.argv[2]} {number}"] * 2_000
        await store.put(SavedPlan("Shout it", "c1", {"notes": notes}, "2026-01-01T00:00:00+00:00", notes[0]))
asyncio.run(main())
"""


async def test_several_processes_write_and_every_reader_sees_a_whole_plan(tmp_path: Path) -> None:
    store = FolderPlanStore(PlanFolderSettings(path=tmp_path))
    await store.put(replace(SAVED, plan={"notes": ["start"] * 2_000}, planner="start"))
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in ("one", "two")]
    try:
        async with asyncio.timeout(120):
            while any(writer.poll() is None for writer in writers):
                found = await store.get("Shout it", "c1")
                assert found is not None
                assert found.plan["notes"] == [found.planner] * 2_000
    finally:
        for writer in writers:
            writer.kill()
            writer.wait(10)
    assert len(await store.plans()) == 1
    assert SAVED_NAME.fullmatch(only_file(store).name)


class Tone:
    """How things are said."""

    @function
    def shout(self, text: str) -> str:
        """Say it louder."""
        return text.upper()


def folder_of(folder: Path, **files: Any) -> PlanFiles:
    folder.mkdir(exist_ok=True)
    for name, contents in files.items():
        text = contents if isinstance(contents, str) else json.dumps(contents)
        (folder / name.replace("__", ".")).write_text(text, "utf-8")
    return PlanFiles(PlanFolderSettings(path=folder))


async def test_each_plan_is_a_function_and_plans_may_call_each_other(tmp_path: Path) -> None:
    twice = Plan(
        "Shout twice",
        (
            Step("a", "recipes-shout", {"text": From("input", ("text",))}),
            Step("b", "recipes-shout", {"text": From("a")}),
        ),
        result=From("b"),
    )
    source = folder_of(tmp_path, shout__json=plan_to_json(SHOUT), twice__json=plan_to_json(twice))
    kernel = Kernel()
    kernel.add_plugin(Tone())
    kernel.add_plugin(await source.load("recipes"))
    assert await kernel.invoke("recipes-twice", text="hey") == "HEY"
    assert not kernel.specs["recipes-twice"].effects
    assert source.lost == ()


async def test_a_plan_that_was_saved_is_a_function_without_its_digest(tmp_path: Path, store: FolderPlanStore) -> None:
    await store.put(SAVED)
    plugin = await PlanFiles(PlanFolderSettings(path=store.settings.path)).load("recipes")
    assert [each.full_name for each in plugin] == ["recipes-shout_it"]


async def test_a_plan_in_xml_is_a_function(tmp_path: Path) -> None:
    xml = '<plan><function.Tone.shout text="$INPUT" appendToResult="RESULT__A"/></plan>'
    source = folder_of(tmp_path, loud__xml=xml)
    kernel = Kernel()
    kernel.add_plugin(Tone())
    kernel.add_plugin(await source.load("recipes"))
    assert source.lost == ()
    assert await kernel.invoke("recipes-loud", input="hey") == "HEY"


async def test_a_plan_in_xml_is_read_with_the_functions_of_the_kernel_and_its_variables_are_parameters(
    tmp_path: Path,
) -> None:
    @function
    def repeat(text: str, times: int) -> list[str]:
        return [text] * times

    xml = """<plan>
      <function.repeat text="$WORD" times="2" setContextVariable="WORDS"/>
      <function.tone.SHOUT text="$WORDS[1] and $word!" appendToResult="RESULT__SAID"/>
      <function.repeat text="$RESULT__SAID" times="1" appendToResult="RESULT__LAST[0]"/>
    </plan>"""
    source = folder_of(tmp_path, loud__xml=xml)
    kernel = Kernel()
    kernel.add_plugin(Tone())
    kernel.add_function(repeat)
    kernel.add_plugin(await source.load("recipes"))
    assert source.lost == ()
    assert list(kernel.specs["recipes-loud"].parameters["properties"]) == ["WORD"]
    assert not kernel.specs["recipes-loud"].effects
    assert await kernel.invoke("recipes-loud", WORD="hey") == "HEY AND HEY!\nHEY AND HEY!"


async def test_what_is_wrong_loses_that_plan_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = {**plan_to_json(SHOUT), "input": {"type": "object", "properties": {"x": {"if": {}}}}}
    source = folder_of(
        tmp_path,
        good__json=plan_to_json(SHOUT),
        half__json='{"version": 1',
        later__json={"version": 3},
        odd__json=odd,
        readme__txt="x",
    )
    (tmp_path / "go od.json").write_text(json.dumps(plan_to_json(SHOUT)))
    (tmp_path / "go_od.json").write_text(json.dumps(plan_to_json(SHOUT)))
    (tmp_path / "日.json").write_text("{}")
    plugin = await source.load("recipes")
    assert [each.name for each in plugin] == ["go_od", "good"]
    lost = {one.place: one.reason for one in source.lost}
    assert lost.keys() == {"half.json", "later.json", "odd.json", "go_od.json", "日.json"}
    assert "This Portico reads versions 1 and 2" in lost["later.json"]
    assert lost["go_od.json"] == "it would be the function 'go_od', as go od.json is"
    assert "5 of 7 plans are lost" in caplog.text
    assert "half.json: it is not JSON" in caplog.text


@pytest.mark.parametrize("made", [False, True])
async def test_a_folder_without_plans_is_a_configuration_error(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "recipes"
    if made:
        folder.mkdir()
    with pytest.raises(ConfigurationError, match="holds no plans" if made else "cannot be read") as raised:
        await PlanFiles(PlanFolderSettings(path=folder)).load("recipes")
    assert str(folder) in str(raised.value)
