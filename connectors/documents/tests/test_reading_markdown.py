"""Reading Markdown."""

from pathlib import PurePath

import pytest
from hypothesis import given, strategies as st

from portico_documents.chunking import cut
from portico_documents.reading import read_sections


def _read(text):
    return read_sections(PurePath("a.md"), text.encode())


def _headings(text):
    return [section.headings for section in _read(text)]


def _places(text):
    return [(section.line, section.headings, section.code) for section in _read(text)]


def test_text_stands_under_the_headings_above_it():
    text = "Before.\n\n# A\n\nOne.\n\n## B\nTwo.\n\n### C ###\nThree.\n\n## D\nFour.\n\n# E\nFive."
    assert _places(text) == [
        (1, (), False),
        (5, ("A",), False),
        (8, ("A", "B"), False),
        (11, ("A", "B", "C"), False),
        (14, ("A", "D"), False),
        (17, ("E",), False),
    ]


def test_underlined_headings():
    assert _headings("Guide\n=====\nText.\n\nUse it\nwell\n---\nMore.") == [("Guide",), ("Guide", "Use it well")]


@pytest.mark.parametrize(
    "text",
    [
        "Text\n\n---\n\nmore",
        "- item\n---\nmore",
        "| a |\n---\nmore",
        "> quote\n---\nmore",
        "#hashtag",
        "####### seven",
        "    # code",
        "```\n# code\n```",
        "~~~~\n# code\n~~~\n# code\n~~~~",
        "<!--\n# no\n-->\nText",
        "-\n  ```\n  # code\n  ```",
        r"\# no",
    ],
)
def test_what_only_looks_like_a_heading(text):
    assert {section.headings for section in _read(text)} == {()}


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# `code` and **bold** #", "code and bold"),
        ("#  [Link](http://a.example/) text  ##", "Link text"),
        ("# C#", "C#"),
        ("# Install {#install}", "Install"),
        ("#\tTabbed", "Tabbed"),
        ("   # Indented", "Indented"),
        ("# _Emphasis_", "Emphasis"),
        ("# snake_case_name", "snake_case_name"),
        ("# " + "x" * 500, "x" * 199 + "…"),
    ],
)
def test_headings_lose_their_marks(line, heading):
    assert _headings(f"{line}\n\nText.") == [(heading,)]


def test_headings_with_nothing_under_them_are_left_out():
    assert [(s.text, s.line, s.headings) for s in _read("# A\n\n## B\n## C\n\nText.\n\n## D")] == [
        ("Text.\n\n", 6, ("A", "C"))
    ]


def test_headings_of_one_name_do_not_flow_together():
    sections = _read("# A\n## Example\nOne.\n## Example\nTwo.")
    assert [section.continues for section in sections] == [False, False]
    assert len(list(cut(sections, target=900, maximum=1800))) == 2


def test_fences_are_code_with_their_marks():
    text = "# A\nSo:\n\n```python\n# no heading\n\nx = 1\n```\n\nThen."
    assert [(s.text, s.line, s.code, s.continues) for s in _read(text)] == [
        ("So:\n\n", 2, False, False),
        ("```python\n# no heading\n\nx = 1\n```\n", 4, True, True),
        ("\nThen.", 9, False, True),
    ]
    (passage,) = cut(_read(text), target=900, maximum=1800)
    assert passage.text == text.removeprefix("# A\n")


def test_a_fence_that_is_never_closed_takes_the_rest():
    assert _places("Text.\n```\n# no heading\n\nx") == [(1, (), False), (2, (), True)]


def test_a_fence_inside_a_longer_fence_is_its_content():
    assert _places("````md\n```\n# no\n```\n````\n# A\nText.") == [(1, (), True), (7, ("A",), False)]


@pytest.mark.parametrize(
    "comment",
    ["<!-- no -->", "<!---->", "  <!-- no --> <!-- neither -->", "<!--\n# no\n\nno\n-->", "<!--- a: b\nno -->"],
)
def test_comments_are_nothing_that_a_reader_sees(comment):
    lines = comment.count("\n") + 1
    text = f"{comment}\n# A\nOne.\n{comment}\nTwo.\n\n{comment}\n"
    assert _places(text) == [(lines + 2, ("A",), False), (2 * lines + 3, ("A",), False)]
    assert "no" not in "".join(section.text for section in _read(text))


@pytest.mark.parametrize("text", ["<!-- no --> words", "<!--\nno\n--> words", "<!-- words", "<!--\nOne.\n\nwords"])
def test_nothing_beside_a_comment_is_lost_with_it(text):
    assert "words" in "".join(section.text for section in _read(text))


def test_indented_code_is_code_but_an_indented_list_is_not():
    assert _places("Text:\n\n    x = 1\n\n    y = 2\n\nMore.") == [(1, (), False), (3, (), True), (7, (), False)]
    assert _places("- item\n\n    more of it\n\n    - nested\n") == [(1, (), False)]


@pytest.mark.parametrize(
    "front",
    ['---\ntitle: "Guide"\ntags: [a]\n---\n', "+++\ntitle = 'Guide'\n+++\n", "---\ndate: x\nTitle: Guide\n...\n"],
)
def test_front_matter_gives_the_title(front):
    lines = front.count("\n")
    assert _places(f"{front}\nText.\n\n# Use\nMore.") == [
        (lines + 2, ("Guide",), False),
        (lines + 5, ("Guide", "Use"), False),
    ]
    assert _headings(f"{front}# Guide\nText.") == [("Guide",)]


def test_a_file_of_front_matter_alone_is_still_found():
    (section,) = _read("---\ntitle: Guide\n---\n")
    assert "title: Guide" in section.text


def test_a_rule_at_the_start_is_no_front_matter():
    assert _places("---\n\nText.\n") == [(1, (), False)]


def test_tables_and_links_stay_as_they_are():
    text = "| a | b |\n|---|---|\n| [x](y.md) | 2 |"
    assert _read(text)[0].text == text


@given(st.lists(st.tuples(st.integers(1, 6), st.text("abc", min_size=1, max_size=5)), min_size=1, max_size=10))
def test_heading_paths_are_those_of_a_stack(headings):
    text = "\n".join(f"{'#' * level} {name}\n\nText.\n" for level, name in headings)
    expected = []
    stack = []
    for level, name in headings:
        stack = [entry for entry in stack if entry[0] < level] + [(level, name)]
        expected.append(tuple(entry[1] for entry in stack))
    assert _headings(text) == expected
