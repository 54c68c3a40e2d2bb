"""Reading reStructuredText."""

from pathlib import PurePath

import pytest

from portico_documents.reading import read_sections


def _read(text):
    return read_sections(PurePath("a.rst"), text.encode())


def _places(text):
    return [(section.line, section.headings, section.code) for section in _read(text)]


def test_the_order_of_styles_is_the_level_of_headings():
    text = """\
=====
Guide
=====

Intro.

Install
=======

One.

From source
-----------

Two.

Use
===

Three.
"""
    assert _places(text) == [
        (5, ("Guide",), False),
        (10, ("Guide", "Install"), False),
        (15, ("Guide", "Install", "From source"), False),
        (20, ("Guide", "Use"), False),
    ]


def test_a_title_over_and_under_is_another_style_than_one_under():
    assert [s.headings for s in _read("==\n A\n==\n\nx\n\nB\n==\n\ny\n")] == [("A",), ("A", "B")]


@pytest.mark.parametrize(
    "text",
    [
        "Text\n\n----\n\nmore",
        "Two\nlines\n=====",
        "Long title here\n---",
        "====  ====\na     b\n====  ====",
        "+---+\n| a |\n+---+",
        "  Indented\n  ========",
        "So::\n\n    Title\n    =====\n",
        "....",
    ],
)
def test_what_only_looks_like_a_title(text):
    assert {section.headings for section in _read(text)} == {()}


def test_roles_leave_their_text_in_a_title():
    assert _read(":class:`Kernel` and ``code``\n=============================\n\nx")[0].headings == ("Kernel and code",)


def test_literal_blocks_are_code():
    text = "Title\n=====\n\nSo::\n\n    x = 1\n\n    y = 2\n\nThen.\n\n"
    text += ".. code-block:: python\n   :linenos:\n\n   z = 3\n\nEnd.\n"
    assert _places(text) == [
        (4, ("Title",), False),
        (6, ("Title",), True),
        (10, ("Title",), False),
        (12, ("Title",), True),
        (17, ("Title",), False),
    ]
    assert "".join(section.text for section in _read(text)) == text.removeprefix("Title\n=====\n\n")


def test_other_directives_keep_their_content_as_text():
    text = ".. note:: Mind this.\n\n   It matters.\n"
    assert [(section.text, section.code) for section in _read(text)] == [(text, False)]


def test_a_title_alone_is_kept():
    assert [(s.text, s.headings) for s in _read("Title\n=====\n")] == [("Title\n=====\n", ())]


@pytest.mark.parametrize("name", ["a.rst.txt", "A.RST.TXT", "a.b.rst"])
def test_a_source_that_a_site_publishes_is_read_by_its_inner_extension(name):
    assert read_sections(PurePath(name), b"Guide\n=====\n\nText.\n")[0].headings == ("Guide",)
    assert read_sections(PurePath("notes.md.txt"), b"# Guide\n\nText.\n")[0].headings == ("Guide",)
    assert read_sections(PurePath("notes.txt"), b"# Guide\n\nText.\n")[0].headings == ()
