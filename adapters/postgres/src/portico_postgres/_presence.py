"""Whether the process that holds a lease is still there, where that can be known: on the same running system.

A process that was killed cannot give its leases back. Its number alone says little: numbers come again, and mean
another process in another container. So a lease carries which start of which system it is, which space of process
numbers, the number, and when the process began; only where all of that can be looked at is a process said to be gone.
Everywhere else (another host, another container, not Linux) the lease runs out.

A connection that ended says nothing: networks fail, servers restart, and the process is at work all the same.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_GONE_STATES = frozenset({"Z", "X"})
_START = 19
"""Where `/proc/PID/stat` has the start of a process, counted from its state: proc_pid_stat(5)."""


class Presence:
    """The sign of this process, and what another one's says."""

    def __init__(self) -> None:
        self._pid = 0
        self._sign: str | None = None

    def sign(self) -> str | None:
        """Return what tells this process from every other one; None where the system does not say."""
        pid = os.getpid()
        # A process that was forked is another one.
        if pid != self._pid:
            system, began = _system(), _began(pid)
            self._sign = f"{system} {pid} {began}" if system and began else None
            self._pid = pid
        return self._sign

    def is_gone(self, sign: str | None) -> bool:
        """Tell whether the process of that sign has ended for certain."""
        own = self.sign()
        if own is None or sign is None or sign == own:
            return False
        try:
            system, number, began = sign.rsplit(" ", 2)
            pid = int(number)
        except ValueError:
            return False
        if system != own.rsplit(" ", 2)[0] or pid <= 0:
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        now = _began(pid)
        return now is not None and now != began


def _system() -> str | None:
    """Return which start of which system this is, and which space of process numbers."""
    try:
        # A /proc from outside a container or sandbox tells of other processes under our numbers.
        if (_PROC / "self").readlink() != Path(str(os.getpid())):
            return None
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').stat().st_ino}"
    except (OSError, ValueError):
        return None


def _began(pid: int) -> str | None:
    """Return when a process began, "ended" for one that nobody has waited for yet; None where it is not told."""
    try:
        # The name before it is in parentheses, and may have parentheses and spaces in it.
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "ended" if fields[0] in _GONE_STATES else fields[_START]
    except (OSError, IndexError):
        return None
