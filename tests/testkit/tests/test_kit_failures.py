"""What runs a kit over an implementation tells each test that fails, and no other."""

from __future__ import annotations

import asyncio

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
    with pytest.raises(AssertionError, match=r"says 'it is odd', without 'it is prime'"):
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


async def test_a_fixture_that_is_not_given_is_no_failure_of_the_implementation() -> None:
    with pytest.raises(KeyError, match="number"):
        await kit_failures(NumberKit, {})


async def test_a_test_that_is_skipped_skips_the_caller() -> None:
    with pytest.raises(pytest.skip.Exception, match="not tried"):
        await kit_failures(EvenKit, {"number": lambda: 10}, ["test_it_is_even"])
