"""What a package registers, and the forms of its settings."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from portico.errors import PorticoError, StoreError

P = TypeVar("P")


_SHORT = 6
"""Characters of a word that is too short to be a secret."""
_SHORT_PASSWORD = 4
_LETTERS = re.compile(r"\\+|.", re.DOTALL)
_IN_JSON = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_IN_HTML = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", "=": "equals", "/": "sol", "`": "grave"}


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
    def redact(words: str, hidden: Iterable[Secret | None]) -> str:
        """Return words from outside without the secrets in them.

        >>> Secret.redact("The key s3cret is wrong.", [Secret("s3cret")])
        'The key ******** is wrong.'
        """
        forms = sorted({form for each in hidden if each for form in _forms_of(each.reveal())}, key=len, reverse=True)
        return re.sub("|".join(map(_pattern_of, forms)), str(Secret("")), words) if forms else words

    @staticmethod
    def hiding(hidden: Iterable[Secret | None], loggers: Iterable[str] = ()) -> AbstractContextManager[None]:
        """Mask secrets in what leaves a block that sends them: a service may repeat what it was sent.

        >>> with Secret.hiding([Secret("s3cret")]):
        ...     raise PorticoError("Acme says: s3cret is wrong")
        Traceback (most recent call last):
        ...
        portico.errors.PorticoError: Acme says: ******** is wrong

        A ``PorticoError`` loses them from its message and its texts. It also loses causes that quote them, and the
        frames of the block, whose variables some tools show. The records of ``loggers`` lose them until the block ends.
        """
        return _Hiding(tuple(hidden), loggers)

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


def _forms_of(value: str) -> Iterator[str]:
    """Yield a secret and its parts: ``Bearer`` and the key are one header, a user and a password one address."""
    yield value
    yield from (word for word in value.split() if len(word) > _SHORT)
    user, colon, password = (value.partition("://")[2].rpartition("@")[0] or value).partition(":")
    if colon:
        yield b64encode(f"{user}:{password}".encode()).decode()
    if len(password) >= _SHORT_PASSWORD:
        yield password
    elif user and colon and not password:  # services take a key as the user
        yield user


def _pattern_of(form: str) -> str:
    """Return a pattern for a secret, as it is and with its odd characters as addresses, JSON and HTML write them."""
    letters, pattern = _LETTERS.findall(form), ""
    for before, each in zip(("", *letters), letters, strict=False):
        # Backslashes take those that belong to the letter after them.
        pattern += each if each.isascii() and each.isalnum() else _ways_of(each, 0 if before[:1] == "\\" else 1)
    # A local server's key may be no more than "x".
    return pattern if len(form) > _SHORT else rf"(?<!\w){pattern}(?!\w)"


def _ways_of(letter: str, slashes: int) -> str:
    """Return a pattern for a letter, or for backslashes in a row: JSON doubles them each time.

    At least so many ``slashes`` stand before a code of JSON.
    """

    # One way of writing may be inside of another, and quoted once more with each redirect.
    def quoted(text: str) -> str:
        written = ("".join(f"%(?:25)*{byte:02x}" for byte in each.encode("utf-8", "replace")) for each in text)
        return "".join(f"(?:{re.escape(each)}|{escaped})" for each, escaped in zip(text, written, strict=True))

    def entity(one: str) -> str:
        numbers = f"{quoted('#')}0*{quoted(f'{ord(one)}')}|{quoted('#x')}0*{quoted(f'{ord(one):x}')}"
        return f"(?:{quoted(_IN_HTML[one])}|{numbers}){quoted(';')}"

    slash, first = quoted("\\"), letter[0]
    units = first.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"{slash}{{{slashes},64}}+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    if first in _IN_JSON:
        escaped += f"|{slash}{{{slashes},64}}+{_IN_JSON[first]}"
    ways = [f"{slash}{{0,64}}+{quoted(letter)}", escaped]
    if first == "\\":
        ways = [f"{slash}{{{len(letter)},{len(letter) + 64}}}+", f"(?:{escaped}){{{len(letter)}}}"]
    if first in _IN_HTML:
        ways.append(f"{quoted('&')}(?:{entity('&')})*{entity(first)}")
    return f"(?i:{'|'.join(ways)}{'|' + quoted('+') if letter == ' ' else ''})"


class _Hiding(AbstractContextManager[None]):
    def __init__(self, hidden: tuple[Secret | None, ...], loggers: Iterable[str]) -> None:
        import logging

        self._hidden, self._formatter = hidden, logging.Formatter()
        self._loggers = [each for each in map(logging.getLogger, loggers) if each.isEnabledFor(logging.INFO)]

    def __enter__(self) -> None:
        # What was raised before the block is not of it.
        self._before = sys.exception()
        for logger in self._loggers:
            logger.addFilter(self.filter)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for logger in self._loggers:
            logger.removeFilter(self.filter)
        if isinstance(error, PorticoError):
            error.args = tuple(self._mask(each) if isinstance(each, str) else each for each in error.args)
            vars(error).update({name: self._mask(each) for name, each in vars(error).items() if isinstance(each, str)})
            self._take_frames(error)

    def filter(self, record: Any) -> bool:
        with suppress(Exception):  # a record of wrong arguments is reported by its handler
            record.msg, record.args = self._mask(record.getMessage()), ()
        if record.exc_info:
            record.exc_text, record.exc_info = self._mask(self._formatter.formatException(record.exc_info)), None
        return True

    def _mask(self, text: str) -> str:
        return Secret.redact(text, self._hidden)

    def _take_frames(self, error: BaseException) -> None:
        known, waiting = {id(self._before)}, [error]
        while waiting:
            each = waiting.pop()
            known.add(id(each))
            each.__traceback__ = None
            for link in ("__cause__", "__context__"):
                other = getattr(each, link)
                if other is not None and self._mask(text := f"{other} {other!r}") != text:
                    setattr(each, link, None)
                elif other is not None and id(other) not in known:
                    waiting.append(other)
