"""Reading PDF."""

import io
import random
import subprocess
import sys
import zlib
from pathlib import PurePath

import pytest
from hypothesis import given, settings, strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from portico_documents.chunking import cut
from portico_documents.reading import Unreadable, read_sections


def _pdf(*pages, title=None, password=None, content=None, bookmarks=()):
    """Write a PDF with one line of Helvetica for each line of each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(595, 842)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        shown = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        stream = DecodedStreamObject()
        stream.set_data(content or f"BT /F1 12 Tf 14 TL 50 800 Td {shown} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream.flate_encode())
    marks = []
    for name, page, parent in bookmarks:
        marks.append(
            writer.add_outline_item(title=name, page_number=page, parent=None if parent is None else marks[parent])
        )
    if title:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _read(data, name="a.pdf"):
    return read_sections(PurePath(name), data)


def _reason(data, name="a.pdf"):
    with pytest.raises(Unreadable) as caught:
        _read(data, name)
    return caught.value.reason


def test_each_page_is_a_section():
    sections = _read(_pdf("First page.\nIts second line.", "", "Third page."))
    assert [(s.text.strip(), s.line, s.page, s.headings) for s in sections] == [
        ("First page.\nIts second line.", 1, 1, ()),
        ("Third page.", 3, 3, ()),
    ]
    passages = list(cut(sections, target=900, maximum=1800))
    assert [(p.page, p.line, p.end_line) for p in passages] == [(1, 1, 1), (3, 3, 3)]


def test_a_real_title_is_the_heading_and_a_file_name_is_not():
    assert _read(_pdf("Text.", title="The Portico Guide"))[0].headings == ("The Portico Guide",)
    for title in ("Microsoft Word - draft2.doc", "untitled", "paper.dvi", " "):
        assert _read(_pdf("Text.", title=title))[0].headings == ()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a", "a.html", "A.PDF"])
def test_a_pdf_is_a_pdf_under_any_name(name):
    assert _read(_pdf("Text."), name)[0].page == 1


def test_junk_before_the_header_is_borne():
    assert _read(b"junk\n" + _pdf("Text."))[0].page == 1


def test_text_under_the_name_of_a_pdf_is_read_as_text():
    assert _read(b"Just text.")[0].page is None
    assert _reason(b"\0\1\2") == "damaged"
    assert _reason(b"Gr\xfc\xdfe") == "damaged"


def test_an_encrypted_pdf_says_so():
    assert _reason(_pdf("Text.", password="secret")) == "encrypted"


def test_a_pdf_that_opens_without_a_password_is_read():
    assert _read(_pdf("Text.", password=""))[0].text.strip() == "Text."


def test_a_pdf_of_pictures_has_no_text():
    assert _reason(_pdf("", "")) == "no text"


def test_a_damaged_pdf_says_so():
    assert _reason(b"%PDF-1.7\n") == "damaged"
    assert _reason(b"%PDF-1.7\n" + bytes(range(256)) * 40) == "damaged"
    assert _reason(_pdf("Text.")[:200]) == "damaged"


def test_a_page_that_cannot_be_read_costs_only_itself():
    data = _pdf("First page.", "Second page.")
    start = data.index(b"stream\n", data.index(b"FlateDecode")) + 7
    broken = data[:start] + b"\xff" * 20 + data[start + 20 :]
    assert [section.page for section in _read(broken)] == [2]


def test_a_small_file_that_unpacks_into_much_ends_within_its_bounds():
    operators = _pdf("x", content=b"BT /F1 12 Tf " + b"(a) Tj " * 50_000 + b"ET")
    assert len(operators) < 20_000
    assert set(_read(operators)[0].text) == {"a"}
    bomb = zlib.compress(zlib.compress(b" " * 1_000_000_000))
    data = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    data += b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<<>>>>>>endobj\n"
    data += b"4 0 obj<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%b\nendstream endobj\n" % (len(bomb), bomb)
    data += b"trailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n"
    assert _reason(data) in {"no text", "damaged", "too slow", "too large"}


def test_bookmarks_are_headings_where_their_lines_stand():
    data = _pdf(
        "1 Introduction\nWhy it is.\n1.1 Scope\nWhat it is for.",
        "2 Usage\nHow it is used.",
        bookmarks=[("1 Introduction", 0, None), ("Scope", 0, 0), ("2 Usage", 1, None), ("Nowhere", 1, 2)],
    )
    assert [(s.text.strip(), s.page, s.headings) for s in _read(data)] == [
        ("Why it is.", 1, ("1 Introduction",)),
        ("What it is for.", 1, ("1 Introduction", "Scope")),
        ("How it is used.", 2, ("2 Usage", "Nowhere")),
    ]


def test_running_heads_page_numbers_and_contents_are_left_out():
    contents = "Contents\n1 Doors . . . . . . 2\n2 Locks ............. 3\n3 Keys ........ 5"
    pages = [f"The Manual\nThing {name}.\nSo {name} is described.\nPage {n} of 5" for n, name in enumerate("abcd")]
    shown = [f"Thing {name}.\nSo {name} is described." for name in "abcd"]
    assert [s.text.strip() for s in _read(_pdf(contents, *pages))] == [f"The Manual\n{shown[0]}", *shown[1:]]


def test_what_only_looks_like_a_running_head_stays():
    bills = [f"Dear Ms Jones,\nyou owe {sum} euros." for sum in (20, 310, 44)]
    text = "\n".join(section.text for section in _read(_pdf(*bills)))
    assert all(f"you owe {sum} euros" in text for sum in (20, 310, 44))
    assert "Dear Ms Jones" in text
    assert "48213" in _read(_pdf("Your code is:\n48213"))[0].text
    assert _read(_pdf("Wait....", "Wait....", "Wait...."))[0].text == "Wait...."


def test_a_sentence_that_a_page_breaks_off_is_on_the_page_where_it_begins():
    sections = _read(_pdf("A door is a thing that", "opens and shuts. A lock keeps it shut."))
    assert [s.text for s in sections] == ["A door is a thing that\nopens and shuts.", "A lock keeps it shut."]


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_damage_gives_any_other_error(rng: random.Random):
    data = bytearray(_pdf("First page.\nMore of it.", "Second page.", title="Guide"))
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[place : place + rng.randint(1, 60)]
        elif kind == 2:
            data[place:place] = rng.choice([b"<<", b"[", b"endobj", b"9999999999", b"1 0 R", b"/Kids[2 0 R]", b"("])
        else:
            del data[max(place, 10) :]
    try:
        sections = _read(bytes(data))
    except Unreadable:
        return
    "".join(section.text for section in sections).encode()


def test_pdfium_is_not_imported_for_other_files():
    code = (
        "import sys, pathlib; from portico_documents.reading import read_sections\n"
        "for suffix in ('md', 'html', 'rst', 'py', 'c', 'txt'):\n"
        "    read_sections(pathlib.PurePath('a.' + suffix), b'text')\n"
        "print([name for name in sys.modules if name.startswith(('pypdfium2', 'lxml', 'PIL'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
