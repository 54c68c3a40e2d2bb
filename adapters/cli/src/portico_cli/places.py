"""Where a passage stands, in words and as a link."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from portico_cli.output import plain

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["Place", "linked", "place_of"]

_LINE = re.compile(r"L(\d+)")
_PAGE = re.compile(r"page=(\d+)")
_OPENED = ("file", "http", "https")


@dataclass(frozen=True, slots=True)
class Place:
    """A passage's place: what opens it, how it reads, and the title that is left beside that."""

    shown: str
    title: str
    link: str | None


def place_of(name: str | None, link: str | None) -> Place:
    """Read a result's name and link as people do.

    >>> place_of("x.md › Writing", "file:///nowhere/x.md#L12")
    Place(shown='/nowhere/x.md:12', title='Writing', link='file:///nowhere/x.md#L12')
    >>> place_of("A page", "https://example.org/a")
    Place(shown='https://example.org/a', title='A page', link='https://example.org/a')
    """
    title = _on_one_line(name or "")
    link = plain(link).replace("\n", "") if link else None
    if link is None:
        return Place("", title, None)
    try:
        parts = urlsplit(link)
    except ValueError:
        return Place(link, title, None)
    if parts.scheme != "file":
        return Place(link, title, link if parts.scheme in _OPENED else None)
    path = url2pathname(parts.path)
    fragment = unquote(parts.fragment)
    line, page = _LINE.match(fragment), _PAGE.match(fragment)
    suffix = f":{line[1]}" if line else f", page {page[1]}" if page else ""
    return Place(_short(path) + suffix, _without_file(title, path), link)


def linked(text: Text, link: str | None) -> Text:
    """Return the text as a link where the terminal knows links."""
    if link is not None:
        from rich.style import Style

        text.stylize(Style(link=link))
    return text


def _short(path: str) -> str:
    """Return a path as it would be typed here: relative below the working directory, else whole."""
    with suppress(ValueError, OSError):
        path = os.fspath(Path(path).relative_to(Path.cwd().resolve()))
    return _on_one_line(path)


def _without_file(title: str, path: str) -> str:
    """Leave out the file's name where the title begins with it; the place shows it already."""
    first, _, rest = title.partition(" › ")
    return rest if _on_one_line(path).replace(os.sep, "/").endswith(first) else title


def _on_one_line(text: str) -> str:
    # A file's name may hold any character, a line break too.
    return plain(text).replace("\n", " ")
