"""What runs a kit over an implementation tells each test that fails, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from portico_testkit.kit_failures import KnownFaults, kit_failures, names_of_tests


class NumberKit:
    async def test_it_is_positive(self, number: int) -> None:
        if number <= 0:
            raise ValueError("it is not positive")

    def test_it_divides_in_an_event_loop_of_its_own(self, number: int) -> None:
        async def divide() -> float:
            return 6 / number

        asyncio.run(divide())

    @pytest.mark.parametrize(("low", "high"), [(-9, 9), (-3, 3)])
    @pytest.mark.parametrize("step", [1, 2])
    async def test_it_is_among(self, number: int, low: int, high: int, step: int) -> None:
        if number not in range(low, high, step):
            pytest.fail(f"not among {low}, {low + step} to {high}")

    async def no_test(self) -> None:
        raise AssertionError("it was run")


class EvenKit(NumberKit):
    async def test_it_is_even(self, number: int) -> None:
        if number > 9:
            pytest.skip("so large a number is not tried")
        if number % 2:
            pytest.fail("it is odd")


EVERY = ["test_it_divides_in_an_event_loop_of_its_own", "test_it_is_among", "test_it_is_even", "test_it_is_positive"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, {}),
        (0, {EVERY[0]: "division by zero", EVERY[1]: "not among -9, -7 to 9", EVERY[3]: "it is not positive"}),
        (4, {EVERY[1]: "not among -3, -2 to 3"}),
    ],
)
async def test_what_fails_is_told_with_its_first_words(number: int, expected: dict[str, str]) -> None:
    assert await kit_failures(NumberKit, {"number": lambda: number}) == expected


async def test_one_case_that_fails_is_enough() -> None:
    assert list(await kit_failures(NumberKit, {"number": lambda: 2})) == ["test_it_is_among"]


async def test_inherited_tests_are_run_too_and_some_alone_where_they_are_named() -> None:
    assert names_of_tests(EvenKit) == EVERY
    assert list(await kit_failures(EvenKit, {"number": lambda: -5})) == [EVERY[1], EVERY[2], EVERY[3]]
    assert await kit_failures(EvenKit, {"number": lambda: -5}, ["test_it_is_even"]) == {"test_it_is_even": "it is odd"}


class BrokenOffKit:
    async def test_it_ends(self, number: int) -> None:
        await asyncio.sleep(number)
        raise asyncio.CancelledError

    async def test_it_says_nothing(self, number: int) -> None:
        raise KeyError


async def test_an_implementation_that_breaks_a_test_off_fails_it() -> None:
    assert await kit_failures(BrokenOffKit, {"number": lambda: 0}) == {
        "test_it_ends": "CancelledError()",
        "test_it_says_nothing": "KeyError()",
    }


async def test_who_gives_the_run_up_ends_it() -> None:
    running = asyncio.ensure_future(kit_failures(BrokenOffKit, {"number": lambda: 60}))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


class Seven:
    pass


async def test_a_fault_is_known_by_its_test_and_by_what_that_says() -> None:
    faults = KnownFaults(EvenKit, lambda kind: {"number": lambda: 7})
    assert faults.caught_by("it_is_even", "it is (odd|uneven)")(Seven) is Seven
    faults.caught_by("it_is_even", "it is prime")(Seven)
    faults.caught_by("it_is_positive")(Seven)
    right, otherwise, not_found = faults
    assert (str(right), len(faults), list(faults[1:])) == ("Seven-test_it_is_even", 3, [otherwise, not_found])
    await faults.check(right)
    with pytest.raises(AssertionError, match="test_it_is_even does not say 'it is prime' of Seven, but: it is odd"):
        await faults.check(otherwise)
    with pytest.raises(AssertionError, match="test_it_is_positive finds nothing wrong with Seven"):
        await faults.check(not_found)
    assert faults.tests_that_catch_nothing() == [EVERY[0], EVERY[1]]
    with pytest.raises(ValueError, match="EvenKit has no test_it_is_odd"):
        faults.caught_by("it_is_odd")


async def test_each_test_has_fixtures_of_its_own() -> None:
    made = []
    await kit_failures(NumberKit, {"number": lambda: made.append(1) or 1})
    assert len(made) == 1 + 1 + 4


class Opened:
    """Notes what is opened and closed, as the fixtures below do."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def number(self, service: str, more: str = "!") -> int:
        self.notes.append(f"a number of {service}{more}")
        return 4

    def service(self) -> Iterator[str]:
        self.notes.append("opened")
        yield "the service"
        self.notes.append("closed")

    async def others(self) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        self.notes.append("others opened")
        yield "others"
        await asyncio.sleep(0)
        self.notes.append("others closed")

    async def awaited(self) -> str:
        await asyncio.sleep(0)
        return "awaited"


class ServiceKit:
    async def test_it_counts(self, number: int, service: str, others: str, awaited: str) -> None:
        pytest.fail(f"{number} of {service}, {others}, {awaited}")


async def test_fixtures_are_given_those_they_name_and_are_run_to_their_end() -> None:
    opened = Opened()
    fixtures = {
        "number": opened.number,
        "service": opened.service,
        "others": opened.others,
        "awaited": opened.awaited,
    }
    assert await kit_failures(ServiceKit, fixtures) == {"test_it_counts": "4 of the service, others, awaited"}
    assert opened.notes == ["opened", "a number of the service!", "others opened", "others closed", "closed"]


class LeavingKit:
    async def test_it_leaves_something(self, tasks: list[asyncio.Task[None]]) -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(60)))
        await asyncio.sleep(0)

    async def test_it_fails_twice(self) -> None:
        raise ExceptionGroup("two", [ValueError("one"), ExceptionGroup("more", [KeyError("two")])])


async def test_tasks_that_are_left_behind_are_cancelled_and_others_are_not() -> None:
    mine = asyncio.create_task(asyncio.sleep(60))
    tasks: list[asyncio.Task[None]] = []
    assert await kit_failures(LeavingKit, {"tasks": lambda: tasks}, ["test_it_leaves_something"]) == {}
    assert tasks[0].cancelled()
    assert not mine.done()
    mine.cancel()


async def test_errors_in_a_group_are_told_one_by_one() -> None:
    assert await kit_failures(LeavingKit, {}, ["test_it_fails_twice"]) == {"test_it_fails_twice": "one; 'two'"}


async def test_a_kit_may_have_to_be_another_one_for_each_implementation() -> None:
    class OwnKit:
        number = 1

        async def test_it_is_even(self) -> None:
            assert not self.number % 2

    faults = KnownFaults(OwnKit, lambda kind: {}, attributes=lambda kind: {"number": kind.number})
    faults.caught_by("it_is_even")(type("Three", (), {"number": 3}))
    await faults.check(faults[0])
    assert await faults.failures_of(type("Four", (), {"number": 4})) == {}


async def test_a_kit_that_adds_to_another_has_tests_of_its_own() -> None:
    faults = KnownFaults(EvenKit, lambda kind: {"number": lambda: -5}, beyond=NumberKit)
    assert faults.tests == faults.tests_that_catch_nothing() == ["test_it_is_even"]
    assert await faults.failures_of(Seven) == {"test_it_is_even": "it is odd"}
    faults.caught_by("it_is_positive", "not positive")(Seven)
    await faults.check(faults[0])


async def test_a_fixture_that_is_not_given_is_no_failure_of_the_implementation() -> None:
    with pytest.raises(LookupError, match="the fixture 'number' is not given"):
        await kit_failures(NumberKit, {})


class RowsKit:
    """Has fixtures of its own, and parameters in every form that pytest takes."""

    start = 5

    @pytest.fixture
    def step(self) -> int:
        return self.start

    @pytest.fixture(name="place")
    async def the_place(self, step: int) -> str:
        return f"after {step}"

    @pytest.mark.parametrize("number", [pytest.param(1, id="one"), 2, pytest.param(0, marks=pytest.mark.skip)])
    async def test_values_may_have_names(self, number: int) -> None:
        assert number, "it is zero"
        pytest.fail(f"{number}") if number == 2 else None

    @pytest.mark.parametrize(argnames=("low", "high"), argvalues=[pytest.param(1, 2), (3, 4)], ids=["few", "more"])
    async def test_the_mark_may_be_written_by_names(self, low: int, high: int) -> None:
        pytest.fail(f"{low} and {high}") if low == 3 else None

    @pytest.mark.parametrize(("number",), [(7,)])  # noqa: PT006 - as others may write it
    async def test_one_name_in_a_tuple_has_rows(self, number: int) -> None:
        pytest.fail(f"{number}")

    async def test_it_has_fixtures(self, step: int, place: str) -> None:
        pytest.fail(f"{step} {place}")


async def test_parameters_are_taken_in_each_form_that_pytest_takes() -> None:
    assert await kit_failures(RowsKit, {}, names_of_tests(RowsKit)) == {
        "test_it_has_fixtures": "5 after 5",
        "test_one_name_in_a_tuple_has_rows": "7",
        "test_the_mark_may_be_written_by_names": "3 and 4",
        "test_values_may_have_names": "2",
    }


async def test_what_is_given_comes_before_the_fixtures_of_the_kit() -> None:
    tests = ["test_it_has_fixtures"]
    assert await kit_failures(RowsKit, {"step": lambda: 9}, tests) == {tests[0]: "9 after 9"}
    other = type("OtherKit", (RowsKit,), {"start": 6})
    assert await kit_failures(other, {}, tests) == {tests[0]: "6 after 6"}


async def test_a_test_that_is_skipped_skips_the_caller() -> None:
    with pytest.raises(pytest.skip.Exception, match="not tried"):
        await kit_failures(EvenKit, {"number": lambda: 10}, ["test_it_is_even"])
