"""Filters as SQL conditions on the catalogue's files, with the very meaning of `portico.search.matches`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from portico.search import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range, Scalar

_FIELDS = ("path", "type", "folder")

FILTERS = FilterSupport(
    fields=dict.fromkeys(_FIELDS, frozenset({"Equal", "AnyOf"})),
    combine=frozenset({"And", "Or", "Not"}),
    offered=("path",),
)
"""``path`` is relative, ``type`` the suffix in small letters without its dot, ``folder`` any folder above."""


def metadata_of(shown_path: str) -> dict[str, Scalar | Sequence[Scalar]]:
    """Return the fields that a document is filtered by, from its relative path.

    >>> metadata_of("guide/api/Ports.MD")
    {'path': 'guide/api/Ports.MD', 'type': 'md', 'folder': ['guide', 'guide/api']}
    """
    *folders, name = shown_path.split("/")
    stem, dot, suffix = name.rpartition(".")
    fields: dict[str, Scalar | Sequence[Scalar]] = {"path": shown_path, "type": suffix.lower() if stem and dot else ""}
    if folders:
        fields["folder"] = ["/".join(folders[: depth + 1]) for depth in range(len(folders))]
    return fields


def to_sql(filter: Filter) -> tuple[str, list[str]]:
    """Return a condition on the table ``files`` and its values; the values are bound, never spliced in.

    >>> to_sql(Equal("type", "md"))
    ('(files.type IN (SELECT value FROM json_each(?)))', ['["md"]'])
    """
    match filter:
        case Equal(field, value):
            return _any_of(field, (value,))
        case AnyOf(field, values):
            return _any_of(field, values)
        case And(parts):
            return _join(" AND ", "1", parts)
        case Or(parts):
            return _join(" OR ", "0", parts)
        case Not(part):
            condition, bound = to_sql(part)
            return f"(NOT {condition})", bound
        case Range():
            raise ValueError("a Range is outside FILTERS and must have been refused before")


def _join(word: str, nothing: str, parts: Sequence[Filter]) -> tuple[str, list[str]]:
    translated = [to_sql(part) for part in parts]
    return _balanced(word, [condition for condition, _ in translated]) or nothing, [
        value for _, values in translated for value in values
    ]


def _balanced(word: str, conditions: Sequence[str]) -> str:
    """Join by halves: SQLite refuses expressions deeper than 1,000, and a plain chain is as deep as it is long."""
    if len(conditions) <= 1:
        return "".join(conditions)
    middle = len(conditions) // 2
    return f"({_balanced(word, conditions[:middle])}{word}{_balanced(word, conditions[middle:])})"


def _any_of(field: str, candidates: Sequence[Scalar]) -> tuple[str, list[str]]:
    if field not in _FIELDS:
        raise ValueError(f"the field {field!r} is outside FILTERS and must have been refused before")
    # The fields hold text, which equals nothing but text; what SQLite cannot hold (a lone surrogate) is in none.
    texts = json.dumps([value for value in candidates if isinstance(value, str) and _storable(value)])
    if field == "folder":
        return "(EXISTS (SELECT 1 FROM json_each(?) WHERE instr(files.shown, value || '/') = 1))", [texts]
    column = "shown" if field == "path" else field
    return f"(files.{column} IN (SELECT value FROM json_each(?)))", [texts]


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
