"""The formats of JSON Schema 2020-12, as far as the standard library can tell them, and Portico's own.

Dates and times are those of ISO 8601 as Python reads them, with or without an offset: so Portico writes them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from urllib.parse import urlsplit

from portico_basics.jsonschema._patterns import read_pattern

_LABEL = r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d+)?S)?)?)"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
_RELATIVE_POINTER = re.compile(rf"(?:0|[1-9]\d*)(?:#|{_POINTER.pattern})")
_TEMPLATE = re.compile(r"(?:[^{}\s]|\{[^{}\s]+\})*")
_NOT_IN_URI = re.compile(r"[^!-~]|[\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
_NOT_IN_IRI = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")


def _parsed(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, ArithmeticError):
            return False
        return True

    return check


def _matched(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    return 0 < len(local) <= 64 and not re.search(r"\s", local) and bool(re.fullmatch(r"[^\s@]+", host))


def _is_reference(text: str, strange: re.Pattern[str], *, whole: bool) -> bool:
    if strange.search(text):
        return False
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        return False
    return bool(scheme) or not whole


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _parsed(date.fromisoformat),
    "date-time": _parsed(datetime.fromisoformat),
    "decimal": _parsed(Decimal),
    "duration": _matched(_DURATION),
    "email": lambda text: text.isascii() and _email(text),
    "hostname": _matched(_HOSTNAME),
    "idn-email": _email,
    "idn-hostname": _parsed(lambda text: text.encode("idna") or 1 / 0),
    "ipv4": _parsed(ipaddress.IPv4Address),
    "ipv6": lambda text: "%" not in text and _parsed(ipaddress.IPv6Address)(text),
    "iri": lambda text: _is_reference(text, _NOT_IN_IRI, whole=True),
    "iri-reference": lambda text: _is_reference(text, _NOT_IN_IRI, whole=False),
    "json-pointer": _matched(_POINTER),
    "regex": _parsed(read_pattern),
    "relative-json-pointer": _matched(_RELATIVE_POINTER),
    "time": _parsed(time.fromisoformat),
    "uri": lambda text: _is_reference(text, _NOT_IN_URI, whole=True),
    "uri-reference": lambda text: _is_reference(text, _NOT_IN_URI, whole=False),
    "uri-template": _matched(_TEMPLATE),
    "uuid": _matched(_UUID),
}
