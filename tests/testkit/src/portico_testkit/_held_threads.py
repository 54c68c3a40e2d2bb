"""Threads that begin late, so that what is cancelled meanwhile comes after what is called later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

__all__ = ["HeldThreads"]

_LONGEST = 60.0
"""Seconds after which a thread begins that nobody let go."""


class HeldThreads(ThreadPoolExecutor):
    """Begin what is given while ``hold`` is true when it is let go only, as a busy computer does after a while.

    >>> threads = HeldThreads()
    >>> late = threads.submit(int, "5")
    >>> threads.held == [late]
    True
    >>> threads.let_go()
    >>> late.result()
    5
    >>> threads.shutdown()
    """

    def __init__(self) -> None:
        super().__init__(4, thread_name_prefix="held")
        self.hold = True
        self.held: list[Future[Any]] = []
        self._go = threading.Event()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a thread call it, which waits first as long as it is held."""
        if not self.hold:
            return super().submit(call, *args, **kwargs)

        def later() -> Any:
            self._go.wait(_LONGEST)
            return call(*args, **kwargs)

        self.held.append(super().submit(later))
        return self.held[-1]

    def let_go(self) -> None:
        """Have everything begin, now and later."""
        self.hold = False
        self._go.set()

    def wait(self) -> None:
        """Wait until nothing that was held is under way."""
        wait(self.held)
