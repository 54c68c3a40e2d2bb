"""Passages of the catalogue as a search needs them: by number, by id, by filter, and as what was found."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portico.search import Filter
from portico_documents import catalogue
from portico_documents.conditions import to_sql
from portico_documents.hit import DocumentHit, link_to
from portico_documents.place import Place

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage by its number, with its scores."""

    number: int
    score: float
    lexical: float
    vector: float


def numbers_allowed(connection: sqlite3.Connection, filter: Filter) -> npt.NDArray[np.int64]:
    """Return the numbers of all passages that pass a filter."""
    condition, values = to_sql(filter)
    rows = connection.execute(
        f"SELECT number FROM passages JOIN files ON files.id = file WHERE {condition}", values
    ).fetchall()
    return np.array([number for (number,) in rows], dtype=np.int64)


def numbers_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of those ids that the catalogue knows, in the order given."""
    known: dict[str, int] = {}
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        known.update(
            connection.execute(f"SELECT id, number FROM passages WHERE id IN ({', '.join('?' * len(page))})", page)
        )
    return {id: known[id] for id in ids if id in known}


def ids_of(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[str, int]:
    """Return the ids of passages, each with its number."""
    found: dict[str, int] = {}
    for start in range(0, len(numbers), _PAGE):
        page = numbers[start : start + _PAGE]
        found.update(
            connection.execute(f"SELECT id, number FROM passages WHERE number IN ({', '.join('?' * len(page))})", page)
        )
    return found


def hits(connection: sqlite3.Connection, place: Place, ranked: Sequence[Ranked]) -> list[DocumentHit]:
    """Return passages with their texts and places, in the order given."""
    single = place.root.is_file()
    found: list[DocumentHit] = []
    for each in ranked:
        path, shown, text, headings, line, end_line, page = connection.execute(
            "SELECT path, shown, text, headings, line, end_line, page FROM passages JOIN files ON files.id = file"
            " WHERE number = ?",
            (each.number,),
        ).fetchone()
        found.append(
            DocumentHit(
                text=text,
                path=shown,
                headings=catalogue.headings(headings),
                line=line,
                end_line=end_line,
                page=page,
                score=each.score,
                lexical=each.lexical,
                vector=each.vector,
                link=link_to(place.root if single else place.at(path), line, page),
            )
        )
    return found
