"""The Semantic Kernel language: what is read as what. The cases are the rules of its .NET version."""

from __future__ import annotations

import pytest

from portico._prompts.semantic_kernel import Block, Call, Value, Variable, parse
from portico.errors import LimitExceeded, TemplateError


def content(template: str) -> Value | Call:
    [node] = parse(template)
    assert isinstance(node, Block), f"{template!r} was read as text"
    return node.content


def kinds(template: str) -> list[str]:
    """Return the pieces of a template as they are written; blocks in braces, without their blanks."""
    return [node if isinstance(node, str) else f"{{{{{template[node.start : node.end]}}}}}" for node in parse(template)]


def refused(template: str) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        parse(template)
    return caught.value


TEXTS = [
    *(
        "",
        " ",
        "   ",
        "aaa",
        "{",
        "}",
        "{{",
        "}}",
        "{{}",
        "{}}",
        "$a",
        "'a'",
        "\\'",
        "{$a}",
        "{{$a}",
        "{{$a} }",
        "{ {$a}}",
    ),
    *(" {}  ", " {{}  ", " {{ } } }  ", " { { }} }"),
    *("{{}}", "{{ }}", "{{  }}", "{{\n\t}}", "{{{}}}", "{{{{}}}}", "{{ {{ }} }}", "a {{}} b {{ }} c"),
]


@pytest.mark.parametrize("template", TEXTS)
def test_what_holds_no_filled_block_is_text(template: str) -> None:
    assert parse(template) == ((template,) if template else ())


@pytest.mark.parametrize("template", ["{{  '}}x", '{{  "}}x', "{{'a}}", "{{a'}}", "{{'{{a}}", "{{a 'b}}", "{{'a\\'}}"])
def test_a_quote_that_is_not_closed_takes_the_closing_braces(template: str) -> None:
    assert parse(template) == (template,)


def test_a_quote_that_is_not_closed_takes_all_blocks_after_it() -> None:
    assert kinds("{{$a}} {{f 'x}} {{$b}}") == ["{{$a}}", " {{f 'x}} {{$b}}"]


def test_a_quote_may_be_closed_behind_closing_braces() -> None:
    assert content("{{f 'x}} {{f y'}}") == Call("f", ("x}} {{f y",))


@pytest.mark.parametrize("template", ["{{$a}}", "{{ $a}}", "{{ $a }}", "{{  $a  }}", "{{\n$a\r\n}}", "{{\t$a\u00a0}}"])
def test_blanks_around_a_variable_do_not_count(template: str) -> None:
    assert content(template) == Variable("a")


@pytest.mark.parametrize("name", ["0", "1", "a", "_", "01", "01a", "a01", "_0", "a01_", "_a01", "aB"])
def test_names_are_letters_digits_and_underscores(name: str) -> None:
    assert content(f"{{{{${name}}}}}") == Variable(name)
    assert content(f"{{{{{name}.{name}}}}}") == Call(f"{name}-{name}")
    assert content(f"{{{{f {name}=${name}}}}}") == Call("f", (), ((name, Variable(name)),))


@pytest.mark.parametrize("letter", ".-,+~`!@#$%^*()|{[]:;<>/\\?äß²é東")
def test_no_name_has_another_letter(letter: str) -> None:
    assert refused(f"{{{{$a{letter}b}}}}").column == 3
    assert refused(f"{{{{f a{letter}b='c'}}}}").column == 5
    if letter != ".":
        assert refused(f"{{{{a{letter}b}}}}").column == 3


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{''}}", ""),
        ("{{' '}}", " "),
        ("{{ 'a' }}", "a"),
        ('{{"a"}}', "a"),
        ("{{'a\"b'}}", 'a"b'),
        ('{{"it\'s"}}', "it's"),
        ("{{'it\\'s'}}", "it's"),
        ('{{"\\""}}', '"'),
        ("{{'\\\"'}}", '"'),
        ("{{'\\\\'}}", "\\"),
        ("{{'a\\\\b'}}", "a\\b"),
        ("{{'\\\\\\''}}", "\\'"),
        ("{{'a\\nb\\tc'}}", "a\\nb\\tc"),
        ("{{'{{'}}", "{{"),
        ("{{ '}}' }}", "}}"),
        ("{{'{{$a}}'}}", "{{$a}}"),
        ("{{'a\nb'}}", "a\nb"),
        ("{{'$a'}}", "$a"),
    ],
)
def test_a_backslash_escapes_quotes_and_itself_only(template: str, value: str) -> None:
    assert content(template) == value


@pytest.mark.parametrize("text", ["\\", "\\'", "C:\\dir", "\\{{x", "\\}}"])
def test_a_backslash_in_text_is_text(text: str) -> None:
    assert kinds(f"{text} {{{{$a}}}}") == [f"{text} ", "{{$a}}"]
    assert parse(text) == (text,)


def test_a_backslash_before_braces_does_not_escape_them() -> None:
    assert kinds("\\{{$a}}") == ["\\", "{{$a}}"]


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("{{{$a}}}", ["{", "{{$a}}", "}"]),
        ("{{{{a}}", ["{{", "{{a}}"]),
        ("}}{{{{$a}}}} {{b}}$x}}", ["}}{{", "{{$a}}", "}} ", "{{b}}", "$x}}"]),
        ("}}{{a}} {{b}}x", ["}}", "{{a}}", " ", "{{b}}", "x"]),
        ("{{a {{b}}", ["{{a ", "{{b}}"]),
        ("{{$a}}{{$b}}", ["{{$a}}", "{{$b}}"]),
        ("{{}}{{$a}}{{ }}", ["{{}}", "{{$a}}", "{{ }}"]),
        (
            "this is a {{ $prompt }} with {{$some}} variables and {{function $calls}} {{ and 'values' }}",
            ["this is a ", "{{$prompt}}", " with ", "{{$some}}", " variables and ", "{{function $calls}}", " ",
             "{{and 'values'}}"],
        ),
    ],
)  # fmt: skip
def test_a_block_begins_at_the_last_braces_before_its_end(template: str, parts: list[str]) -> None:
    assert kinds(template) == parts


@pytest.mark.parametrize(
    ("template", "call"),
    [
        ("{{f}}", Call("f")),
        ("{{ p.f }}", Call("p-f")),
        ("{{f $x}}", Call("f", (Variable("x"),))),
        ("{{f\n'x'}}", Call("f", ("x",))),
        ("{{f a='x'}}", Call("f", (), (("a", "x"),))),
        ("{{f X='x'}}", Call("f", (), (("X", "x"),))),
        ("{{f  a = $x}}", Call("f", (), (("a", Variable("x")),))),
        ("{{f a=\n'x'}}", Call("f", (), (("a", "x"),))),
        ("{{f 'x' a=$x}}", Call("f", ("x",), (("a", Variable("x")),))),
        ("{{f a='b=c'}}", Call("f", (), (("a", "b=c"),))),
        ("{{f a='1' a='2'}}", Call("f", (), (("a", "1"), ("a", "2")))),
    ],
)
def test_a_function_has_one_argument_by_place_and_any_number_by_name(template: str, call: Call) -> None:
    assert content(template) == call


@pytest.mark.parametrize(
    ("template", "column", "words"),
    [
        ("{{$}}", 3, "A block holds"),
        ("{{ $ }}", 4, "A block holds"),
        ("{{$a'b'}}", 3, "A block holds"),
        ("{{$a $b}}", 6, "follow a variable"),
        ("{{'a' 'b'}}", 7, "follow a variable or a value"),
        ("{{''''}}", 5, "follow a variable or a value"),
        ("{{a=$b}}", 3, "A block holds"),
        ("{{a''}}", 3, "A block holds"),
        ("{{.f}}", 3, "A block holds"),
        ("{{a.b.c}}", 3, "A block holds"),
        ("{{p-f $x}}", 3, "plugin.function"),
        ("{{#if x}}a{{/if}}", 3, "A block holds"),
        ("{{f $}}", 5, "An argument is"),
        ("{{f name}}", 5, "'quoted', a $variable or name=value"),
        ("{{f a='b' arg2}}", 11, "An argument is"),
        ("{{f ='b'}}", 5, "An argument is"),
        ("{{f a =  }}", 5, "An argument is"),
        ("{{f a=5}}", 5, "An argument is"),
        ("{{f a=$b=$c}}", 5, "An argument is"),
        ("{{f a-b='c'}}", 5, "a name has letters"),
        ("{{f 'a' 'b'}}", 9, "Only the first"),
        ("{{f a='b' $c}}", 11, "Only the first"),
        ("{{f 'a'b='c'}}", 8, "An argument is"),
        ("{{{ {$a}}}}", 5, "A block holds"),
    ],
)
def test_a_malformed_block_is_refused_at_its_place(template: str, column: int, words: str) -> None:
    error = refused(template)
    assert words in str(error)
    assert (error.line, error.column) == (1, column), str(error)


def test_an_error_shows_the_line_and_marks_what_is_wrong() -> None:
    with pytest.raises(TemplateError) as caught:
        parse("Hello,\n\tit is {{$the-day}} today.\nBye.", name="letter")
    assert str(caught.value) == (
        "letter, line 2, column 10: A block holds a $variable, a 'value' or plugin.function; a name has letters, "
        "digits and '_' only.\n"
        "   it is {{$the-day}} today.\n"
        "           ^^^^^^^^"
    )


def test_the_mark_stands_under_its_place_beside_wide_letters_too() -> None:
    assert str(refused("東京a{{$é}}")).split("\n")[1:] == ["  東京a{{$é}}", "  \u3000\u3000   ^^"]


def test_of_a_long_line_an_error_shows_what_stands_around() -> None:
    error = refused("x" * 500 + "{{$a-b}}" + "y" * 500)
    message, shown, mark = str(error).split("\n")
    assert message.startswith("prompt, line 1, column 503: ")
    assert len(shown) < 100
    assert shown[mark.index("^") : mark.rindex("^") + 1] == "$a-b"


@pytest.mark.parametrize(
    ("part", "most", "bound"), [("x", 4_000_000, "4,000,000 characters"), ("{{$a}}", 10_000, "10,000 blocks")]
)
def test_a_template_up_to_the_bounds_is_read_and_beyond_them_refused_with_the_bound(
    part: str, most: int, bound: str
) -> None:
    assert "".join(kinds(part * most)) == part * most
    with pytest.raises(LimitExceeded, match=bound):
        parse(part * (most + 1))


def test_a_call_has_a_bounded_number_of_arguments() -> None:
    arguments = [f"a{number}='x'" for number in range(257)]
    assert len(content(f"{{{{f {' '.join(arguments[:256])}}}}}").named) == 256  # type: ignore[union-attr]
    assert "at most 256 arguments" in str(refused(f"{{{{f {' '.join(arguments)}}}}}"))
