"""The command `portico new`: what it says, where it makes a package, and what it leaves behind when it cannot."""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico.errors import StoreError
from portico_cli.commands import new as templates
from portico_cli.commands.new import KINDS, author_of_git, fill_template, make_folder, package_name, template_folder
from portico_cli.failures import Misused


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git know nobody, whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


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

    def test_whoever_commits_is_the_author(
        self, in_process: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        configuration = folder.parent / "gitconfig"
        configuration.write_text('[user]\n\tname = Zoë \\"Z\\" Q\n\temail = zoe@example.org\n', "utf-8")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
        assert in_process("new", "plugin", "mine").code == 0
        project = tomllib.loads((folder / "portico-mine" / "pyproject.toml").read_text("utf-8"))["project"]
        assert project["authors"] == [{"name": 'Zoë "Z" Q', "email": "zoe@example.org"}]

    @pytest.mark.parametrize(
        ("name", "email", "author"),
        [
            ("Zoë", "ada@", {"name": "Zoë"}),
            ("Zoë", "(none)@host.(none)", {"name": "Zoë"}),
            ("Zoë", "zoë@example.org", {"name": "Zoë"}),
            ("Zoë", "a@@b", {"name": "Zoë"}),
            ("", "12+zoe@users.example", {"email": "12+zoe@users.example"}),
            ("Zoë\\nLicense: none\\t\\b", "zoe@localhost", {"name": "Zoë License: none", "email": "zoe@localhost"}),
            ("", "nobody", None),
        ],
    )
    def test_what_a_build_would_fail_on_is_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, email: str, author: dict[str, str] | None
    ) -> None:
        configuration = tmp_path / "gitconfig"
        configuration.write_text(f'[user]\n\tname = "{name}"\n\temail = "{email}"\n', "utf-8")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
        found = author_of_git()
        assert (tomllib.loads(f"author = {found}")["author"] if found else None) == author

    def test_without_git_nobody_is(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assert author_of_git() == ""
        monkeypatch.setenv("PATH", str(tmp_path))
        assert author_of_git() == ""

    @given(name=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
    def test_any_name_is_what_the_file_says(self, name: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(templates, "_read_git", lambda key: name if key == "user.name" else "")
            assert tomllib.loads(f"author = {author_of_git()}") == {"author": {"name": name}}

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
        said = f"Error: {ours} is a package of Portico: `pip install {ours}`. Choose another name.\n"
        assert (done.code, done.err) == (2, said)
        assert list(folder.iterdir()) == []

    def test_the_functions_are_tried_with_a_command_that_the_shell_here_takes(
        self, in_process: Any, folder: Path
    ) -> None:
        attempt = in_process("new", "plugin", "mine", "--json").json["attempt"]
        windows = 'cmd /c "set PORTICO_FUNCTIONS__MINE__USE=mine&& portico functions"'
        assert attempt == (windows if os.name == "nt" else "PORTICO_FUNCTIONS__MINE__USE=mine portico functions")
        assert f"{attempt}\n" in in_process("new", "plugin", "mine", "--into", "other").out

    def test_templates_that_are_missing_are_told_of_with_what_mends_it(
        self, in_process: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(templates, "_HERE", folder / "portico_cli")
        done = in_process("new", "adapter", "mine")
        assert done.code == 1
        assert "The template of adapter is missing" in done.err
        assert "pip install --force-reinstall" in done.err
        assert list(folder.iterdir()) == []

    def test_what_tools_leave_in_a_template_is_not_copied(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        copy = tmp_path / "portico_cli" / "template" / "plugin"
        shutil.copytree(template_folder(KINDS["plugin"]), copy)
        expected = set(fill_template(package_name("mine", KINDS["plugin"]), ""))
        for left in ("src/__pycache__/x.pyc", ".nox/a/b.py", ".git/config", "dist/c.whl", "tests/d.pyc"):
            (copy / left).parent.mkdir(parents=True, exist_ok=True)
            (copy / left).write_bytes(b"\xff")
        monkeypatch.setattr(templates, "_HERE", tmp_path / "portico_cli")
        assert set(fill_template(package_name("mine", KINDS["plugin"]), "")) == expected


class TestMaking:
    @pytest.fixture
    def broken_after_two(self) -> Iterator[dict[PurePosixPath, str]]:
        """Give files of which the third cannot be written."""
        texts = {"a.txt": "one", "b/c/d.txt": "two", "b/e.txt": "\ud800"}
        return {PurePosixPath(path): text for path, text in texts.items()}

    @pytest.mark.parametrize("there", [True, False])
    def test_nothing_is_left_when_it_fails(
        self, tmp_path: Path, broken_after_two: dict[PurePosixPath, str], there: bool
    ) -> None:
        folder = tmp_path / "above" / "new"
        if there:
            folder.mkdir(parents=True)
        with pytest.raises(UnicodeEncodeError):
            make_folder(folder, broken_after_two)
        assert list(tmp_path.rglob("*")) == [tmp_path / "above", *([folder] if there else [])]

    @pytest.mark.parametrize("there", [True, False])
    def test_no_file_is_in_place_before_the_last_is_written(self, tmp_path: Path, there: bool) -> None:
        """So that a process which is killed leaves nothing that looks like a package."""
        folder = tmp_path / "new"
        seen: list[str] = []

        class Watched(dict[PurePosixPath, str]):
            def items(self) -> Any:
                for item in super().items():
                    seen.extend(path.name for path in folder.glob("*") if not path.name.startswith("."))
                    yield item

        if there:
            folder.mkdir()
        files = {PurePosixPath(path): path for path in ("a.txt", "b/c.txt", "b/d/e.txt")}
        make_folder(folder, Watched(files))
        assert seen == []
        written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
        assert written == {"new/a.txt", "new/b/c.txt", "new/b/d/e.txt"}

    @pytest.mark.parametrize("there", [True, False])
    def test_what_somebody_else_put_there_meanwhile_stays(self, tmp_path: Path, there: bool) -> None:
        folder = tmp_path / "new"

        class Meanwhile(dict[PurePosixPath, str]):
            def items(self) -> Any:
                yield PurePosixPath("a.txt"), "ours"
                folder.mkdir(exist_ok=True)
                (folder / "theirs.txt").write_text("theirs")
                yield PurePosixPath("theirs.txt"), "ours"

        if there:
            folder.mkdir()
        with pytest.raises(
            Misused if there else StoreError, match="is there already" if there else "cannot be written"
        ):
            make_folder(folder, Meanwhile())
        assert [path.name for path in tmp_path.rglob("*")] == ["new", "theirs.txt"]
        assert (folder / "theirs.txt").read_text() == "theirs"
