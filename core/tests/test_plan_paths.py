"""What is said of a wrong path, whole: a model that wrote it reads this and writes it anew."""

from __future__ import annotations

from typing import Any

import pytest

from portico._plans.checking.shapes import at_path, constant, describe
from portico._plans.plan import From
from portico._schema.paths import JsonPath, Many, read_path
from portico.errors import LimitExceeded, PlanFormatError

LONG = "a" * 200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The path '' does not begin with '$'."),
        ("days[0]", "The path 'days[0]' does not begin with '$'."),
        (LONG, f"The path '{LONG}' does not begin with '$'."),
        (f"{LONG}b", f"The path '{LONG}…' does not begin with '$'."),
        (f"{LONG}bc", f"The path '{LONG}…' does not begin with '$'."),
        ("$.days ", "The path '$.days ' is wrong at character 7: white space at the end."),
        ("$.", "The path '$.' is wrong at character 3: a name or '*' must follow '.'."),
        ("$.a..b", "The path '$.a..b' is wrong at character 4: a path has no '..' here: it says where each value is."),
        ("$[?@.a]", "The path '$[?@.a]' is wrong at character 3: a path has no filter here: a step can choose."),
        ("$ days", "The path '$ days' is wrong at character 3: '.' or '[' expected."),
        *(
            (text, f"The path '{text}' is wrong at character 3: a number is at most 9007199254740991.")
            for text in ("$[-9007199254740992]", "$[100000000000000000]", "$[:9007199254740992]")
        ),
    ],
)
def test_a_wrong_path_is_told_with_the_character_and_what_belongs_there(text: str, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        From.parse_path(text)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "text",
    [
        "$[",
        "$[0:2:1:1]",
        "$['a' 'b']",
        "$['a\x1f']",
        "$['a\\x41']",
        "$['a\\",
        "$['days",
        r"$['a\u12g4']",
        r"$['\ud83eb']",
        r"$['\ud800\ue000']",
        r"$['\udc00\udc00']",
        r"$['\u0041\udfff']",
        r"""$['a\"b']""",
        r"""$["a\'b"]""",
    ],
)
def test_what_stands_in_brackets_is_what_rfc_9535_has_there(text: str) -> None:
    with pytest.raises(PlanFormatError, match="is wrong at character 3: a name in quotes as JSON has it, an index, a"):
        From.parse_path(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$[-9007199254740991]", (-9007199254740991,)),
        (r"$['\b\f\n\r\t\/\\']", ("\b\f\n\r\t/\\",)),
        (r"$['\u0041\u00e9']", ("Aé",)),
        (r"$['\ud7ff\ue000\uffff']", ("\ud7ff\ue000\uffff",)),
        (r"$['\ud800\udc00\udbff\udfff']", ("\U00010000\U0010ffff",)),
        (r"$['\uD83E\uDDE6!']", ("🧦!",)),
        (r"$['\uD800\uDFFF']", ("\U000103ff",)),
        (r"$['\udbff\udc00']", ("\U0010fc00",)),
        ("$\t\n\r .a\t\n\r [\t\n\r 0\t\n\r ]", ("a", 0)),
        ("$[' ~\x7f']", (" ~\x7f",)),
        ("$.Az_09\x80\U0010ffff", ("Az_09\x80\U0010ffff",)),
    ],
)
def test_the_ends_of_what_is_allowed_are_allowed(text: str, path: JsonPath) -> None:
    assert From.parse_path(text) == path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "$"),
        (("days", Many((None,)), "date"), "$.days[*].date"),
        ((Many(("a", 0, (1, None, None), (None, 2, -1))),), '$["a",0,1:,:2:-1]'),
        (("days", -1, "max_temp"), "$.days[-1].max_temp"),
        (("", "0a", "a-b"), '$[""]["0a"]["a-b"]'),
        (('say "日付"\n', "日付"), r'$["say \"日付\"\n"].日付'),
    ],
)
def test_a_path_is_printed_in_its_shortest_form_in_the_letters_of_its_names(path: JsonPath, text: str) -> None:
    assert From.print_path(path) == text


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (("b",), "there is nothing at $.b"),
        (("a", 2, "x"), "there is nothing at $.a[2]"),
        (("a", "x"), "$.a is not an object"),
        (("a", 0, 1), "$.a[0] is not an array"),
        ((0,), "$ is not an array"),
    ],
)
def test_a_path_to_nothing_names_the_place_where_it_ends(path: JsonPath, says: str) -> None:
    value: Any = {"a": ["xy", 2]}
    with pytest.raises(LookupError) as caught:
        read_path(value, path)
    assert caught.value.args == (says,)


@pytest.mark.parametrize("blanks", [" " * 200, "\t" * 50_000])
def test_a_wrong_path_is_refused_at_once_however_much_white_space_it_has(blanks: str) -> None:
    for text in (f"$[{blanks}x", f"$[1{blanks}:{blanks}:{blanks}x"):
        with pytest.raises(PlanFormatError, match="at character 3"):
            From.parse_path(text)


def test_a_path_that_looks_in_too_many_places_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="10,000,000 places"):
        read_path([0] * 20_000, From.parse_path(f"$[*][0{',0' * 600}]"))


def test_a_path_that_selects_a_constant_thousands_of_times_is_checked_as_a_list_of_anything() -> None:
    place = at_path(constant([[[[0] * 9] * 9] * 9] * 9), From.parse_path("$[*,:][*,:][*,:][*,:]"))
    assert not place.problem
    assert describe(place.shape) == "array"
