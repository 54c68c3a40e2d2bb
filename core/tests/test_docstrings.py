"""What is read from docstrings of the three styles."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from hypothesis import given, strategies as st

from portico._types.compiling import compile_type
from portico._types.docstrings import Documentation, describe


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
        str: Where it is,

        in words.

    Raises:
        ValueError: when nothing is free.

    Note:
        Ask early.
    """


def numpy() -> None:
    """Book a table
    for tonight.

    Longer words
    on it.

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
        Where it is,
        in words.

    Raises
    ------
    ValueError
        When nothing is free.

    Note
    ----
    Ask early.

    Examples
    --------
    >>> 1 + 1
    2
    """


def sphinx() -> None:
    """Book a table
    for tonight.

    >>> 1 + 1
    2

    Longer words on it.

    :param int guests: How many come,
        children included.
    :param when: The time: 24 hours.
    :param notes: Further wishes.
    :returns: Where it is,
        in words.
    :raises ValueError: when nothing is free.

    Note:
    Ask early.
    """


@pytest.mark.parametrize("style", [google, numpy, sphinx])
def test_the_three_styles_say_the_same(style: Any) -> None:
    found = describe(style)
    assert found.description == "Book a table for tonight.\n\nLonger words on it.\n\nNote: Ask early."
    assert found.parameters == {
        "guests": "How many come, children included.",
        "when": "The time: 24 hours.",
        "notes": "Further wishes.",
    }
    assert found.returns == "Where it is, in words."


@pytest.mark.parametrize(
    ("doc", "returns"),
    [
        ("Do.\n\nReturns:\n    The sum: of all.", "The sum: of all."),
        ("Do.\n\nReturns:\n    dict[str, int] | None: the sums", "the sums"),
        ("Do.\n\nReturns:\n    list[dict[str, int]]: the sums", "the sums"),
        ("Do.\n\nReturns\n-------\nint", ""),
        ("Do.\n\nReturns\n-------\nThe sum of all.", "The sum of all."),
        ("Do.\n\nReturns\n-------\nint\n    The sum.\n\nSee Also\n--------\nNone.", "The sum."),
        ("Do.\n\n:return: the sum\n:rtype: int", "the sum"),
        ("Do.", ""),
    ],
)
def test_what_is_returned_is_read_without_its_type(doc: str, returns: str) -> None:
    def run() -> None: ...

    run.__doc__ = doc
    assert describe(run) == Documentation("Do.", {}, returns)


@pytest.mark.parametrize("line", [":param door: which", ":returns: nothing", "Returns:", "Args:", "Raises:"])
def test_a_summary_ends_where_a_section_begins(line: str) -> None:
    def close() -> None: ...

    close.__doc__ = f"Close it.\n{line}"
    assert describe(close).description == "Close it."


def test_a_callable_object_is_described_by_its_call_or_else_by_its_class() -> None:
    class Caller:
        """Something to call."""

        def __call__(self) -> None:
            """Call it."""

    class Quiet:
        """Something to call."""

        def __call__(self) -> None: ...

    assert describe(Caller()).description == "Call it."
    assert describe(Quiet()).description == "Something to call."


@given(
    st.lists(
        st.sampled_from(
            ["Args:", "  a: b", "Returns:", "-----", "Parameters", ":param x: y", "", "words", "   deep", ">>> run()"]
        )
    ),
    st.sampled_from(["", "Args:\n    a: b", "Returns\n-------\nint", ":param x: y", ">>> run()"]),
)
def test_any_lines_are_read_and_what_stands_before_sections_is_kept_whole(lines: list[str], section: str) -> None:
    def run() -> None: ...

    run.__doc__ = "\n".join(lines)
    describe(run)
    prose = ["words" if line == "words" else "" for line in lines]
    run.__doc__ = "\n".join(["First.", "", *prose, "", section])
    description = describe(run).description
    assert description.split() == ["First.", *filter(None, prose)]


@dataclass
class Google:
    """A table
    in a room.

    Attributes:
        seats (int): How many.
        note: Overruled.
    """

    seats: int
    note: Annotated[str, "Words on it."] = ""


@dataclass
class Numpy:
    """A table
    in a room.

    Attributes
    ----------
    seats : int
        How many.
    """

    seats: int
    note: Annotated[str, "Words on it."] = ""


@dataclass
class Sphinx:
    """A table
    in a room.

    :ivar seats: How many.
    """

    seats: int
    note: Annotated[str, "Words on it."] = ""


class Arguments(NamedTuple):
    """A table
    in a room.

    Args:
        seats: How many.
    """

    seats: int
    note: Annotated[str, "Words on it."] = ""


@pytest.mark.parametrize("kind", [Google, Numpy, Sphinx, Arguments])
def test_a_class_is_described_with_its_fields(kind: type) -> None:
    assert compile_type(kind).schema == {
        "type": "object",
        "properties": {
            "seats": {"type": "integer", "description": "How many."},
            "note": {"type": "string", "description": "Words on it.", "default": ""},
        },
        "required": ["seats"],
        "additionalProperties": False,
        "description": "A table in a room.",
    }


class Typed(TypedDict):
    """A place.

    Attributes:
        name: What it is called.
    """

    name: str


class Mood(enum.Enum):
    """How somebody feels."""

    GOOD = "good"


def test_typed_dictionaries_and_enumerations_have_their_words_too() -> None:
    assert compile_type(Typed).schema["description"] == "A place."
    assert compile_type(Typed).schema["properties"]["name"]["description"] == "What it is called."
    assert compile_type(Mood).schema == {"enum": ["good"], "description": "How somebody feels."}


@dataclass
class Plain:
    seats: int


class PlainTuple(NamedTuple):
    seats: int


class PlainTyped(TypedDict):
    seats: int


class PlainEnum(enum.Enum):
    ONE = 1


class PlainStrEnum(enum.StrEnum):
    ONE = "1"


@dataclass
class Derived(Google):
    """A table outside."""

    shade: bool = False


@dataclass
class Silent(Google):
    shade: bool = False


@pytest.mark.parametrize("kind", [Plain, PlainTuple, PlainTyped, PlainEnum, PlainStrEnum])
def test_what_python_writes_by_itself_is_no_description(kind: type) -> None:
    assert Documentation.of_class(kind) == Documentation()
    assert "description" not in compile_type(kind).schema


def test_what_a_class_says_of_its_fields_holds_for_those_derived_from_it_and_its_summary_does_not() -> None:
    assert Documentation.of_class(Derived) == Documentation(
        "A table outside.", {"seats": "How many.", "note": "Overruled."}
    )
    assert Documentation.of_class(Silent).description == ""
    assert compile_type(Silent).schema["properties"]["seats"]["description"] == "How many."
