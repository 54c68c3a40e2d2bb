"""Arrays and mappings made ready: lists, tuples, sets and dicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from portico.types.compiled import Compiled, Fault, Mismatch, refuse
from portico.types.drafts import drafting, drafts

__all__ = ["array", "fixed", "mapping"]


def array(inner: Compiled, make: Callable[[list[Any]], Any], *, unique: bool = False) -> Compiled:
    """Compile an array of any number of elements; ``make`` is list, tuple, set or frozenset."""
    schema: dict[str, Any] = {"type": "array", "items": inner.schema}
    if unique:
        schema["uniqueItems"] = True
    structure_inner, unstructure_inner, draft_inner = inner.structure, inner.unstructure, drafting(inner)

    def structure(value: Any) -> Any:
        if type(value) is not list:
            refuse("an array", value)
        elements: list[Any] = []
        faults: list[Fault] = []
        for index, element in enumerate(value):
            try:
                elements.append(structure_inner(element))
            except Mismatch as error:
                faults.extend(error.under(index))
        if faults:
            raise Mismatch(faults)
        made = whole(elements, value)
        if unique and len(made) < len(value):
            refuse("an array whose elements are all different", value)
        return made

    def whole(elements: list[Any], value: Any) -> Any:
        if make is list:
            return elements
        try:
            return make(elements)
        except TypeError:
            refuse("an array of strings, numbers, bools or null", value)

    def unstructure(value: Any) -> Any:
        return [unstructure_inner(element) for element in value]

    def draft(value: Any) -> Any:
        if type(value) is not list:
            refuse("an array", value)
        return whole(drafts(draft_inner, value), value)

    return Compiled(schema, structure, unstructure, draft)


def fixed(inner: Sequence[Compiled]) -> Compiled:
    """Compile a tuple of a fixed number of elements."""
    schema = {
        "type": "array",
        "prefixItems": [compiled.schema for compiled in inner],
        "minItems": len(inner),
        "maxItems": len(inner),
    }
    structures = [compiled.structure for compiled in inner]
    unstructures = [compiled.unstructure for compiled in inner]

    def structure(value: Any) -> Any:
        if type(value) is not list or len(value) != len(inner):
            refuse(f"an array of {len(inner)}", value)
        elements: list[Any] = []
        faults: list[Fault] = []
        for index, element in enumerate(value):
            try:
                elements.append(structures[index](element))
            except Mismatch as error:
                faults.extend(error.under(index))
        if faults:
            raise Mismatch(faults)
        return tuple(elements)

    def unstructure(value: Any) -> Any:
        return [write(element) for write, element in zip(unstructures, value, strict=True)]

    def draft(value: Any) -> Any:
        if type(value) is not list or len(value) > len(inner):
            refuse(f"an array of {len(inner)}", value)
        shown = [
            next(iter(drafts(drafting(each), [element])), None) for each, element in zip(inner, value, strict=False)
        ]
        return tuple(shown + [None] * (len(inner) - len(shown)))

    return Compiled(schema, structure, unstructure, draft)


def mapping(inner: Compiled) -> Compiled:
    """Compile an object whose keys are data."""
    structure_inner, unstructure_inner, draft_inner = inner.structure, inner.unstructure, drafting(inner)

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            refuse("an object", value)
        members: dict[str, Any] = {}
        faults: list[Fault] = []
        for key, element in value.items():
            try:
                members[key] = structure_inner(element)
            except Mismatch as error:
                faults.extend(error.under(key))
        if faults:
            raise Mismatch(faults)
        return members

    def unstructure(value: Any) -> Any:
        return {key: unstructure_inner(element) for key, element in value.items()}

    def draft(value: Any) -> Any:
        if type(value) is not dict:
            refuse("an object", value)
        return {key: shown for key, element in value.items() for shown in drafts(draft_inner, [element])}

    return Compiled({"type": "object", "additionalProperties": inner.schema}, structure, unstructure, draft)
