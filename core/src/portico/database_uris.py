"""Database URIs with a password: the check of the setting, and the place without the password.

With an ``@`` or a ``/`` in a password that is not percent-encoded, a library may take a part of the password for the
host or the database, and show it in messages. So a URI is accepted only where all readers agree about its parts (RFC
3986 and PostgreSQL's library), and a refused URI is never quoted.
"""

from __future__ import annotations

import re

from portico.registration import Secret
from portico.settings import Check, SettingsField

__all__ = ["database_uri", "place_of"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_USER = re.compile(r"[^/?#@\[\]]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[\w.%~-]*)(:[0-9]{0,5})?")
_DATABASE = re.compile(r"[^@/?#]*")
_OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*=[^&=@#]*")
_LAST_PORT = 65_535
_ENCODE = "in a user or password, write each of @ : / ? # [ ] % as %40 %3A %2F %3F %23 %5B %5D %25"


def database_uri(*schemes: str) -> Check[Secret]:
    """Return a check of a setting with the URI of a database, with one of these schemes.

    >>> from dataclasses import dataclass, fields
    >>> @dataclass
    ... class LedgerSettings:
    ...     uri: Secret
    ...     def __post_init__(self):
    ...         database_uri("postgresql", "postgres")(self, fields(self)[0], self.uri)
    >>> LedgerSettings(Secret("postgresql://ada:secret@db.example/portico"))
    LedgerSettings(uri=Secret(literal))
    >>> LedgerSettings(Secret("mysql://ada:secret@db.example/portico"))
    Traceback (most recent call last):
    ...
    ValueError: uri is of the form postgresql://user:password@host:port/database

    The form is ``scheme://user:password@host:port/database?option=value``. Any part but the scheme may be missing, and
    there may be several hosts with commas between. ``ValueError`` says what is wrong and quotes nothing. Options are
    not checked.
    """

    def check(settings: object, field: SettingsField, value: Secret) -> None:
        try:
            _parts(value.reveal(), schemes)
        except ValueError as error:
            raise ValueError(f"{field.name} {error}") from None

    return check


def place_of(uri: Secret) -> str:
    """Return the place of a database for messages: the URI without user, password and options.

    >>> place_of(Secret("postgresql://ada:secret@db.example:5432/portico?sslmode=require"))
    'postgresql://db.example:5432/portico'
    >>> place_of(Secret("postgresql://ada:secret@/portico?host=/run/postgresql"))
    'postgresql:///portico?host=/run/postgresql'

    The option ``host`` is shown where there is no other host. Raises ``ValueError``, which quotes nothing, for a URI
    that `database_uri` refuses.
    """
    text = uri.reveal()
    hosts, database, options = _parts(text, ())
    place = f"{text.partition('://')[0]}://{hosts}/{database}"
    host = next((option for option in options if option.startswith("host=")), None)
    return place if hosts or host is None else f"{place}?{host}"


def _parts(uri: str, schemes: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """Return hosts, database and options. A ``ValueError`` continues a sentence that begins with the setting."""
    scheme, colon, rest = uri.partition("://")
    if not colon or (scheme not in schemes if schemes else not _SCHEME.fullmatch(scheme)):
        raise ValueError(f"is of the form {schemes[0] if schemes else 'scheme'}://user:password@host:port/database")
    if any(letter.isspace() or not letter.isprintable() for letter in uri):
        raise ValueError("has a space, a line break or another character in it that no URI has")
    if re.search("%(?![0-9A-Fa-f]{2})|%00", uri):
        raise ValueError(f"has a % in it that stands for no character: {_ENCODE}")
    user, at, after = rest.partition("@")
    if not at:
        user, after = "", rest
    place, _, query = after.partition("?")
    hosts, _, database = place.partition("/")
    options = query.split("&") if query else []
    if not (
        _USER.fullmatch(user)
        and all(_HOST.fullmatch(host) for host in hosts.split(","))
        and _DATABASE.fullmatch(database)
        and all(_OPTION.fullmatch(option) for option in options)
    ):
        raise ValueError(f"has a part that cannot be read as host, port, database or option: {_ENCODE}")
    ports = [port for host in hosts.split(",") if (port := host.rpartition("]")[2].partition(":")[2])]
    if not all(1 <= int(port) <= _LAST_PORT for port in ports):
        raise ValueError(f"has a port that there is not: ports are 1 to {_LAST_PORT}")
    return hosts, database, options
