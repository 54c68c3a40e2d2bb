"""Commands at a terminal: what the testkit types, what it gives back, and how it ends them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.support.terminal import CTRL_C, CTRL_D, Shown, at_terminal, without_escapes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
Failed = pytest.fail.Exception


def script(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_the_terminal_is_as_large_as_was_said_and_the_environment_is_the_one_given(tmp_path: Path) -> None:
    source = "import os; print(*os.get_terminal_size(), os.environ['WHOSE'], os.getcwd())"
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    done = at_terminal(script(source), columns=37, rows=11, cwd=tmp_path, env=environment | {"WHOSE": "mine"})
    assert done.text == f"37 11 mine {tmp_path}\n"


def test_all_three_streams_are_the_terminal_and_a_terminal_that_is_opened_is_the_same() -> None:
    source = (
        "import os\n"
        "terminal = os.open('/dev/tty', os.O_RDWR)\n"
        "os.write(terminal, f'{[os.isatty(stream) for stream in range(3)]}'.encode())"
    )
    assert at_terminal(script(source)).text == "[True, True, True]"


def test_each_step_looks_at_what_comes_after_the_one_before() -> None:
    asked = "for _ in range(3): print('got', input('more? '))"
    done = at_terminal(script(asked), steps=[("more? ", "1\n"), ("more? ", "2\n"), ("more? ", "3\n")])
    assert re.findall(r"got (\d)", done.text) == ["1", "2", "3"]


def test_a_step_may_wait_for_escapes_and_for_letters_of_several_bytes() -> None:
    source = "import time\nfor byte in '\\x1b[1mfünf … 😄\\x1b[0m ? '.encode():\n"
    source += "    __import__('os').write(1, bytes([byte])); time.sleep(0.002)\ninput()"
    done = at_terminal(script(source), steps=[("fünf … 😄\x1b[0m ? ", "\n")])
    assert (done.code, done.text) == (0, "fünf … 😄 ? \n")


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert at_terminal(script("__import__('os').write(1, b'a\\xffb\\xe2\\x82')")).text == "a\ufffdb\ufffd"


def test_more_than_a_terminal_holds_is_typed_and_read_whole() -> None:
    typed = "".join(f"{number} {'x' * 90}\n" for number in range(600))
    source = "import sys\nprint('go')\ntotal = sum(map(len, sys.stdin))\nprint('y' * 100_000)\nprint(total, 'letters')"
    done = at_terminal(script(source), steps=[("go", typed), ("599 x", CTRL_D)])
    assert done.text.endswith(f"{'y' * 100_000}\n{len(typed)} letters\n")


def test_ctrl_c_interrupts_a_command_even_if_this_process_ignores_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        source = "import time\ntry:\n    print('at work', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
        done = at_terminal(script(source + "    raise SystemExit(7)"), steps=[("at work\r\n", CTRL_C)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.code, done.text) == (7, "at work\n^C")


def test_ctrl_c_that_nobody_heard_is_pressed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.terminal._AGAIN", 0.1)
    # Without an echo nothing shows the first one, and it has no effect.
    source = (
        "import signal, termios\n"
        "set = termios.tcgetattr(0); set[3] &= ~termios.ECHO; termios.tcsetattr(0, termios.TCSANOW, set)\n"
        "heard = []\nsignal.signal(signal.SIGINT, lambda *_: heard.append(1))\nprint('ready', flush=True)\n"
        "while len(heard) < 2: signal.pause()\nprint('heard')"
    )
    assert at_terminal(script(source), steps=[("ready\r\n", CTRL_C)]).text == "ready\nheard\n"


def test_a_command_that_a_signal_ends_has_its_number() -> None:
    assert at_terminal(script("import os; os.kill(os.getpid(), 15)")).code == -signal.SIGTERM


def test_a_command_that_is_not_there_says_so() -> None:
    done = at_terminal(["no-such-command"])
    assert (done.code, done.text) == (127, "no-such-command: No such file or directory\n")


def test_a_command_that_ends_too_soon_is_a_failure_that_shows_what_it_wrote() -> None:
    before = open_files()
    with pytest.raises(Failed) as raised:
        at_terminal(script("print('\\x1b[31mno such file'); exit(3)"), steps=[("Save it?", "y\n")])
    assert "ended with code 3, and 'Save it?' did not come." in str(raised.value)
    assert "without escapes:\nno such file" in str(raised.value)
    assert r"and last, with them: '\x1b[31mno such file\r\n'" in str(raised.value)
    assert open_files() == before


def test_a_command_that_does_not_end_is_killed_with_what_it_started_and_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    before = open_files()
    source = (
        "import os, pathlib, subprocess, sys, time\n"
        "alive = os.open('alive', os.O_WRONLY)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], pass_fds=[alive])\n"
        "pathlib.Path('begun').touch()\ntime.sleep(600)"
    )
    now = time.monotonic
    # Its time is over as soon as both are at work.
    monkeypatch.setattr(time, "monotonic", lambda: now() + 1_000 * (tmp_path / "begun").exists())
    with pytest.raises(Failed, match=r"has not ended after 90 seconds, and 'never' did not come"):
        at_terminal(script(source), cwd=tmp_path, steps=[("never", "")])
    assert open_files() == before
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b"", "this is the end only if nobody is left who could write"
    os.close(alive)


def test_a_command_that_closes_its_terminal_and_goes_on_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = subprocess.Popen.wait

    def at_once(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is not None:
            raise subprocess.TimeoutExpired(process.args, timeout)
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", at_once)
    with pytest.raises(Failed, match="has closed its terminal and has not ended"):
        at_terminal(script("import os, time\nfor each in range(3): os.close(each)\ntime.sleep(600)"))


def test_what_a_command_leaves_running_at_its_terminal_holds_nothing_up() -> None:
    source = (
        "import subprocess, sys\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True).pid)"
    )
    done = at_terminal(script(source))
    assert done.code == 0
    os.kill(int(done.text), signal.SIGKILL)


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"])), min_size=1))
def test_plain_lines_are_on_the_screen_as_they_were_written(lines: list[str]) -> None:
    assert Shown(0, "\r\n".join(lines)).screen == lines


@pytest.mark.parametrize(
    ("written", "screen"),
    [
        ("50 %\r100 %", ["100 %"]),
        ("100 %\r50 %", ["50 %%"]),
        ("abc\b\bX", ["aXc"]),
        ("one\r\ntwo\r\n\x1b[2A\x1b[2K1", ["1", "two", ""]),
        ("abcdef\r\x1b[2C\x1b[K", ["ab"]),
        ("abcdef\x1b[3D\x1b[1K", ["    ef"]),
        ("abc\x1b[2KX", ["   X"]),
        ("\x1b[9Aa\x1b[9D\x1b[31mb\x1b]0;title\x07c", ["bc"]),
    ],
)
def test_a_screen_is_what_is_left_of_what_was_written(written: str, screen: list[str]) -> None:
    assert Shown(0, written).screen == screen


@pytest.mark.parametrize(
    "escape", ["\x1b[0m", "\x1b[38;2;1;2;3m", "\x1b[?2004h", "\x1b[!p", "\x1b]8;;x\x1b\\", "\x1b]0;x\a"]
)
def test_no_escape_is_left(escape: str) -> None:
    assert without_escapes(f"a{escape}b{escape}") == "ab"
