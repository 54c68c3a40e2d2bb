"""Filters as SQL conditions on the catalogue's files, with the very meaning of `portico.search.matches`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from portico.search import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Scalar

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
    raise ValueError(f"{type(filter).__name__} is outside FILTERS and must have been refused before")


def _join(word: str, nothing: str, parts: Sequence[Filter]) -> tuple[str, list[str]]:
    translated = [to_sql(part) for part in parts]
    condition = f"({word.join(condition for condition, _ in translated)})" if translated else nothing
    return condition, [value for _, values in translated for value in values]


def _any_of(field: str, candidates: Sequence[Scalar]) -> tuple[str, list[str]]:
    # The fields hold text, which equals nothing but text. For SQLite a text ends at its first NUL.
    texts = json.dumps([value for value in candidates if isinstance(value, str) and "\0" not in value])
    if field == "folder":
        return "(EXISTS (SELECT 1 FROM json_each(?) WHERE instr(files.shown, value || '/') = 1))", [texts]
    column = "shown" if field == "path" else field
    return f"(files.{column} IN (SELECT value FROM json_each(?)))", [texts]
