"""Call into packages: an interrupt may stop them, and their prints go to standard error."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, cast

__all__ = ["call_out", "import_quietly", "is_called_out", "is_from_outside", "printing_to_stderr"]


def call_out(work: Callable[..., Any], *arguments: object) -> Any:
    """Call code of a package.

    The call may block the event loop for seconds, and ``asyncio`` delays a Ctrl-C for that time. The signal handler of
    a command line uses `is_called_out` to see that it can safely interrupt at once.
    """
    return work(*arguments)


def is_called_out(frame: FrameType | None) -> bool:
    """Return whether ``frame``, as a signal handler gets it, is inside `call_out`."""
    while frame is not None:
        if frame.f_code is call_out.__code__:
            return True
        frame = frame.f_back
    return False


def is_from_outside(error: BaseException) -> bool:
    """Return whether an awaited call was stopped by its caller and did not fail by itself.

    A ``CancelledError`` without a request to cancel is a failure of the package. A ``SystemExit`` always is one,
    because a package must not end the program.
    """
    import asyncio

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def import_quietly(module: str) -> ModuleType:
    """Import a module; what it prints meanwhile goes to standard error.

    One that is imported already prints nothing, so standard output is left alone.
    """
    if module in sys.modules:
        return import_module(module)  # which waits where another thread is not done with it
    with printing_to_stderr():
        return cast("ModuleType", call_out(import_module, module))


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send what this thread prints to standard error; what others print stays where it is.

    `contextlib.redirect_stdout` would not do: of two threads that overlap, the later puts back what the earlier has put
    there, and standard output is lost for good. No lock is held inside, since an import may wait for another thread's.
    """
    with _lock:
        stream = sys.stdout
        if not isinstance(stream, _Stdout):
            stream = _Stdout(stream)
            sys.stdout = cast("Any", stream)
        stream.inside += 1
    quiet = _is_quiet()
    _thread.quiet = True
    try:
        yield
    finally:
        _thread.quiet = quiet
        with _lock:
            stream.inside -= 1
            # Where somebody has put another one there, and puts ours back later, ours continues what it stands for.
            if not stream.inside and sys.stdout is cast("Any", stream):
                sys.stdout = stream.stdout


class _Stdout:
    """Stands for standard output while some thread is inside; ``inside`` counts them."""

    def __init__(self, stdout: Any) -> None:
        self.stdout = stdout
        self.inside = 0

    def __getattr__(self, name: str) -> Any:
        # Either may be None, as in a program without a console.
        stream = sys.stderr if _is_quiet() else self.stdout
        return getattr(io.StringIO() if stream is None else stream, name)


_lock = threading.Lock()
_thread = threading.local()


def _is_quiet() -> bool:
    return getattr(_thread, "quiet", False)
