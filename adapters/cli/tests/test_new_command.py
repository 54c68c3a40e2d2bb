"""The command `portico new`: what it says, where it makes a package, and what it leaves behind when it cannot."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from portico_cli.commands import new as templates
from portico_cli.commands.new import KINDS, fill_template, package_name, template_folder


class TestTheCommand:
    def test_it_says_what_it_made_and_what_comes_next(self, in_process: Any, folder: Path) -> None:
        done = in_process("new", "connector", "my_search")
        assert done.code == 0, done.err
        package = folder / "portico-my-search"
        files = sorted(path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file())
        assert "src/portico_my_search/search.py" in files
        for line in ("Made portico-my-search in ", *files, "cd portico-my-search", "pip install -e .", "pytest"):
            assert line in done.out
        assert "class MySearch(" in (package / "src/portico_my_search/search.py").read_text()
        assert {"README.md", "CHANGELOG.md", "noxfile.py", "pyproject.toml", ".gitignore"} <= set(files)
        assert (package / "src/portico_my_search/py.typed").is_file()

    def test_it_says_so_as_json(self, in_process: Any, folder: Path) -> None:
        said = in_process("new", "adapter", "my-chat", "--into", "here", "--json").json
        assert list(said) == ["kind", "name", "distribution", "module", "folder", "files", "commands", "attempt"]
        assert (said["kind"], said["name"], said["module"]) == ("adapter", "my-chat", "portico_my_chat")
        assert Path(said["folder"]) == folder / "here"
        assert said["files"] == sorted(said["files"], key=PurePosixPath)
        assert all((folder / "here" / path).is_file() for path in said["files"])
        assert said["commands"] == ["cd here", "pip install -e . portico-testkit", "pytest"]

    @pytest.mark.parametrize("into", ["empty", "a folder/with spaces", "."])
    def test_it_is_made_where_it_is_wanted(self, in_process: Any, folder: Path, into: str) -> None:
        (folder / "empty").mkdir() if into == "empty" else None
        said = in_process("new", "planner", "mine", "--into", into, "--json").json
        assert (folder / into / "src" / "portico_mine_planner" / "planner.py").is_file()
        assert shlex.split(said["commands"][0]) == ["cd", into]

    def test_a_folder_that_holds_something_is_left_as_it_is(self, in_process: Any, folder: Path) -> None:
        (folder / "mine").mkdir()
        (folder / "mine" / "thesis.txt").write_text("42")
        (folder / "portico-mine").write_text("a file")
        for arguments in (("--into", "mine"), ()):
            done = in_process("new", "plugin", "mine", *arguments, "--json")
            assert done.code == 2
            assert "is there already" in done.json["error"]["message"]
        left = sorted(path.name for path in folder.rglob("*"))
        assert left == ["mine", "portico-mine", "thesis.txt"]

    def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(self, in_process: Any, folder: Path) -> None:
        (folder / "file").write_text("")
        done = in_process("new", "plugin", "mine", "--into", "file/below")
        assert done.code == 1
        assert done.err.startswith("Error: file/below cannot be written: ")
        assert done.err.count("\n") == 1

    def test_a_folder_is_made_on_a_way_that_goes_up_again(self, in_process: Any, folder: Path) -> None:
        assert in_process("new", "plugin", "mine", "--into", "new/../here").code == 0
        assert (folder / "here" / "pyproject.toml").is_file()
        assert in_process("new", "plugin", "mine", "--into", "new/../" + "n" * 300).code == 1

    def test_it_lists_the_kinds_where_another_is_asked_for(self, in_process: Any) -> None:
        done = in_process("new", "connectors", "mine")
        assert done.code == 2
        assert all(kind in done.err for kind in KINDS)

    @pytest.mark.parametrize(
        ("kind", "name", "ours"),
        [
            ("connector", "brave", "portico-brave"),
            ("connector", "full-pages", "portico-web"),
            ("planner", "retrieval", "portico-basics"),
            ("adapter", "testkit", "portico-testkit"),
        ],
    )
    def test_a_name_of_ours_is_refused_where_it_is_not_installed(
        self, in_process: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, ours: str
    ) -> None:
        monkeypatch.setattr("portico_cli.commands.new.find_spec", lambda module: None)
        done = in_process("new", kind, name)
        said = f"Error: {ours} is a package of Portico. Choose another name.\n"
        assert (done.code, done.err) == (2, said)
        assert list(folder.iterdir()) == []

    def test_the_functions_are_tried_with_a_command_that_the_shell_here_takes(
        self, in_process: Any, folder: Path
    ) -> None:
        attempt = in_process("new", "plugin", "mine", "--json").json["attempt"]
        windows = 'cmd /c "set PORTICO_FUNCTIONS__MINE__USE=mine&& portico functions"'
        assert attempt == (windows if os.name == "nt" else "PORTICO_FUNCTIONS__MINE__USE=mine portico functions")
        assert f"{attempt}\n" in in_process("new", "plugin", "mine", "--into", "other").out

    def test_what_tools_leave_in_a_template_is_not_copied(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        copy = tmp_path / "portico_cli" / "template" / "plugin"
        shutil.copytree(template_folder(KINDS["plugin"]), copy)
        expected = set(fill_template(package_name("mine", KINDS["plugin"])))
        for left in ("src/__pycache__/x.pyc", ".nox/a/b.py", ".git/config", "dist/c.whl", "tests/d.pyc"):
            (copy / left).parent.mkdir(parents=True, exist_ok=True)
            (copy / left).write_bytes(b"\xff")
        monkeypatch.setattr(templates, "_HERE", tmp_path / "portico_cli")
        assert set(fill_template(package_name("mine", KINDS["plugin"]))) == expected
