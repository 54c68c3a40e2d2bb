"""What a person at a terminal sees, and what a pipe gets."""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals are POSIX's")

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
EVIL = r'"a\u001b[31mred\u001b]0;title\u0007 [bold]x[/bold] \u009b2J\u202edlrow [link=http://x]y[/link] :smile: \rover"'


@pytest.fixture
def terminal(folder: Path, environment: dict[str, str]) -> Callable[..., tuple[int, str]]:
    """Return what runs the command line in a pseudo-terminal and gives its exit code and everything it wrote."""
    import fcntl
    import pty
    import termios

    def run(*arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> tuple[int, str]:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "portico_cli", *arguments],
            cwd=folder,
            env=environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | (env or {}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        written = b""
        while select.select([master], [], [], 30)[0]:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            written += piece
        os.close(master)
        return process.wait(timeout=30), written.decode()

    return run


def final_lines(written: str) -> list[str]:
    """Return what stays on the screen: as much of a terminal as rich's bars need."""
    screen, row = [""], 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\|[\r\n]|[^\x1b\r\n]+", written):
        if token == "\n":
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif token.endswith("A") and ESCAPES.fullmatch(token):
            row -= int(token[2:-1] or 1)
        elif token.endswith("2K"):
            screen[row] = ""
        elif token != "\r" and not ESCAPES.fullmatch(token):
            screen[row] += token
    return screen


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
            'use = "shelf"',
            'use = "shelf"\npassages = ["Retry and retry, as long as nothing better is known."]',
        )
    )
    code, written = terminal(*arguments, columns=columns)
    assert code == 0, written
    assert "Traceback" not in written
    too_wide = [line for line in final_lines(written) if len(line) > columns]
    assert too_wide == []


def test_an_answer_is_laid_out_with_links(terminal: Any, configured: Path) -> None:
    _, written = terminal("ask", "q")
    assert "│ " in written
    assert "\x1b]8;" in written
    assert "file:///shelf/book.md#L7" in written
    assert any(line.startswith("[1] /shelf/book.md:7  Chapter") for line in final_lines(written))


def test_colour_is_left_out_when_nobody_wants_it(terminal: Any, configured: Path) -> None:
    _, written = terminal("ask", "q", env={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", written)
    _, written = terminal("ask", "q", env={"TERM": "dumb"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", written)


@pytest.mark.parametrize("columns", [30, 60])
def test_a_long_update_shows_a_bar_that_leaves_nothing_behind(terminal: Any, configured: Path, columns: int) -> None:
    configured.write_text('[search.shelf]\nuse = "shelf"\nseconds = 0.9\ndocuments = 12\n')
    code, written = terminal("search", "retry", columns=columns)
    assert code == 0, written
    assert "Indexing shelf" in written
    assert "/12" in written
    assert bool(re.search(r"file-\d", written)) == (columns >= 60)
    assert not any("Indexing" in line for line in final_lines(written))


def test_a_quick_update_shows_no_bar(terminal: Any, configured: Path) -> None:
    _, written = terminal("search", "retry")
    assert "Indexing" not in written


def test_a_document_cannot_reach_the_terminal(terminal: Any, configured: Path) -> None:
    configured.write_text(
        f'[search.shelf]\nuse = "shelf"\npassages = [{EVIL}]\nname = {EVIL}\nlink = {EVIL}\n'
        f'[planner]\nuse = "scripted"\n[planner.scripted]\ntext = {EVIL}\n'
        f"name = {EVIL}\nlink = {EVIL}\nwarning = {EVIL}\n"
    )
    for arguments in (("ask", "q"), ("search", "red")):
        code, written = terminal(*arguments)
        assert code == 0, written
        text = "\n".join(final_lines(written))
        for harm in ("\x1b[31mred", "\x1b]0;", "\x07", "\x9b", "\u202e", "😄"):
            assert harm not in written
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
def started(folder: Path, environment: dict[str, str]) -> Callable[..., subprocess.Popen[bytes]]:
    """Return what starts the command line on a slow index and waits until the update has begun."""
    processes = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        marker = folder / "begun"
        (folder / "portico.toml").write_text(
            f'[search.shelf]\nuse = "shelf"\nseconds = 50\nmarker = "{marker}"\n[planner]\nuse = "scripted"\n'
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "portico_cli", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        while not marker.exists() and process.poll() is None:
            time.sleep(0.02)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_an_interrupt_says_that_the_next_run_continues(started: Any) -> None:
    process = started("ask", "q")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().strip() == "Interrupted. The index is good; the next run continues where this one stopped."


def test_an_interrupt_with_json_is_an_object(started: Any) -> None:
    process = started("ask", "q", "--json")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b'"Interrupted"' in out


@pytest.mark.parametrize(
    ("options", "out", "err"),
    [((), "", "Interrupted.\n"), (("--json",), '{"error": {"type": "Interrupted", "message": "Interrupted."}}\n', "")],
)
def test_an_interrupt_while_python_still_imports_is_one_line(
    portico: Any, site: Path, options: tuple[str, ...], out: str, err: str
) -> None:
    # In place of the library that is imported first.
    (site / "click.py").write_text("raise KeyboardInterrupt")
    done = portico("functions", *options)
    assert (done.code, done.out, done.err) == (130, out, err)


def test_a_reader_who_goes_away_is_no_error(folder: Path, environment: dict[str, str], configured: Path) -> None:
    passages = ", ".join('"' + f"{number} retry " * 200 + '"' for number in range(300))
    configured.write_text(f'[search.shelf]\nuse = "shelf"\npassages = [{passages}]\n')
    for options in ([], ["--json"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "portico_cli", "search", "retry", "--top", "1000", *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read().decode().replace("a library chatters\n", "") == ""
        process.stderr.close()
        assert process.wait(timeout=30) == 0


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
        code, written = terminal(command, "retry")
        assert code == 0, written
        assert "Searching my-shelf…" in written, f"{command} does not say what it searches"
        assert "Searching" not in "\n".join(final_lines(written))
        assert "GetTextSearchResults" not in written
