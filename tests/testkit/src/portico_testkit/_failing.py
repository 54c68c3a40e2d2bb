"""Whether a failure behind a service comes out as an error of Portico, and what a failure of a kit says."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Awaitable, Generator
from pathlib import Path
from typing import Any

import pytest

from portico import ports
from portico.errors import PorticoError

__all__ = ["fails_as", "pytest_runtest_makereport", "require_port"]

_TOLD = pytest.StashKey[dict[str, str]]()
_MENDS = {
    r"\.__init__\(\) |\w\(\) takes no arguments": "Portico makes it with (settings, services)",
    "^Can't instantiate abstract class": "Write what it lacks",
    "Settings' object has no attribute": "Add this setting to the class, or read one that it has",
}


async def fails_as(
    kinds: type[PorticoError] | tuple[type[PorticoError], ...],
    call: Awaitable[object],
    what: str,
    *,
    must: bool = True,
    hidden: str = "",
) -> None:
    """Fail unless a call that cannot work raises one of ``kinds`` with more than a word.

    The error of another library may be its cause only. ``must`` is False for a call that may work all the same;
    ``hidden`` is a secret that may stand in no error and no cause.
    """
    try:
        result = await call
    except Exception as error:
        if not isinstance(error, kinds):
            raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error
        assert len(str(error)) > 10, f"{what} fails and says {str(error)!r} only"
        cause: BaseException | None = error
        seen: list[BaseException] = []
        while cause is not None and cause not in seen:
            seen.append(cause)  # a library may raise an error from itself
            assert not hidden or hidden not in f"{cause} {cause!r}", f"a secret is in the error of {what}, or its cause"
            cause = cause.__cause__ or cause.__context__
    else:
        if must:
            pytest.fail(f"{what} gave {result!r}, and what it stands on fails")


def require_port(port: ports.PortInfo, service: object) -> None:
    """Raise ``TypeError`` for what is no service of a port: it lacks members, or is their class."""
    if isinstance(service, type):
        raise TypeError(f"{service.__name__} is a class: give an instance of it, as a {port.noun}.")
    members = vars(protocol := getattr(ports, port.name))
    wanted = [name for name in inspect.get_annotations(protocol) if name not in members]
    wanted += [
        name
        for name, member in members.items()
        if inspect.isfunction(member) and name[0] != "_" and "optional" not in (member.__doc__ or "")
    ]
    lacking = [name for name in wanted if not hasattr(service, name)]
    if lacking:
        mend = f"a {port.noun} has them"
        if port.name == "TextSearch":
            mend = 'say name = "…"' if lacking == ["name"] else "subclass SearchConnector"
        raise TypeError(f"{type(service).__name__} lacks {', '.join(lacking)}: {mend}.")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a failure in a kit say one sentence, and skip what fails for the same cause, in a kit or beside it."""
    report, told = (yield), item.config.stash.setdefault(_TOLD, {})
    if not report.failed or call.excinfo is None or item.config.getoption("tbstyle") != "auto":
        return report
    error: BaseException = getattr(call.excinfo.value, "exc_info", (None, call.excinfo.value))[1]  # of a doctest
    first = next((test for old, test in told.items() if _is_told(error, old)), item.nodeid)
    if first != item.nodeid:
        report.outcome = "skipped"
        report.longrepr = (first.partition("::")[0], None, f"for the same cause as {first.rpartition('::')[2]}")  # type: ignore[assignment]
    elif item.get_closest_marker("portico_kit"):
        if str(error):
            told[str(error)] = item.nodeid
        if (sentence := _sentence(error, item.config.rootpath)) is not None:
            shown: Any = call.excinfo.getrepr(style="value", chain=False)
            shown.reprcrash.message = sentence
            shown.reprtraceback.reprentries[-1].lines = sentence.split("\n")
            report.longrepr = shown
            report.sections = [section for section in report.sections if "log" not in section[0]]
    return report


def _is_told(error: BaseException, told: str) -> bool:
    words = str(error)
    lacks = isinstance(error, AttributeError) and told.startswith(f"{type(error.obj).__name__} lacks ")
    return lacks or words == told or (min(len(words), len(told)) > 15 and (words in told or told in words))


def _sentence(error: BaseException, root: Path) -> str | None:
    """Return what a failure says, and where in the package that is tested; None for an assertion in that package."""
    place, ours = "", False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        ours = module in ("portico", "portico_testkit") or (ours and module == "_pytest")
        if not ours and file.is_relative_to(root) and "site-packages" not in file.parts:
            name, place = frame.f_code.co_qualname, f" ({file.relative_to(root).as_posix()}:{line})"
    words = str(error)
    if isinstance(error, AssertionError | pytest.fail.Exception):
        told = words if words.startswith("assert ") else words.partition("\nassert ")[0]
        return "\n".join([f"{told}{place}", *getattr(error, "__notes__", ())]) if ours else None
    mend = next((f". {mend}" for sign, mend in _MENDS.items() if re.search(sign, words)), "")
    if place:
        return f"{name} raised {type(error).__name__}: {words}{mend}{place}"
    return words if isinstance(error, TypeError) else f"{type(error).__name__}: {words}{mend}"
