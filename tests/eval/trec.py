"""Reading test collections: documents, topics and judgements in TREC's formats and near relations of them.

The formats are conventions rather than standards, so reading is lenient: tags in any case, topics whose tags are
never closed, numbers with or without "Number:" and leading zeros. A documents path may be a folder, files may be
gzipped, and JSON lines, tab-separated lines and SMART's ``.I`` files are known by their look.
"""

from __future__ import annotations

import gzip
import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Document", "read_documents", "read_judgements", "read_topics", "same_id"]

_DOCUMENT_START = re.compile(r"<doc(?:\s[^>]*)?>", re.IGNORECASE)
_DOCUMENT_END = re.compile(r"</doc>", re.IGNORECASE)
# The first kind that a document has: some have a DOCID, of another meaning, beside the DOCNO.
_DOCUMENT_IDS = [re.compile(rf"<{tag}>([^<]*)", re.IGNORECASE) for tag in ("docno", "docid", "id")]
_TITLE = re.compile(
    r"<(title|headline|hl|ttl|head)>(.*?)(?:</\1>|(?=<(?!/?[a-z]+\s*/?>\s*<)))", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>|<!--.*?-->", re.DOTALL)
_TOPIC_NUMBER = re.compile(r"<(?:num|number|qid|id|identifier)>\s*(?:number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_NUMBER_ATTRIBUTE = re.compile(r"\A[^>]*?\b(?:number|num|id|qid|docno|docid)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(?:topic|description|title|query)\s*:", re.IGNORECASE)
_SMART_FIELD = re.compile(r"^\.([A-Z])\b[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a collection."""

    id: str
    title: str
    text: str


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file, or of all files in a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        yield from _read_documents(_text(file), file)


def read_topics(path: Path) -> dict[str, str]:
    """Return the queries by id: a topic's title, or the next best that it has."""
    text = _text(path)
    look = text.lstrip("\ufeff \r\n\t")
    if look.startswith("<"):
        topics = dict(_tagged_topics(text))
    elif look.startswith("{"):
        topics = {id: query for id, _, query in map(_json_fields, _json_lines(look, path))}
    elif look.startswith(".I"):
        topics = {id: f"{title} {body}".strip() for id, title, body in _smart_records(text)}
    else:
        topics = {}
        for line in _lines(look):
            id, separator, query = line.partition("\t") if "\t" in line else line.strip().partition(" ")
            if separator and query.strip():
                topics[id.strip()] = query.strip()
    if not topics:
        raise ValueError(f"{path} has no queries in a format known here")
    return {id: " ".join(html.unescape(query).split()) for id, query in topics.items()}


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Return relevance by query and document, from lines ``query iteration document relevance``.

    Lines of three fields have no iteration. A line whose last field is no number is a heading. SMART's own files
    (CISI, CACM) name each relevant document in a line ``query document 0 0``.
    """
    lines = [fields for line in _lines(_text(path)) if _is_judgement(fields := line.split())]
    if lines and all(len(fields) == 4 and fields[2] == "0" and float(fields[3]) == 0 for fields in lines):
        lines = [[query, "0", document, "1"] for query, document, *_ in lines]
    judgements: dict[str, dict[str, int]] = {}
    for fields in lines:
        judgements.setdefault(fields[0], {})[fields[-2]] = int(float(fields[-1]))
    if not judgements:
        raise ValueError(f"{path} has no judgements: lines of `query iteration document relevance`")
    return judgements


def same_id(id: str, known: Mapping[str, object]) -> str | None:
    """Return the known id that ``id`` means: itself, or the same number with other leading zeros.

    >>> same_id("051", {"51": "..."}), same_id("7", {"051": "..."})
    ('51', None)
    """
    if id in known:
        return id
    if not id.isdecimal():
        return None
    bare = id.lstrip("0") or "0"
    return next((form for zeros in range(12) if (form := "0" * zeros + bare) in known), None)


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _lines(text: str) -> list[str]:
    """Return the lines of a file; `str.splitlines` would also cut at a form feed or a U+2028 inside of a record."""
    return text.replace("\r\n", "\n").split("\n")


def _is_judgement(fields: list[str]) -> bool:
    try:
        return len(fields) in {3, 4} and math.isfinite(float(fields[-1]))
    except ValueError:
        return False


def _read_documents(text: str, file: Path) -> Iterator[Document]:
    look = text[:2_000].lstrip()
    if look.startswith("{"):
        yield from (Document(*fields) for fields in map(_json_fields, _json_lines(text, file)))
    elif look.startswith(".I"):
        yield from (Document(*fields) for fields in _smart_records(text))
    elif _DOCUMENT_START.search(text):
        yield from _tagged_documents(text)
    else:
        for line in _lines(text):
            id, separator, body = line.partition("\t")
            if separator:
                yield Document(id.strip(), "", body.replace("\t", "\n"))


def _tagged_documents(text: str) -> Iterator[Document]:
    starts = list(_DOCUMENT_START.finditer(text))
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        block = text[start.end() : following.start() if following else len(text)]
        if end := _DOCUMENT_END.search(block):
            block = block[: end.start()]
        id = next((found for kind in _DOCUMENT_IDS if (found := kind.search(block))), None)
        attribute = _NUMBER_ATTRIBUTE.search(start[0].removesuffix(">"))
        if id is None and attribute is None:
            continue
        # Past the id, its closing tag goes with the other tags.
        body = block[: id.start()] + block[id.end() :] if id else block
        name = id[1] if id else attribute[1]
        title = _TITLE.search(body)
        if title:
            body = body[: title.start()] + "\n" + body[title.end() :]
        yield Document(name.strip(), _plain(title[2]) if title else "", _plain(body))


def _plain(marked_up: str) -> str:
    text = html.unescape(_TAG.sub("\n", marked_up))
    return re.sub(r"\n\s*\n\s*", "\n\n", "\n".join(line.strip() for line in text.splitlines())).strip()


def _tagged_topics(text: str) -> Iterator[tuple[str, str]]:
    tag = next((tag for tag in ("top", "topic", "query") if re.search(rf"<{tag}[\s>]", text, re.IGNORECASE)), "top")
    for block in re.split(rf"<{tag}(?=[\s>])", text, flags=re.IGNORECASE)[1:]:
        number = _TOPIC_NUMBER.search(block) or _NUMBER_ATTRIBUTE.search(block)
        bodies = (_topic_field(block, name) for name in ("title", "query", "text", "question", "desc", "description"))
        query = next((body for body in bodies if body), "")
        if not query and number and "</" in block and not re.search(r"<[a-z]", block, re.IGNORECASE):
            # <topic number="1">The query itself</topic>
            query = _TAG.sub(" ", block.partition(">")[2]).strip()
        if number and query:
            yield number[1], query


def _topic_field(block: str, name: str) -> str:
    found = re.search(rf"<{name}>(.*?)(?=</?[a-z]+[\s>]|\Z)", block, re.IGNORECASE | re.DOTALL)
    return _LABEL.sub("", _TAG.sub(" ", found[1])).strip() if found else ""


def _json_lines(text: str, path: Path) -> Iterator[dict[str, object]]:
    for number, line in enumerate(_lines(text), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{number} is not JSON: {error}") from error


def _json_fields(record: dict[str, object]) -> tuple[str, str, str]:
    def first(*names: str) -> str:
        return next((str(record[name]) for name in names if record.get(name) not in {None, ""}), "")

    id = first("_id", "id", "docno", "docid", "doc_id", "qid", "query_id", "num")
    return id, first("title"), first("text", "contents", "body", "query", "question", "title")


def _smart_records(text: str) -> Iterator[tuple[str, str, str]]:
    for block in re.split(r"^\.I[ \t]+", text, flags=re.MULTILINE)[1:]:
        id, _, rest = block.partition("\n")
        marks = list(_SMART_FIELD.finditer(rest))
        fields: dict[str, str] = {}
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            body = rest[mark.start(2) : following.start() if following else len(rest)].strip()
            fields[mark[1]] = f"{fields.get(mark[1], '')} {body}".strip()
        yield id.strip(), fields.get("T", ""), fields.get("W", "")
