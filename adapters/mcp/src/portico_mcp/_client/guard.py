"""Run a server's program, and end it with all that it started when the application is gone.

    python -I -S guard.py FD COMMAND ARGUMENT...

``FD`` is the end of a pipe that the application holds open. When the application ends, even by `kill -9`, the pipe
does, and the process group of the server is ended. The guard is a process of few lines, so that it starts at once.
"""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

_PATIENCE = 2.0


def main() -> int:
    """Start the command, wait for its end or the application's, and return its exit code."""
    lifeline, command = int(sys.argv[1]), sys.argv[2:]
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    os.set_inheritable(lifeline, False)
    try:
        server = subprocess.Popen(command)  # noqa: S603 - the command is the configuration's
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror or error}\n")
        return 127
    # Only the server holds its pipes now, so that they end when it does.
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 0)
    os.dup2(silence, 1)
    while server.poll() is None:
        if lifeline in select.select([lifeline, woken], [], [])[0]:
            return _end(server)
        os.read(woken, 512)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _end(server: "subprocess.Popen[bytes]") -> int:
    """End the process group: the server, what it started, and in the end this guard."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(_PATIENCE)
    os.killpg(0, signal.SIGKILL)
    return 1


if __name__ == "__main__":
    sys.exit(main())
