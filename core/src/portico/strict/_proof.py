"""Proving that no value fits two nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from portico.strict._choice import alternatives, listed_values, original_kind
from portico.strict._nodes import Node, Reference, Scalar
from portico.strict._objects import Object

__all__ = ["all_apart"]

_DEPTH = 3
_PAIRS = 10_000


def all_apart(options: Sequence[Node]) -> bool:
    """Prove that no value fits two of the nodes, as they were before rewriting; False where that is not plain."""
    proof = _Proof()
    return _have_a_tag(options) or all(proof.apart(one, other, _DEPTH) for one, other in combinations(options, 2))


def _have_a_tag(options: Sequence[Node]) -> bool:
    """Tell whether one property that all must have lists other values in each: the usual case, seen at once."""
    objects = [node.target if isinstance(node, Reference) else node for node in options]
    members = [node.members for node in objects if isinstance(node, Object)]
    if len(members) < len(options):
        return False
    for name in members[0]:
        if all(name in those and those[name].required for those in members):
            values = [listed_values(those[name].node) for those in members]
            known = [listed for listed in values if listed is not None]
            if len(known) == len(values) and len(frozenset().union(*known)) == sum(map(len, known)):
                return True
    return False


class _Proof:
    """What has been proven of pairs of nodes, so that no pair is looked at twice."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int, int], bool] = {}

    def apart(self, first: Node, second: Node, depth: int) -> bool:
        return all(self.pair(one, other, depth) for one in alternatives(first) for other in alternatives(second))

    def pair(self, first: Node, second: Node, depth: int) -> bool:
        key = (id(first), id(second), depth)
        if key not in self.known:
            self.known[key] = len(self.known) < _PAIRS and self.look(first, second, depth)
        return self.known[key]

    def look(self, first: Node, second: Node, depth: int) -> bool:
        if isinstance(first, Scalar) and isinstance(second, Scalar):
            if original_kind(first) != original_kind(second):
                return True
            return _lists_nothing_of(first, second) or _lists_nothing_of(second, first)
        if isinstance(first, Object) and isinstance(second, Object):
            names = dict.fromkeys((*first.members, *second.members))
            return any(self.told_by(name, first, second, depth) for name in names)
        return original_kind(first) != original_kind(second)

    def told_by(self, name: str, first: Object, second: Object, depth: int) -> bool:
        """Tell whether one object must have a key that the other cannot have, or not with such a value."""
        own, other = first.members.get(name), second.members.get(name)
        if not ((own and own.required) or (other and other.required)):
            return False
        one = own.node if own else None if name in first.absent else first.rest
        two = other.node if other else None if name in second.absent else second.rest
        return one is None or two is None or (depth > 0 and self.apart(one, two, depth - 1))


def _lists_nothing_of(listing: Scalar, other: Scalar) -> bool:
    return listing.values is not None and not any(other.fits(value, {}) for _, value in listing.values)
