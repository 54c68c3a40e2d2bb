"""What to try a vector store with: metadata, filters, and sequences of calls, as hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from portico.search import And, AnyOf, Equal, Filter, Not, Or, Range, VectorRecord

__all__ = ["Call", "Delete", "Drop", "Get", "Search", "Upsert", "calls", "filters", "metadata"]

_FIELDS = ("a", "b", "a.b", '"a"', "$.a[0]", "", "naïve field", "a') OR 1=1 --")
_NUMBERS = (0, 1, -1, 2, 0.0, 1.0, 1.5, -2.5, 2**53, 1e300)
_STRINGS = ("", "a", "A", "ab", "1", "true", "null", "é", "e\u0301", "中文", "x\x00y", 'quo"te', "' OR ''='", "%", "\\")
_SCALARS = (*_NUMBERS, *_STRINGS, True, False)


def metadata() -> st.SearchStrategy[dict[str, Any]]:
    """Metadata with few fields of mixed kinds, lists too, so that filters meet true, 1, 1.0 and "1"."""
    scalar = st.sampled_from(_SCALARS)
    return st.dictionaries(st.sampled_from(_FIELDS), scalar | st.lists(scalar, max_size=3), max_size=4)


def filters() -> st.SearchStrategy[Filter]:
    """Filters of every clause and combination, over the fields and values that `metadata` draws."""
    field = st.sampled_from(_FIELDS)
    scalar = st.sampled_from(_SCALARS)
    bound = st.none() | st.sampled_from(_NUMBERS) | st.sampled_from(_STRINGS)
    clause: st.SearchStrategy[Filter] = (
        st.builds(Equal, field, scalar)
        | st.builds(AnyOf, field, st.lists(scalar, max_size=4).map(tuple))
        | st.tuples(field, st.lists(bound, min_size=4, max_size=4))
        .filter(lambda drawn: any(part is not None for part in drawn[1]))
        .map(lambda drawn: Range(drawn[0], *drawn[1]))
    )
    return st.recursive(
        clause,
        lambda parts: (
            st.lists(parts, max_size=3).map(tuple).map(And)
            | st.lists(parts, max_size=3).map(tuple).map(Or)
            | parts.map(Not)
        ),
        max_leaves=6,
    )


@dataclass(frozen=True, slots=True)
class Upsert:
    """Write records with their rows."""

    namespace: str
    records: tuple[VectorRecord, ...]
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove ids."""

    namespace: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Get:
    """Read ids back."""

    namespace: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Look for the nearest."""

    namespace: str
    query: tuple[float, ...]
    top: int
    filter: Filter | None


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a namespace."""

    namespace: str


Call: TypeAlias = Upsert | Delete | Get | Search | Drop


def calls(dimensions: int = 3) -> st.SearchStrategy[list[Call]]:
    """Sequences of calls on two namespaces and few ids, so that they meet."""
    namespace = st.sampled_from(("one", "two"))
    id = st.sampled_from("abcdefgh")
    ids = st.lists(id, max_size=5).map(tuple)
    row = st.tuples(*[st.integers(-3, 3).map(float)] * dimensions)
    entry = st.tuples(id, metadata(), row)
    upsert = st.builds(
        lambda namespace, entries: Upsert(
            namespace, tuple(VectorRecord(id, fields) for id, fields, _ in entries), tuple(row for _, _, row in entries)
        ),
        namespace,
        st.lists(entry, max_size=5, unique_by=lambda entry: entry[0]),
    )
    search = st.builds(Search, namespace, row, st.integers(1, 6), st.none() | filters())
    call: st.SearchStrategy[Call] = (
        upsert
        | upsert
        | search
        | search
        | st.builds(Delete, namespace, ids)
        | st.builds(Get, namespace, ids)
        | st.builds(Drop, namespace)
    )
    return st.lists(call, min_size=1, max_size=12)
