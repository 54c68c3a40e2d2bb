"""A PDF that is made to take for ever, or all memory, costs little and says what it is."""

from __future__ import annotations

import re
import time
import zlib
from typing import Any

import pytest

from portico_web.pages.worker import find_text, read_pdf

ROOT = b"<</Type/Catalog/Pages 2 0 R>>"
PAGE = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>/MediaBox[0 0 99 99]>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
JOB = {"kind": "pdf", "content_type": None, "characters": 100_000, "seconds": 7.0}


def stream(data: bytes, filters: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), filters, data)


def document(*objects: bytes) -> bytes:
    """Return a document whose objects are found by searching, as pypdf does where the table of them is damaged."""
    bodies = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + bodies + b"trailer\n<</Root 1 0 R/Size 99>>\nstartxref\n0\n%%EOF"


def one_page(content: bytes) -> bytes:
    return document(ROOT, b"<</Type/Pages/Kids[3 0 R]/Count 1>>", PAGE, content, FONT)


def test_such_a_document_is_read_when_it_means_no_harm() -> None:
    assert find_text(JOB, one_page(stream(b"BT /F1 12 Tf (A door.) Tj ET")))[1] == b"A door."


FLATE = b"/Filter/FlateDecode"
ZEROS = zlib.compress(b" " * 100_000_000, 9)
BUSH = [b"<</Type/Pages/Kids[%s]/Count 1>>" % (b"%d 0 R " % (number + 1) * 10) for number in range(2, 12)]


@pytest.mark.parametrize(
    "data",
    [
        one_page(stream(ZEROS, FLATE)),
        one_page(stream(zlib.compress(ZEROS, 9), b"/Filter[/FlateDecode/FlateDecode]")),
        one_page(stream(zlib.compress(b"q " * 4_000_000), FLATE)),
        document(ROOT, b"<</Type/Pages/Kids[2 0 R]/Count 1>>"),
        document(ROOT, b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b"<</Type/Pages/Kids[2 0 R]/Count 1>>"),
        document(ROOT, b"<</Type/Pages/Kids[]/Count 999999999>>"),
        document(ROOT, *BUSH, PAGE),
        document(ROOT, b"[" * 200_000),
        document(b"1 0 R"),
        b"%PDF-1.4\nxref\n0 0\ntrailer\n<</Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF",
    ],
    ids=["bomb", "bomb in a bomb", "work", "cycle", "long cycle", "count", "bush", "deep", "itself", "tables"],
)  # fmt: skip
def test_a_pdf_that_is_made_to_harm_is_refused_soon(data: bytes) -> None:
    began = time.monotonic()
    head, text = find_text(JOB, data)
    assert re.match("is damaged|has no text", head["fault"])
    assert text == b""
    assert time.monotonic() - began < 60


def test_one_page_that_is_a_bomb_costs_no_other_page() -> None:
    fine = stream(b"BT /F1 12 Tf (A door.) Tj ET")
    pages = [PAGE.replace(b"4 0 R", b"%d 0 R" % number) for number in (4, 7)]
    data = document(
        ROOT, b"<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>", pages[0], stream(ZEROS, FLATE), FONT, pages[1], fine
    )
    assert read_pdf(data, 100_000, 5.0) == ("A door.", "", None)


def test_a_pdf_of_which_a_page_cannot_be_read_says_so(pdf: Any) -> None:
    data = bytes(pdf(["a", "b", "c", "d"]))
    second = data.index(b"/Type /Page\n", data.index(b"/Type /Page\n") + 1)
    data = data[:second] + data[second:].replace(b"/Type /Page\n", b"/Type /Nope\n", 1)
    assert read_pdf(data, 1_000, 5.0) == ("a\n\nc\n\nd", "", "3 of 4 pages")
