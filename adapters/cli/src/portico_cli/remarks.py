"""What sources say of a search beside its results: another spelling, pages that were not read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from portico_cli.answer_text import Hanging
from portico_cli.output import plain, safe_text

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["metadata_to_json", "remark_lines", "remarks"]

# Metadata is each service's own; these are the words that those known to us have for the same two things.
_MEANT = frozenset({"suggestion", "corrections", "correctedQuery"})
_ASKED_INSTEAD = frozenset({"rewrittenquery", "altered", "alteredQuery"})
_UNREAD = "snippets"
_DEEPEST = 8
_DEEPEST_JSON = 40
_MOST = 5


def metadata_to_json(value: Any, depth: int = 0) -> Any:
    """Return metadata as JSON values: what a connector puts there is its own, and may be none.

    >>> metadata_to_json({("a", 1): float("nan"), "b": (1, {2})})
    {"('a', 1)": 'nan', 'b': [1, [2]]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _DEEPEST_JSON:
        if isinstance(value, Mapping):
            return {str(name): metadata_to_json(inner, depth + 1) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [metadata_to_json(inner, depth + 1) for inner in value]
    return str(value)


def remark_lines(query: str, metadata: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield an empty line and the remarks, nothing where there are none."""
    from rich.text import Text

    lines = remarks(query, metadata)
    if lines:
        yield Text()
    for line in lines:
        yield Hanging(safe_text(line, "dim"), "", "  ")


def remarks(query: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return sentences for people, each once; ``metadata`` is that of each source by its name.

    >>> remarks("lighthose", {"web": {"suggestion": "lighthouse", "totalhits": 0}})
    ['Did you mean “lighthouse”?']
    """
    meant: dict[str, None] = {}
    instead: dict[str, None] = {}
    unread: dict[str, None] = {}

    def look(value: Any, depth: int) -> None:
        if not isinstance(value, Mapping) or depth == _DEEPEST:
            return
        for name, inner in value.items():
            if name in _MEANT:
                meant.update(dict.fromkeys(_texts(inner)))
            elif name in _ASKED_INSTEAD:
                instead.update(dict.fromkeys(_texts(inner)))
            elif name == _UNREAD and isinstance(inner, list):
                unread.update(dict.fromkeys(_reasons(inner)))
            else:
                look(inner, depth + 1)

    look(metadata, 0)
    said = [f"These are results for “{text}”." for text in instead if text != query]
    said += [f"Did you mean “{text}”?" for text in meant if text != query]
    said += [f"Only a snippet is shown of a page that was not read: {reason}" for reason in unread]
    return said if len(said) <= _MOST else [*said[:_MOST], f"… and {len(said) - _MOST} more; --json has all."]


def _texts(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [made for text in texts if isinstance(text, str) and (made := " ".join(plain(text).split()))]


def _reasons(snippets: list[Any]) -> list[str]:
    # What has no address on the web, a file for example, is no page: nobody expects more of it.
    pages = [each for each in snippets if isinstance(each, Mapping) and str(each.get("link")).startswith("http")]
    return [" ".join(plain(f"{page.get('reason')}").split()) for page in pages]
