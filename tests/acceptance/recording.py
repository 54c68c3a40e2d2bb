"""Record what a terminal shows, as a drawing that moves: `nox -s recording` writes docs/recording.svg.

The commands run for real, in a folder that is made for them; only the typing is invented. svg-term, from npm, draws.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS, ROWS = 96, 20
COMMANDS = ('portico ask "How do I write a search connector?" --docs docs', "portico runs")
LONGEST_REST = 0.6
READING = 3.5
SVG_TERM = "svg-term-cli@2.1.1"

Event = tuple[float, str, str]


def record(folder: Path) -> list[Event]:
    """Run the commands and return the events of an asciicast."""
    events: list[Event] = []
    now = 0.0
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "LINES": str(ROWS),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    for command in COMMANDS:
        events.append((now, "o", "\x1b[32m$\x1b[0m "))
        for letter in command:
            now += 0.04
            events.append((now, "o", letter))
        now += 0.5
        events.append((now, "o", "\r\n"))
        for rest, text in outputs(command, folder, environment):
            now += min(rest, LONGEST_REST)
            events.append((now, "o", text))
        now += READING
    events.append((now, "o", "\x1b[32m$\x1b[0m "))
    return events


def outputs(command: str, folder: Path, environment: dict[str, str]) -> list[tuple[float, str]]:
    """Run a command at a terminal; return what it writes, each piece with the seconds before it."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")()
    written: list[tuple[float, str]] = []
    with subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as process:
        os.close(its)
        last = time.monotonic()
        while select.select([ours], [], [], 60)[0]:
            try:
                data = os.read(ours, 65_536)
            except OSError:
                break
            now = time.monotonic()
            written.append((now - last, decoder.decode(data)))
            last = now
    os.close(ours)
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}.")
    return written


def main() -> None:
    """Record, and draw."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("theme", "template", "*.webp"))
        head = {"version": 2, "width": COLUMNS, "height": ROWS}
        cast = "\n".join(json.dumps(each) for each in (head, *record(folder)))
        (folder / "recording.cast").write_text(f"{cast}\n", "utf-8")
        drawing = ROOT / "docs" / "recording.svg"
        words = ["npx", "--yes", SVG_TERM, "--in", str(folder / "recording.cast"), "--out", str(drawing), "--window"]
        subprocess.run([*words, "--no-cursor"], check=True)
        print(f"{drawing.relative_to(ROOT)}: {drawing.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
