"""What a package registers, and the forms of its settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, quote_plus, urlsplit

if TYPE_CHECKING:
    from portico.errors import StoreError

P = TypeVar("P")


_SHORT = 6
"""Characters of a word that is too short to be a secret."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One service that a package offers for a port.

    >>> Registration(
    ...     name="acme",
    ...     factory="portico_acme.search:AcmeSearch",
    ...     settings="portico_acme.config:AcmeSettings",
    ...     summary="Search the Acme catalogue.",
    ... ).name
    'acme'

    ``factory`` is ``"module:attribute"``. It is imported only when it is chosen, and called as
    ``factory(settings, services)``; it must not open anything. ``settings`` is an attrs class or a dataclass, or its
    ``"module:attribute"``; None where there are no settings. ``port_version`` is the major version of the port, from 1.
    A name may be registered for several versions; the one that fits the core is used. Raises ``ValueError`` for a
    malformed name, reference, summary or version.
    """

    name: str
    factory: str
    summary: str
    settings: type[Any] | str | None = None
    port_version: int = 1

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "-_" for letter in self.name):
            raise ValueError(f"a registration's name has letters, digits, '-' and '_' only, not {self.name!r}")
        for reference in (self.factory, self.settings):
            if isinstance(reference, str) and reference.count(":") != 1:
                raise ValueError(f"{reference!r} is not of the form 'module:attribute'")
        if not self.summary.strip() or "\n" in self.summary:
            raise ValueError(f"the registration {self.name!r} needs a summary of one line")
        if self.port_version < 1:
            raise ValueError(f"port_version is at least 1, not {self.port_version} (registration {self.name!r})")


class Services(Protocol):
    """Gives factories the services of other ports; the host implements it.

    A service is made when it is first requested, and shared. A factory may request services; a circle is a
    ``ConfigurationError``.
    """

    def get(self, port: Callable[..., P], name: str | None = None) -> P:
        """Return the service configured for ``port``, or the one of that name.

        Raises ``PluginNotInstalled``, ``PluginBroken``, ``PluginConflict`` or ``ConfigurationError``.
        """
        ...

    def names(self, port: Callable[..., object]) -> tuple[str, ...]:
        """Return the names that are configured for ``port``, in the order of the configuration."""
        ...


class Secret:
    """A value that must not be shown: repr, str and format show asterisks only.

    >>> key = Secret("sk-123", origin="env OPENAI_API_KEY")
    >>> f"{key} {key!r}"
    '******** Secret(env OPENAI_API_KEY)'
    >>> key.reveal()
    'sk-123'
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, *, origin: str = "literal") -> None:
        self._value = value
        self.origin = origin

    def reveal(self) -> str:
        """Return the value; call this only to send it."""
        return self._value

    def __str__(self) -> str:
        return "********"

    def __repr__(self) -> str:
        return f"Secret({self.origin})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __getstate__(self) -> Any:
        raise TypeError("a Secret is not serialised")

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("a Secret is not serialised")

    @staticmethod
    def redact(words: str, hidden: Iterable[Secret]) -> str:
        """Return words from outside without the secrets in them.

        >>> Secret.redact("The key s3cret is wrong.", [Secret("s3cret")])
        'The key ******** is wrong.'
        """
        for key in sorted({part for secret in hidden for part in _words_of_secret(secret)}, key=len, reverse=True):
            # A service may repeat a key as it stood in the address.
            for written in (key, quote(key), quote_plus(key)):
                words = words.replace(written, str(Secret("")))
        return words

    def database_place(self) -> str:
        """Return the place of a database for messages: the URI without user, password and options.

        >>> Secret("postgresql://ada:secret@db.example:5432/portico?sslmode=require").database_place()
        'postgresql://db.example:5432/portico'
        >>> Secret("postgresql://ada:secret@/portico?host=/run/postgresql").database_place()
        'postgresql:///portico?host=/run/postgresql'

        The option ``host`` is shown where there is no other host. Raises ``ValueError``, which quotes nothing, for a
        URI that `ValueForm.database_uri` refuses.
        """
        text = self.reveal()
        hosts, database, options = _parts(text, ())
        place = f"{text.partition('://')[0]}://{hosts}/{database}"
        host = next((option for option in options if option.startswith("host=")), None)
        return place if hosts or host is None else f"{place}?{host}"

    def database_error(self, error: Exception, *, table: str) -> StoreError:
        """Return ``StoreBusy``, ``StoreUnavailable``, ``StoreDamaged`` or ``StoreError`` for an error of psycopg.

        The message begins with `database_place`. ``table`` is the table of the settings: "[runs.postgres]".
        """
        from portico._plugins.databases import postgres_error

        return postgres_error(error, self.database_place(), table=table)


Check: TypeAlias = Callable[[Any, Any, Any], None]
"""Checks a setting: it gets the settings, the field (of attrs or a dataclass), and the value."""


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The values that a service understands: a regular expression, and words for people.

    >>> country = ValueForm("[A-Z]{2}", "two letters, as in 'DE'")
    >>> country.fits("DE"), country.fits("Germany")
    (True, False)

    It is also a check, which raises ``ValueError``.
    """

    pattern: str
    words: str

    def fits(self, value: str) -> bool:
        """Tell whether the whole value is of this form."""
        return re.fullmatch(self.pattern, value) is not None

    def __call__(self, settings: object, field: Any, value: str) -> None:
        """Check a setting."""
        if not self.fits(value):
            raise ValueError(f"{field.name} takes {self.words}, not {value!r}")

    @staticmethod
    def one_of(*values: str, ignore_case: bool = False) -> ValueForm:
        """Return a form that takes only these values.

        >>> ValueForm.one_of("day", "week", "month").words
        "'day', 'week' or 'month'"
        """
        pattern = "|".join(map(re.escape, values))
        *first, last = map(repr, values)
        return ValueForm(
            f"(?i:{pattern})" if ignore_case else pattern, f"{', '.join(first)} or {last}" if first else last
        )

    @staticmethod
    def service_address(example: str) -> Check:
        """Return a check of a service's address; its ``ValueError`` shows ``example``.

        It refuses a user name or a password in the address, because addresses are shown in messages and logs.
        """

        def check(settings: object, field: Any, value: str) -> None:
            try:
                parts = urlsplit(value)
                named, port = bool((parts.hostname or "").encode("idna")), parts.port
            except ValueError:
                raise ValueError(f"{field.name} is no address; it is of the form {example}") from None
            if parts.username is not None or parts.password is not None:
                raise ValueError(f"{field.name} has a user name or password in it, which would be shown in messages")
            plain = not (parts.query or parts.fragment or " " in value) and value.isprintable()
            if parts.scheme not in {"http", "https"} or not named or port == 0 or not plain:
                # The part after "?" may be a key.
                raise ValueError(f"{field.name} is of the form {example}, not {value.partition('?')[0]!r}")

        return check

    @staticmethod
    def service_key(whence: str = "") -> Check:
        """Return a check of a key: it must not be empty, and a header must be able to hold it.

        ``whence`` is the address where keys are made, for the message.
        """

        def check(settings: object, field: Any, value: Secret) -> None:
            key = value.reveal()
            if not key.strip():
                raise ValueError(f"{field.name} is empty{f'; keys are made at {whence}' if whence else ''}")
            if key.split() != [key] or not (key.isascii() and key.isprintable()):
                raise ValueError(f"{field.name} has characters in it that no key has: a blank or a line break, perhaps")

        return check

    @staticmethod
    def database_uri(*schemes: str) -> Check:
        """Return a check of a setting with the URI of a database, with one of these schemes.

        >>> from dataclasses import dataclass, fields
        >>> @dataclass
        ... class LedgerSettings:
        ...     uri: Secret
        ...     def __post_init__(self):
        ...         ValueForm.database_uri("postgresql", "postgres")(self, fields(self)[0], self.uri)
        >>> LedgerSettings(Secret("postgresql://ada:secret@db.example/portico"))
        LedgerSettings(uri=Secret(literal))
        >>> LedgerSettings(Secret("mysql://ada:secret@db.example/portico"))
        Traceback (most recent call last):
        ...
        ValueError: uri is of the form postgresql://user:password@host:port/database; in a user or password, \
write each of @ : / ? # [ ] % as %40 %3A %2F %3F %23 %5B %5D %25

        The form is ``scheme://user:password@host:port/database?option=value``. Any part but the scheme may be missing,
        and there may be several hosts with commas between. ``ValueError`` says what is wrong and quotes nothing.
        Options are not checked.
        """

        def check(settings: object, field: Any, value: Secret) -> None:
            try:
                _parts(value.reveal(), schemes)
            except ValueError as error:
                raise ValueError(f"{field.name} {error}") from None

        return check


_USER = r"(?:[^%/?#@\[\]]|%[0-9A-Fa-f]{2})*"
_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[\w.~-]|%[0-9A-Fa-f]{2})*(?::[0-9]{0,5})?"
_OPTION = r"[A-Za-z_][A-Za-z0-9_.-]*=[^&=@#]*"
_URI = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:{_USER}@)?(?P<hosts>{_HOST}(?:,{_HOST})*)"
    rf"(?:/(?P<database>[^@/?#]*))?(?:\?(?P<options>{_OPTION}(?:&{_OPTION})*)?)?"
)


def _parts(uri: str, schemes: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """Return hosts, database and options. A ``ValueError`` continues a sentence that begins with the setting."""
    found = _URI.fullmatch(uri)
    plain = uri.isprintable() and not any(letter.isspace() for letter in uri) and "%00" not in uri
    if found is None or not plain or (schemes and found["scheme"] not in schemes):
        raise ValueError(
            f"is of the form {schemes[0] if schemes else 'scheme'}://user:password@host:port/database; "
            "in a user or password, write each of @ : / ? # [ ] % as %40 %3A %2F %3F %23 %5B %5D %25"
        )
    return found["hosts"], found["database"] or "", (found["options"] or "").split("&")


def _words_of_secret(secret: Secret) -> list[str]:
    """Return the secret, and its words: ``Bearer`` and the key are one header."""
    value = secret.reveal()
    return [part for part in (value, *(word for word in value.split() if len(word) > _SHORT)) if part]
