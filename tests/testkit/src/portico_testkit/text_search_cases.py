"""What text searches are tried with: awkward queries, and the filters that one must refuse by what it declares."""

from __future__ import annotations

from portico.filter import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range

__all__ = ["AWKWARD_QUERIES", "refused_filters"]

AWKWARD_QUERIES = (
    '"',
    "'; DROP TABLE passages; --",
    'NEAR("a" "b", 5) AND NOT text:c* OR ^d',
    "* - + ( ) : { } [ ] ^ ~ ? \\ / & | !",
    "\x00 \ufeff \u202e",
    "lone \ud800 surrogate",
    "中文 без עברית \U0001f9e6",
    "{{$input}} %s <script>",
    "site:example.org filetype:pdf -word",
    "word " * 2_000,
)

_CLAUSES: dict[str, type[Equal | AnyOf | Range]] = {"Equal": Equal, "AnyOf": AnyOf, "Range": Range}


def refused_filters(support: FilterSupport, unknown: str) -> list[Filter]:
    """Return one filter for each thing that is not supported; ``unknown`` is the name of no field.

    >>> refused_filters(FilterSupport({"colour": frozenset({"Equal", "AnyOf", "Range"})}), "no")[0]
    Equal(field='no', value='x')
    """
    if support.fields is None:
        any_clause: Filter = Equal(unknown, "x")
        refused: list[Filter] = []
    else:
        refused = [Equal(unknown, "x"), AnyOf(unknown, ("x",)), Range(unknown, at_least=1)]
        for field, kinds in support.fields.items():
            refused += [_clause(_CLAUSES[kind], field) for kind in sorted(_CLAUSES.keys() - kinds)]
        allowed = next(((field, kind) for field, kinds in support.fields.items() for kind in sorted(kinds)), None)
        if allowed is None:
            return refused
        any_clause = _clause(_CLAUSES[allowed[1]], allowed[0])
    combinations: dict[str, Filter] = {"And": And((any_clause,)), "Or": Or((any_clause,)), "Not": Not(any_clause)}
    refused += [combinations[name] for name in sorted(combinations.keys() - support.combine)]
    # A clause that is refused hides no deeper in one that is allowed.
    if refused and "And" in support.combine:
        refused.append(And((any_clause, refused[0])))
    return refused


def _clause(kind: type[Equal | AnyOf | Range], field: str) -> Filter:
    if kind is AnyOf:
        return AnyOf(field, ("x",))
    return Range(field, at_least="x") if kind is Range else Equal(field, "x")
