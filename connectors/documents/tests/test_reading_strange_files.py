"""Files that no reader expects: each gives sections or a reason, soon, and never another error."""

import codecs
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePath

import pytest
from hypothesis import example, given, settings, strategies as st

from portico_documents.chunking import cut
from portico_documents.reading import Unreadable, read_sections

VERBATIM = [".md", ".rst", ".txt", ".py", ".js", ".c", ".toml", ".sql", ".sh", ".json", ".unknown", ""]
ALL = [*VERBATIM, ".html", ".xhtml", ".pdf"]


def _read(name, data):
    return read_sections(PurePath(name), data if isinstance(data, bytes) else data.encode())


def _cut(name, data):
    return list(cut(_read(name, data), target=900, maximum=1800))


def _reason(name, data):
    with pytest.raises(Unreadable) as caught:
        _read(name, data)
    assert caught.value.reason in str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize("suffix", ALL)
def test_an_empty_file(suffix):
    for data in (
        b"",
        b" \r\n\t\f\n",
        codecs.BOM_UTF8,
        codecs.BOM_UTF16_LE,
        codecs.BOM_UTF32_BE,
        codecs.BOM_UTF8 + b"\n",
    ):
        assert _reason(f"a{suffix}", data) == "empty"


@pytest.mark.parametrize("suffix", [s for s in ALL if s != ".pdf"])
def test_bytes_that_are_no_text(suffix):
    assert _reason(f"a{suffix}", b"\x7fELF\x02\x01\x01\x00\x00\x00 text") == "binary"
    assert _reason(f"a{suffix}", bytes(range(1, 256)) * 3) == "binary"
    assert _reason(f"a{suffix}", b"\x01\x02\x03 abc") == "binary"
    assert _reason(f"a{suffix}", "Grüße".encode("latin-1")) == "undecodable"
    assert _reason(f"a{suffix}", codecs.BOM_UTF16_LE + b"abc") == "undecodable"
    assert _reason(f"a{suffix}", codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le")) == "binary"


@pytest.mark.parametrize("suffix", VERBATIM)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marked_encodings_are_read(suffix, encoding):
    (passage,) = _cut(f"a{suffix}", "Grüße aus Zürich 🚀".encode(encoding))
    assert passage.text == "Grüße aus Zürich 🚀"


@pytest.mark.parametrize("suffix", VERBATIM)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_an_editor_does_whatever_ends_them(suffix, end):
    (first, second) = _read(f"a{suffix}", end.join(["One.\f\x0b\x85\u2028", "", "two"]))[0].text.split("\n\n")
    assert second == "two"
    assert first.startswith("One.")


@pytest.mark.parametrize("suffix", [s for s in ALL if s != ".pdf"])
def test_ten_megabytes_in_one_line(suffix):
    passages = _cut(f"a{suffix}", "lorem ipsum " * 850_000)
    assert len(passages) > 5_000
    assert {(passage.line, passage.end_line) for passage in passages} == {(1, 1)}
    assert max(len(passage.text) for passage in passages) <= 1800


def test_ansi_colours_do_not_make_a_log_binary():
    assert _cut("a.log", "\x1b[31mred\x1b[0m\n" * 3)[0].end_line == 3


_MARKS = list("#`~=-:.|<>[](){}\"'\\/ \t\n\n\n")
_text = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(_MARKS), max_size=500)
_block = st.sampled_from(
    """# A|## B|Title~=====|Text.|```|```py|~~~|    code|- item|> q|---|+++|.. note::|So::|||=====|<!--|-->
    |<p>|</p>|<h2>x|<pre>|<script>|def f():|class A:|    x = 1|int f(void) {|}|[table]|// c|title: x|\f|"""
    .replace("~", "\n").replace("\n    |", "|").split("|")
)  # fmt: skip
_lines = st.lists(_block | _text.map(lambda text: text[:40]), max_size=25).map("\n".join)


@settings(max_examples=150)
@given(_text | _lines, st.sampled_from(VERBATIM))
@example("---\n---\n=", ".md")
@example("%PDF-", ".md")
def test_every_passage_stands_in_the_file_at_its_lines(text, suffix):
    try:
        passages = _cut(f"a{suffix}", text)
    except Unreadable as error:
        reason = error.reason
        passages = []
    if not passages:
        assert reason in ({"empty", "binary", "damaged"} if text.startswith("%PDF-") else {"empty", "binary"})
        return
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for passage in passages:
        assert passage.text in "\n".join(lines[passage.line - 1 : passage.end_line]), passage
    places = [(passage.line, passage.end_line) for passage in passages]
    assert places == sorted(places)
    assert passages == _cut(f"a{suffix}", text)


@settings(max_examples=150)
@given(
    st.binary(max_size=300) | _lines.map(str.encode),
    st.sampled_from(ALL),
    st.sampled_from([b"", b"%PDF-1.7\n", b"<p>"]),
)
def test_any_bytes_give_sections_or_a_reason(data, suffix, start):
    try:
        sections = _read(f"a{suffix}", start + data)
    except Unreadable:
        return
    assert sections
    assert not sections[0].continues
    for before, after in pairwise(sections):
        assert before.line <= after.line
        if after.continues:
            assert before.text.endswith("\n")
            assert before.headings == after.headings
    assert all(section.text.strip() and section.line >= 1 for section in sections)
    "".join(section.text for section in sections).encode()


# Each repeats a beginning whose end never comes, or nests.
_HOSTILE = [
    *["<", "<!--", "<a ", "<a b=", '<a b="', '<a b=\'"', "</", "<script", "<script>", "<title>", "<!", "<?", "&"],
    *["&#", "<div>", "<main>", "<li>", "<h1>", "<nav>", "</script", "<a =  ", "<table><td>", "<meta ", "<x role="],
    *["</title ", "[", "![", "[a](", "`", "```\n", "```a\n\n", "~~~\n", "# ", "#\n", "# a\n", "---\n", "+++\n"],
    *["<!--\n", "a\n---\n", "*", "    ", "\t", "    a\n\n", "1. a\n", "a:: \n\n   b\n", "..  ", ".. code::\n"],
    *["====\n", "a\n=\n", ":a:`", "|", "\n", "(", "[(", "{", "a.", "-", "'", '"""', "\\", "\\N{", "def a():\n"],
    *["class A:\n", " def", "@a\n", "#c\n", "a(", "a b", "::", "create table ", "pub ", "export default ", "[a"],
    *["a = 1;", "if 1:\n ", ". ", "a. ", "a\x0c", "\u2028", "é", "f(x", "const a =", "<pre>", " \n", "- ", "> "],
    *["// a\n", "/*", "%PDF-", "a,b,c\n", "<p>a</p>\n", "<b hidden>", "--\n\n"],
]  # fmt: skip


@pytest.mark.parametrize("suffix", [".md", ".rst", ".html", ".txt", ".py", ".c", ".js", ".toml", ".sql"])
def test_hostile_repetition_takes_time_in_proportion(suffix):
    def measure(text):
        start = time.process_time()
        with suppress(Unreadable):
            _cut(f"a{suffix}", text)
        return time.process_time() - start

    # What is sixteen times as long should take sixteen times as long, and takes 256 times where time is quadratic.
    # The line is drawn half-way, at 64; five tries, since a machine may be busy, and only what takes long is judged.
    for piece in _HOSTILE:
        size = 4_000 // len(piece)
        ratios = []
        for _ in range(5):
            small, large = measure(piece * size), measure(piece * size * 16)
            ratios.append(large / max(small, 1e-3))
            if large < 0.3 or ratios[-1] < 64:
                break
        else:
            pytest.fail(f"{piece!r}: sixteen times as much took {min(ratios):.0f} times as long at least")
