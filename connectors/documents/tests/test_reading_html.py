"""Reading HTML."""

import codecs
from pathlib import PurePath

import pytest
from hypothesis import given, strategies as st

from portico_documents.chunking import cut
from portico_documents.reading import Unreadable, read_sections


def _read(text):
    return read_sections(PurePath("a.html"), text.encode() if isinstance(text, str) else text)


def _places(text):
    return [(section.text.strip(), section.line, section.headings) for section in _read(text)]


PAGE = """<!DOCTYPE html>
<html lang="en"><head>
<meta charset="utf-8"><title>Guide &mdash; Portico</title>
<style>p { color: red }</style>
<script>if (a < b) document.write("<p>no</p>")</script>
</head>
<body class="x"
      id='>'>
<nav><ul><li>Home</li></ul></nav>
<h1>Guide<a class="headerlink" href="#g">\uf0c1</a></h1>
<p>First &amp; <b>bold</b>
text.</p>
<h2
  id="install">Install</h2>
<ul>
<li>one
<li>two
</ul>
<pre><code>x = 1
if x &lt; 2:
    pass
</code></pre>
<table><tr><th>a</th><th>b</th></tr>
<tr><td>1</td>
<td>2</td></tr></table>
<!-- <p>no</p> -->
<h2>Use</h2>Bare text<br>after<footer>No.</footer>
</body></html>
"""


def test_a_page():
    assert _places(PAGE) == [
        ("First & bold\ntext.", 11, ("Guide",)),
        ("- one", 16, ("Guide", "Install")),
        ("- two", 17, ("Guide", "Install")),
        ("x = 1\nif x < 2:\n    pass", 19, ("Guide", "Install")),
        ("a | b", 23, ("Guide", "Install")),
        ("1 | 2", 24, ("Guide", "Install")),
        ("Bare text", 27, ("Guide", "Use")),
        ("after", 27, ("Guide", "Use")),
    ]


def test_blocks_under_one_heading_share_a_passage_with_the_lines_of_the_source():
    passages = list(cut(_read(PAGE), target=900, maximum=1800))
    assert [(p.line, p.end_line) for p in passages] == [(11, 12), (16, 24), (27, 27)]
    assert passages[1].text == "- one\n- two\n\nx = 1\nif x < 2:\n    pass\n\na | b\n1 | 2"


def test_items_of_a_list_are_marked_whatever_is_in_them():
    page = "<ul><li><em>a</em> b<li><p>c</p><p>d</p></li><li></ul>e"
    assert [entry[0] for entry in _places(page)] == ["- a b", "- c", "d", "e"]


def test_preformatted_text_is_code():
    assert [section.code for section in _read("<p>a</p><pre>\n  b\n</pre><p>c</p>")] == [False, True, False]


def test_only_the_main_part_is_read_where_there_is_one():
    page = "<div>menu</div>{}<div><div>text</div> more</div></{}><div>legal</div>"
    for start in ("<main>", "<MAIN class=a>"):
        assert [entry[0] for entry in _places(page.format(start, "main"))] == ["text", "more"]


def test_what_is_hidden_or_navigation_is_left_out():
    page = "<div role=navigation>a<div>b</div></div><span aria-hidden='true'>c</span><p hidden>d</p>"
    page += "<svg><title>e</title></svg>f"
    assert _places(page) == [("f", 1, ())]


def test_a_page_with_an_empty_main_part_is_read_whole():
    assert _places("<main></main><p>a") == [("a", 1, ())]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("just text", "just text"),
        ("a < b and c > d", "a < b and c > d"),
        ("<p>unclosed", "unclosed"),
        ("</p></div>a", "a"),
        ("<b><i>a</b></i>", "a"),
        ("<p title=don't>a</p>", "a"),
        ("<p title='>' data-x=\">\">a</p>", "a"),
        ("a<!-- never closed", "a"),
        ("a<!-->b", "ab"),
        ("a<br/>", "a"),
        ("a<script>never closed", "a"),
        ("a<script src=x></script>b", "ab"),
        ("<TITLE>t</TITLE><P>a", "a"),
        ("<![CDATA[x]]>a", "a"),
        ("a&nbsp;&#x41;&#xD800;&bogus;", "a A\ufffd&bogus;"),
        ("<p>a&#10;b</p>", "a b"),
        ("a<wbr>b", "ab"),
    ],
)
def test_broken_pages_read_as_in_a_browser(page, text):
    assert [section.text.strip() for section in _read(page)] == [text]


def test_a_page_with_no_text_is_empty():
    for page in ("<html></html>", "<head><title>A</title></head><body><img src=x></body>", "<script>x</script>"):
        with pytest.raises(Unreadable, match="empty"):
            _read(page)


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<meta charset="iso-8859-1">', "cp1252"),
        ("<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>", "cp1251"),
        ('<?xml version="1.0" encoding="ISO-8859-15"?>', "iso8859-15"),
        ("<META CHARSET=Shift_JIS>", "shift_jis"),
    ],
)
def test_a_declared_encoding_is_used(declaration, encoding):
    word = {"cp1251": "Привет", "shift_jis": "こんにちは"}.get(encoding, "Grüße €" if encoding == "cp1252" else "Grüße")
    assert _places(f"{declaration}<p>{word}</p>".encode(encoding)) == [(word, 1, ())]


@pytest.mark.parametrize("name", ["rot13", "idna", "utf-7", "unicode_escape", "hex", "no-such", "utf-16"])
def test_an_encoding_that_no_page_may_declare_is_not_used(name):
    with pytest.raises(Unreadable, match="undecodable"):
        _read(f"<meta charset={name}>Gr".encode() + b"\xfc")


def test_utf8_wins_over_a_declaration():
    assert _places("<meta charset=latin-1>Grüße") == [("Grüße", 1, ())]
    assert _places(codecs.BOM_UTF16_LE + "<meta charset=utf-8>Grüße".encode("utf-16-le")) == [("Grüße", 1, ())]


_words = st.text(st.sampled_from("abcü"), min_size=1, max_size=5)
_gap = st.sampled_from(["\n", "\n\n", " ", "", "<!-- a\nb -->", "<br\n>", "<img\n  alt='>'>"])
_block = st.builds(
    lambda tag, gap, word: (tag, gap, word), st.sampled_from(["p", "div", "li", "pre", "h2"]), _gap, _words
)


@given(st.lists(_block, max_size=20))
def test_every_word_is_found_on_its_line(blocks):
    page = ""
    expected = []
    for tag, gap, word in blocks:
        page += gap
        page += f"<{tag}\nid=x>"
        expected.append((f"{word}1", page.count("\n") + 1))
        page += f"{word}1"
        page += "\n" if tag != "h2" else " "
        expected.append((f"{word}2", page.count("\n") + 1))
        page += f"{word}2</{tag}>"
    page += "<p>end</p>"
    found = []
    for section in _read(page):
        for offset, line in enumerate(section.text.split("\n")):
            found += [(word, section.line + offset) for word in line.removeprefix("- ").split()]
    # Words of headings are in the paths; all others stand where they are.
    remaining = iter(expected)
    assert found[-1] == ("end", page.count("\n") + 1)
    assert all(any(entry == candidate for candidate in remaining) for entry in found[:-1]), (page, found)
    assert sum(tag != "h2" for tag, _, _ in blocks) * 2 <= len(found) - 1
