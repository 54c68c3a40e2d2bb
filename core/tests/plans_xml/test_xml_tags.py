"""What the lenient reader makes of one tag: attributes, its end, and mends by their offsets, or the refusal."""

from __future__ import annotations

import pytest

from portico._plans.xml_form.tags import Tag, read_tag
from portico.errors import PlanFormatError

LONGEST = "a" * 60
UNCERTAIN = "a quote is not escaped, and where the value ends is not certain"
INSIDE = "the value of a has an attribute inside, or its last quote is missing"
STRAY = "a quote is not escaped"


def read(rest: str) -> tuple[Tag, list[tuple[int, str]]]:
    """Read what follows the name of the tag ``f``, with the mends."""
    mends: list[tuple[int, str]] = []
    tag = read_tag(f"f{rest}", 1, "f", mends, lambda at, what: PlanFormatError(f"{at}: {what}"))
    assert read_tag(f"f{rest}", 1, "f", [], lambda at, what: PlanFormatError(f"{at}: {what}")) == tag
    return tag, mends


@pytest.mark.parametrize(
    ("rest", "closed", "length", "mends"),
    [
        ("/>", True, 3, []),
        (">/>", False, 2, []),
        (" \n>", False, 4, []),
        (" / >", True, 5, [(2, "a space between '/' and '>'")]),
        ("/\n\n> ", True, 5, [(1, "a space between '/' and '>'")]),
    ],
)
def test_a_tag_may_have_no_attributes(rest: str, closed: bool, length: int, mends: list[tuple[int, str]]) -> None:
    assert read(rest) == (Tag({}, closed, length, None), mends)


@pytest.mark.parametrize(
    ("rest", "attributes", "mends"),
    [
        (" a = \"x\"\n b\t='y' c.d-e:f='' _é='>'", {"a": "x", "b": "y", "c.d-e:f": "", "_é": ">"}, []),
        (' a="x" A="y"', {"a": "x", "A": "y"}, []),
        (' a="x" b="y" a="x"', {"a": "x", "b": "y"}, [(14, "a is there twice, with one value")]),
        (' a="&amp;&lt;" b="x & y"', {"a": "&<", "b": "x & y"}, [(21, "'&' is not escaped")]),
        (" a=\"<b c='y'>\"", {"a": "<b c='y'>"}, [(5, "'<' is not escaped")]),
        # Between the attributes.
        (
            ' a="X",b="y" , c=""',
            {"a": "X", "b": "y", "c": ""},
            [(7, "a comma between attributes"), (14, "a comma between attributes")],
        ),
        (" a='x',", {"a": "x"}, [(7, "a comma between attributes")]),
        (" a=\"(x)\"b='y'", {"a": "(x)", "b": "y"}, [(9, "no space between two attributes")]),
        # Other quotes, and none.
        (
            " a=$x.y+z-1 b= 3",
            {"a": "$x.y+z-1", "b": "3"},
            [(4, "the value of a has no quotes"), (16, "the value of b has no quotes")],
        ),
        (
            " a=“x=”, b=‘it’s’",
            {"a": "x=", "b": "it’s"},
            [(4, "typographic quotes"), (8, "a comma between attributes"), (12, "typographic quotes")],
        ),
        (" a=X , b=''", {"a": "X", "b": ""}, [(4, "the value of a has no quotes"), (6, "a comma between attributes")]),
        (" a=“x” b=“y”", {"a": "x", "b": "y"}, [(4, "typographic quotes"), (10, "typographic quotes")]),
        (" a=“b='c'”", {"a": "b='c'"}, [(4, "typographic quotes")]),
        # Marks of a quotation inside, in other quotes than the value's.
        (' a="“x” c=“y”"', {"a": "“x” c=“y”"}, []),
        (' a="‘x ‘y’ c=‘y’"', {"a": "‘x ‘y’ c=‘y’"}, []),
        (" a=\"it's c='y'\"", {"a": "it's c='y'"}, []),
        (" a=\"x' y' z='u'\"", {"a": "x' y' z='u'"}, []),
        (' a=\'"x" z="u"\'', {"a": '"x" z="u"'}, []),
        (' a=\'x "y" "z" w="u"\'', {"a": 'x "y" "z" w="u"'}, []),
        (" a=\"it'\" b='y' c='z'", {"a": "it'", "b": "y", "c": "z"}, []),
        (" a='x setContextVariable=A'", {"a": "x setContextVariable=A"}, []),
        # Apostrophes.
        (" a='it's that's' b=''", {"a": "it's that's", "b": ""}, [(7, STRAY)]),
        (" a='x'y'z'", {"a": "x'y'z"}, [(6, STRAY)]),
        # Names of variables.
        (
            " setContextVariable='$A.b-c d' APPENDTORESULT='é' a='A!'",
            {"setContextVariable": "$A.b-c d", "APPENDTORESULT": "é", "a": "A!"},
            [],
        ),
    ],
)
def test_attributes_are_read_with_every_mend(
    rest: str, attributes: dict[str, str], mends: list[tuple[int, str]]
) -> None:
    assert read(f"{rest}/>") == (Tag(attributes, True, len(rest) + 3, None), mends)
    assert read(f"{rest} >")[0] == Tag(attributes, False, len(rest) + 3, None)


@pytest.mark.parametrize("after", ["<function.g", "</function.f>", "</ plan", "<!--"])
def test_a_tag_may_end_where_another_begins(after: str) -> None:
    mended = [(7, "the tag of f does not end")]
    assert read(f' a="x"{after}') == (Tag({"a": "x"}, False, 7, None), mended)


@pytest.mark.parametrize(
    ("value", "stray"),
    [
        ('say "hi" now', 9),
        ('"hi" he said', 5),
        ('he said "hi"', 13),
        ('""', 5),
        ('x "" y', 7),
        ('{"b": 3, "c": [1]}', 6),
        ('("x") ["x"] {"x"}', 6),
        ('-"x"- \t"x",\n"x".', 6),
        ('\'"x"\' "y"! “x”', 6),
        ('x b="y" z', 9),
        ("x" * 90 + ' b="y" z', 98),
        ('x = "it\'s" & so', 9),
        ('x "b=”y" z', 7),
    ],
)
def test_quotes_that_pair_around_words_are_of_the_value(value: str, stray: int) -> None:
    tag, mends = read(f' a="{value}" b="{value}"/>')
    read_as = value.replace("\t", " ").replace("\n", " ")
    assert tag == Tag({"a": read_as, "b": read_as}, True, 2 * len(value) + 13, stray)
    assert mends[-1] == (stray, STRAY)


def test_all_that_is_mended_in_a_tag_is_told() -> None:
    tag, mends = read(""" a="say "hi" x" b="y"c='z' a="say "hi" x", d='it's'>""")
    assert tag == Tag({"a": 'say "hi" x', "b": "y", "c": "z", "d": "it's"}, False, 53, 9)
    assert mends == [
        (22, "no space between two attributes"),
        (28, "a is there twice, with one value"),
        (42, "a comma between attributes"),
        (49, STRAY),
        (9, STRAY),
    ]


@pytest.mark.parametrize(
    ("rest", "offset", "says"),
    [
        # What is no attribute.
        ("/ x", 1, "'/' is not of a name"),
        (',a="x"/>', 1, "',' is not of a name"),
        ('.a="x"/>', 1, "'.' is not of a name"),
        (' , a="x"/>', 2, "',' where f has an attribute or ends"),
        (' ="x"/>', 2, "'=' where f has an attribute or ends"),
        (f" {LONGEST}/>", 2, f"{LONGEST} in f has no value"),
        (f" {LONGEST}b/>", 2, f"{LONGEST}… in f has no value"),
        (f" {LONGEST}=/x>", 63, f"the value of {LONGEST} has no quotes"),
        (f" {LONGEST}b=/x>", 64, f"the value of {LONGEST}… has no quotes"),
        (f' {LONGEST}="x', 63, f"the value of {LONGEST} does not end"),
        (f' {LONGEST}b="x', 64, f"the value of {LONGEST}… does not end"),
        (" a=“x “y” z”/>", 4, "where the value of a ends is not certain"),
        (" a=““x”/>", 4, "where the value of a ends is not certain"),
        (" a=“x ”y” z”/>", 4, "where the value of a ends is not certain"),
        (f" {LONGEST}b=“x “y” z”/>", 64, f"where the value of {LONGEST}… ends is not certain"),
        (f" {LONGEST}b=\"x' c='y\"/>", 64, INSIDE.replace("a", LONGEST + "…", 2).replace(LONGEST + "…", "a", 1)),
        (" a=x", 4, "the value of a has no quotes"),
        (' a="x" a="y"/>', 8, "a is there twice, with two values"),
        (
            " setContextVariable='A='/>",
            21,
            "setContextVariable names a variable, and '=' is of no name; its quote may be missing",
        ),
        (
            " APPENDTORESULT='A,B'/>",
            17,
            "APPENDTORESULT names a variable, and ',' is of no name; its quote may be missing",
        ),
        # Where the tag ends.
        ("", 1, "the text ends inside of f"),
        (' a="x" ', 8, "the text ends inside of f"),
        (" <x", 2, "the tag of f does not end"),
        (' a="x" <b', 4, "the value of a does not end"),
        # Values, and what they hold.
        (' a="&nbsp;"/>', 5, "&nbsp; is HTML's name of a character, or a text that is not escaped"),
        (
            ' a="x <function.g b="y"/>',
            4,
            "the value has a step inside; its last quote is missing, or '<' is not escaped",
        ),
        (" a=\"it' c='y'\"/>", 4, INSIDE),
        (" a=\"it's x' c='y'\"/>", 4, INSIDE),
        (" a=\"“x' c='y'\"/>", 4, INSIDE),
        (' a="x” c=“y”"/>', 4, INSIDE),
        (' a="’ c=‘y’"/>', 4, INSIDE),
        (' a=\'" z="u"\'/>', 4, INSIDE),
        (' a=\'x "y" " w="u"\'/>', 4, INSIDE),
        (" a=\"x' y' u' z='u'\"/>", 4, INSIDE),
        (" a=\"x appendtoresult='A'\"/>", 4, INSIDE),
        # A quote that a backslash stands before.
        (r' a="x \"y\" z"/>', 8, "a quote after a backslash; in XML it is &quot;"),
        # Quotes that do not pair, or not around words.
        *(
            (f' a="{value}"/>', offset, UNCERTAIN)
            for value, offset in (
                ('x" y', 6),
                ('x "y" "z', 7),
                ('x" y "z', 6),
                ('x " y" z', 7),
                ('x "y " z', 10),
                ('x"y"z', 6),
                ('x "y"z" w', 7),
                ('…"y"… z', 6),
                ('x "y" z=" w', 7),
                ('x "y b=" z', 12),
            )
        ),
        (' a="x "y" z" b="u v" c"/>', 20, UNCERTAIN),
        # A quote that may not be the end of a value, as what follows is amiss too.
        *(
            (f' a="{value}b="y"/>', offset, UNCERTAIN)
            for value, offset in (
                ('x",,', 6),
                ('x" /', 6),
                ('x"|', 6),
                ('x" = ', 6),
                ('x" 1', 6),
                ('x\\",', 7),
                ('x=", ', 7),
                ('x="', 7),
                ('x c="', 9),
                ('x c=", ', 9),
                ('x c = ",', 11),
            )
        ),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused_at_its_place(rest: str, offset: int, says: str) -> None:
    with pytest.raises(PlanFormatError) as caught:
        read(rest)
    assert str(caught.value) == f"{offset}: {says}"
