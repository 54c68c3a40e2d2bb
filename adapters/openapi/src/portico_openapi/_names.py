"""Names of functions and of their parameters, made of what a document calls things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_LONGEST = 64
_READ = 500


def word(text: str) -> str:
    """Return the letters, digits and underscores of a text, the rest as single underscores.

    >>> word("find pet by id"), word("X-Request-ID"), word("filter[name]"), word("Länge"), word("$")
    ('find_pet_by_id', 'X_Request_ID', 'filter_name', 'Lange', '')
    """
    folded = unicodedata.normalize("NFKD", text[:_READ])
    without_marks = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return "_".join(re.findall(r"[0-9A-Za-z_]+", without_marks))[:_LONGEST]


def function_names(operations: Iterable[tuple[str, str, str | None]]) -> list[str]:
    """Return a name for each operation, given as method, path and operation id.

    >>> function_names([("get", "/pets", "list pets"), ("get", "/pets/{id}", None), ("put", "/pets", "list-pets")])
    ['list_pets', 'get_pets_id', 'list_pets_2']
    """
    natural = [
        word(id or "") or word(f"{method} {path}" if word(path) else f"{method} root")
        for method, path, id in operations
    ]
    return distinct(natural)


def distinct(names: Sequence[str]) -> list[str]:
    """Tell equal names apart by numbers; a name that is no one else's stays as it is, wherever it stands.

    >>> distinct(["pets", "pets", "pets_2"])
    ['pets', 'pets_3', 'pets_2']
    """
    taken = set(names)
    numbers: dict[str, int] = {}
    made = []
    for name in names:
        chosen, number = name, numbers.get(name, 1)
        while name in numbers and chosen in taken:
            number += 1
            chosen = f"{name[: _LONGEST - len(str(number)) - 1]}_{number}"
        numbers[name] = number
        taken.add(chosen)
        made.append(chosen)
    return made


def parameter_names(parameters: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each parameter, given as location and name; a clash is resolved by the location.

    >>> parameter_names([("query", "id"), ("path", "id"), ("header", "X-Id")])
    ['query_id', 'id', 'X_Id']
    """
    ranks = {"path": 0, "query": 1, "header": 2, "cookie": 3}
    order = sorted(range(len(parameters)), key=lambda index: (ranks.get(parameters[index][0], 4), index))
    words = [word(name) or location for location, name in parameters]
    first: dict[str, int] = {}
    for index in order:
        first.setdefault(words[index], index)
    made = [
        name if first[name] == index else f"{parameters[index][0]}_{name}"[:_LONGEST]
        for index, name in enumerate(words)
    ]
    return distinct(made)
