"""Reading source code."""

from pathlib import PurePath

import pytest

from portico_documents.reading import read_sections
from portico_documents.reading.source_code import SUFFIXES

PYTHON = '''\
"""A module."""

import os

X = 1


# Says it.
@cached
@other(
    1
)
class A:
    """Holds it."""

    y = 2

    def b(self):
        def inner():
            pass

        return "\\d"

    z = 3

    class C:
        async def d(self): ...


def e():
    pass


print(X)
'''


def _read(name, text):
    return read_sections(PurePath(name), text.encode())


def _places(name, text):
    sections = _read(name, text)
    assert all(section.code and not section.continues for section in sections)
    return [(section.line, section.headings) for section in sections]


def test_python_stands_under_its_definitions():
    assert _places("a.py", PYTHON) == [
        (1, ()),
        (8, ("A",)),
        (18, ("A", "b")),
        (24, ("A",)),
        (26, ("A", "C")),
        (27, ("A", "C", "d")),
        (30, ("e",)),
        (34, ()),
    ]


def test_python_that_does_not_parse_is_read_by_its_margins():
    broken = "import os\n\n# Says it.\ndef a(:\n    x\n\nclass B(\n):\n    y\n\nz = 1\n"
    assert _places("a.py", broken) == [(1, ()), (3, ("a",)), (7, ("B",)), (11, ())]


_LANGUAGES = {
    "a.js": """\
import a

export default async function go() {
}

const b = (c) => {
}

b()
""",
    "a.ts": "export abstract class A<T> {\n\n  b() {}\n}\ntype B = {\n}\n",
    "a.go": "package a\n\n// Go goes.\nfunc (s *S) Go() {\n\tx()\n}\n\ntype S struct {\n}\n",
    "a.rs": "#[derive(Debug)]\npub(crate) struct A {\n}\nimpl<T> A {\n    fn b() {}\n}\n\nfn c() {\n}\n",
    "A.java": "package a;\n\n/**\n * Says it.\n */\npublic final class A {\n}\n",
    "a.c": """\
#include <a.h>

static int *f(int a,
              int b)
{
  if (a) g();
#if X
  h();
#endif
}

int x = 1;
""",
    "a.cpp": "void A::b() const {\n}\n\nint main() {\n}\n",
    "a.rb": "class A\n  def b\n  end\nend\n\nputs 1\n",
    "a.sh": "#!/bin/sh\nset -e\n\ngo() {\n  ls\n}\n\ngo\n",
    "a.toml": "a = 1\n\n[b.c]\nd = 2\n\n[[e]]\nf = 3\n",
    "a.ini": "[b c]  ; d\nd = 2\n",
    "a.sql": "-- All.\ncreate table if not exists a (\n  b int\n);\n\nSELECT 1;\n",
    "a.yaml": "a:\n  - b\n\nc: d\n",
    "a.json": '{\n "a": 1\n}\n',
    "a.css": "p {\n}\n",
}


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("a.js", [(1, ()), (3, ("go",)), (6, ("b",)), (9, ())]),
        ("a.ts", [(1, ("A",)), (5, ("B",))]),
        ("a.go", [(1, ()), (3, ("Go",)), (8, ("S",))]),
        ("a.rs", [(1, ("A",)), (8, ("c",))]),
        ("A.java", [(1, ()), (3, ("A",))]),
        ("a.c", [(1, ()), (3, ("f",)), (12, ())]),
        ("a.cpp", [(1, ("A::b",)), (4, ("main",))]),
        ("a.rb", [(1, ("A",)), (6, ())]),
        ("a.sh", [(1, ()), (4, ("go",)), (8, ())]),
        ("a.toml", [(1, ())]),
        ("a.ini", [(1, ())]),
        ("a.sql", [(1, ("a",)), (6, ())]),
        ("a.yaml", [(1, ())]),
        ("a.json", [(1, ())]),
        ("a.css", [(1, ())]),
    ],
)
def test_other_languages_stand_under_definitions_at_the_margin(name, places):
    assert _places(name, _LANGUAGES[name]) == places


def test_code_is_kept_as_it_stands():
    for name in ("a.py", "a.js"):
        sections = _read(name, PYTHON)
        kept = "".join(section.text for section in sections)
        assert kept.replace("\n", "") == PYTHON.replace("\n", "")


def test_the_languages_asked_for_are_known():
    asked = "js ts go rs java c cpp h rb sh toml yaml json ini sql css"
    assert {f".{suffix}" for suffix in asked.split()} <= SUFFIXES
    assert _read("A.PY", "def a(): ...")[0].headings == ("a",)
