"""Cutting sections into passages."""

import pytest
from hypothesis import given, strategies as st

from portico_documents.chunking import Section, cut

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "


def _cut(*sections, target=900, maximum=1800):
    return list(cut(sections, target=target, maximum=maximum))


def _solid(text):
    return "".join(text.split())


_text = st.text(
    st.sampled_from(list("aB1.!?\n\n\n   \t|-*>。é\f\u2028)}#")) | st.characters(exclude_categories=["Cs"]),
    max_size=400,
)


@st.composite
def _sections(draw):
    sections = []
    line = 1
    for text in draw(st.lists(_text.map(lambda text: text.replace("\r", "")), max_size=6)):
        continues = bool(sections) and draw(st.booleans())
        if sections and continues:
            headings = sections[-1].headings
        else:
            headings = tuple(draw(st.lists(st.sampled_from("abc"), max_size=2)))
        sections.append(Section(text + "\n", line, headings, code=draw(st.booleans()), continues=continues))
        line += text.count("\n") + 1
    return sections


@given(_sections(), st.integers(1, 200), st.integers(0, 200))
def test_nothing_is_lost_or_moved_or_too_long(sections, target, more):
    lines = "".join(section.text for section in sections).split("\n")
    passages = _cut(*sections, target=target, maximum=target + more)
    assert "".join(_solid(passage.text) for passage in passages) == "".join(_solid(s.text) for s in sections)
    for passage in passages:
        assert 0 < len(passage.text) <= target + more
        assert passage.text.strip()
        assert passage.text == passage.text.rstrip()
        assert passage.text in "\n".join(lines[passage.line - 1 : passage.end_line]), passage
        assert passage.end_line - passage.line == passage.text.count("\n")
    assert [p.line for p in passages] == sorted(p.line for p in passages)
    assert passages == _cut(*sections, target=target, maximum=target + more)


@given(_sections())
def test_no_passage_spans_two_headings(sections):
    places = {}
    for section in sections:
        for number in range(section.text.count("\n") or 1):
            places[section.line + number] = section.headings
    for passage in _cut(*sections):
        assert {places[line] for line in range(passage.line, passage.end_line + 1)} == {passage.headings}


def test_small_neighbours_share_a_passage():
    text = "\n\n".join(["A short paragraph."] * 4)
    (passage,) = _cut(Section(text, 5, ("A",)))
    assert (passage.text, passage.line, passage.end_line, passage.headings) == (text, 5, 11, ("A",))


def test_paragraphs_are_packed_up_to_the_target_and_stay_whole():
    paragraph = SENTENCE * 6
    passages = _cut(Section("\n\n".join([paragraph] * 7), 1))
    assert [passage.text.count("\n\n") for passage in passages] == [1, 1, 1, 0]
    assert all(passage.text.startswith("The quick") and passage.text.endswith("bank.") for passage in passages)


def test_a_long_paragraph_is_cut_after_sentences():
    passages = _cut(Section(SENTENCE * 60, 1))
    assert len(passages) >= 4
    assert all(passage.text.startswith("The") and passage.text.endswith("bank.") for passage in passages)


def test_a_fence_stays_whole_with_the_line_that_introduces_it():
    fence = "```python\n" + "\n\n".join(f"def function_{n}():\n    return {n}" for n in range(30)) + "\n```\n"
    assert 900 < len(fence) < 1800
    passages = _cut(
        Section(SENTENCE * 13 + "\n\nLike this:\n\n", 1),
        Section(fence, 5, code=True, continues=True),
        Section("\nAnd so on.", 5 + fence.count("\n"), continues=True),
    )
    assert [passage.text.split("\n")[0][:10] for passage in passages] == ["The quick ", "Like this:"]
    assert passages[1].text.endswith("```\n\nAnd so on.")


def test_long_code_is_cut_before_what_starts_at_the_margin():
    code = "\n\n".join(f"def function_{n}():\n    first = {n}\n\n    return first" for n in range(100))
    passages = _cut(Section(code, 1, code=True))
    assert len(passages) > 3
    assert all(passage.text.startswith("def ") for passage in passages)


def test_a_long_table_is_cut_between_rows():
    table = "\n".join(f"| {n} | e.g. This. And that. | 3 |" for n in range(200))
    passages = _cut(Section(table, 1))
    assert all(passage.text.startswith("| ") and passage.text.endswith(" |") for passage in passages)


def test_a_line_without_end_is_cut_anywhere():
    passages = _cut(Section("x" * 10_000, 7))
    assert {passage.line for passage in passages} == {7}
    assert "".join(passage.text for passage in passages) == "x" * 10_000
    assert max(len(passage.text) for passage in passages) <= 1800


def test_text_without_spaces_is_cut_after_its_full_stops():
    passages = _cut(Section("これは文です。" * 500, 1))
    assert all(passage.text.endswith("。") for passage in passages)


def test_pages_stay_apart_and_are_their_own_lines():
    passages = _cut(Section("One\ntwo", 1, page=1), Section("Three", 2, page=2))
    assert [(p.text, p.line, p.end_line, p.page) for p in passages] == [("One\ntwo", 1, 1, 1), ("Three", 2, 2, 2)]


def test_blank_sections_give_no_passage():
    assert _cut() == []
    assert _cut(Section("", 1), Section(" \n\t\n", 1), Section("\n" * 5000, 2)) == []


@pytest.mark.parametrize(("target", "maximum"), [(0, 1), (2, 1), (-1, -1)])
def test_sizes_that_make_no_sense_are_refused(target, maximum):
    with pytest.raises(ValueError, match="target"):
        _cut(Section("a", 1), target=target, maximum=maximum)


def test_a_document_is_read_as_it_goes():
    read = []

    def endless():
        for number in range(1, 1_000_000):
            read.append(number)
            yield Section("Some text.", number)

    assert next(cut(endless(), target=900, maximum=1800)).line == 1
    assert len(read) == 2
