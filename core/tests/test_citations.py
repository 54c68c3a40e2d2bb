"""Which sources an answer cites, which it never does, and what no source backs."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._chat.citations import Citations, cited_numbers, find_links, place_of
from portico._chat.messages import Citation, Source
from portico._search.results import TextSearchResult

PORTS = Source(1, "Ports are protocols. See https://pep.example/544.", "Ports", "https://docs.example/ports#what")
PLANS = Source(2, "Plans are data.", None, "https://docs.example/plans/")
LINES = Source(3, "Runs are journalled.", "runs.md", "file:///docs/runs.md#L1")
LATER = Source(4, "A run is resumed.", "runs.md", "file:///docs/runs.md#L40")
BARE = Source(5, "Nobody knows.")
SOURCES = (PORTS, PLANS, LINES, LATER, BARE)


def cited(text: str) -> list[int]:
    return [citation.number for citation in Citations.check(text, SOURCES).cited]


# Marks


@given(
    st.lists(st.integers(1, 999), max_size=6),
    st.sampled_from(["[{}]", "[^{}]", "【{}】", "[Source {}]", "(source {})"]),
)
def test_every_mark_is_found_in_the_order_of_first_use(numbers: list[int], mark: str) -> None:
    text = " ".join(f"A statement {mark.format(number)}." for number in numbers)
    assert cited_numbers(text) == tuple(dict.fromkeys(numbers))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Both [1][2].", (1, 2)),
        ("Both [1] [2].", (1, 2)),
        ("Both [1, 2] and [3].", (1, 2, 3)),
        ("All [1; 2], [3 and 4], [5,6].", (1, 2, 3, 4, 5, 6)),
        ("All [1-3] and [7–9].", (1, 2, 3, 7, 8, 9)),
        ("Some [1-3, 7].", (1, 2, 3, 7)),
        ("[2] first", (2,)),
        ("A footnote[^1] and another [^2].", (1, 2)),
        ("As protocols[1]. As Data[2], and so on[3][4]", (1, 2, 3, 4)),
        ("It is so.[1] And so.[2]", (1, 2)),
        ("(It is so)[1]", (1,)),
        (
            "In 2024[1], Python 3.11[2], the U.S.[3], it's[4], CO2[5], **bold**[6], `code`[7], 50%[8]",
            (1, 2, 3, 4, 5, 6, 7, 8),
        ),
        ("端口是协议[1]。计划是数据【2】、【3†source】［4］", (1, 2, 3, 4)),
        ("“Quoted” [1], “quoted”[2]", (1, 2)),
        ("*Both* **[1]**", (1,)),
        ("See [Source 1], [source: 2], (Sources 3, 4) and [Passage 5].", (1, 2, 3, 4, 5)),
        ("See [Source 1, Source 2] and [Doc 3; document 4].", (1, 2, 3, 4)),
        ("| a cell [1] | another [2] |", (1, 2)),
        ("- a point [1]\n- another [2]\n", (1, 2)),
    ],
)
def test_the_marks_that_models_write(text: str, numbers: tuple[int, ...]) -> None:
    assert cited_numbers(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "my_items[1], x[1], sys.argv[1], rows2[1], rowItems[1], items[0], call()[1], a[1][2]",
        "rows[1].name and rows[1]=2, or rows=[1]",
        "`[1]`, ``a ` [1]`` and ```\n[2]\n``` are code",
        "~~~\n[2]\n~~~",
        "```python\nx = [1]\n```",
        "unclosed ``` [3]",
        "unclosed\n```\n[3]",
        "a link [1](http://example.org) and another [[1]](http://example.org)",
        "a reference [text][1]\n\n[1]: https://example.org",
        "[^1]: https://example.org",
        "[12345] [2024] [a] [] [ 1 ] [x] [ ] (1) 1) 1.",
        "the interval [0, 1], a formula \\[1\\]",
        "![1](image.png)",
        "",
    ],
)
def test_what_is_no_mark(text: str) -> None:
    assert cited_numbers(text) == ()


words = st.text(alphabet="abc ,.[]()`\n", max_size=30)


@pytest.mark.fuzz
@given(words, st.integers(1, 999), st.sampled_from(["`{}`", "```\n{}\n```", "~~~ text\n{}\n~~~", "`` ` {} ``"]))
def test_what_stands_in_code_is_no_citation(before: str, number: int, code: str) -> None:
    # An own mark of code in the words before would begin or end a span of its own.
    before = before.replace("`", "")
    block = f"{before}\n\n{code.format(f'x [{number}] https://made.up/x')}\n\nso"
    assert cited_numbers(block) == cited_numbers(f"{before}\n\nso")
    assert Citations.check(block, SOURCES).unbacked == Citations.check(f"{before}\n\nso", SOURCES).unbacked


@given(st.text(alphabet="ab[]1 ", max_size=12), st.integers(1, 5))
def test_what_labels_a_link_is_no_number(label: str, number: int) -> None:
    assert cited_numbers(f"So [{number}](https://made.up/{number}) it is.") == ()
    assert Citations.check(f"So [{number}](https://made.up/x) it is.", SOURCES).unbacked == ("https://made.up/x",)


def test_long_texts_full_of_brackets_take_no_time_to_speak_of() -> None:
    for text in (
        "[1, " * 50_000,
        "[" * 100_000,
        "[1" + " " * 100_000,
        "`" * 100_000,
        " ".join("`" * length for length in range(1, 400)),
        "```[1]" * 20_000,
        "\n```\n" * 20_000,
        "[1]" * 50_000,
        "[a](" * 30_000,
        "![" * 50_000,
        "](" * 50_000,
        "](a(" * 20_000,
        "https://" * 20_000,
        "https://a" + ")" * 100_000,
        "<https://a" * 20_000,
        "[source " * 20_000,
        "a" * 200_000 + "[1]",
        "[1] Ports,\n" * 10_000,
    ):
        Citations.check(text, SOURCES)


# The check


def test_a_citation_has_what_its_source_has_and_the_rest_is_told() -> None:
    check = Citations.check("So it is [2], [1] and [7].", SOURCES[:3])
    assert check.cited == (
        Citation(2, None, PLANS.link, "Plans are data."),
        Citation(1, "Ports", PORTS.link, PORTS.text),
    )
    assert check.unbacked == (7,)
    assert check.uncited == (LINES,)
    assert not check.grounded


@pytest.mark.parametrize(
    ("text", "grounded"),
    [("So [1].", True), ("So.", False), ("So [1], [9].", False), ("So [1] https://made.up/.", False)],
)
def test_an_answer_is_grounded_when_it_cites_and_all_that_it_cites_is_backed(text: str, grounded: bool) -> None:
    assert Citations.check(text, SOURCES).grounded is grounded


@given(st.lists(st.integers(1, 9), max_size=8))
def test_every_source_is_cited_or_uncited_and_every_number_cited_or_unbacked(numbers: list[int]) -> None:
    check = Citations.check(" ".join(f"[{number}]" for number in numbers), SOURCES)
    used = [citation.number for citation in check.cited]
    assert sorted([*used, *(source.number for source in check.uncited)]) == [1, 2, 3, 4, 5]
    assert sorted([*used, *map(int, check.unbacked)]) == sorted(set(numbers))


@pytest.mark.fuzz
@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=60)
    | st.text(alphabet="[]()1`:/.^【】<>ahtps# \n", max_size=60)
)
def test_any_text_can_be_checked(text: str) -> None:
    check = Citations.check(text, SOURCES)
    assert len(check.cited) + len(check.uncited) == len(SOURCES)


def test_no_sources_back_nothing() -> None:
    assert Citations.check("So [1] https://a.example.", []).unbacked == (1, "https://a.example")
    assert Citations.check("", []).cited == ()


# Links


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("See [the plans](https://docs.example/plans).", [2]),
        ("See [the plans](<https://docs.example/plans/> 'Plans').", [2]),
        ("See https://docs.example/plans.", [2]),
        ("See (https://docs.example/plans/).", [2]),
        ("See <https://docs.example/plans/#intro>.", [2]),
        ("See **https://docs.example/plans**, http://DOCS.example:80/plans?utm_source=openai", [2]),
        ("See https://docs.example/pl%61ns", [2]),
        ("参见https://docs.example/plans。还有https://docs.example/ports的文档", [2, 1]),
        ("[[1]](https://docs.example/plans) says so.", [2]),
        ("[runs](file:///docs/runs.md#L40)", [4]),
        ("[runs](file:///docs/runs.md)", [3, 4]),
        ("[runs](file:///docs/runs.md#L7)", [3, 4]),
        ("First https://docs.example/plans, then [1].", [2, 1]),
        ("Sources:\n\n[1]: https://docs.example/plans", [2]),
    ],
)
def test_a_link_to_a_source_cites_it(text: str, numbers: list[int]) -> None:
    check = Citations.check(text, SOURCES)
    assert [citation.number for citation in check.cited] == numbers
    assert check.unbacked == ()


@pytest.mark.parametrize(
    "link",
    [
        "https://docs.example/plan",
        "https://docs.example/plans/two",
        "https://docs.example/plans?page=2",
        "https://docs.example:8443/plans",
        "https://other.example/plans",
        "ftp://docs.example/plans",
        "https://docs.example/",
        "file:///docs/other.md#L1",
        "https://[broken",
    ],
)
def test_a_link_that_no_source_has_is_unbacked(link: str) -> None:
    assert Citations.check(f"See <{link}>.", SOURCES).unbacked == (link,)


def test_what_is_no_address_of_a_source_is_no_citation() -> None:
    text = (
        "[above](#above), [mail](mailto:a@b.example), [a file](docs/plans.md), `https://made.up/code`,"
        " ![a picture](https://made.up/picture.png), example.org"
    )
    assert Citations.check(text, SOURCES) == Citations.check("", SOURCES)


def test_an_address_that_a_sources_own_words_have_is_backed_and_cites_nothing() -> None:
    check = Citations.check("It is in https://pep.example/544/.", SOURCES)
    assert (check.cited, check.unbacked) == ((), ())


addresses = st.builds(
    "https://{}.example/{}".format,
    st.text(alphabet="abc", min_size=1, max_size=5),
    st.lists(st.text(alphabet="abÄ中~-_().,", min_size=1, max_size=6), max_size=3).map("/".join),
)


@given(addresses)
def test_links_to_one_place_are_one(link: str) -> None:
    for spelling in (f"{link}/", f"{link}#part", link.replace("https", "http"), f"{link}?utm_source=a&utm_medium=b"):
        assert place_of(spelling)[0] == place_of(link)[0], f"{spelling} is not {link}"
    assert place_of(f"{link}/x")[0] != place_of(link)[0]
    assert place_of(f"{link}?x=1")[0] != place_of(link)[0]


@given(addresses)
def test_a_link_in_angles_is_found_as_it_is(link: str) -> None:
    assert [found for _, found in find_links(f"See <{link}>, and [that](<{link}>).")] == [link, link]


# A list of sources


@pytest.mark.parametrize(
    "entry",
    [
        "[1] Ports",
        "[1]: Ports, read yesterday",
        "- [1] **Ports** - https://docs.example/ports",
        "[1] [Ports](https://docs.example/ports)",
        "[1] https://docs.example/ports/",
        "**[1]** “Ports”",
    ],
)
def test_what_only_the_list_of_sources_has_is_not_cited(entry: str) -> None:
    check = Citations.check(f"Plans are data [2].\n\nSources:\n{entry}\n", SOURCES)
    assert [citation.number for citation in check.cited] == [2]
    assert PORTS in check.uncited
    assert check.unbacked == ()


@pytest.mark.parametrize(
    ("line", "numbers", "unbacked"),
    [
        ("[1] says that plans are data.", [1], ()),
        ("[1] https://made.up/", [1], ("https://made.up/",)),
        ("[1] Ports, https://made.up/", [], ("https://made.up/",)),
        ("[1] Ports are as [2] says.", [1, 2], ()),
        ("[9] Ports", [], (9,)),
    ],
)
def test_a_line_that_begins_with_a_mark_is_no_list_by_that_alone(
    line: str, numbers: list[int], unbacked: tuple[str, ...]
) -> None:
    check = Citations.check(line, SOURCES)
    assert ([citation.number for citation in check.cited], check.unbacked) == (numbers, unbacked)


# Numbering


def test_passages_are_numbered_from_one_in_either_form() -> None:
    results = [TextSearchResult("a", "A", "https://a.example"), TextSearchResult("b")]
    expected = (Source(1, "a", "A", "https://a.example"), Source(2, "b"))
    assert Citations.number(results) == expected
    assert Citations.number([{"value": "a", "name": "A", "link": "https://a.example"}, {"value": "b"}]) == expected
    assert [source.number for source in Citations.number(results, first=5)] == [5, 6]
