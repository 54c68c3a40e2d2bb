"""A test of a kit that has no end fails all the same, and says where it waits."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

KIT = """
import asyncio
import signal
import threading
import time
import pytest

class PoemKit:
    async def test_it_rhymes(self, poem):
        await poem.read()

class Poem:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def read(self):
        await self.lock.acquire()
        await asyncio.sleep(0)
        self.lock.release()
"""
POEM = """
class TestLimerick(PoemKit):
    time_limit = 0.4
    poems = []

    @pytest.fixture
    async def poem(self):
        self.poems.append(Poem())
        yield self.poems[-1]
        await self.poems[-1].read()
"""
CLASS = POEM[: POEM.index("\n    @pytest.fixture")]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return Run(pytester)


class Run:
    """Runs an author's tests in a process of their own, where no other plugin has a time limit."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")

    def __call__(self, source: str) -> pytest.RunResult:
        self.pytester.makepyfile(test_contract=KIT + source)
        return self.pytester.runpytest_subprocess("-p", "no:timeout", "-p", "no:cacheprovider", timeout=100)


def test_a_lock_that_is_not_given_back_fails_the_test_and_the_next_one_runs(run: Run) -> None:
    source = f"""{CLASS}
    async def test_another(self):
        pass

    @pytest.fixture
    async def poem(self):
        poem = Poem()
        await poem.lock.acquire()
        return poem
"""
    result = run(source)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_it_rhymes never ends: 0.4 seconds have passed.*", "Look for a lock*"])
    result.stdout.re_match_lines([r"The task .* waits: test_it_rhymes \(.*:9\) → read \(.*test_contract\.py:\d+\)\."])


@pytest.mark.parametrize("wait", ["time.sleep(60)", "threading.Event().wait()"])
def test_an_event_loop_that_is_blocked_for_ever_is_ended_and_the_place_told(run: Run, wait: str) -> None:
    source = f"""{POEM}
class Poem(Poem):
    async def read(self):
        if not hasattr(self, 'read_before'):
            self.read_before = True
            {wait}
"""
    result = run(source)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"The task .* holds up the event loop in read \(.*test_contract\.py:\d+\)\."])


def test_a_fixture_and_a_property_have_an_end_too(run: Run) -> None:
    source = f"""
from hypothesis import given, settings, strategies as st
{CLASS}
    @pytest.fixture
    async def poem(self):
        await asyncio.Event().wait()

class TestSonnet(PoemKit):
    time_limit = 0.4

    @pytest.fixture
    def poem(self):
        return Poem()

    @given(number=st.integers(0, 3))
    async def test_it_has_verses(self, number):
        await asyncio.Event().wait()

    def test_it_has_an_author(self):
        threading.Event().wait()

class TestHaiku(PoemKit):
    time_limit = 0.4

    @pytest.fixture
    async def poem(self):
        yield Poem()
        await asyncio.Event().wait()
"""
    result = run(source)
    result.assert_outcomes(passed=2, failed=2, errors=2)
    for line in (
        "*test_it_rhymes is not ready: 0.4 seconds*",
        "*test_it_has_verses never ends: 0.4 seconds*",
        "*test_it_has_an_author never ends: 0.4 seconds*",
        "*test_it_rhymes is over and cannot be closed: 0.4 seconds*",
    ):
        result.stdout.fnmatch_lines([line])


def test_who_swallows_the_failure_gets_it_again(run: Run) -> None:
    source = f"""{CLASS}
    @pytest.fixture
    def poem(self):
        return Poem()

    def test_it_is_patient(self):
        for _ in range(3):
            try:
                time.sleep(60)
            except BaseException:
                pass

    async def test_it_goes_on_when_it_is_cancelled(self):
        try:
            await asyncio.sleep(60)
        except BaseException:
            time.sleep(60)
"""
    # The last one is cancelled when its loop is closed.
    run(source).assert_outcomes(passed=1, failed=2, errors=1)


def test_a_thread_that_has_no_end_does_not_hold_up_the_process(run: Run) -> None:
    """Python waits for the threads of an executor, so that the report would be there, and the process too."""
    run.pytester.makeconftest("import portico_testkit._time_limit as limit\nlimit._LAST_SECONDS = 0.5\n")
    source = f"""{CLASS}
    @pytest.fixture
    def poem(self):
        return Poem()

    async def test_it_is_written(self):
        await asyncio.to_thread(write)

def write():
    threading.Event().wait()
"""
    result = run(source)
    assert result.ret != 0
    result.stdout.re_match_lines([r"The thread asyncio_0 is in write \(.*test_contract\.py:\d+\)\."])
    result.stdout.fnmatch_lines(["*1 failed, 1 passed,*1 error*"])  # its loop cannot be closed either
    result.stderr.fnmatch_lines(["Threads of a test that had no end go on: asyncio_0*", "*in write"])


@pytest.mark.parametrize(("limit", "pause"), [("None", 0.3), ("float(3600)", 0.3), ("0.2", 0.0)])
def test_the_limit_is_the_authors(run: Run, limit: str, pause: float) -> None:
    source = f"""
class TestLimerick(PoemKit):
    time_limit = {limit}

    @pytest.fixture
    def poem(self):
        return Poem()

    async def test_it_takes_its_time(self):
        assert bool(signal.getitimer(signal.ITIMER_REAL)[0]) is {limit != "None"}
        await asyncio.sleep({pause})

def test_afterwards_nothing_is_left_of_it():
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL

def test_others_have_none(request):
    assert not signal.getitimer(signal.ITIMER_REAL)[0]
"""
    run(source).assert_outcomes(passed=4)


def test_a_limit_of_somebody_elses_stands(run: Run) -> None:
    run.pytester.makeconftest("""
import signal
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    signal.setitimer(signal.ITIMER_REAL, 3600)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
""")
    source = f"""{CLASS}
    @pytest.fixture
    def poem(self):
        return Poem()

    async def test_it_takes_its_time(self):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 3000
        await asyncio.sleep(0.6)
"""
    run(source).assert_outcomes(passed=2)
