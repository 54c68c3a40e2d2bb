"""Checks for settings of services: addresses, keys, and the values that a service understands.

attrs can call each check as a validator, with the settings, the field and the value. A dataclass can call it in its
``__post_init__``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from portico.registration import Secret

__all__ = ["Check", "SettingsField", "ValueForm", "one_of", "service_address", "service_key"]

Value_contra = TypeVar("Value_contra", contravariant=True)


class SettingsField(Protocol):
    """A field of a settings class, such as ``attrs.Attribute`` or ``dataclasses.Field``."""

    @property
    def name(self) -> str:
        """The name of the setting."""
        ...


Check: TypeAlias = Callable[[Any, SettingsField, Value_contra], None]


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

    def __call__(self, settings: object, field: SettingsField, value: str) -> None:
        """Check a setting."""
        if not self.fits(value):
            raise ValueError(f"{field.name} takes {self.words}, not {value!r}")


def one_of(*values: str, ignore_case: bool = False) -> ValueForm:
    """Return a form that takes only these values.

    >>> one_of("day", "week", "month").words
    "'day', 'week' or 'month'"
    """
    pattern = "|".join(map(re.escape, values))
    *first, last = map(repr, values)
    return ValueForm(f"(?i:{pattern})" if ignore_case else pattern, f"{', '.join(first)} or {last}" if first else last)


def service_address(example: str) -> Check[str]:
    """Return a check of a service's address; its ``ValueError`` shows ``example``.

    It refuses a user name or a password in the address, because addresses are shown in messages and logs.
    """

    def check(settings: object, field: SettingsField, value: str) -> None:
        try:
            parts = urlsplit(value)
            named, port = bool(parts.hostname), parts.port
        except ValueError:
            raise ValueError(f"{field.name} is no address; it is of the form {example}") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{field.name} has a user name or password in it, which would be shown in messages")
        plain = not (parts.query or parts.fragment) and not any(letter.isspace() for letter in value)
        if parts.scheme not in {"http", "https"} or not named or port == 0 or not plain:
            # The part after "?" may be a key.
            raise ValueError(f"{field.name} is of the form {example}, not {value.partition('?')[0]!r}")

    return check


def service_key(whence: str = "") -> Check[Secret]:
    """Return a check of a key: it must not be empty, and a header must be able to hold it.

    ``whence`` is the address where keys are made, for the message.
    """

    def check(settings: object, field: SettingsField, value: Secret) -> None:
        key = value.reveal()
        if not key.strip():
            raise ValueError(f"{field.name} is empty{f'; keys are made at {whence}' if whence else ''}")
        if key.split() != [key] or not (key.isascii() and key.isprintable()):
            raise ValueError(f"{field.name} has characters in it that no key has: a blank or a line break, perhaps")

    return check
