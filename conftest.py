"""What holds for every test: no network, no traces in the user's home, repeatable examples."""

from __future__ import annotations

import gc
import inspect
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# Explaining a failure may take longer than a test is given: it would end as a timeout, without its example.
PHASES = [phase for phase in Phase if phase is not Phase.explain]
settings.register_profile("dev", deadline=None, phases=PHASES, print_blob=True)
# The same examples on every run: a failure in CI is a failure here. `nox -s fuzz -- .` tries 5,000 others of each.
settings.register_profile(
    "ci",
    settings.get_profile("dev"),
    derandomize=True,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # which goes by the clock: a busy host is no failure
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "fuzz", settings.get_profile("dev"), max_examples=5_000, suppress_health_check=[HealthCheck.too_slow]
)
# Thousands of runs of which most fail at once: what matters is that they fail, not by which example.
settings.register_profile(
    "mutation", settings.get_profile("ci"), max_examples=50, phases=[Phase.explicit, Phase.generate], print_blob=False
)
settings.load_profile(os.environ.get("PORTICO_HYPOTHESIS") or ("ci" if os.environ.get("CI") else "dev"))


# They run in the environment that builds wheels, and in that of one evaluation, which have the packages they import.
collect_ignore = ["adapters/cli/hatch_build.py", "tests/bench/peers/haystack_steps.py", "tests/workspace.py"]
collect_ignore_glob = ["tests/eval/agentdojo/*.py"]


# Files that share what takes long to build are run by one process, in their order: those whose paths begin so.
# The first need the same wheels, the second the same language model, whose answers may depend on what came before.
TOGETHER = ("tests/acceptance/test_packag", "tests/real/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole files, in the order in which they stand, whatever `--dist` says.

    The blocks of a page share their names, and the tests of a module what its fixtures have built. The order of
    pytest-xdist, files with most tests first, would leave those to the end that have few long ones.
    """
    from xdist.scheduler import LoadFileScheduling

    class WholeFiles(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return next((place for place in TOGETHER if file.startswith(place)), file)

    config.option.loadscopereorder = False
    return WholeFiles(config, log)


# Collecting tests makes a million objects and drops few: to look for circles among them takes a fifth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of every later garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Try the properties of parsers again and again for as many minutes of processor time as `nox -s fuzz` is given."""
    minutes = OUTER_ENVIRONMENT.get("PORTICO_FUZZ_MINUTES")
    if not minutes or pyfuncitem.get_closest_marker("fuzz") is None:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    until = time.process_time() + 60 * float(minutes)
    while time.process_time() < until:
        pyfuncitem.obj(**given)
    return True


class NetworkRefused(Exception):
    """A test reached for something beyond this machine."""


@pytest.fixture(scope="session")
def outer_environment() -> dict[str, str]:
    """Give the environment as it was before the tests moved the home folder; installers need it."""
    return dict(OUTER_ENVIRONMENT)


OUTER_ENVIRONMENT = dict(os.environ)

# A shell starts what it runs in the background with interrupts ignored, and every process started from there
# inherits that: the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Move the home, cache and configuration folders, so that no test reads or writes the user's."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "USERPROFILE"):
            patch.setenv(name, str(home))
        for name, folder in {
            "XDG_CACHE_HOME": ".cache",
            "XDG_CONFIG_HOME": ".config",
            "XDG_DATA_HOME": ".local/share",
            "XDG_STATE_HOME": ".local/state",
            "LOCALAPPDATA": "AppData/Local",
            "APPDATA": "AppData/Roaming",
        }.items():
            patch.setenv(name, str(home / folder))
        for name in [name for name in os.environ if name.startswith("PORTICO_")]:
            patch.delenv(name)
        yield home


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Refuse connections, datagrams and name look-ups that would leave this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for method in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, method, guarded(getattr(socket.socket, method)))
        look_up = socket.getaddrinfo

        def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
            if not is_local(host):
                raise NetworkRefused(f"a test looked up {host!r}; only loopback addresses may be used")
            return look_up(host, *arguments, **options)

        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves the process changed: tests of other files would fail, depending on the order."""
    before = process_state()
    yield
    after = process_state()
    if after != before:
        sys.setrecursionlimit(before[0])
        os.chdir(before[1])
        for name in {**before[2], **after[2]}:
            logging.getLogger(name).setLevel(before[2].get(name, logging.NOTSET))
        pytest.fail(f"recursion limit, folder or log levels were left changed: {after}, before: {before}")


def process_state() -> tuple[int, Path, dict[str, int]]:
    """Return the recursion limit, the working folder and the levels of our loggers that have one."""
    loggers = logging.root.manager.loggerDict.items()
    levels = {
        name: logger.level
        for name, logger in loggers
        if name.startswith("portico") and isinstance(logger, logging.Logger) and logger.level
    }
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # a test went into a folder and removed it
        folder = Path()
    return sys.getrecursionlimit(), folder, levels


def guarded(method: Any) -> Any:
    """Wrap a socket's method, whose last argument is the address, to take local addresses only."""

    def checked(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[-1]
        if isinstance(address, tuple) and self.family in {socket.AF_INET, socket.AF_INET6} and not is_local(address[0]):
            raise NetworkRefused(f"a test reached for {address!r}; only loopback addresses may be used")
        return method(self, *arguments)

    return checked


def is_local(host: Any) -> bool:
    """Tell whether an address or name stays on this machine, without looking it up."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in {None, "", "localhost", socket.gethostname()}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
