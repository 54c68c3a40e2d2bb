"""What is taken and what is left out, by names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from portico.errors import ConfigurationError, nearest
from portico_mcp._client.words import clean


def choose(names: Mapping[str, list[str]], include: Collection[str], exclude: Collection[str], place: str) -> set[str]:
    """Return what is taken: all without ``include``; ``exclude`` wins. In both, ``*`` stands for anything.

    With each name come further words that mean it. Raises ``ConfigurationError`` for a word that means nothing.

    >>> choose({"Post-send": ["Post"], "shout": []}, [], ["Post"], "--")
    {'shout'}
    """
    found: dict[str, set[str]] = {"include": set(), "exclude": set()}
    for key, word in (*(("include", each) for each in include), *(("exclude", each) for each in exclude)):
        meant = {name for name, more in names.items() if word in (name, *more) or fnmatchcase(name, word)}
        if not meant:
            known = list(dict.fromkeys(each for name, more in names.items() for each in (name, *more)))
            near = ", ".join(map(clean, nearest(word, known) or known[:10])) or "none"
            raise ConfigurationError(f"{place}{key}: nothing is called {word!r}. Names to choose from: {near}.")
        found[key] |= meant
    return (found["include"] if include else set(names)) - found["exclude"]
