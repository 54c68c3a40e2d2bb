"""Links in the text of an answer, and whether two links lead to the same place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

__all__ = ["LinkInText", "find_links", "place_of", "without_code", "without_links"]

LinkInText = tuple[int, str]
"""The place of a link in a text, and its address as written."""

# A fence that is not closed runs to the end, as in CommonMark; a code span stays within some lines.
_CODE = re.compile(
    r"(?:^|\n)[ \t]{0,3}(?P<fence>`{3,100}(?!`)|~{3,100}(?!~))[^`\n]*\n.*?(?:\n[ \t]{0,3}(?P=fence)|\Z)"
    r"|(?P<run>(?<!`)`+)(?!`)(?=[^`])(?:(?!\n\s*\n).){1,2000}?(?<!`)(?P=run)(?!`)"
    r"|```.*",
    re.DOTALL,
)
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,500}\]\([^()\s]{0,4000}(?:[ \t][^()\n]{0,500})?\)")
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://"
# Characters of an address in running text. Brackets and marks of Chinese and Japanese end it too.
_INSIDE = r"[^\s<>\"`{}|\\^\u3000-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u2018-\u201f\u2026]"
_TARGET = re.compile(
    r"\]\(\s{0,4}(?:<(?P<angled>[^<>\n]{1,4000})>|(?P<plain>[^\s()<>]{1,4000}(?:\([^\s()<>]{0,4000}\)[^\s()<>]{0,4000}){0,20}))"
    rf"|<(?P<auto>{_SCHEME}[^\s<>]{{1,4000}})>"
    rf"|(?<![A-Za-z0-9])(?P<bare>{_SCHEME}{_INSIDE}{{1,4000}})"
)
_LABELLED = re.compile(r"\[(?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,500}\]\([^\n)]{0,4000}\)")
_CLOSING = {")": "(", "]": "["}
_DEFAULT_PORTS = {("http", 80), ("https", 443)}


def without_code(text: str) -> str:
    """Return a text with blanks for its code and images, so that places in it stay the same.

    >>> without_code("See `a[1]` [2].")
    'See        [2].'
    """
    return _IMAGE.sub(_blank, _CODE.sub(_blank, text))


def without_links(text: str) -> str:
    """Return a text with blanks for its links and their labels, so that places in it stay the same."""
    text = _LABELLED.sub(_blank, text)
    return _TARGET.sub(lambda match: _blank(match) if match["bare"] or match["auto"] else match[0], text)


def find_links(text: str) -> Iterator[LinkInText]:
    """Yield the addresses in a text with their places: links of Markdown, and bare addresses.

    >>> list(find_links("See [the docs](https://a.example/b) and https://c.example/d."))
    [(15, 'https://a.example/b'), (40, 'https://c.example/d')]

    Links within the document (``#part``) and addresses without ``://`` (``mailto:``) are left out.
    """
    for match in _TARGET.finditer(text):
        link = match["angled"] or match["plain"] or match["auto"]
        if link is None:
            link = _trimmed(match["bare"])
        if re.match(_SCHEME, link):
            yield match.start(match.lastgroup or 0), link


def place_of(link: str) -> tuple[str, str]:
    """Return the place that a link leads to in one spelling, and its fragment.

    >>> place_of("HTTPS://Example.org:443/a%20b/?utm_source=x#top") == place_of("http://example.org/a b#top")
    True

    Links lead to one place if they differ only in ``http`` and ``https``, the case of the host, a usual port,
    percent-encoding, a slash at the end, and the parameters ``utm_…`` that services add to count readers.
    """
    link = link.strip()
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError:
        return unquote(link), ""
    host = (parts.hostname or "").rstrip(".")
    if port is not None and (parts.scheme, port) not in _DEFAULT_PORTS:
        host = f"{host}:{port}"
    kept = [each for each in parts.query.split("&") if each and not each.startswith("utm_")]
    scheme = "http" if parts.scheme == "https" else parts.scheme
    path = unquote(parts.path).rstrip("/")
    return f"{scheme}://{host}{path}?{unquote('&'.join(kept))}", unquote(parts.fragment)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _trimmed(link: str) -> str:
    """Leave off marks that end the sentence, not the address, as GitHub does."""
    while link:
        last = link[-1]
        if last in ".,;:!?'*_~" or (last in _CLOSING and link.count(last) > link.count(_CLOSING[last])):
            link = link[:-1]
        else:
            break
    return link
