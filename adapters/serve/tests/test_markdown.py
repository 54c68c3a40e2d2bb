"""The words of a model: laid out, and never more than words."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, strategies as st

from portico_serve._pages.markdown import to_html

TAGS = set(
    "p em strong s a code pre ul ol li blockquote h3 h4 h5 h6 hr br table thead tbody tr th td".split()  # noqa: SIM905
)
PIECES = st.sampled_from(
    [
        *"[]()<>*_`#|\\!\n \t:-&;\"'1",
        "[x](", "javascript:", "https://a.example/", "data:text/html,", "<script>", "<img src=x onerror=", "[1]",
        "[^2]", "[1]: ", "&lt;", "\n\n", "```", "|--:|", "&#106;avascript:", "JaVaScRiPt:", "\x00", "\u202e", "style=",
    ]
)  # fmt: skip


class Seen(HTMLParser):
    """The tags and attributes of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@example("[x]()")
@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_text_becomes_more_than_words_and_links_to_the_web(text: str) -> None:
    for tag, attributes in Seen(to_html(text, [1, 2], "/passages/{}".format)).tags:
        assert tag in TAGS
        assert attributes.keys() <= {"href", "class", "rel", "target", "title", "data-cite", "start"}
        if tag == "a" and attributes.get("class") != "cite":
            assert (attributes["href"] or "").lower().startswith(("http://", "https://"))
            assert attributes["rel"] == "noopener noreferrer"
        elif tag == "a":
            assert attributes["href"] in ("/passages/1", "/passages/2")


@pytest.mark.parametrize(
    "text", ["[x](javascript:alert(1))", "<javascript:alert(1)>", "[x](data:text/html,x)", "[x](file:///etc/passwd)"]
)
def test_another_address_is_shown_as_it_is_written(text: str) -> None:
    html = to_html(text)

    assert "<a" not in html
    assert html.unescape().strip() == f"<p>{text}</p>"


def test_an_image_is_not_loaded() -> None:
    assert "<img" not in to_html("![a picture](https://tracker.example/p.png)")


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("So it is [1].", ["[1]"]),
        ("So it is [^2].", ["[2]"]),
        ("Both [1, 2] say so, and [2-3].", ["1", "2", "2"]),
        ("`[1]` and [7] are none.", []),
        ("[1]: https://a.example/\n\nSo it is [1].", ["[1]", "[1]"]),
        ("| a |\n|---|\n| b [1] |", ["[1]"]),
    ],
)
def test_marks_of_passages_lead_to_them(text: str, marks: list[str]) -> None:
    html = to_html(text, [1, 2], "/p/{}".format)

    assert [each.partition("</a>")[0].rpartition(">")[2] for each in html.split("<a ")[1:]] == marks
    assert html.count('class="cite"') == len(marks)


def test_headings_stand_below_those_of_the_page() -> None:
    assert to_html("# One").strip() == "<h3>One</h3>"


def test_columns_keep_their_side_without_a_style() -> None:
    html = to_html("| a |\n|--:|\n| 1 |")

    assert "style" not in html
    assert html.count('class="align-right"') == 2
