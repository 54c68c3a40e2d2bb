"""What a person at a terminal sees, and what a pipe gets."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals are POSIX's")

EVIL = r'"a\u001b[31mred\u001b]0;title\u0007 [bold]x[/bold] \u009b2J\u202edlrow [link=http://x]y[/link] :smile: \rover"'


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (("ask", "q"), 40),
        (("ask", "q"), 80),
        (("ask", "q"), 200),
        (("search", "retry"), 40),
        (("plugins",), 40),
        (("plugins",), 200),
        (("doctor",), 40),
        (("config", "show"), 40),
        (("config", "show"), 200),
        (("functions",), 40),
    ],
)
def test_no_line_is_wider_than_the_terminal(
    terminal: Any, configured: Path, columns: int, arguments: tuple[str, ...]
) -> None:
    configured.write_text(
        configured.read_text().replace(
            'use = "shelf"', 'use = "shelf"\npassages = ["Retry and retry, as long as nothing better is known."]'
        )
    )
    done = terminal(*arguments, columns=columns)
    assert done.code == 0, done.text
    assert "Traceback" not in done.written
    too_wide = [line for line in done.screen if len(line) > columns]
    assert too_wide == []


def test_an_answer_is_laid_out_with_links(terminal: Any, configured: Path) -> None:
    done = terminal("ask", "q")
    assert "▌ " in done.written
    assert "\x1b]8;" in done.written
    assert "file:///shelf/book.md#L7" in done.written
    assert any(line.startswith("[1] /shelf/book.md:7  Chapter") for line in done.screen)


def test_colour_is_left_out_when_nobody_wants_it(terminal: Any, configured: Path) -> None:
    done = terminal("ask", "q", env={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", done.written)
    done = terminal("ask", "q", env={"TERM": "dumb"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", done.written)


@pytest.mark.parametrize("columns", [30, 60])
def test_a_long_update_shows_a_bar_that_leaves_nothing_behind(terminal: Any, configured: Path, columns: int) -> None:
    configured.write_text('[search.shelf]\nuse = "shelf"\nseconds = 0.9\ndocuments = 12\n')
    done = terminal("search", "retry", columns=columns)
    assert done.code == 0, done.text
    assert "Indexing s" in done.written
    assert "/12" in done.written
    assert bool(re.search(r"file-\d", done.written)) == (columns >= 60)
    assert not any("Indexing" in line for line in done.screen)


def test_a_quick_update_shows_no_bar(terminal: Any, configured: Path) -> None:
    done = terminal("search", "retry")
    assert "Indexing" not in done.written


def test_a_document_cannot_reach_the_terminal(terminal: Any, configured: Path) -> None:
    configured.write_text(
        f'[search.shelf]\nuse = "shelf"\npassages = [{EVIL}]\nname = {EVIL}\nlink = {EVIL}\n'
        f'[planner]\nuse = "scripted"\n[planner.scripted]\ntext = {EVIL}\n'
        f"name = {EVIL}\nlink = {EVIL}\nwarning = {EVIL}\n"
    )
    for arguments in (("ask", "q"), ("search", "red")):
        done = terminal(*arguments)
        assert done.code == 0, done.text
        text = "\n".join(done.screen)
        for harm in ("\x1b[31mred", "\x1b]0;", "\x07", "\x9b", "\u202e", "😄"):
            assert harm not in done.written
        assert "[bold]" in text
        assert "[link=" in text


def test_a_document_cannot_reach_the_terminal_through_json(portico: Any, configured: Path) -> None:
    configured.write_text(f'[search.shelf]\nuse = "shelf"\npassages = [{EVIL}]\n')
    done = portico("search", "red", "--json")
    assert done.json["results"][0]["text"].startswith("a\x1b[31mred\x1b]0;title\x07")
    for harm in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert harm not in done.out


def test_a_pipe_gets_plain_lines_that_are_not_wrapped(portico: Any, configured: Path) -> None:
    long = "retry " * 60
    configured.write_text(configured.read_text() + f'[planner.scripted]\ntext = "{long}"\nwarning = "{long}"\n')
    done = portico("ask", "q")
    assert done.out.splitlines()[0] == long.rstrip()
    assert f"! {long.rstrip()}" in done.out.splitlines()
    assert "\x1b" not in done.out + done.err
    assert done.out == "".join(f"{line.rstrip()}\n" for line in done.out.splitlines())


@pytest.fixture
def indexing(folder: Path, started: Any) -> Callable[..., subprocess.Popen[str]]:
    """Return what starts the command line on a slow index and waits until the update has begun."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        marker = folder / "begun"
        (folder / "portico.toml").write_text(
            f'[search.shelf]\nuse = "shelf"\nseconds = 50\nmarker = "{marker}"\n[planner]\nuse = "scripted"\n'
        )
        process: subprocess.Popen[str] = started(*arguments, until=marker.name)
        return process

    return start


def test_an_interrupt_says_that_the_next_run_continues(indexing: Any) -> None:
    process = indexing("ask", "q")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "Interrupted. The index is good; the next run continues where this one stopped."


def test_an_interrupt_with_json_is_an_object(indexing: Any) -> None:
    process = indexing("ask", "q", "--json")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert '"Interrupted"' in out


@pytest.mark.parametrize(
    ("options", "out", "err"),
    [((), "", "Interrupted.\n"), (("--json",), '{"error": {"type": "Interrupted", "message": "Interrupted."}}\n', "")],
)
def test_an_interrupt_while_python_still_imports_is_one_line(
    portico: Any, site: Path, options: tuple[str, ...], out: str, err: str
) -> None:
    # In place of the library that is imported first; the variable makes it a new process.
    (site / "click.py").write_text("raise KeyboardInterrupt")
    done = portico("functions", *options, env={"PYTHONHASHSEED": "7"})
    assert (done.code, done.out, done.err) == (130, out, err)


def test_a_reader_who_goes_away_is_no_error(started: Any, configured: Path) -> None:
    passages = ", ".join('"' + f"{number} retry " * 200 + '"' for number in range(300))
    configured.write_text(f'[search.shelf]\nuse = "shelf"\npassages = [{passages}]\n')
    for options in ([], ["--json"]):
        process = started("search", "retry", "--top", "1000", *options)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read().replace("a library chatters\n", "") == ""
        assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_disk_that_is_full_gives_one_message(
    folder: Path, environment: dict[str, str], options: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "portico_cli", "plugins", *options],
            cwd=folder,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: Standard output cannot be written: No space left on device.\n"


def test_a_closed_standard_output_is_borne(folder: Path, environment: dict[str, str]) -> None:
    command = f"{sys.executable} -m portico_cli plugins >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_searched_is_said_while_it_is(terminal: Any, configured: Path) -> None:
    configured.write_text(
        '[search.my-shelf]\nuse = "shelf"\nsearching = 0.8\n[planner]\nuse = "scripted"\n'
        '[planner.scripted]\nsearch = "my_shelf-GetTextSearchResults"\n'
    )
    for command in ("search", "ask"):
        done = terminal(command, "retry")
        assert done.code == 0, done.text
        doing = "Searching my-shelf…" if command == "search" else "Running my_shelf-GetTextSearchResults…"
        assert doing in done.written, f"{command} does not say what it searches"
        assert doing not in "\n".join(done.screen)
