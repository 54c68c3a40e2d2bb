"""Walking folders, with all that can lie in them."""

import os
import socket
import types
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from portico_documents import scan
from portico_documents.scan import Found, Skipped, walk


def _walk(root, *, include=(), exclude=(), maximum_bytes=1_000_000):
    return list(walk(root, include=include, exclude=exclude, maximum_bytes=maximum_bytes))


def _found(entries):
    return [entry.relative for entry in entries if isinstance(entry, Found)]


def _skipped(entries):
    return {entry.relative: entry.reason for entry in entries if isinstance(entry, Skipped)}


def _tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def test_files_come_in_order_of_name_folder_by_folder(tmp_path):
    _tree(tmp_path, "b.md", "a/z.md", "a/b/c.md", "c.md", "a.md")
    assert _found(_walk(tmp_path)) == ["a/b/c.md", "a/z.md", "a.md", "b.md", "c.md"]


def test_a_found_file_has_its_path_size_and_time(tmp_path):
    _tree(tmp_path, "a/b.md")
    os.utime(tmp_path / "a/b.md", ns=(1, 1_234_567_000))
    assert _walk(tmp_path) == [Found(str(tmp_path / "a/b.md"), "a/b.md", 6, 1_234_567_000)]


def test_hidden_files_and_folders_are_skipped_once(tmp_path):
    _tree(tmp_path, ".git/objects/ab/cd", ".hidden", "a/.env", "a/b")
    entries = _walk(tmp_path)
    assert _found(entries) == ["a/b"]
    assert _skipped(entries) == {".git": "hidden", ".hidden": "hidden", "a/.env": "hidden"}


@pytest.mark.parametrize(
    ("pattern", "out"),
    [
        ("node_modules", {"node_modules", "a/node_modules"}),
        ("node_modules/", {"node_modules", "a/node_modules"}),
        ("**/node_modules/**", {"node_modules", "a/node_modules"}),
        ("/node_modules", {"node_modules"}),
        ("a/*.md", {"a/x.md"}),
        ("**/*.md", {"a/x.md", "a/b/x.md", "x.md"}),
        ("*.md", {"a/x.md", "a/b/x.md", "x.md"}),
        ("a/**", {"a"}),
        ("?.md", {"a/x.md", "a/b/x.md", "x.md"}),
        ("[!x].md", set()),
        ("[x].md", {"a/x.md", "a/b/x.md", "x.md"}),
        ("[z-a].md", set()),
        ("x.md/", set()),
        ("", set()),
    ],
)
def test_exclude_patterns(tmp_path, pattern, out):
    _tree(tmp_path, "node_modules/p/i.js", "a/node_modules/q.js", "a/x.md", "a/b/x.md", "x.md", "k.txt")
    assert set(_skipped(_walk(tmp_path, exclude=(pattern,)))) == out


def test_include_patterns_choose_files_and_folders(tmp_path):
    _tree(tmp_path, "docs/a.md", "docs/b.txt", "src/c.md", "src/d.py", "e.rst")
    assert _found(_walk(tmp_path, include=("*.md",))) == ["docs/a.md", "src/c.md"]
    assert _found(_walk(tmp_path, include=("docs/", "*.py"))) == ["docs/a.md", "docs/b.txt", "src/d.py"]
    assert _found(_walk(tmp_path, include=("docs",), exclude=("*.txt",))) == ["docs/a.md"]
    assert _skipped(_walk(tmp_path, include=("*.md",)))["e.rst"] == "excluded"


def test_links_are_not_followed(tmp_path):
    root = _tree(tmp_path / "root", "a/b.md")
    outside = _tree(tmp_path / "outside", "secret.md")
    (root / "loop").symlink_to(root)
    (root / "a/up").symlink_to("..")
    (root / "out").symlink_to(outside)
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "broken").symlink_to("nowhere")
    (root / "itself").symlink_to("itself")
    entries = _walk(root)
    assert _found(entries) == ["a/b.md"]
    assert set(_skipped(entries).values()) == {"link"}
    assert len(_skipped(entries)) == 6


def test_the_root_may_be_a_link_or_a_file(tmp_path):
    root = _tree(tmp_path / "root", ".a.md")
    (tmp_path / "link").symlink_to(root / ".a.md")
    (tmp_path / "scan").symlink_to(root)
    assert _found(_walk(root / ".a.md")) == [".a.md"]
    assert _found(_walk(tmp_path / "link", exclude=("*",))) == ["link"]
    assert _skipped(_walk(tmp_path / "scan")) == {".a.md": "hidden"}
    assert _skipped(_walk(root / ".a.md", maximum_bytes=1)) == {".a.md": "too large"}


def test_a_missing_root_is_an_error_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        walk(tmp_path / "none", include=(), exclude=(), maximum_bytes=1)


def test_special_files_are_skipped_unopened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
        assert _skipped(_walk(tmp_path)) == {"pipe.md": "special", "socket.md": "special"}
    assert _skipped(_walk(tmp_path / "pipe.md")) == {"pipe.md": "special"}


def test_large_files_are_skipped(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 11)
    (tmp_path / "fits").write_bytes(b"x" * 10)
    entries = _walk(tmp_path, maximum_bytes=10)
    assert _found(entries) == ["fits"]
    assert _skipped(entries) == {"big": "too large"}


def test_what_may_not_be_read_is_skipped(tmp_path, monkeypatch):
    _tree(tmp_path, "a.md", "b.md", "closed/c.md", "d/e.md")
    scandir = os.scandir

    def refuse(path):
        if path.endswith("closed"):
            raise PermissionError(path)
        return scandir(path)

    monkeypatch.setattr(
        scan,
        "os",
        types.SimpleNamespace(scandir=refuse, access=lambda path, mode: not path.endswith("b.md"), R_OK=os.R_OK),
    )
    entries = _walk(tmp_path)
    assert _found(entries) == ["a.md", "d/e.md"]
    assert _skipped(entries) == {"b.md": "unreadable", "closed": "unreadable"}


def test_a_root_that_cannot_be_listed_is_an_error_not_an_empty_folder(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(scan, "os", types.SimpleNamespace(scandir=refuse))
    with pytest.raises(PermissionError):
        _walk(tmp_path)


def test_files_that_vanish_meanwhile_are_left_out(tmp_path):
    _tree(tmp_path, "a/1.md", "b/2.md", "c/3.md", "d.md", "e.md")
    walking = walk(tmp_path, include=(), exclude=(), maximum_bytes=100)
    assert next(walking).relative == "a/1.md"
    (tmp_path / "b/2.md").unlink()
    (tmp_path / "b").rmdir()
    (tmp_path / "c/3.md").unlink()
    (tmp_path / "e.md").unlink()
    assert [entry.relative for entry in walking] == ["d.md"]


def test_names_that_are_not_utf8_survive(tmp_path):
    name = os.fsdecode(b"caf\xe9 \xff.md")
    try:
        (tmp_path / name).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (entry,) = _walk(tmp_path)
    assert entry.relative == name
    assert Path(entry.path).read_text() == "x"


def test_a_name_with_a_newline_is_matched_like_any_other(tmp_path):
    _tree(tmp_path, "a\nb.md", "c.md")
    assert _found(_walk(tmp_path, exclude=("a*.md",))) == ["c.md"]


def test_folders_nested_beyond_reason_are_skipped(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 201)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("x")
    assert _walk(tmp_path) == [Skipped("/".join("d" * 201), "unreadable")]


def test_the_walk_is_lazy(tmp_path, monkeypatch):
    _tree(tmp_path, *(f"{number:03}/a.md" for number in range(50)))
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(
        scan,
        "os",
        types.SimpleNamespace(
            scandir=lambda path: listed.append(path) or scandir(path), access=os.access, R_OK=os.R_OK
        ),
    )
    walking = walk(tmp_path, include=(), exclude=(), maximum_bytes=100)
    next(walking)
    assert len(listed) == 2
    assert sum(1 for _ in walking) == 49
    assert len(listed) == 51


@given(st.lists(st.text("ab*?[]!/.-^&|~\\", max_size=8), max_size=4))
@example(["[?--]", "[a--b]", "[--a]", "[^a]", "[a&&b]", "[a||b]", "[a~~b]", "[[a]"])
def test_no_pattern_breaks_the_walk(tmp_path_factory, patterns):
    root = tmp_path_factory.getbasetemp() / "patterns"
    _tree(root, "a/b", "ab", "b-a")
    entries = _walk(root, include=tuple(patterns), exclude=tuple(patterns[::-1]))
    assert set(_found(entries)) <= {"a/b", "ab", "b-a"}
