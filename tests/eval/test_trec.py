"""Collections are read in TREC's formats, whatever liberties a file takes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.eval.trec import Document, read_documents, read_judgements, read_topics, same_id

SGML = """\
<DOC>
<DOCNO> A-1 </DOCNO>
<TITLE>Doors</TITLE>
<TEXT>
Red &amp; blue.
</TEXT>
</DOC>
<DOC><DOCNO>2</DOCNO><TEXT>Two.</TEXT></DOC>
"""
XML = """\
<root><doc>
<docno>A-1</docno>
<title>
Doors
</title>
<text>Red &amp; blue.</text></doc>
<doc><docno>2</docno><text>Two.</text></doc></root>
"""
TOPICS = """\
<top>

<num> Number: 051
<title> Topic: Red
doors

<desc> Description:
Which?

<narr> Narrative: x

</top>
<top>
<num> Number: 52
<title>Walls
</top>
"""
NUMBERED_TOPICS = """\
<topics><topic number="051"><query>Red doors</query><question>?</question></topic>
<topic number="52"><query>Walls</query></topic></topics>
"""
PARAMETERS = """\
<parameters><query><number>051</number><text>Red doors</text></query>
<query><number>52</number><text>Walls</text></query></parameters>
"""


def given(folder: Path, text: str | bytes) -> Path:
    file = folder / "file"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    "text",
    [
        SGML,
        XML,
        '{"_id": "A-1", "title": "Doors", "text": "Red & blue."}\n{"_id": 2, "text": "Two."}\n',
        ".I A-1\n.T\nDoors\n.W\nRed & blue.\n.I 2\n.W\nTwo.\n",
    ],
    ids=["TREC", "XML", "JSON lines", "SMART"],
)
def test_documents(tmp_path: Path, text: str) -> None:
    expected = [Document("A-1", "Doors", "Red & blue."), Document("2", "", "Two.")]
    assert list(read_documents(given(tmp_path, text))) == expected
    assert list(read_documents(given(tmp_path, gzip.compress(text.encode())))) == expected


def test_documents_without_closing_tags_or_with_other_fields(tmp_path: Path) -> None:
    text = "<DOC>\n<DOCNO>1</DOCNO>\n<AUTHOR>Ann</AUTHOR><TEXT>\n<P>a < b</P>\n<DOC>\n<DOCNO>2</DOCNO>\nplain\n</DOC>"
    assert [(document.id, document.text.split()) for document in read_documents(given(tmp_path, text))] == [
        ("1", ["Ann", "a", "<", "b"]),
        ("2", ["plain"]),
    ]


def test_a_folder_of_files_is_a_collection(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for number in (1, 2):
        (tmp_path / "sub" / f"{number}").write_text(f"<DOC><DOCNO>{number}</DOCNO>x</DOC>")
    assert [document.id for document in read_documents(tmp_path)] == ["1", "2"]


@pytest.mark.parametrize(
    "text",
    [
        TOPICS,
        "<xml><TOP><NUM>051</NUM><TITLE>\nRed doors</TITLE></TOP><top><num>52</num><title>Walls</title></top></xml>",
        NUMBERED_TOPICS,
        PARAMETERS,
        "051\tRed doors\n52\tWalls\n",
        "051 Red doors\n52 Walls\n",
        '{"_id": "051", "text": "Red doors"}\n{"_id": "52", "text": "Walls"}\n',
        ".I 051\n.W\nRed\ndoors\n.I 52\n.W\nWalls\n",
        ".I 051\n.W Red\ndoors\n.I 52\n.W\nWalls\n",
        "<topics><topic number='051'>Red doors</topic><topic number='52'>Walls</topic></topics>",
    ],
)
def test_topics(tmp_path: Path, text: str) -> None:
    assert read_topics(given(tmp_path, text)) == {"051": "Red doors", "52": "Walls"}


def test_a_topic_without_a_title_is_asked_by_its_description(tmp_path: Path) -> None:
    text = "<top><num>1<title>\n<desc> Description: Which doors are red?\n</top>"
    assert read_topics(given(tmp_path, text)) == {"1": "Which doors are red?"}


def test_the_number_of_a_document_goes_before_its_other_identifiers(tmp_path: Path) -> None:
    text = "<DOC id='X'><DOCID> 7 </DOCID><DOCNO> A-1 </DOCNO><TEXT>One.</TEXT></DOC><doc docno=B-2>Two.</doc>"
    assert [document.id for document in read_documents(given(tmp_path, text))] == ["A-1", "B-2"]


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c"])
def test_only_line_ends_end_a_record(tmp_path: Path, separator: str) -> None:
    assert [record.text for record in read_documents(given(tmp_path, f"1\tRed{separator}door\r\n2\tWall\r\n"))] == [
        f"Red{separator}door",
        "Wall",
    ]
    json_lines = f'{{"_id": "1", "text": "Red{separator}door"}}\r\n{{"_id": "2", "text": "Wall"}}\r\n'
    if separator != "\x0c":  # JSON has no bare form feed
        assert [record.id for record in read_documents(given(tmp_path, json_lines))] == ["1", "2"]


@pytest.mark.parametrize("change", [lambda data: data.replace(b"\n", b"\r\n"), gzip.compress, b"\xef\xbb\xbf".__add__])
def test_line_ends_compression_and_marks_make_no_difference(tmp_path: Path, change) -> None:
    plain = [list(read_documents(given(tmp_path, SGML))), read_topics(given(tmp_path, TOPICS))]
    judgements = read_judgements(given(tmp_path, "1 0 a 2\n"))
    assert [
        list(read_documents(given(tmp_path, change(SGML.encode())))),
        read_topics(given(tmp_path, change(TOPICS.encode()))),
    ] == plain
    assert read_judgements(given(tmp_path, change(b"1 0 a 2\n"))) == judgements


def test_judgements_of_smart_name_the_relevant_only(tmp_path: Path) -> None:
    text = "     1     28\t0\t0.000000\n     1     35\t0\t0.000000\n     2     30\t0\t0.000000\n"
    assert read_judgements(given(tmp_path, text)) == {"1": {"28": 1, "35": 1}, "2": {"30": 1}}


@pytest.mark.parametrize(
    "text",
    [
        "1 0 a 2\n1 0 b 0\n7 Q0 a -1\n",
        "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n7\ta\t-1\n",
        "1 a 2\n1  b  0\n7\ta -1",
    ],
)
def test_judgements(tmp_path: Path, text: str) -> None:
    assert read_judgements(given(tmp_path, text)) == {"1": {"a": 2, "b": 0}, "7": {"a": -1}}


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no queries"):
        read_topics(given(tmp_path, ""))
    with pytest.raises(ValueError, match="no judgements"):
        read_judgements(given(tmp_path, "nothing here\n"))


def test_ids_are_compared_as_numbers_where_they_are_numbers() -> None:
    assert [same_id(id, {"051": 0, "A": 0}) for id in ("051", "51", "0051", "A", "a", "7")] == [
        "051",
        "051",
        "051",
        "A",
        None,
        None,
    ]
