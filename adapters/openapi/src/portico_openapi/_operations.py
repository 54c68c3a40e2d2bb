"""The operations of a document, in its order, each with the name that its function gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portico_openapi._documents import Documents
from portico_openapi._names import function_names
from portico_openapi._wrong import Twice, Wrong, described, shown

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class LostOperation:
    """An operation that did not become a function: method and path, and why."""

    operation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operation} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it stands in a document, with its path's item before it."""

    method: str
    path: str
    id: str | None
    tags: tuple[str, ...]
    name: str
    levels: tuple[tuple[Mapping[str, Any], str], ...]
    """The path's item and the operation, each with the document that it stands in."""

    @property
    def label(self) -> str:
        """Method and path, as people write them; a path holds no secret."""
        return f"{self.method.upper()} {shown(self.path)}"

    @property
    def value(self) -> Mapping[str, Any]:
        """The operation object."""
        return self.levels[-1][0]

    @property
    def base(self) -> str:
        """The document that it stands in."""
        return self.levels[-1][1]


@dataclass(frozen=True, slots=True)
class _Found:
    method: str
    path: str
    item: Mapping[str, Any]
    value: Any
    base: str


def operations_of(documents: Documents, paths: Mapping[str, Any]) -> tuple[list[Operation], list[LostOperation]]:
    """Return the operations and what is wrong in ``paths`` itself.

    Names are given to all before any is left out, so that leaving one out renames no other.
    """
    lost: list[LostOperation] = []
    found: list[_Found] = []
    for path, item in paths.items():
        if path[:1] == "/":
            try:
                found += _in_item(documents, path, item)
            except Wrong as error:
                lost.append(LostOperation(shown(path), str(error)))
        elif not path.startswith("x-"):
            lost.append(LostOperation(shown(path) or "a path without a name", "a path begins with a slash"))
    ids = [one.value.get("operationId") if type(one.value) is dict else None for one in found]
    texts = [id if type(id) is str else None for id in ids]
    names = function_names((one.method, one.path, id) for one, id in zip(found, texts, strict=True))
    operations = []
    for one, id, name in zip(found, texts, names, strict=True):
        if type(one.value) is dict:
            levels = ((one.item, one.base), (one.value, one.base))
            operations.append(Operation(one.method, one.path, id, _tags(one.value), name, levels))
        else:
            problem = str(one.value) if type(one.value) is Twice else described(one.value)
            label = f"{one.method.upper()} {shown(one.path)}"
            lost.append(LostOperation(label, f"expected an operation, not {problem}"))
    return operations, lost


def _in_item(documents: Documents, path: str, item: Any) -> Iterator[_Found]:
    """Yield the operations of a path; what stands beside a reference counts as well, and first."""
    if item is None:
        return
    parts: Sequence[tuple[Any, str]] = [(item, documents.root_uri)]
    if type(item) is dict and "$ref" in item:
        behind = documents.follow(item, documents.root_uri, texts=False)
        parts = [*parts, (behind.value, behind.uri)]
    seen: set[str] = set()
    for part, base in parts:
        if type(part) is not dict:
            raise Wrong(
                str(part) if type(part) is Twice else f"expected the operations of a path, not {described(part)}"
            )
        for method, value in part.items():
            if method in METHODS and method not in seen:
                seen.add(method)
                yield _Found(method, path, part, value, base)


def _tags(operation: Mapping[str, Any]) -> tuple[str, ...]:
    tags = operation.get("tags")
    return tuple(tag for tag in tags if type(tag) is str) if type(tags) is list else ()
