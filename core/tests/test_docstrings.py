"""What is read from docstrings of the three styles."""

from __future__ import annotations

import pytest

from portico.docstrings import describe


def google() -> None:
    """Book a table
    for tonight.

    Longer words on it.

    Args:
        guests (int): How many come,
            children included.
        when: The time: 24 hours.
        *notes: Further wishes.

    Returns:
        place: where it is.
    """


def numpy() -> None:
    """Book a table
    for tonight.

    Parameters
    ----------
    guests : int
        How many come,
        children included.
    when
        The time: 24 hours.
    *notes : str
        Further wishes.

    Returns
    -------
    place : str
        Where it is.
    """


def sphinx() -> None:
    """Book a table
    for tonight.

    :param int guests: How many come,
        children included.
    :param when: The time: 24 hours.
    :param notes: Further wishes.
    :returns: where it is.
    """


@pytest.mark.parametrize("style", [google, numpy, sphinx])
def test_the_three_styles_say_the_same(style: object) -> None:
    summary, parameters = describe(style)  # type: ignore[arg-type]
    assert summary == "Book a table for tonight."
    assert parameters == {
        "guests": "How many come, children included.",
        "when": "The time: 24 hours.",
        "notes": "Further wishes.",
    }


def test_a_docstring_without_parameters_has_a_summary_only() -> None:
    def plain() -> None:
        """Do it.

        And note: this is no parameter.
        """

    assert describe(plain) == ("Do it.", {})


def test_no_docstring_says_nothing() -> None:
    assert describe(lambda: None) == ("", {})


def test_a_summary_ends_where_the_parameters_begin() -> None:
    def close() -> None:
        """Close it.
        :param door: which
        """

    assert describe(close) == ("Close it.", {"door": "which"})


def test_a_callable_object_is_described_by_its_call_or_else_by_its_class() -> None:
    class Caller:
        """Something to call."""

        def __call__(self) -> None:
            """Call it."""

    class Quiet:
        """Something to call."""

        def __call__(self) -> None: ...

    assert describe(Caller())[0] == "Call it."
    assert describe(Quiet())[0] == "Something to call."
