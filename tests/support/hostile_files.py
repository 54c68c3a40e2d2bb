"""Files of five megabytes that are made of one construct: repeated, nested, or never closed.

Run as a program, it indexes one of them and prints what that took: `python hostile_files.py NAME FOLDER [BYTES]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = 4_990_000
Make = Callable[[int], bytes]


def repeated(unit: str, before: str = "", after: str = "") -> Make:
    """Return a maker of ``before``, the unit as often as it fits, and ``after``."""

    def make(size: int) -> bytes:
        head, one, tail = before.encode(), unit.encode(), after.encode()
        return head + one * ((size - len(head) - len(tail)) // len(one)) + tail

    return make


def growing(line: str, most: int = 3_000) -> Make:
    """Return a maker of lines each of which is indented deeper than the one before, up to a depth, then again."""

    def make(size: int) -> bytes:
        lines, length = [], 0
        while length < size - most - len(line):
            indent = len(lines) % most
            lines.append(" " * indent + line)
            length += len(lines[-1])
        return "".join(lines).encode()

    return make


def numbered(line: str) -> Make:
    """Return a maker of lines with a number each, so that no two are alike."""

    def make(size: int) -> bytes:
        return "".join(line.replace("%", str(number)) for number in range(size // (len(line) + 6))).encode()

    return make


def deep_titles(size: int) -> bytes:
    """Return reStructuredText with 32 levels of long titles, over and over."""
    marks = "=-~^\"'`#*+<>:._!$%&(),;/?@[]{|}"
    levels = ["x" * 190 + f"\n{mark * 190}\n\ntext\n\n" for mark in marks]
    return repeated("".join(levels))(size)


def pdf(content: bytes, pages: int = 1, *, packed: bool = False) -> bytes:
    """Return a PDF whose pages all show one stream."""
    if packed:
        content = zlib.compress(content, 9)
    kids = " ".join(f"{4 + number} 0 R" for number in range(pages))
    filter = b" /Filter /FlateDecode" if packed else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), filter, content),
    ]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 3 0 R /Resources {font} >>".encode()
    objects += [page] * pages
    data, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = "".join(f"{place:010} 00000 n \n" for place in places).encode()
    end = f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF".encode()
    return bytes(data) + f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n".encode() + table + end


def _pdf_of(unit: bytes, before: bytes = b"BT /F1 9 Tf ", *, packed: bool = False) -> Make:
    return lambda size: pdf(before + unit * ((size - 2_000) // len(unit)), packed=packed)


_MARKDOWN = {
    "atx": "# h\n",
    "atx deep": "###### h\n",
    "atx empty": "#\n",
    "atx text": "# h\na\n",
    "atx blank text": "# h\n\na\n\n",
    "atx anchor": "# a {#b}\n",
    "atx links": "# [a](b)[c](d)\n",
    "setext": "a\n===\n",
    "setext short": "a\n=\n",
    "setext two": "a\n---\n",
    "setext lines": "a\nb\nc\n===\n",
    "fences": "```\na\n```\n",
    "fence open": "```\n",
    "tildes": "~~~\n",
    "quotes": "> a\n",
    "quotes nested": "> ",
    "list": "- a\n",
    "list empty": "-\n",
    "list ordered": "1. a\n",
    "links": "[a](b)",
    "links open": "[",
    "link ends": "](",
    "images open": "![",
    "comments": "<!-- a -->\n",
    "comments in a line": "<!-- a -->",
    "comment open": "<!-- ",
    "comment lines open": "<!--\n",
    "table": "|a|b|\n",
    "code": "    a\n",
    "code and text": "    a\n\nb\n\n",
    "paragraphs": "a\n\n",
    "ticks": "`",
    "stars": "*a ",
    "rules": "---\n",
    "entities": "&amp;",
    "escapes": "\\",
}
_RESTRUCTUREDTEXT = {
    "titles": "a\n=\n\n",
    "titles text": "a\n==\n\nb\n\n",
    "titles over": "===\nabc\n===\n\n",
    "adornments": "====\n",
    "literals": "a::\n\n  b\n\n",
    "literals open": "::\n\n",
    "directives": ".. code::\n\n  x\n\n",
    "roles": ":a:`b` ",
    "role open": ":a:`",
    "comments": ".. a\n",
}
_HTML = {
    "h1": "<h1>a</h1>",
    "h1 open": "<h1>",
    "h1 open text": "<h1>a",
    "h1 text": "<h1>a</h1>b",
    "h lines": "<h2>a</h2>\n",
    "div": "<div>",
    "div text": "<div>a",
    "p": "<p>a",
    "comments": "<!-- a -->",
    "comment open": "<!--",
    "declarations": "<!",
    "attribute open": '<a b="',
    "attributes": "<a =",
    "tags open": "<a ",
    "less": "<",
    "script": "<script></script>",
    "script open": "<script>",
    "nav": "<nav>",
    "main": "<main>",
    "main ends": "</main>",
    "cells": "<td>a",
    "rows": "<tr><td>a",
    "items": "<li>a",
    "pre": "<pre>a</pre>",
    "entities": "&lt;",
    "ampersands": "&",
    "breaks": "a<br>",
    "hidden": "<div hidden>",
    "title": "<title>",
}
_SOURCE = {
    "functions.py": "def f():\n",
    "functions in a line.py": "def f(): a\n",
    "classes.py": "class A:\n a\n",
    "quotes.py": '"""\n',
    "decorators.py": "@a\n",
    "comments.py": "# a\n",
    "functions.js": "function f(){}\n",
    "arrows.js": "const a=b=>\n",
    "functions.c": "int f(a\n",
    "words.c": "int ",
    "functions.rs": "fn f(){}\n",
    "comments.rs": "// a\n",
    "tables.sql": "create table a\n",
    "functions.sh": "f() {\n",
    "nested.json": "[",
    "keys.json": '{"a":',
    "rows.csv": "a,b\n",
    "elements.xml": "<a>",
}
_TEXT = {
    "letters": "a",
    "words": "a ",
    "lines": "a\n",
    "blank lines": "\n\na",
    "sentences": "A. ",
    "stops": "。",
    "tabs": "\ta",
    "emoji": "🙂",
    "humps": "aB",
    "hump words": "aB ",
    "zero width": "a\u200b",
    "accents": "e\u0301",
}
FILES: dict[str, Make] = {
    **{f"{name}.md": repeated(unit) for name, unit in _MARKDOWN.items()},
    **{f"{name}.rst": repeated(unit) for name, unit in _RESTRUCTUREDTEXT.items()},
    **{f"{name}.html": repeated(unit) for name, unit in _HTML.items()},
    **{name: repeated(unit) for name, unit in _SOURCE.items()},
    **{f"{name}.txt": repeated(unit) for name, unit in _TEXT.items()},
    "front matter.md": repeated("a: b\n", "---\n", "---\n"),
    "front matter open.md": repeated("title: b\n", "---\n"),
    "headings that differ.md": numbered("# h%\na%\n"),
    "setext that differ.md": numbered("a%\n===\n\nb%\n\n"),
    "titles that differ.rst": numbered("a%\n=======\n\nb%\n\n"),
    "long heading.md": repeated("a ", "# "),
    "long heading links.md": repeated("[a](b)", "# "),
    "list nested.md": growing("- a\n"),
    "quotes deep.md": growing("> a\n"),
    "titles deep.rst": deep_titles,
    "headings that differ.html": numbered("<h1>h%</h1>a%\n"),
    "classes nested.py": growing("class A:\n"),
    "functions that differ.py": numbered("def f%(): pass\n"),
    "text operators.pdf": _pdf_of(b"(a) Tj "),
    "packed operators.pdf": _pdf_of(b"(a) Tj ", packed=True),
    "arrays open.pdf": _pdf_of(b"["),
    "pages.pdf": lambda size: pdf(b"BT /F1 9 Tf (a) Tj ET", pages=size // 250),
    "junk.pdf": repeated("1 0 obj << ", "%PDF-1.7\n"),
}


async def index(folder: Path, base: Path) -> dict[str, Any]:
    """Index a folder with the embedded default; return what it took."""
    import resource

    from portico.ports import EmbeddingGenerator, VectorStore
    from portico_documents.config import DocumentsSettings
    from portico_documents.search import DocumentsSearch
    from portico_faiss.config import FaissSettings
    from portico_faiss.store import FaissVectorStore
    from portico_wordllama.embeddings import WordllamaEmbeddings

    store = FaissVectorStore(FaissSettings(path=base / "vectors"))
    chosen: dict[Any, Any] = {EmbeddingGenerator: WordllamaEmbeddings(), VectorStore: store}

    class Services:
        def get(self, port: Any, name: str | None = None) -> Any:
            return chosen[port]

        def names(self, port: Any) -> tuple[str, ...]:
            return ()

    search = DocumentsSearch(DocumentsSettings(path=folder, index=base / "index"), Services())  # type: ignore[arg-type]
    started = time.perf_counter()
    report = await search.index.update()
    seconds = time.perf_counter() - started
    await store.aclose()
    # What `getrusage` tells of this process includes the one that started it; of its children, this one.
    own = Path("/proc/self/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]
    peak = 1024 * max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(sum(os.times()[:4]), 2),
        "peak_mb": round(peak / 1e6),
        "passages": report.passages,
        "problems": report.problems,
        "skipped": dict(report.skipped),
    }


if __name__ == "__main__":
    name, base = sys.argv[1], Path(sys.argv[2])
    (base / "docs").mkdir(parents=True)
    (base / "docs" / name).write_bytes(FILES[name](int(sys.argv[3]) if len(sys.argv) > 3 else SIZE))
    print(json.dumps({"name": name, **asyncio.run(index(base / "docs", base))}))
