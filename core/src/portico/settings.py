"""What settings of services are checked for: addresses, keys, and the values that a service understands.

Each check is a validator as attrs calls them, with the settings, the field and the value. Core imports no attrs: a
dataclass calls the same in its ``__post_init__``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from portico.registration import Secret

__all__ = ["SITE", "Check", "SettingsField", "ValueForm", "one_of", "service_address", "service_key", "without_slash"]

Value_contra = TypeVar("Value_contra", contravariant=True)


class SettingsField(Protocol):
    """The field of a settings class, as far as a check needs it: ``attrs.Attribute`` and ``dataclasses.Field`` are."""

    @property
    def name(self) -> str:
        """The name of the setting."""
        ...


Check: TypeAlias = Callable[[Any, SettingsField, Value_contra], None]


@dataclass(frozen=True, slots=True)
class ValueForm:
    """What a service understands of a setting, and of a filter's value: a regular expression, and in words for people.

    >>> country = ValueForm("[A-Z]{2}", "two letters, as in 'DE'")
    >>> country.fits("DE"), country.fits("Germany")
    (True, False)

    It is a check too, which raises ``ValueError``.
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
    """Return the form of some values and no others.

    >>> one_of("day", "week", "month").words
    "'day', 'week' or 'month'"
    """
    pattern = "|".join(map(re.escape, values))
    *first, last = map(repr, values)
    return ValueForm(f"(?i:{pattern})" if ignore_case else pattern, f"{', '.join(first)} or {last}" if first else last)


SITE = ValueForm(r"\S+", "one site without blanks, as in 'example.org'")
"""The form of a site where it is no operator of a query."""


def service_address(example: str) -> Check[str]:
    """Return the check of an address of a service; ``ValueError`` says that it is of the form of ``example``.

    A user name and password in it are refused: an address is shown in messages and logs.
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
            # What stands behind "?" may be a key.
            raise ValueError(f"{field.name} is of the form {example}, not {value.partition('?')[0]!r}")

    return check


def without_slash(address: str) -> str:
    """Return an address without the slashes at its end, so that a path can be put after it."""
    return address.rstrip("/")


def service_key(whence: str = "") -> Check[Secret]:
    """Return the check of a key; ``ValueError`` for what no header can hold, which would be refused far from here.

    ``whence`` is where keys are to be had.
    """

    def check(settings: object, field: SettingsField, value: Secret) -> None:
        key = value.reveal()
        if not key.strip():
            raise ValueError(f"{field.name} is empty{f'; keys are made at {whence}' if whence else ''}")
        if key.split() != [key] or not (key.isascii() and key.isprintable()):
            raise ValueError(f"{field.name} has characters in it that no key has: a blank or a line break, perhaps")

    return check
