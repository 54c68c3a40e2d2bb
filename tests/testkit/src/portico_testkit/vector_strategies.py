"""What to try a vector store with: metadata, filters, and sequences of calls, as hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from portico.filter import And, AnyOf, Equal, Filter, Not, Or, Range
from portico.ports.vector_store import VectorRecord

__all__ = [
    "Call",
    "Delete",
    "Drop",
    "Get",
    "Search",
    "Upsert",
    "calls",
    "filters",
    "metadata",
    "telling_filters",
    "telling_metadata",
]

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


def telling_metadata() -> list[dict[str, Any]]:
    """Records that filters are easily wrong about: each value alone, in a list, with another, and none."""
    alone: list[dict[str, Any]] = [{"a": value} for value in _SCALARS]
    return [*alone, {}, {"b": 1}, {"a": []}, {"a": [1, "x"]}, {"a": [True]}, {"a": 1, "b": True}, {"a": True, "b": 1}]


def telling_filters() -> list[Filter]:
    """Every clause with every value on the field ``a``, and the combinations."""
    result: list[Filter] = [And(()), Or(()), AnyOf("a", ()), Equal("no such field", 1)]
    for value in _SCALARS:
        clauses: list[Filter] = [Equal("a", value), AnyOf("a", (value, "x"))]
        if not isinstance(value, bool):
            clauses += [Range("a", at_least=value), Range("a", at_most=value)]
            clauses += [Range("a", above=value), Range("a", below=value)]
        result += clauses
        result += [
            Not(clauses[0]),
            Not(clauses[-1]),
            And((clauses[-1], Equal("b", 1))),
            Or((clauses[0], Equal("b", 1))),
        ]
        result += [And((clauses[-1], AnyOf("b", (True, 1)))), And((Equal("b", 1), Not(clauses[0])))]
    return result


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
            namespace,
            tuple(VectorRecord(id, fields) for id, fields, _ in entries),
            tuple(row for _, _, row in entries),
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
