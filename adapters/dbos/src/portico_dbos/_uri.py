"""What can be wrong with the URI of a database, said without any of it.

A password with an ``@`` or a ``/`` in it, not percent-encoded, makes PostgreSQL's library take a part of the password
for the host or the database, and both stand in its messages. Such a URI is refused before the library sees it.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

__all__ = ["fault", "place_of"]

_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[\w.%~-]*)(:[0-9]*)?")
_QUERY = re.compile(r"[A-Za-z_]+=[^&=]*")
_ENCODE = "in a user or password, write each of @ : / ? # % as %40 %3A %2F %3F %23 %25"


def fault(uri: str) -> str | None:
    """Say what is wrong with a URI; None for one of the form ``postgresql://user:password@host:port/database``.

    >>> fault("postgresql://ada:secret@db.example/portico")
    >>> fault("mysql://db.example/portico")
    'is of the form postgresql://user:password@host:5432/database'
    """
    scheme, colon, rest = uri.partition("://")
    if not colon or scheme not in ("postgresql", "postgres"):
        return "is of the form postgresql://user:password@host:5432/database"
    if any(letter.isspace() or not letter.isprintable() for letter in uri):
        return "has a space, a line break or another character in it that no URI has"
    if re.search("%(?![0-9A-Fa-f]{2})|%00", uri):
        return f"has a % in it that stands for no character: {_ENCODE}"
    hosts, database, query = _parts(rest)
    if (
        not all(_HOST.fullmatch(host) for host in hosts.split(","))
        or re.search("[@/]", database)
        or not all(_QUERY.fullmatch(each) for each in query.split("&") if query)
    ):
        return f"has a part that cannot be read as host, port, database or option: {_ENCODE}"
    return None


def place_of(uri: str) -> str:
    """Return where a database is, without user and password.

    >>> place_of("postgresql://ada:secret@db.example:5432/portico?sslmode=require")
    'postgresql://db.example:5432/portico'
    """
    hosts, database, query = _parts(uri.partition("://")[2])
    return f"postgresql://{hosts or parse_qs(query).get('host', [''])[0]}/{database}"


def _parts(rest: str) -> tuple[str, str, str]:
    """Split what follows the scheme into hosts, database and options, without the user's part.

    As the library does it: that ends at the first @, if that comes before any slash.
    """
    before, at, after = rest.partition("@")
    if at and "/" not in before:
        rest = after
    place, _, query = rest.partition("?")
    hosts, _, database = place.partition("/")
    return hosts, database, query
